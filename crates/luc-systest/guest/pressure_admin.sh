# An administrator, a scheduler or a clock interferes while commits are held.
. /t/pressure_lib.sh

# Policy static holds every commit until 20 ms after its last arrival, 50 ms at most, so that every
# event meets a held commit.
holding() {
	yes "commits held: $(counter lucdisk0 commits_held)" \
		test "$(counter lucdisk0 commits_held)" -gt 5
}

# The longest fsync of this load without LUC; the bound adds the hold limit and a wake-up.
make
syncers load /mnt/p 4 1 > /tmp/load
stock_us=$(val max_us /tmp/load)
unmake
limit_us=$((stock_us + 52000))
tell "without LUC the longest fsync takes $stock_us us; the bound is $limit_us us"

# Grown while it is in use.
disk lucdisk0 size_mib=64 write_latency_ns=500000 cache_bytes=1048576 \
	cache_write_ns=50000 flush_ns=500000
/sbin/mke2fs -q -F -t ext4 -J size=4 -T ext4 -E nodiscard,resize=65536 /dev/lucdisk0 16M || bad "mke2fs"
mount -t ext4 /dev/lucdisk0 /mnt/p
steer static
syncers load /mnt/p 4 2 /tmp/acks > /tmp/load &
usleep 300000
holding
begin_us=$(now_us)
for mib in 24 33 48 64; do
	yes "resize2fs to $mib MiB" timeout 10 resize2fs /dev/lucdisk0 ${mib}M
done
took_us=$(($(now_us) - begin_us))
wait $!
is "fsyncs that failed" 0 "$(val failed /tmp/load)"
most "longest fsync, growing" $limit_us "$(val max_us /tmp/load)"
unsteer static
tell "grown four times in $took_us us, longest fsync $(val max_us /tmp/load) us; $did"
umount /mnt/p
yes "e2fsck of the grown one" e2fsck -fn /dev/lucdisk0
is "its blocks" 16384 "$(dumpe2fs -h /dev/lucdisk0 2> /dev/null | sed -n 's/^Block count: *//p')"
mount -t ext4 /dev/lucdisk0 /mnt/p
yes "promises: $(syncers verify /mnt/p /tmp/acks)" syncers verify /mnt/p /tmp/acks
unmake

# Quota: its files change in every transaction, and quotasync waits for commits.
make -O quota
steer static
syncers load /mnt/p 4 2 > /tmp/load &
usleep 300000
holding
longest_us=0
for i in 1 2 3 4 5 6 7 8; do
	begin_us=$(now_us)
	yes "quotasync $i" timeout 5 syncers quota /dev/lucdisk0
	yes "sync $i" timeout 5 sync
	took_us=$(($(now_us) - begin_us))
	[ $took_us -gt $longest_us ] && longest_us=$took_us
	usleep $((i * 7919))
done
wait $!
is "fsyncs that failed" 0 "$(val failed /tmp/load)"
most "longest fsync with quota" $limit_us "$(val max_us /tmp/load)"
use=$(syncers quota /dev/lucdisk0)
# Root's own: the root folder, lost+found and the files.
is "files that quota counts" "$(find /mnt/p | wc -l)" "$(echo "$use" | sed 's/inodes=\([0-9]*\).*/\1/')"
unsteer static
tell "quotasync and sync: $longest_us us at most, longest fsync $(val max_us /tmp/load) us; $did"
umount /mnt/p
yes "e2fsck, which counts what quota counts" e2fsck -fn /dev/lucdisk0
mount -t ext4 /dev/lucdisk0 /mnt/p
unmake

# Signals in every fsync, and tasks that are killed in theirs.
make
steer static
syncers load /mnt/p 4 1.5 /tmp/acks 500 > /tmp/load
is "errors under signals" "" "$(val errors /tmp/load)"
yes "signals: $(val signals /tmp/load)" test "$(val signals /tmp/load)" -gt 300
most "longest fsync under signals" $limit_us "$(val max_us /tmp/load)"
tell "$(val signals /tmp/load) signals: longest fsync $(val max_us /tmp/load) us"
syncers load /mnt/p/lost+found 3 2.5 > /tmp/load &
syncers kill /mnt/p 40 > /tmp/kill
is "killed in their fsyncs" 40 "$(val killed /tmp/kill)"
most "longest death" $limit_us "$(val max_us /tmp/kill)"
wait $!
is "errors of the others" "" "$(val errors /tmp/load)"
most "longest fsync of the others" $limit_us "$(val max_us /tmp/load)"
holding
tell "40 killed: $(val max_us /tmp/kill) us at most," \
	"longest fsync of the others $(val max_us /tmp/load) us"
yes "promises: $(syncers verify /mnt/p /tmp/acks)" syncers verify /mnt/p /tmp/acks

# The wall clock is set, far back and far ahead.
now=$(date +%s)
mkdir /mnt/p/clock
syncers load /mnt/p/clock 4 2 > /tmp/load &
for jump in 100000 $((now - 86400)) $((now + 100000000)) 4000000000 100000 $((now + 3600)); do
	usleep 250000
	date -s "@$jump" > /dev/null || bad "date $jump"
done
wait $!
date -s "@$now" > /dev/null
is "errors while the clock jumps" "" "$(val errors /tmp/load)"
yes "fsyncs in the last second: $(val late /tmp/load)" test "$(val late /tmp/load)" -gt 20
most "longest fsync while the clock jumps" $limit_us "$(val max_us /tmp/load)"
tell "the clock jumps: longest fsync $(val max_us /tmp/load) us"
holding
unsteer static
tell "signals, kills and jumps: $did"
unmake

is_frozen() {
	while read -r what value; do
		[ "$what" = frozen ] && return $((value != 1))
	done < /tmp/cg/half/cgroup.events
	return 1
}

# frozen stock|luc: the freezer of control groups stops half of the tasks that fsync. Frozen tasks
# do not come back, even if LUC expects them.
frozen() {
	make
	mkdir /mnt/p/a /mnt/p/b
	steer "$1"
	syncers load /mnt/p/a 4 2 > /tmp/load_a &
	a=$!
	syncers load /mnt/p/b 4 2 > /tmp/load &
	echo $a > /tmp/cg/half/cgroup.procs || bad "cgroup.procs"
	longest_us=0
	for i in 1 2 3 4 5; do
		usleep 100000
		begin_us=$(now_us)
		echo 1 > /tmp/cg/half/cgroup.freeze
		until is_frozen; do
			usleep 1000
			[ $(($(now_us) - begin_us)) -lt 5000000 ] || { bad "not frozen"; break; }
		done
		took_us=$(($(now_us) - begin_us))
		[ $took_us -gt $longest_us ] && longest_us=$took_us
		usleep 200000
		echo 0 > /tmp/cg/half/cgroup.freeze
	done
	wait
	is "errors of the frozen" "" "$(val errors /tmp/load_a)"
	is "errors of the others" "" "$(val errors /tmp/load)"
	rate=$(val acked /tmp/load)
	unsteer "$1"
	tell "half frozen, $1: in $longest_us us at most, $rate files of the others," \
		"longest fsync $(val max_us /tmp/load) us; $did"
	unmake
}

mkdir /tmp/cg
mount -t cgroup2 none /tmp/cg || bad "cgroup2"
mkdir /tmp/cg/half
frozen stock
stock_rate=$rate stock_freeze_us=$longest_us
frozen luc
# One hold and the commit after it.
most "freezing" $((stock_freeze_us + 80000)) "$longest_us"
yes "the others: $rate files, $stock_rate without LUC" test "$rate" -ge $((stock_rate * 8 / 10))
rmdir /tmp/cg/half
umount /tmp/cg
finish
