# Transaction numbers are 32 bits wide and wrap: a journal beyond 2^31 gets the
# batches that any other gets.
. /t/lib.sh
umount /mnt/0

starts_at() { # number of the first transaction, less one
	mkfs.ext4 -q -F /dev/nullb0 || bad "mkfs"
	# s_sequence of the journal's superblock, the first block of inode 8: big endian,
	# byte 24.
	block=$(debugfs -R "bmap <8> 0" /dev/nullb0 2> /dev/null)
	size=$(dumpe2fs -h /dev/nullb0 2> /dev/null | sed -n 's/^Block size: *//p')
	printf "$(printf '\\%03o\\%03o\\%03o\\%03o' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) \
		$(($1 >> 8 & 255)) $(($1 & 255)))" |
		dd of=/dev/nullb0 bs=1 seek=$((block * size + 24)) conv=notrunc 2> /dev/null
	mount /dev/nullb0 /mnt/0 || bad "mount with number $1"
	luc on /mnt/0 > /dev/null
	bench /mnt/0 8
	held=$(counter nullb0 commits_held)
	met=$(counter nullb0 closed_setpoint)
	events=$(counter nullb0 sync_events)
	commits=$(counter nullb0 commits)
	yes "from $1 on, $commits commits: $held held, $met met their set point" \
		test "$met" -gt 5
	yes "they served $events events" test "$events" -gt $((commits * 3))
	luc off --all > /dev/null
	umount /mnt/0
	yes "fsck from $1 on" e2fsck -fn /dev/nullb0
}

starts_at 1
# Through 2^31, from beyond it, and through 2^32.
starts_at 2147483640
starts_at 2147484000
starts_at 4294967280
mount /dev/nullb0 /mnt/0
finish
