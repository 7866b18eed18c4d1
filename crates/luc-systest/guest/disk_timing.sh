# Each request takes the model's time, to the nanosecond, and ends in the model's order.
. /t/disk_lib.sh

# spans DISK: "operation latency" of each request that has been recorded.
spans() {
	awk '{ sub(/ fua/, "") } $6 == "of" { print $3, $2 - at[$7] } { at[$1] = $2 }' \
		"$disks/$1/log"
}

# ends DISK: time from one end to the next.
ends() {
	awk '$3 ~ /-done/ { if (last) print $2 - last; last = $2 }' "$disks/$1/log"
}

# disorder DISK: how many requests were done before one that was accepted earlier.
disorder() {
	awk '{ sub(/ fua/, "") } $6 == "of" { if ($7 < last) n++; last = $7 } END { print n + 0 }' \
		"$disks/$1/log"
}

writers() { # disk, how many
	for i in $(seq "$2"); do
		dd if=/dev/zero "of=/dev/$1" bs=4k seek=$((i * 3)) count=1 oflag=direct conv=notrunc \
			2> /dev/null &
	done
	wait
}

# keep DISK NAME: saves its record and knobs, for which the host asks the model again.
keep() {
	cp "$disks/$1/log" "$LUC_OUT/$2.log"
	for knob in "$disks/$1"/*; do
		name=${knob##*/}
		case $name in
		power | partitions | activity | record* | fault* | replica | cut | log*) ;;
		*) echo "$name $(cat "$knob")" ;;
		esac
	done > "$LUC_OUT/$2.knobs"
}

disk lucdisk0 size_mib=64 channels=1 write_latency_ns=4000000
put lucdisk0 record 1
dd if=/dev/zero of=/dev/lucdisk0 bs=4k count=20 oflag=direct 2> /dev/null
is "20 writes, one after the other" "20 write-done 4000000" "$(spans lucdisk0 | sort | uniq -c | xargs)"
is "what it did: busy ns, bytes read and written, flushes" "80000000 0 81920 0" "$(get lucdisk0 activity)"
keep lucdisk0 serial
put lucdisk0 record 1
writers lucdisk0 16
is "16 writes at once: distances of their ends" "15 4000000" "$(ends lucdisk0 | sort | uniq -c | xargs)"
is "16 writes at once: out of order" 0 "$(disorder lucdisk0)"
keep lucdisk0 queued
undisk lucdisk0

# Four at a time: sixteen take four times as long as one.
disk lucdisk0 size_mib=64 channels=4 write_latency_ns=4000000
put lucdisk0 record 1
writers lucdisk0 16
keep lucdisk0 channels
took=$(awk 'NR == 1 { a = $2 } { b = $2 } END { print int((b - a) / 1000000) }' $disks/lucdisk0/log)
yes "16 writes, four at a time, take $took ms" test "$took" -ge 16 -a "$took" -le 19
undisk lucdisk0

# A cache: writes into it, flushes, FUA.
disk lucdisk0 size_mib=64 channels=1 cache_bytes=1048576 cache_write_ns=50000 flush_ns=2000000 \
	write_latency_ns=1000000 write_per_s_bytes=1000000000
put lucdisk0 record 1
dd if=/dev/zero of=/dev/lucdisk0 bs=4k count=5 oflag=direct 2> /dev/null
is "5 writes into the cache" "5 write-done 50000" "$(spans lucdisk0 | sort | uniq -c | xargs)"
put lucdisk0 record 1
usleep 100000
sync -d /dev/lucdisk0
is "a flush of a clean cache" "1 flush-done 2000000" "$(spans lucdisk0 | sort | uniq -c | xargs)"
undisk lucdisk0

# Reads take processor time as well: they leave no entry, but marks do.
disk lucdisk0 size_mib=64 channels=1 read_latency_ns=2000000
put lucdisk0 record 1
mark lucdisk0 a
dd if=/dev/lucdisk0 of=/dev/null bs=4k count=10 iflag=direct 2> /dev/null
mark lucdisk0 b
took=$(awk 'NR == 1 { a = $2 } { b = $2 } END { print int((b - a) / 100000) }' $disks/lucdisk0/log)
yes "10 reads take $took tenths of ms" test "$took" -ge 200 -a "$took" -le 240
undisk lucdisk0

# The arm picks the nearest waiting request, which takes less time than their order.
arm="seek_min_ns=1000000 seek_max_ns=16000000 rotation_ns=8333333"
for n in 1 32; do
	# shellcheck disable=SC2086 # words
	disk lucdisk0 size_mib=64 channels=1 queue_requests=$n $arm
	is "rotational" 1 "$(cat /sys/block/lucdisk0/queue/rotational)"
	echo none > /sys/block/lucdisk0/queue/scheduler
	put lucdisk0 record 1
	for i in $(seq 24); do
		dd if=/dev/zero of=/dev/lucdisk0 bs=4k seek=$((i * 7919 % 16384)) count=1 \
			oflag=direct conv=notrunc 2> /dev/null &
	done
	wait
	eval "took$n=$(awk 'NR == 1 { a = $2 } { b = $2 } END { print b - a }' $disks/lucdisk0/log)"
	keep lucdisk0 arm$n
	undisk lucdisk0
done
# shellcheck disable=SC2154 # eval
yes "24 writes: $took1 ns in order, $took32 ns as the arm likes" test "$took32" -lt $((took1 * 3 / 4))

# All of it together; the host compares it with the model.
# shellcheck disable=SC2086 # words
disk lucdisk0 size_mib=64 channels=32 $arm cache_bytes=262144 cache_write_ns=60000 flush_ns=500000 \
	flush_block_ns=20000 write_latency_ns=100000 track_outer_bytes=1000000 track_inner_bytes=500000
put lucdisk0 record 1
for i in $(seq 60); do
	# At least 4096 bytes: dd does not align smaller buffers as direct writes need it.
	dd if=/dev/zero of=/dev/lucdisk0 bs=$((512 * (8 + i % 33))) seek=$((i * 7919 % 1600)) count=2 \
		oflag=direct conv=notrunc 2> /dev/null &
	[ $((i % 4)) = 0 ] && sync -d /dev/lucdisk0 &
done
wait
keep lucdisk0 mixed
flushes=$(wc -l < $disks/lucdisk0/log_flushes)
yes "flushes beside writes: $flushes" test "$flushes" -ge 3
undisk lucdisk0
rmmod lucdisk
finish
