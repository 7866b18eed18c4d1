# A power cut leaves all durable writes, and the others as the mode says.
. /t/disk_lib.sh

# page DISK N: the letter that was written to its page N.
page() {
	letter=$(dd "if=/dev/$1" bs=4k skip="$2" count=1 2> /dev/null | head -c 1 | tr '\0' -)
	echo "$letter"
}

letter() { # letter, page
	awk -v c="$1" 'BEGIN { for (n = 4096; n > 0; n--) printf "%s", c }' > /tmp/letter
	dd if=/tmp/letter of=/dev/lucdisk0 bs=4k seek="$2" count=1 oflag=direct conv=notrunc 2> /dev/null
}

# left CUT MODE: letters on pages 0 to 2.
left() {
	put lucdisk_b cut "$1 $2 1"
	echo "$(page lucdisk_b 0)$(page lucdisk_b 1)$(page lucdisk_b 2)"
}

disk lucdisk0 size_mib=8 cache_bytes=1048576 cache_write_ns=50000 flush_ns=1000000
letter o 2
put lucdisk0 record 1
letter a 0
written=$(here lucdisk0)
sync -d /dev/lucdisk0
flushed=$(here lucdisk0)
mark lucdisk0 "a is synced"
marked=$(here lucdisk0)
letter b 1
letter c 2
end=$(here lucdisk0)
is "flushes" $((flushed - 1)) "$(get lucdisk0 log_flushes)"
disk lucdisk_b replica=lucdisk0
is "as before the record" "--o" "$(left 0 all)"
is "a, not flushed, none" "--o" "$(left "$written" none)"
is "a, not flushed, all" "a-o" "$(left "$written" all)"
is "while it is flushed, none" "--o" "$(left $((flushed - 1)) none)"
is "flushed, none" "a-o" "$(left "$flushed" none)"
is "flushed, all" "a-o" "$(left "$flushed" all)"
is "none" "a-o" "$(left "$end" none)"
is "all" "abc" "$(left "$end" all)"
is "latest lost" "abo" "$(left "$end" latest-lost)"
is "earliest lost" "a-c" "$(left "$end" earliest-lost)"
is "back to none" "--o" "$(left 1 none)"
is "back and all" "a-o" "$(left 1 all)"
put lucdisk_b cut "$end random 3"
first=$(sum /dev/lucdisk_b)
put lucdisk_b cut "$end random 4"
yes "another seed" test "$first" != "$(sum /dev/lucdisk_b)"
put lucdisk_b cut "1 none 0"
put lucdisk_b cut "$end random 3"
is "the same seed" "$first" "$(sum /dev/lucdisk_b)"

# The marks of a replica end at its cut.
put lucdisk_b cut "$flushed none 0"
is "marks before" 0 "$(wc -c < /dev/lucdisk_b-log)"
put lucdisk_b cut "$marked none 0"
is "marks after" 23 "$(wc -c < /dev/lucdisk_b-log)"
is "a mark" "$(printf "\\013\\0\\0\\0\\$(printf %03o "$flushed")\\0\\0\\0\\0\\0\\0\\0a is synced" | sum)" \
	"$(sum /dev/lucdisk_b-log)"
is "a mark in pieces" "$(sum /dev/lucdisk_b-log)" \
	"$(dd if=/dev/lucdisk_b-log bs=5 2> /dev/null | sum)"

# Writes to a replica last until the next cut; the original never sees them.
before=$(sum /dev/lucdisk0)
put lucdisk_b cut "$end none 0"
dd if=/dev/zero of=/dev/lucdisk_b bs=4k count=2048 conv=notrunc 2> /dev/null
is "overwritten" "---" "$(page lucdisk_b 0)$(page lucdisk_b 1)$(page lucdisk_b 2)"
is "cut again" "a-o" "$(left "$end" none)"
is "the original" "$before" "$(sum /dev/lucdisk0)"
undisk lucdisk_b lucdisk0

# A protected cache: a write that is done is durable.
disk lucdisk0 size_mib=8 cache_bytes=1048576 cache_volatile=0
put lucdisk0 record 1
letter a 0
disk lucdisk_b replica=lucdisk0
is "in flight, none" "---" "$(left 1 none)"
is "done, none" "a--" "$(left 2 none)"
undisk lucdisk0
is "the record outlives its disk" "a--" "$(left 2 none)"
undisk lucdisk_b

# A full record says so, and its entries stay right.
disk lucdisk0 size_mib=8 record_mib=1
put lucdisk0 record 1
dd if=/dev/zero of=/dev/lucdisk0 bs=64k count=64 oflag=direct conv=notrunc 2> /dev/null
end=$(here lucdisk0)
yes "entries: $end, lost: $(get lucdisk0 log_lost)" test "$((end + $(get lucdisk0 log_lost)))" = 128
yes "some were lost" test "$(get lucdisk0 log_lost)" -gt 50
check 1 "*" sh -c "echo -n x > /dev/lucdisk0-log"
letter z 0
is "nothing is appended" "$end" "$(here lucdisk0)"
disk lucdisk_b replica=lucdisk0
put lucdisk_b cut "$end all 0"
undisk lucdisk_b
put lucdisk0 record 1
is "a new record" "0 0" "$(here lucdisk0) $(get lucdisk0 log_lost)"
undisk lucdisk0

# Overlapping writes from many tasks, with flushes and discards. Each sector names its writer; the
# host judges which one may be there.
sectors=64
disk lucdisk0 size_mib=1 channels=3 cache_bytes=4194304 cache_write_ns=400000 flush_ns=3000000
piece() { # id, sectors
	awk -v id="$1" -v n="$2" 'BEGIN { while (n-- > 0) printf "%-511s\n", id }'
}
piece 0 $sectors > /tmp/piece
dd if=/tmp/piece of=/dev/lucdisk0 bs=512 oflag=direct conv=notrunc 2> /dev/null
put lucdisk0 record 1
# Some writes take so long that newer ones on the same sectors are durable first.
put lucdisk0 fault "write 0 9999 300000 25000000"
id=1
while [ $id -le 90 ]; do
	n=$((id * 5 % 17 + 8)) at=$((id * 31 % (sectors - 24)))
	if [ $((id % 12)) = 0 ]; then
		blkdiscard -o $((at * 512)) -l $((n * 512)) /dev/lucdisk0 &
	else
		piece $id $n > /tmp/piece$id
		dd if=/tmp/piece$id of=/dev/lucdisk0 bs=$((n * 512)) count=1 seek=$((at * 512)) \
			oflag=seek_bytes,direct conv=notrunc 2> /dev/null &
	fi
	[ $((id % 7)) = 0 ] && sync -d /dev/lucdisk0 &
	# Now and then wait for all.
	[ $((id % 10)) = 0 ] && wait
	id=$((id + 1))
done
wait
cp $disks/lucdisk0/log "$LUC_OUT/overlap.log"
end=$(here lucdisk0)
disk lucdisk_b replica=lucdisk0
state() { # cut, mode: the two in a line, and all sectors
	put lucdisk_b cut "$1 $2 $1"
	echo "cut $1 $2"
	dd if=/dev/lucdisk_b bs=512 count=$sectors 2> /dev/null
}
states() {
	at=0
	while [ "$at" -le "$end" ]; do
		for mode in none all random; do
			state "$at" $mode
		done
		at=$((at + 1))
	done
	while [ "$at" -gt 5 ]; do
		at=$((at - 37))
		[ $at -ge 0 ] && state "$at" random-whole && state "$at" none
	done
}
# "CUT MODE ID...": the id of each sector, z for zeros.
states | tr '\0' '\n' | awk '
	$1 == "cut" { if (line) print line; line = $2 " " $3; zeros = 0; next }
	length($0) { line = line " " $1; next }
	++zeros == 512 { line = line " z"; zeros = 0 }
	END { print line }' > "$LUC_OUT/states"
ok "$(wc -l < "$LUC_OUT/states") states"
undisk lucdisk0 lucdisk_b

# A file system: files that were synced before the cut are there.
disk lucdisk0 size_mib=64 channels=4 cache_bytes=4194304 cache_write_ns=30000 flush_ns=1000000
mkfs lucdisk0
mount -t ext4 /dev/lucdisk0 /mnt
put lucdisk0 record 1
i=0
mkdir /tmp/want
while [ $i -lt 40 ]; do
	noise $((i * 997 + 100)) $i > /tmp/want/$i
	cat /tmp/want/$i > /mnt/$i
	[ $((i % 2)) = 0 ] && sync -d /mnt/$i
	[ $((i % 4)) = 3 ] && sync && mark lucdisk0 "file $i."
	i=$((i + 1))
done
sync
umount /mnt
end=$(here lucdisk0)
yes "FUA writes" grep -q " fua" $disks/lucdisk0/log
mkdir $disks/lucdisk_b
put lucdisk_b replica lucdisk0
put lucdisk_b power 1
cuts=0 failed=0
for mode in none random all latest-lost random-whole; do
	for part in 1 3 5 7 9 10; do
		at=$((end * part / 10))
		put lucdisk_b cut "$at $mode $part"
		mount -t ext4 /dev/lucdisk_b /mnt || { bad "mount after cut $at $mode"; continue; }
		(echo "$at all 0" > $disks/lucdisk_b/cut) 2> /dev/null && bad "cut while mounted"
		# The last mark names the last file that must be there.
		last=$(tr '\0' '\n' < /dev/lucdisk_b-log | grep -o 'file [0-9]*\.' | tail -n 1 | tr -dc 0-9)
		i=0
		while [ $i -le "${last:--1}" ]; do
			cmp -s /tmp/want/$i /mnt/$i || { failed=$((failed + 1)); bad "file $i of $last, cut $at $mode"; }
			i=$((i + 1))
		done
		umount /mnt
		e2fsck -fn /dev/lucdisk_b > /tmp/fsck.out 2>&1 || bad "e2fsck, cut $at $mode: $(tail -n 2 /tmp/fsck.out)"
		cuts=$((cuts + 1))
	done
done
is "the last mark at the end" 39 "$last"
is "cuts of a file system" "30, 0 files lost" "$cuts, $failed files lost"

undisk lucdisk_b lucdisk0

# Moving on by a cut is cheap, even with thousands of writes that may or may not be there.
clock() { # virtual ms
	awk '{ print int($1 * 1000) }' /proc/uptime
}
cut500() { # mode
	put lucdisk_b cut "0 none 0"
	begin=$(clock)
	for at in $(seq 500); do
		echo "$((end * at / 500)) $1 1" > $disks/lucdisk_b/cut
	done
	echo $(($(clock) - begin))
}
disk lucdisk0 size_mib=64 cache_bytes=33554432
put lucdisk0 record 1
for part in 0 1 2 3; do
	dd if=/dev/zero of=/dev/lucdisk0 bs=4k count=1000 seek=$((part * 1500)) oflag=direct conv=notrunc,fsync \
		2> /dev/null
done
end=$(here lucdisk0)
disk lucdisk_b replica=lucdisk0
none=$(cut500 none) random=$(cut500 random) all=$(cut500 all)
echo "{\"entries\":$end,\"none_ms\":$none,\"random_ms\":$random,\"all_ms\":$all}" > "$LUC_OUT/cuts.json"
yes "500 cuts of $end entries take $none, $random and $all ms" test "$none" -lt 500 -a "$all" -lt 5000
undisk lucdisk_b lucdisk0
rmmod lucdisk
finish
