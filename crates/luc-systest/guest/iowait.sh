# Which sleeps are waits in the kernel's io_schedule(), from which governors take a task's wake-up
# for the end of a disk's work: not that of an fsync for its commit, but that of a writer for a
# buffer, and those of the journal's thread.
. /t/lib.sh
tracing=/sys/kernel/tracing
[ -d $tracing/events ] || mount -t tracefs none $tracing
echo 1 > /proc/sys/kernel/sched_schedstats
echo 8192 > $tracing/buffer_size_kb

switch() { # 1 or 0
	echo "$1" > $tracing/events/sched/sched_stat_blocked/enable
	echo "$1" > $tracing/events/sched/sched_stat_iowait/enable
}

sleeps() { # event, start of the tasks' names: how many
	grep -c "sched_stat_$1: comm=$2" $tracing/trace
}

load() { # name, options...: counts the sleeps of a load of 16 threads
	name=$1
	shift
	echo > $tracing/trace
	switch 1
	yes "$name runs" luc-lab bench "$name" "$@" --seconds 1 --warmup-s 0 /mnt/0
	switch 0
	for task in bench jbd2; do
		all=$(sleeps blocked $task) io=$(sleeps iowait $task)
		echo "tell $name: $io of $all sleeps of $task are waits for the disk"
		echo "$io $all" > "/tmp/$name.$task"
	done
}

load create-fsync --threads 16
load write-delay --writers 16
few() { read -r io all < "$1"; [ "$all" -gt 100 ] && [ $((io * 20)) -le "$all" ]; }
# Beside the 16 writers one task syncs.
most() { read -r io all < "$1"; [ "$all" -gt 100 ] && [ $((io * 5)) -ge $((all * 4)) ]; }
yes "an fsync's wait for its commit is none" few /tmp/create-fsync.bench
yes "a writer's wait for a buffer is one" most /tmp/write-delay.bench
yes "so are those of the journal's thread" most /tmp/create-fsync.jbd2
finish
