# The longest that anything waits, without LUC and with it: an fsync, a write, a
# freeze, an umount. Policy static holds every commit, so that its waits are
# those of the worst hold; policy luc is what people use.
. /t/pressure_lib.sh

# longest SO_FAR FILE: the larger of SO_FAR and the longest wait in a line of syncers.
longest() {
	now=$(val max_us "$2")
	[ "$1" -gt "$now" ] && echo "$1" || echo "$now"
}

# measure stock|luc|static: sets fsync_us, write_us, freeze_us and umount_us.
measure() {
	make
	steer "$1"
	syncers load /mnt/p 4 3 > /tmp/load
	is "fsyncs that failed, $1" 0 "$(val failed /tmp/load)"
	fsync_us=$(val max_us /tmp/load)
	write_us=$(val writer_max_us /tmp/load)
	# A task that arrives while the file system is frozen waits for the thaw: not LUC's doing.
	syncers load /mnt/p 4 3 > /tmp/load &
	yes "40 freezes, $1" syncers freeze /mnt/p 40
	freeze_us=$(val max_us /tmp/yes.out)
	wait $!
	is "fsyncs that failed beside freezes, $1" 0 "$(val failed /tmp/load)"
	unsteer "$1"
	umount_us=0
	for i in 1 2 3 4 5 6 7 8; do
		steer "$1"
		syncers load /mnt/p 4 0.1 > /tmp/load
		yes "umount $i, $1" syncers umount /mnt/p
		umount_us=$(longest $umount_us /tmp/yes.out)
		mount -t ext4 /dev/lucdisk0 /mnt/p || bad "mount $i"
	done
	[ "$1" = stock ] || luc off --all --unload > /dev/null || bad "luc off"
	unmake
	tell "longest waits, $1: fsync $fsync_us us, write $write_us us, freeze $freeze_us us," \
		"umount $umount_us us; $did"
}

measure stock
stock_fsync_us=$fsync_us stock_write_us=$write_us
stock_freeze_us=$freeze_us stock_umount_us=$umount_us
# delay_limit_us and a wake-up.
extra_us=52000
for policy in luc static; do
	measure $policy
	for wait in fsync write freeze umount; do
		eval "got_us=\$${wait}_us base_us=\$stock_${wait}_us"
		most "longest $wait, $policy" $((base_us + extra_us)) "$got_us"
		tell "extra, $policy: longest $wait $((got_us - base_us)) us, bound $extra_us us"
	done
done
finish
