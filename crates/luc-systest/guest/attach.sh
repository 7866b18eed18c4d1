# Switching LUC on while others switch it off or unmount; where hooks are not called; and on kernels
# that nobody tested. /mnt/1 is on a very slow disk. The module poisons the memory that it frees.
. /t/lib.sh
dev=$(cat /sys/class/block/nullb0/dev)
fs=/sys/fs/luc/nullb0
insmod /t/poisoned.ko

# An attach looks at all superblocks twice, before and after it adds its entry. The second look
# waits for the unmount of a slow disk, and meanwhile the entry is removed.
met=0
for ms in 4 8 12 16 24 32 48 64; do
	seq 20000 > /mnt/1/dirty
	(echo "$dev" > /sys/fs/luc/attach) 2> /tmp/attach.out &
	attach=$!
	usleep ${ms}000
	umount /mnt/1 &
	umount=$!
	usleep 150000
	if kill -0 $attach 2> /dev/null && [ -e $fs ]; then
		met=$((met + 1))
		echo "$dev" > /sys/fs/luc/detach || bad "detach at $ms ms"
	fi
	wait $attach
	wait $umount || bad "umount at $ms ms"
	[ -e $fs ] && { echo "$dev" > /sys/fs/luc/detach || bad "detach after $ms ms"; }
	mount /dev/nullb1 /mnt/1
done
yes "in $met of 8 rounds the entry went during the attach" test $met -gt 0
bench /mnt/0 8

# On and off at once: an entry may be added while the folder of the last one is still there.
i=0
while [ $i -lt 60 ]; do
	(echo "$dev" > /sys/fs/luc/detach) 2> /dev/null &
	usleep $((i * 211 % 3000))
	(echo "$dev" > /sys/fs/luc/attach) 2> /dev/null
	wait
	i=$((i + 1))
done
ok "$i times on and off at once"
# The last attach of the loop may have come too early and been refused.
[ ! -e $fs ] || echo "$dev" > /sys/fs/luc/detach || bad "detach after the loop"
eventually "rmmod" rmmod luc

ON="on: /mnt/0 (nullb0, ext4): policy luc, steering, set point automatic"
ftrace=/proc/sys/kernel/ftrace_enabled
echo 0 > $ftrace
check 11 "luc: kernel.ftrace_enabled: it is 0, so no hook is ever called; *" luc on /mnt/0
yes "LUC is not left loaded" gone /sys/fs/luc
echo 1 > $ftrace
check 0 "$ON" luc on /mnt/0
(echo 0 > $ftrace) 2> /dev/null && bad "the hooks were switched off below LUC"
is "ftrace_enabled" 1 "$(cat $ftrace)"
check 0 "*module luc removed" luc off --all --unload
yes "without LUC it can be cleared" sh -c "echo 0 > $ftrace"
echo 1 > $ftrace

check 12 "luc: kernel *: the module refused it (not tested on kernel *; untested_kernel=1 loads it all the same)*" \
	luc on /mnt/0 --module /t/untested.ko
check 12 "luc: kernel *: the module refused it (not tested on kernel *, which is no stable release *)*" \
	luc on /mnt/0 --module /t/vendor.ko
check 12 "luc: kernel *: the module refused it (kernels with PREEMPT_RT are not supported)*" \
	luc on /mnt/0 --module /t/preempt_rt.ko
yes "told to, it loads" insmod /t/untested.ko untested_kernel=1
check 0 "$ON" luc on /mnt/0
check 0 "*module luc removed" luc off --all --unload
bench /mnt/0 8
finish
