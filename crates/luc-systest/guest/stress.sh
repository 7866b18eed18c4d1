# Every policy under many kinds of load at once, on processors that really run in parallel, while
# knobs change, counters are read and decisions recorded.
. /t/lib.sh
fs=/sys/fs/luc/nullb0
tracing=/sys/kernel/tracing

# part NAME COMMAND...: in the background; must end well.
part() {
	name=$1
	shift
	"$@" > "/tmp/$name.out" 2>&1 || bad "$name under $policy: exit $?: $(tail -n 1 "/tmp/$name.out")"
}

knob() { # name, value
	echo "$2" > $fs/knobs/"$1" || bad "knob $1 does not take $2"
}

meddle() {
	turn=0
	while [ -e /tmp/go ]; do
		turn=$((turn + 1))
		knob delay_limit_us $((turn * 331 % 5000))
		knob static_idle_us $((turn * 71 % 2000))
		knob copyout_clean_runs $((1 + turn % 5))
		case $policy in
		luc | copyout) knob copyout "$([ $((turn % 5)) = 4 ] && echo contended || echo published)" ;;
		esac
		knob mode "$([ $((turn % 7)) = 0 ] && echo observe || echo steer)"
		cat $fs/counters/* $fs/knobs/* /sys/fs/luc/hooks > /dev/null
		[ $((turn % 5)) = 0 ] && sync -f /mnt/0
		usleep 20000
	done
	echo $turn > /tmp/turns
}

luc on /mnt/0 > /dev/null
echo 1 > $tracing/events/luc/enable
cat $tracing/trace_pipe > /tmp/trace 2> /dev/null &
reader=$!
held=0 copies=0
for policy in luc batching static copyout stock; do
	luc set /mnt/0 policy $policy > /dev/null || bad "policy $policy"
	# Most delays start copy-out as published; it stops and starts again.
	knob copyout_threshold_permille 0
	touch /tmp/go
	meddle &
	meddler=$!
	work=/mnt/0/work-$policy
	mkdir $work
	part threads luc-lab bench create-fsync --threads 8 --seconds "$SECONDS_EACH" --warmup-s 0 --bytes 4096 /mnt/0 &
	threads=$!
	part writers luc-lab bench write-delay --writers 8 --fsync-streams 2 --think-us 5000 \
		--seconds "$SECONDS_EACH" --warmup-s 0 /mnt/0 &
	writers=$!
	part bursts luc-lab bench burst --threads 6 --bursts $((SECONDS_EACH * 8)) --warmup-bursts 0 /mnt/0 &
	bursts=$!
	part mixed luc-lab promises work --dir $work --acks "/tmp/acks-$policy" --threads 4 \
		--seconds "$SECONDS_EACH" &
	wait $threads $writers $bursts $!
	rm /tmp/go
	wait $meddler
	now=$(counter nullb0 commits_held)
	# With changing knobs, batching may hold none. Nor does luc hold where processors are the
	# bottleneck, as they are in a guest of a busy host: the test `unload` sees it hold.
	[ $policy != static ] || yes "$policy held $((now - held)) commits" test "$now" -gt "$held"
	held=$now
	now=$(counter nullb0 copies)
	case $policy in
	luc | copyout) yes "$policy made $((now - copies)) copies" test "$now" -gt "$copies" ;;
	esac
	copies=$now
	ok "$policy: $(cat /tmp/turns) turns of the knobs, $(counter nullb0 commits) commits so far"
done
echo 0 > $tracing/events/luc/enable
kill $reader
wait $reader
yes "decisions were traced: $(grep -c luc_ /tmp/trace) lines" grep -q luc_decision /tmp/trace
echo > $tracing/trace
check 0 "*module luc removed" luc off --all --unload
umount /mnt/0
yes "fsck finds nothing" e2fsck -fn /dev/nullb0
mount /dev/nullb0 /mnt/0
finish
