# Without memory for a copy, a buffer is written the stock way and counted, and that is all.
. /t/pressure_lib.sh
alloc=/sys/module/pressure_alloc/parameters

# Counts the copies made and failed while every fail_every-th copy finds no memory. Copying pauses
# now and then, so be patient.
phase() { # fail_every
	echo "$1" > $alloc/fail_every
	usleep 100000
	copies_before=$(counter lucdisk0 copies) failed_before=$(counter lucdisk0 copies_failed)
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		usleep 150000
		copies=$(($(counter lucdisk0 copies) - copies_before))
		failed=$(($(counter lucdisk0 copies_failed) - failed_before))
		[ $((copies + failed)) -lt 90 ] || break
	done
	tell "$function, fail_every=$1: $copies copies, $failed given up"
}

# starve FUNCTION MKFS_ARG...
starve() {
	function=$1
	insmod /t/pressure_alloc.ko "function=$function" || bad "no kprobe at $function"
	shift
	make "$@"
	steer luc
	syncers load /mnt/p 6 4 /tmp/acks > /tmp/load &
	phase 0
	yes "with memory: $copies copies, $failed given up" test "$copies" -gt 20 -a "$failed" = 0
	phase 1
	yes "without: $copies copies, $failed given up" test "$copies" = 0 -a "$failed" -gt 20
	phase 3
	yes "with two thirds: $copies copies, $failed given up" \
		test "$copies" -gt 20 -a "$failed" -gt 10
	wait $!
	is "fsyncs that failed" 0 "$(val failed /tmp/load)"
	given_up=$(counter lucdisk0 copies_failed)
	is "all of them are counted" "$(cat $alloc/failed)" "$given_up"
	yes "the load went on: $(val late /tmp/load) files in the last second" \
		test "$(val late /tmp/load)" -gt 50
	unsteer luc
	tell "longest fsync $(val max_us /tmp/load) us, $given_up copies given up; $did"
	umount /mnt/p
	yes "e2fsck" e2fsck -fn /dev/lucdisk0
	mount -t ext4 /dev/lucdisk0 /mnt/p
	yes "promises: $(syncers verify /mnt/p /tmp/acks)" syncers verify /mnt/p /tmp/acks
	unmake
	rmmod pressure_alloc || bad "rmmod pressure_alloc"
}

# The allocators that this kernel has; with small blocks jbd2's own before 7.2 (kernel commit
# bbe9015f2343).
whole=__get_free_pages small=jbd2_alloc
grep -q ' get_free_pages_noprof$' /proc/kallsyms && whole=get_free_pages_noprof
grep -q ' jbd2_alloc$' /proc/kallsyms || whole=__kmalloc_noprof small=__kmalloc_noprof
starve $whole
starve $small -b 1024

# exhaust stock|luc: takes all memory, again and again; the kernel kills the task that took it.
exhaust() {
	disk lucdisk0 size_mib=32 write_latency_ns=500000
	# The disk lies in memory too: it must get all of its memory first.
	dd if=/dev/zero of=/dev/lucdisk0 bs=1M count=32 2> /dev/null
	mkfs lucdisk0 -J size=4
	mount -t ext4 /dev/lucdisk0 /mnt/p
	steer "$1"
	syncers load /mnt/p 6 3.5 /tmp/acks > /tmp/load &
	load=$!
	echo -1000 > /proc/$load/oom_score_adj
	hogs=0
	while kill -0 $load 2> /dev/null; do
		# Only the kernel ends it.
		syncers hog > /tmp/hog 2>&1
		[ $? = 137 ] || { bad "hog: $(cat /tmp/hog)"; break; }
		hogs=$((hogs + 1))
	done
	wait $load
	yes "memory ran out: $hogs" test $hogs -ge 1
	is "errors" "" "$(val errors /tmp/load)"
	given_up=-
	[ -d $fs ] && given_up=$(counter lucdisk0 copies_failed)
	unsteer "$1"
	tell "memory ran out ($hogs), $1: copies given up: $given_up," \
		"$(val acked /tmp/load) files, longest fsync $(val max_us /tmp/load) us; $did"
	umount /mnt/p
	yes "e2fsck" e2fsck -fn /dev/lucdisk0
	mount -t ext4 /dev/lucdisk0 /mnt/p
	yes "promises: $(syncers verify /mnt/p /tmp/acks)" syncers verify /mnt/p /tmp/acks
	unmake
}

exhaust stock
exhaust luc
finish
