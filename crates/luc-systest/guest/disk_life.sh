# Disks are added and removed under load, and leave nothing behind.
. /t/disk_lib.sh

# Runs until the disk fails. It has a node of its own: without a node, dd would make a file.
load() {
	while dd if=/dev/zero of=/tmp/node bs=16k count=64 seek="$1" oflag=direct conv=notrunc; do
		dd if=/tmp/node of=/dev/null bs=64k count=8 iflag=direct
	done 2> /dev/null
}

memory() { # kB that are free once caches are dropped
	sync
	echo 3 > /proc/sys/vm/drop_caches
	usleep 100000
	awk '/^MemFree/ { f = $2 } /^SReclaimable/ { f += $2 } END { print f }' /proc/meminfo
}

# One life: recorded and replicated, under load, with a stall in every third.
life() {
	disk lucdisk0 size_mib=8 write_latency_ns=300000 read_latency_ns=200000 channels=2 \
		cache_bytes=$(($1 % 2 * 262144)) cache_write_ns=20000 flush_ns=1000000 "record_mib=$((1 + $1 % 3))"
	put lucdisk0 record 1
	rm -f /tmp/node
	# shellcheck disable=SC2046 # two words
	mknod /tmp/node b $(tr : ' ' < /sys/block/lucdisk0/dev)
	for at in 0 100 200; do load $at & done
	[ $(($1 % 3)) = 0 ] && put lucdisk0 fault "any 0 999999 100000 3600000000000"
	usleep $((20000 + $1 * 7919 % 20000))
	# Refused if the small record is full by now.
	(echo -n "life $1" > /dev/lucdisk0-log) 2> /dev/null
	disk lucdisk_b replica=lucdisk0
	put lucdisk_b cut "$(($(here lucdisk0) / 2)) random $1"
	dd if=/dev/lucdisk_b of=/dev/null bs=64k 2> /dev/null
	case $(($1 % 4)) in
	0) put lucdisk0 power 0 && rmdir $disks/lucdisk0 ;;
	1) rmdir $disks/lucdisk0 ;;
	2) put lucdisk0 fault "any 0 999999 1000000 eio" && put lucdisk0 power 0 && rmdir $disks/lucdisk0 ;;
	3)
		# One of these waits for the others, which may be stalled.
		put lucdisk0 fault ""
		[ $(($1 % 3)) = 0 ] || put lucdisk0 record 0
		put lucdisk0 power 0
		put lucdisk0 power 1
		load 300 &
		usleep 5000
		undisk lucdisk0
		;;
	esac
	wait
	# The record outlives its disk.
	put lucdisk_b cut "1 all $1"
	undisk lucdisk_b
	[ -e /dev/lucdisk0 ] || [ -e /dev/lucdisk0-log ] && bad "nodes are left in life $1"
}

# A leak shows in every part; memory that the kernel keeps for itself does not, though it has shown
# in two parts that follow each other.
lives=0 free= after=
for _ in 1 2 3 4 5 6; do
	for _ in $(seq 20); do
		lives=$((lives + 1))
		life $lives
	done
	before=$after after=$(memory)
	free="$free $after"
	[ -n "$before" ] && [ $((before - after)) -lt 750 ] && break
done
yes "$lives lives leak nothing: kB free after each 20:$free" test $((before - after)) -lt 750

# Nothing that is still in use is removed.
disk lucdisk0 size_mib=16
check 1 "*" rmmod lucdisk
put lucdisk0 record 1
exec 3<> /dev/lucdisk0-log
echo -n one >&3
undisk lucdisk0
is "an old file of marks reads" 15 "$(wc -c < /proc/self/fd/3 2> /dev/null || cat <&3 | wc -c)"
check 1 "*" sh -c "echo -n two >&3"
check 1 "*" rmmod lucdisk
exec 3>&-
yes "rmmod" rmmod lucdisk
yes "insmod" insmod /t/lucdisk.ko

# The power fails under a mounted file system.
disk lucdisk0 size_mib=64 write_latency_ns=200000 cache_bytes=1048576
mkfs lucdisk0
mount -t ext4 /dev/lucdisk0 /mnt
noise 1000000 1 > /mnt/file
put lucdisk0 power 0
check 1 "*" touch /mnt/other
umount /mnt
put lucdisk0 power 1
yes "the journal recovers" mount -t ext4 /dev/lucdisk0 /mnt
umount /mnt
yes "e2fsck" e2fsck -fn /dev/lucdisk0
undisk lucdisk0
yes "rmmod" rmmod lucdisk
finish
