# A kernel with PREEMPT_RT: LUC says so, and leaves nothing behind.
. /t/lib.sh

is "a kernel with PREEMPT_RT" 1 "$(cat /sys/kernel/realtime)"
check 12 "luc: kernel *: the module refused it (kernels with PREEMPT_RT are not supported)*" \
	luc on /mnt/0
yes "no trace in sysfs" gone /sys/fs/luc
yes "no module" test ! -e /sys/module/luc
bench /mnt/0 4
finish
