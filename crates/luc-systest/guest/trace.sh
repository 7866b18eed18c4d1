# The tracer records exactly what happened, of the chosen tasks alone, and leaves nothing behind.
. /t/lib.sh
. /t/trace_lib.sh

hooked() { # functions with trampolines, of any owner
	wc -l < /sys/kernel/tracing/enabled_functions
}

# begun FILE: the recorder has attached and writes.
begun() {
	while [ ! -s "$1" ]; do
		usleep 20000
	done
}

transactions() {
	sed -n 's/ transactions.*//p' /proc/fs/jbd2/nullb0-8/info
}

recorded() { # name, arguments of record...
	name=$1
	shift
	luc trace record -o "/tmp/$name" "$@" > "/tmp/$name.said" 2>&1 || bad "record $*: $(cat "/tmp/$name.said")"
	luc trace summary --json "/tmp/$name" > "$LUC_OUT/$name.json" || bad "summary of $name"
}

before=$(hooked)

# Events of every kind, and how often each happened.
begin=$(transactions)
recorded counts $MEANS --on /mnt/0 -- sh -c ". /t/trace_lib.sh; four_writers"
echo "{\"commits\": $(($(transactions) - begin))}" > "$LUC_OUT/journal.json"

# Other calls.
cat > /tmp/syncs.sh << 'END'
for i in 1 2 3 4 5 6 7; do
	echo $i >> /mnt/0/log
	sync -d /mnt/0/log
	sync /mnt/0/log
done
for i in 1 2 3; do
	echo $i >> /mnt/0/log
	sync -f /mnt/0
done
END
recorded syncs $MEANS --on /mnt/0 -- sh /tmp/syncs.sh

# A process that keeps its files open.
recorded named $MEANS --on /mnt/0 -- luc-lab bench fsync-cost --ops 50 --warmup-ops 5 --buffers 64 /mnt/0

# One process of many.
sh -c 'while [ ! -s /tmp/process ]; do usleep 20000; done; exec dd if=/dev/zero of=/mnt/0/one bs=4096 count=5 conv=fsync' 2> /dev/null &
pid=$!
(begun /tmp/process; files /mnt/0 noise 40) &
recorded process $MEANS --on /mnt/0 --pid $pid --seconds 2
wait

# One control group of many.
mkdir -p /tmp/cgroup
mount -t cgroup2 none /tmp/cgroup
mkdir -p /tmp/cgroup/chosen/below
(echo 0 > /tmp/cgroup/chosen/below/cgroup.procs; begun /tmp/group; files /mnt/0 grouped 6) &
(begun /tmp/group; files /mnt/0 noise 40) &
recorded group $MEANS --on /mnt/0 --cgroup /tmp/cgroup/chosen --seconds 2
wait
check 2 "*is not a control group*" luc trace record -o /tmp/x --cgroup /tmp --seconds 1 -- true

# Writers that wait: as many as the kernel's own probes see call and sleep.
waited() { # EVENT: how often since `asked`
	grep -c "$1" /sys/kernel/tracing/trace
}
asked() {
	echo > /sys/kernel/tracing/trace
}
echo 16384 > /sys/kernel/tracing/buffer_size_kb
echo 'p:lab/buffer out_of_line_wait_on_bit caller=+0($stack):symbol' > /sys/kernel/tracing/kprobe_events
echo 'p:lab/locked wait_transaction_locked' >> /sys/kernel/tracing/kprobe_events
echo 1 > /sys/kernel/tracing/events/lab/enable
writers=". /t/trace_lib.sh; blocked_writers /mnt/0"
asked
recorded waits $MEANS --on /mnt/0 -- sh -c "$writers"
echo "{\"buffer\": $(waited do_get_write_access), \"locked\": $(waited 'locked:')}" > "$LUC_OUT/waited.json"
asked
luc trace count $MEANS --json -o "$LUC_OUT/counted.json" --on /mnt/0 -- sh -c "$writers" > /dev/null || bad "count"
echo "{\"buffer\": $(waited do_get_write_access), \"locked\": $(waited 'locked:')}" > "$LUC_OUT/waited_counted.json"
echo 0 > /sys/kernel/tracing/events/lab/enable
echo > /sys/kernel/tracing/kprobe_events

# A ring that is too small: what is lost is counted, and the reader says so.
recorded lost $MEANS --on /mnt/0 --buffer-kib 16 -- luc-lab bench write-delay --writers 32 \
	--fsync-streams 1 --seconds 0.5 --warmup-s 0 /mnt/0
yes "it advises a larger buffer" grep -q -- "--buffer-kib 64" /tmp/lost.said
case $MEANS in
*fentry*)
	yes "it blames the buffer alone" grep -q "note: the buffer was full; a larger one" /tmp/lost.said
	;;
*kprobe*)
	yes "it blames kprobes, too" grep -q "kprobes cannot track the returns" /tmp/lost.said
	# More tasks in a write than kretprobes wait for, and room for all spans that are seen.
	recorded returns $MEANS --on /mnt/0 -- luc-lab bench write-delay --writers 64 --seconds 0.3 --warmup-s 0 /mnt/0
	yes "it does not blame the buffer" grep -q "note: the buffer had room" /tmp/returns.said
	;;
esac

# Next to the module: spans and decisions in one recording.
if [ -e /lib/luc/luc.ko ]; then
	luc on /mnt/0 > /dev/null
	recorded both $MEANS -- luc-lab bench create-fsync --threads 8 --seconds 0.5 --warmup-s 0 /mnt/0
	luc replay --json /tmp/both > "$LUC_OUT/replay.json" || bad "replay"
	# The tracer and the module may each start and end while the other runs.
	luc trace record $MEANS -o /tmp/long 2> /dev/null &
	recorder=$!
	begun /tmp/long
	yes "off while tracing" luc off --all --unload
	yes "on while tracing" luc on /mnt/0
	bench /mnt/0 4
	kill -INT $recorder
	wait $recorder
	yes "its recording is whole" luc trace summary /tmp/long
	yes "off" luc off --all --unload
fi

# A file system that is unmounted while it is watched.
luc trace record $MEANS -o /tmp/gone --on /mnt/1 2> /tmp/gone.said &
recorder=$!
begun /tmp/gone
files /mnt/1 last 3
yes "umount while tracing" umount /mnt/1
kill -TERM $recorder
wait $recorder
is "exit status of the recorder" 0 $?
luc trace summary --json /tmp/gone > "$LUC_OUT/gone.json" || bad "summary of gone"

# A recorder that is killed leaves a file to read, and no hook.
luc trace record $MEANS -o /tmp/killed --on /mnt/0 2> /dev/null &
recorder=$!
begun /tmp/killed
files /mnt/0 killed 5
usleep 200000
kill -KILL $recorder
wait $recorder
yes "what it had written can be read" luc trace summary /tmp/killed
eventually "no hook is left" [ "$(hooked)" = "$before" ]

check 6 "*the file system is*" luc trace record -o /tmp/x --on /proc -- true
check 0 "{*\"commit 1*" sh -c 'luc trace export --format perfetto /tmp/counts | tr -d "\n"'
check 0 "kind,begin_ns*" sh -c 'luc trace export --format csv /tmp/counts | head -n 1'
finish
