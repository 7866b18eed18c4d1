# jbd2 stays while LUC keeps addresses in its text; and LUC loads only if jbd2 is there.
. /t/lib.sh
modules=$(dirname "$(find /lib/modules -name jbd2.ko)")

yes "LUC loads" insmod /lib/luc/luc.ko
umount /mnt/0
yes "ext4 leaves" rmmod ext4
rmmod jbd2 2> /dev/null && bad "jbd2 left while LUC was loaded"
yes "jbd2 is still there" grep -q "^jbd2 " /proc/modules
yes "LUC leaves" rmmod luc
yes "now jbd2 leaves" rmmod jbd2
insmod /lib/luc/luc.ko 2> /dev/null && bad "LUC loaded without jbd2"
dmesg | grep -q "luc: Unknown symbol jbd2_" || bad "the kernel does not say what is missing"
yes "jbd2 comes again" insmod "$modules/jbd2.ko"
yes "ext4 comes again" insmod "$modules/ext4.ko"
mount /dev/nullb0 /mnt/0
users=$(cat /sys/module/ext4/refcnt)
check 0 "on: /mnt/0 (nullb0, ext4): policy luc, steering, set point automatic" luc on /mnt/0
is "users of ext4, which has a hook" $((users + 1)) "$(cat /sys/module/ext4/refcnt)"
bench /mnt/0 8
yes "it holds commits" test "$(counter nullb0 commits_held)" -gt 0
check 0 "*module luc removed" luc off --all --unload
is "users of ext4" "$users" "$(cat /sys/module/ext4/refcnt)"
finish
