# LUC from the first look to the last trace of it, on one disk.
. /t/lib.sh

measure() { # name of the result
	luc-lab bench create-fsync --threads 4 --seconds 1 --warmup-s 0.5 --json /mnt/0 \
		> "$LUC_OUT/$1.json" || bad "bench $1"
}

check 0 "*This machine can run LUC*" luc probe
check 0 "LUC is on for no file system; the module is not loaded" luc status
measure stock

check 0 "on: /mnt/0 (nullb0, ext4): policy luc, steering, set point automatic" luc on /mnt/0
yes "hooks are attached" grep -q "^jbd2_journal_commit_transaction attached$" /sys/fs/luc/hooks
is "hooks not attached" "" "$(grep -v ' attached' /sys/fs/luc/hooks)"
measure luc
luc status --json > "$LUC_OUT/status.json" || bad "status --json"

# Knobs: a refused value leaves the old one, in the tool and in the kernel.
knobs=/sys/fs/luc/nullb0/knobs
luc set /mnt/0 kp_milli 777 > /dev/null
check 10 "luc: kp_milli cannot be 100001; it takes a number from 0 to 100000; the old value is kept" \
	luc set /mnt/0 kp_milli 100001
check 10 "luc: *whole number*; the old value is kept" luc set /mnt/0 kp_milli 1.5
check 10 "luc: *; the old value is kept" luc set /mnt/0 policy fast
check 10 "luc: no knob is named *; nothing was changed" luc set /mnt/0 speed 1
for value in -1 100001 99999999999999999999 1.5 x "" "1 2"; do
	(echo "$value" > "$knobs/kp_milli") 2> /dev/null && bad "the module took kp_milli '$value'"
	is "kp_milli after '$value'" 777 "$(cat "$knobs/kp_milli")"
done
luc set /mnt/0 kp_milli 800 > /dev/null

# Replay: the same code decides here again what the kernel decided.
check 0 "*0 lost*" luc trace record -o /tmp/recording -- \
	luc-lab bench create-fsync --threads 8 --seconds 0.5 --warmup-s 0 --json /mnt/0
luc replay --json /tmp/recording > "$LUC_OUT/replay.json"
is "replay's exit code" 0 $?

# Every policy does its work.
for policy in stock static-16ms age published copyout static batching luc; do
	check 0 "/mnt/0: policy $policy (was *)" luc set /mnt/0 policy $policy
	bench /mnt/0 4
	yes "$policy with writers" luc-lab bench write-delay --writers 8 --seconds 0.3 \
		--warmup-s 0 /mnt/0
done

# syncfs cannot wait, but says nothing about copies: copying goes on meanwhile.
for knob in copyout=published copyout_threshold_permille=0 copyout_clean_runs=1000000; do
	luc set /mnt/0 "${knob%=*}" "${knob#*=}" > /dev/null || bad "set $knob"
done
copies=$(counter nullb0 copies) urgent=$(counter nullb0 urgent_events)
for _ in $(seq 20); do
	sync -f /mnt/0
	usleep 20000
done &
luc-lab bench write-delay --writers 8 --seconds 1 --warmup-s 0 /mnt/0 > /dev/null
wait $!
yes "syncfs was urgent $(($(counter nullb0 urgent_events) - urgent)) times" \
	test "$(counter nullb0 urgent_events)" -ge $((urgent + 3))
yes "beside it $(($(counter nullb0 copies) - copies)) copies were made" \
	test "$(counter nullb0 copies)" -gt $((copies + 50))

# One commit copies at most copyout_buffers_max buffers; the rest are written the stock way and
# counted.
capped() { # copyout_buffers_max
	luc set /mnt/0 copyout_buffers_max "$1" > /dev/null || bad "set copyout_buffers_max"
	# A commit under way has the former limit.
	sync -f /mnt/0
	copies=$(counter nullb0 copies) commits=$(counter nullb0 commits)
	over=$(counter nullb0 copies_over_max)
	luc-lab bench write-delay --writers 8 --seconds 0.5 --warmup-s 0 /mnt/0 > /dev/null
	copies=$(($(counter nullb0 copies) - copies))
	commits=$(($(counter nullb0 commits) - commits))
	over=$(($(counter nullb0 copies_over_max) - over))
	yes "at most $1 per commit: $copies copies in $commits commits" \
		test "$commits" -gt 5 -a "$copies" -le $(($1 * (commits + 1)))
}
capped 2
yes "of two per commit some were made, $over buffers were left" \
	test "$copies" -gt 5 -a "$over" -gt 5
capped 0
yes "of none per commit $over buffers were left" test "$over" -gt 5
luc set /mnt/0 copyout_buffers_max 2048 > /dev/null || bad "set copyout_buffers_max"
# Observing decides, and changes nothing.
check 0 "/mnt/0: mode observe (was steer)" luc set /mnt/0 mode observe
held=$(counter nullb0 commits_held)
measure observe
is "commits held while observing" 0 $(($(counter nullb0 commits_held) - held))
yes "commits that LUC would have held" test "$(counter nullb0 closed_forgone)" -gt 0
yes "commits that LUC would have copied" test "$(counter nullb0 copyout_forgone)" -gt 0
is "series while observing" 'luc_copyout_active{device="nullb0",mountpoint="/mnt/0"} 0' \
	"$(luc exporter --once | grep '^luc_copyout_active')"

check 0 "off: /mnt/0 (nullb0): of * commits, LUC held *" luc off /mnt/0
is "hooks left" "" "$(grep " attached" /sys/fs/luc/hooks)"
yes "rmmod" rmmod luc
yes "no trace in sysfs" gone /sys/fs/luc
yes "no trace in tracefs" gone /sys/kernel/tracing/events/luc
measure after
finish
