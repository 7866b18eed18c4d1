#!/bin/sh
# A file system in a file on another one, as a virtual machine has its own: what LUC gives on
# neither, below, above and on both. Prints a line per measurement, arms in both orders.
#
#   luc-lab run --kernel 6.12 --modprobe loop --disk nvme --file scripts/stacks.sh:/s -- sh /s
#
# THREADS     tasks that create files above, and sync each, 16
# NEIGHBOURS  tasks that do the same below, 0
# TIME_S      time of a measurement, 3
set -eu

image=/mnt/0/image above=/mnt/above
threads=${THREADS:-16} neighbours=${NEIGHBOURS:-0} seconds=${TIME_S:-3}

# A written image, so that writes above are overwrites below.
dd if=/dev/zero of=$image bs=1M count=192 2> /dev/null
sync
loop=$(losetup -f)
losetup "$loop" $image
mkdir -p $above /mnt/0/neighbours

measured() { # threads, folder
	luc-lab bench create-fsync --threads "$1" --seconds "$seconds" --warmup-s 1 --json "$2"
}

measure() { # arm
	/sbin/mke2fs -q -F -t ext4 -T ext4 -b 4096 -E lazy_itable_init=1,lazy_journal_init=1,nodiscard "$loop"
	mount -o noinit_itable "$loop" $above
	case $1 in below | both) luc on /mnt/0 > /dev/null ;; esac
	case $1 in above | both) luc on $above > /dev/null ;; esac
	if [ "$neighbours" -gt 0 ]; then
		measured "$neighbours" /mnt/0/neighbours > /tmp/below &
	fi
	measured "$threads" $above > /tmp/above
	wait
	for place in above below; do
		[ ! -s /tmp/$place ] || echo "$place, LUC on $1:" \
			$(tr , '\n' < /tmp/$place | grep -oE '"(ops_per_s|mean_ns|p99_ns)": *[0-9.]+' | head -n 3)
	done
	: > /tmp/below
	luc off --all > /dev/null 2>&1 || :
	umount $above
}

for arm in neither below above both both above below neither; do
	measure $arm
done
losetup -d "$loop"
