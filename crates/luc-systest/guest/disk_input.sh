# A disk refuses input that it does not understand, and stays as it was.
. /t/disk_lib.sh
for name in sda null lucdisk-log "lucdisk 0" lucdisk012345678901234567 luc lucdisk0.1 _; do
	if mkdir "$disks/$name" 2> /dev/null; then
		bad "a disk may be called '$name'"
		rmdir "$disks/$name"
	else
		ok "no disk is called '$name'"
	fi
done

mkdir $disks/lucdisk0 $disks/lucdisk_b
numbers=0
for file in "$disks"/lucdisk0/*; do
	name=${file##*/}
	case $name in
	power | partitions | activity | record | fault* | replica | cut | log*) continue ;;
	esac
	numbers=$((numbers + 1))
	refused lucdisk0 "$name" "Invalid argument" "" x -1 1x 0x 1.5 "1 2" 99999999999999999999 \
		-9223372036854775808 9223372036854775807
done
yes "$numbers attributes are numbers" test $numbers -gt 20
refused lucdisk0 size_mib "Invalid argument" 0 1048577
refused lucdisk0 channels "Invalid argument" 0 1025
refused lucdisk0 cache_volatile "Invalid argument" 2
refused lucdisk0 power "Invalid argument" "" 2 on? -1
refused lucdisk0 partitions "Invalid argument" "" 2 x -1
refused lucdisk0 record "Invalid argument" "" 2 x 1
refused lucdisk0 fault_seed "Invalid argument" "" x -1 99999999999999999999
rule="write 0 100 1000000"
refused lucdisk0 fault "Invalid argument" x write "write 0" "$rule" "$rule x" "$rule 0" "$rule -1" \
	"$rule 3600000000001" "$rule eio 0" "$rule eio x" "$rule eio 1 1" "trim 0 100 1000000 eio" \
	"write 101 100 1000000 eio" "write 0 100 0 eio" "write 0 100 1000001 eio" \
	"write -1 100 1000000 eio" "write 0 99999999999999999999 1000000 eio" "Write 0 1 1 eio"
refused lucdisk0 replica "Invalid argument" lucdisk9 lucdisk0 lucdisk_b sda \
	lucdisk0lucdisk0lucdisk0lucdisk0lucdisk0
refused lucdisk0 cut "Invalid argument" "" x "0 none 0" "0 none"
for attr in activity fault_hits log_entries log_lost log log_flushes; do
	if (echo 1 > $disks/lucdisk0/$attr) 2> /dev/null; then
		bad "$attr can be written"
	else
		ok "$attr cannot be written"
	fi
done
is "an empty record" "0 0 0" "$(get lucdisk0 log_entries) $(get lucdisk0 log_lost) $(get lucdisk0 log | wc -c)"

# Rules are shown as they were written; the table fills up, and is emptied.
put lucdisk0 fault "any 5 7 20 1000 3"
is "a rule" "any 5 7 20 1000 3" "$(get lucdisk0 fault)"
for i in $(seq 31); do put lucdisk0 fault "flush 0 18446744073709551615 1000000 eio"; done
refused lucdisk0 fault "No space left" "read 0 0 1 eio"
put lucdisk0 fault ""
is "no rule" "" "$(get lucdisk0 fault)"

# While a disk is on, the attributes that describe it are fixed.
put lucdisk0 size_mib 8
put lucdisk0 power 1
for name in size_mib channels cache_bytes queue_requests; do
	refused lucdisk0 $name "busy" 16
done
refused lucdisk0 partitions "busy" 1
refused lucdisk0 replica "busy" ""
refused lucdisk0 cut "Invalid argument" "0 none 0"
put lucdisk0 power 1
check 1 "*" sh -c "echo -n x > /dev/lucdisk0-log"
put lucdisk0 record 1
check 0 "" sh -c "echo -n x > /dev/lucdisk0-log"
is "marks" 13 "$(wc -c < /dev/lucdisk0-log)"
# Longer than a mark may be.
head -c 4097 /dev/zero > /tmp/long
check 1 "*" dd if=/tmp/long of=/dev/lucdisk0-log bs=4097 count=1
head -c 4096 /dev/zero > /tmp/long
yes "a mark of 4096 bytes" dd if=/tmp/long of=/dev/lucdisk0-log bs=4096 count=1

# A replica must be off, and of a recorded disk; its cuts lie within the record.
put lucdisk_b replica lucdisk0
is "replica" lucdisk0 "$(get lucdisk_b replica)"
is "size of a replica" 8 "$(get lucdisk_b size_mib)"
put lucdisk_b size_mib 16
is "it stays" 8 "$(get lucdisk_b size_mib)"
is "cut of a replica" "0 none 0" "$(get lucdisk_b cut)"
refused lucdisk_b cut "Invalid argument" "" 1 "1 none" "1 some 0" "3 none 0" "-1 none 0" \
	"1 none x" "1 none 0 0" "99999999999999999999 none 0" "1 NONE 0"
put lucdisk_b cut "2 random 7"
is "cut" "2 random 7" "$(get lucdisk_b cut)"
put lucdisk_b power 1
refused lucdisk_b replica busy "" lucdisk0
refused lucdisk_b record "Invalid argument" 1
put lucdisk_b power 0
put lucdisk_b replica ""
is "no replica" " 16" "$(get lucdisk_b replica)$(get lucdisk_b cut) $(get lucdisk_b size_mib)"
undisk lucdisk0 lucdisk_b
rmmod lucdisk
finish
