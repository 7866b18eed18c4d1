# The disk fails at the start of the journal, which is aborted under LUC when it comes around.
. /t/lib.sh
bad_blocks=/sys/kernel/config/nullb/nullb0/badblocks
block=$(debugfs -R "bmap <8> 0" /dev/nullb0 2> /dev/null)
yes "the journal begins at block $block" test "$block" -gt 0
# One entry of the driver's table: older drivers get more than one wrong.
range="$((block * 8))-$((block * 8 + 511))"

luc on /mnt/0 > /dev/null
luc-lab bench create-fsync --threads 8 --seconds 5 --warmup-s 0 /mnt/0 > /tmp/load 2>&1 &
usleep 300000
echo "+$range" > $bad_blocks || bad "badblocks"
wait $!
is "exit code of the load" 14 $?
is "lines of the load" 1 "$(grep -c . /tmp/load)"
yes "one line about it" grep -q "^luc-lab: create-fsync: " /tmp/load
check 36 "*" luc status /mnt/0
check 14 "luc-lab: create-fsync: *" timeout 10 luc-lab bench create-fsync --seconds 0.1 /mnt/0
check 0 "off: *" luc off --all
yes "umount after the abort" umount /mnt/0
yes "rmmod after the abort" rmmod luc

# A new start on a healthy disk, and another abort that ends in an unmount.
echo "-$range" > $bad_blocks || bad "badblocks again"
e2fsck -fy /dev/nullb0 > /tmp/fsck.out 2>&1
[ $? -le 1 ] && ok "repaired" || bad "e2fsck: $(tail -n 3 /tmp/fsck.out)"
mount -t ext4 /dev/nullb0 /mnt/0
bench /mnt/0 8
check 0 "on: *" luc on /mnt/0
bench /mnt/0 8
luc-lab bench create-fsync --threads 8 --seconds 5 --warmup-s 0 /mnt/0 > /tmp/load 2>&1 &
usleep 300000
echo "+$range" > $bad_blocks
wait $!
yes "umount of an aborted file system with LUC on" umount /mnt/0
eventually "its entry goes" gone /sys/fs/luc/nullb0
eventually "rmmod" rmmod luc
echo "-$range" > $bad_blocks
e2fsck -fy /dev/nullb0 > /tmp/fsck.out 2>&1
[ $? -le 1 ] && ok "repaired" || bad "e2fsck: $(tail -n 3 /tmp/fsck.out)"
mount -t ext4 /dev/nullb0 /mnt/0
bench /mnt/0 8
finish
