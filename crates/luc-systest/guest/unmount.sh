# Unmounting, lazily unmounting and remounting a file system that LUC steers.
. /t/lib.sh
fs=/sys/fs/luc/nullb0

luc on /mnt/0 > /dev/null
bench /mnt/0 8
yes "umount while LUC is on" umount /mnt/0
eventually "the entry goes with the file system" gone $fs
check 0 "LUC is on for no file system; the module is loaded" luc status
eventually "no hook is left" sh -c '! grep " attached" /sys/fs/luc/hooks'
check 5 "luc: /dev/nullb0: *" luc on /dev/nullb0
mount /dev/nullb0 /mnt/0
bench /mnt/0 8
check 0 "on: /mnt/0 *" luc on /mnt/0
bench /mnt/0 8

# The file system lives until the last file is closed, and so does its entry.
exec 3> /mnt/0/open
umount -l /mnt/0
echo more >&3
yes "the entry stays while a file is open" test -e $fs
check 0 "nullb0 (*), not mounted here*" luc status
# No path leads there any more, but its device does, by each of its names.
check 9 "luc: /mnt/0: LUC is not on *luc status*" luc off /mnt/0
check 5 "luc: /mnt/0/open: *" luc off /mnt/0/open
device=$(cat /sys/class/block/nullb0/dev)
# Without types in the kernel the doctor first notes what its verdict rests on.
note=
[ -e /sys/kernel/btf/vmlinux ] || note="luc: note: *"
for name in nullb0 /dev/nullb0 "$device"; do
	check 0 "nullb0 ($device), not mounted here*steering*" luc status "$name"
	check 0 "$name: batching off (was returns)" luc set "$name" batching off
	check 0 "$note$name: no fsync pressure*" luc doctor --seconds 1 "$name"
	check 0 "off: nullb0 (nullb0)*" luc off "$name"
	check 0 "on: *(nullb0, ext4)*" luc on "$name"
done
check 0 "${note}nullb0: no fsync pressure*" luc doctor --all --seconds 1
check 0 "off: nullb0 (nullb0)*" luc off --all
check 0 "LUC is on for no file system*" luc status
echo again >&3
exec 3>&-
mount /dev/nullb0 /mnt/0
luc on /mnt/0 > /dev/null
exec 3> /mnt/0/open
umount -l /mnt/0
exec 3>&-
eventually "the entry goes with the last file" gone $fs
mount /dev/nullb0 /mnt/0

# Read-only and back; LUC stays on, as the administrator did not switch it off.
luc on /mnt/0 > /dev/null
bench /mnt/0 8
yes "remount read-only" mount -o remount,ro /mnt/0
yes "status of a read-only file system" luc status /mnt/0
check 14 "luc-lab: create-fsync: *" luc-lab bench create-fsync --seconds 0.1 /mnt/0
yes "remount read-write" mount -o remount,rw /mnt/0
bench /mnt/0 8
yes "remount read-only again" mount -o remount,ro /mnt/0
check 0 "off: /mnt/0 *" luc off /mnt/0
check 7 "luc: /mnt/0: mounted read-only*" luc on /mnt/0
yes "remount read-write again" mount -o remount,rw /mnt/0

# Unmounting races with switching on: the first to come wins.
i=0
while [ $i -lt 20 ]; do
	luc on /dev/nullb0 > /tmp/on.out 2>&1 &
	usleep $((i * 1500))
	umount /mnt/0 || bad "umount in turn $i"
	wait $!
	case $? in
	0 | 5) ;;
	*) bad "luc on in turn $i: $(cat /tmp/on.out)" ;;
	esac
	eventually "no entry after turn $i" gone $fs
	mount /dev/nullb0 /mnt/0
	i=$((i + 1))
done
check 0 "*module luc removed" luc off --all --unload
bench /mnt/0 8
finish
