# A disk that stalls for five seconds, and one that disappears, under load, with and without LUC.
. /t/pressure_lib.sh

# stall OP stock|luc: one request takes 5 s; a FUA write is a commit's record.
stall() {
	make
	steer "$2"
	syncers load /mnt/p 6 6.6 /tmp/acks > /tmp/load &
	usleep 300000
	put lucdisk0 fault "$1 0 131071 1000000 5000000000 1"
	wait $!
	is "requests that stalled" 1 "$(get lucdisk0 fault_hits)"
	is "fsyncs that failed" 0 "$(val failed /tmp/load)"
	longest=$(val max_us /tmp/load)
	late=$(val late /tmp/load)
	unsteer "$2"
	tell "stall, $1, $2: longest fsync $longest us, $late in the last second; $did"
	unmake
}

for op in fua flush; do
	stall $op stock
	stock_longest=$longest stock_late=$late
	stall $op luc
	# The disk's five seconds, and at most one hold of ours.
	most "longest fsync, stalled $op" $((stock_longest + 52000)) "$longest"
	yes "afterwards $late fsyncs a second, $stock_late without LUC" \
		test "$late" -ge $((stock_late * 9 / 10))
done

# Off and unloaded in the middle of a stall: nobody waits for the disk.
make
steer luc
syncers load /mnt/p 6 3.5 > /tmp/load &
usleep 300000
put lucdisk0 fault "fua 0 131071 1000000 3000000000 1"
usleep 200000
unsteer luc
tell "off during a stall; $did"
wait $!
is "fsyncs that failed" 0 "$(val failed /tmp/load)"
unmake

# away stock|luc FIRST: the plug is pulled, then either the module or the file
# system goes first.
away() {
	make
	# Read the disk into memory, so that no create fails for lack of a block of inodes and ends
	# the load before an fsync fails.
	cat /dev/lucdisk0 > /dev/null
	steer "$1"
	syncers load /mnt/p 6 0.7 /tmp/acks > /tmp/load &
	usleep 250000
	begin_us=$(now_us)
	put lucdisk0 power 0
	away_us=$(($(now_us) - begin_us))
	wait $!
	touch /mnt/p/after 2> /dev/null
	facts="new files $?, fsync fails: $(($(val failed /tmp/load) > 0))"
	[ "$2" = umount ] && { umount /mnt/p || bad "umount of a disk that is gone"; }
	unsteer "$1"
	[ "$2" = umount ] || umount /mnt/p || bad "umount of a disk that is gone"
	put lucdisk0 power 1
	e2fsck -fy /dev/lucdisk0 > /tmp/fsck.out 2>&1
	facts="$facts, e2fsck $(($? > 1))"
	mount -t ext4 /dev/lucdisk0 /mnt/p || bad "mount afterwards"
	syncers verify /mnt/p /tmp/acks "$begin_us" > /tmp/verify
	facts="$facts, lost $(val lost /tmp/verify), wrong $(val wrong /tmp/verify)"
	tell "disk gone, $1, $2 first: $(val acked /tmp/load) files, errno $(val errors /tmp/load)," \
		"$(val late /tmp/verify) acknowledged all the same," \
		"longest fsync $(val max_us /tmp/load) us, power off $away_us us; $did; $facts"
	unmake
}

for first in module umount; do
	away stock $first
	stock=$facts
	away luc $first
	is "disk gone, $first first" "$stock" "$facts"
	case $facts in
	*"lost 0, wrong 0") ok "every promise kept" ;;
	*) bad "promises broken: $facts" ;;
	esac
done
finish
