# Errors and stalls happen where and as often as asked for, and nowhere else.
. /t/disk_lib.sh

# tries DISK FIRST LAST: prints which writes to these pages fail.
tries() {
	for i in $(seq "$2" "$3"); do
		dd if=/tmp/page "of=/dev/$1" bs=4k seek="$i" count=1 oflag=direct conv=notrunc \
			2> /dev/null && printf . || printf X
	done
}

noise 4096 1 > /tmp/page
disk lucdisk0 size_mib=16 write_latency_ns=1000000 channels=1
put lucdisk0 fault "write 16 31 1000000 eio"
is "pages 0 to 5" "..XX.." "$(tries lucdisk0 0 5)"
is "hits" 2 "$(get lucdisk0 fault_hits)"
is "a failed write changes nothing" "$(head -c 4096 /dev/zero | sum)" \
	"$(dd if=/dev/lucdisk0 bs=4k skip=2 count=1 2> /dev/null | sum)"
is "a good one does" "$(sum /tmp/page)" \
	"$(dd if=/dev/lucdisk0 bs=4k skip=1 count=1 2> /dev/null | sum)"
put lucdisk0 fault ""
is "without rules" "......" "$(tries lucdisk0 0 5)"

put lucdisk0 fault "write 0 1000 1000000 eio 3"
is "three times" "XXX..." "$(tries lucdisk0 0 5)"
is "a rule that is used up is gone" "" "$(get lucdisk0 fault)"
put lucdisk0 fault "read 8 8 1000000 eio"
check 1 "*" dd if=/dev/lucdisk0 of=/dev/null bs=4k skip=1 count=1 iflag=direct
is "reads fail, writes do not" "...." "$(tries lucdisk0 0 3)"
put lucdisk0 fault ""
hits=$(get lucdisk0 fault_hits)

put lucdisk0 fault "fua 0 99999 1000000 eio"
is "not a FUA write among these" "....0" "$(tries lucdisk0 0 3)$(($(get lucdisk0 fault_hits) - hits))"
put lucdisk0 fault ""

put lucdisk0 fault "any 0 99999 300000 eio"
put lucdisk0 fault_seed 5
some=$(tries lucdisk0 0 79)
put lucdisk0 fault_seed 5
is "the same seed" "$some" "$(tries lucdisk0 0 79)"
put lucdisk0 fault_seed 6
other=$(tries lucdisk0 0 79)
yes "another seed" test "$other" != "$some"
failed=$(printf %s "$some$other" | tr -d . | wc -c)
yes "three of ten: $failed of 160" test "$failed" -gt 30 -a "$failed" -lt 66
put lucdisk0 fault ""

put lucdisk0 record 1
put lucdisk0 fault "write 8 15 1000000 250000000"
put lucdisk0 fault "write 8 8 1000000 750000000"
is "stalled writes are good ones" "..." "$(tries lucdisk0 0 2)"
is "they take" "1000000 1001000000 1000000" \
	"$(awk '$6 == "of" { print $2 - at[$7] } { at[$1] = $2 }' $disks/lucdisk0/log | xargs)"
# Longer than the block layer's timeout of 30 s.
put lucdisk0 fault ""
put lucdisk0 fault "write 0 0 1000000 70000000000"
is "a write of 70 s" "." "$(tries lucdisk0 0 0)"
undisk lucdisk0

disk lucdisk0 size_mib=16 cache_bytes=65536
put lucdisk0 fault "flush 0 0 1000000 eio 1"
check 1 "*" sync -d /dev/lucdisk0
check 0 "" sync -d /dev/lucdisk0
undisk lucdisk0

# A journal that cannot be written is aborted.
disk lucdisk0 size_mib=64 write_latency_ns=100000 cache_bytes=1048576
mkfs lucdisk0
mount -t ext4 /dev/lucdisk0 /mnt
noise 100000 2 > /mnt/before
sync
block=$(debugfs -R "bmap <8> 0" /dev/lucdisk0 2> /dev/null)
yes "the journal begins at block $block" test "$block" -gt 0
put lucdisk0 fault "write $((block * 2)) $((block * 2 + 8191)) 1000000 eio"
noise 1000 3 > /mnt/lost
sync
usleep 200000
check 1 "*" touch /mnt/after
yes "errors were made: $(get lucdisk0 fault_hits)" test "$(get lucdisk0 fault_hits)" -gt 0
umount /mnt
put lucdisk0 fault ""
e2fsck -fy /dev/lucdisk0 > /tmp/fsck.out 2>&1
[ $? -le 1 ] && ok "repaired" || bad "e2fsck: $(tail -n 3 /tmp/fsck.out)"
mount -t ext4 /dev/lucdisk0 /mnt
noise 100000 2 > /tmp/before
yes "what was there before" cmp /tmp/before /mnt/before
umount /mnt
undisk lucdisk0
rmmod lucdisk
finish
