# A load of known counts, watched by everything that counts, at once. watch/mod.rs judges the
# figures; this script only makes them.
. /t/lib.sh

# Length of the intervals, s: all watchers start, the load runs and ends within each of them. Idle
# virtual time costs nothing.
LENGTH=25
# Time until all watchers have started, s.
READY=15

mkdir -p /dev/pts
mount -t devpts none /dev/pts
ip link set lo up

cat > /tmp/load.sh << 'END'
sh -c 'echo 0 > /sys/fs/cgroup/alpha/cgroup.procs
	exec watched load alpha /mnt/0/a 40 0 5000' > /tmp/alpha &
watched load beta /mnt/0/b 25 10 7000 > /tmp/beta &
watched load other /mnt/1/o 5 0 9000 > /tmp/other &
while [ ! -s /tmp/alpha ] || [ ! -s /tmp/beta ] || [ ! -s /tmp/other ]; do
	usleep 20000
done
# Nothing is left for the journal's timer, which some would see and others not.
sync -f /mnt/0
sync -f /mnt/1
END

transactions() { # disk
	sed -n 's/ transactions.*//p' "/proc/fs/jbd2/$1-8/info"
}

page() { # file: what the exporter serves now
	yes "a page by HTTP" wget -q -O "$1" http://127.0.0.1:9797/metrics
}

counters() { # the module's own
	cd /sys/fs/luc/nullb0/counters && grep . * | sed 's/^/"/; s/:/": /; $!s/$/,/; 1s/^/{/; $s/$/}/'
	cd /
}

# phase NAME: runs the load once, with its watchers. Each watcher costs a second of virtual time, so
# there are fewer without the module, where they see no more than with it.
phase() {
	out=$LUC_OUT/$1
	sync -f /mnt/0
	sync -f /mnt/1
	begin=$(transactions nullb0) begin_other=$(transactions nullb1)
	rm -f /tmp/alpha /tmp/beta /tmp/other
	mkdir /sys/fs/cgroup/alpha
	luc exporter > /tmp/http.said 2> /tmp/http.err &
	http=$!
	if [ ! -e /sys/fs/luc ]; then
		luc top --once --json --interval $LENGTH > "$out-once.json" 2> /tmp/once.err &
		watchers=$!
	else
		luc exporter --textfile /tmp/luc.prom --interval 0.5 2> /tmp/file.err &
		file=$!
		luc status --live=$LENGTH --json > "$out-live.json" 2> /tmp/live.err &
		watchers=$!
		watched screen "$out-screen" $((LENGTH + 20)) luc top --interval $LENGTH 2> /tmp/screen.err &
		watchers="$watchers $!"
	fi
	# Each has read the kernel's symbols and attached, which takes a second of a processor.
	sleep $READY
	[ ! -e /sys/fs/luc ] || counters > "$out-before.json"
	yes "$1: the load is counted" luc trace count --json -o "$out-count.json" --on /mnt/0 -- sh /tmp/load.sh
	page "$out-http"
	if [ -e /sys/fs/luc ]; then
		# The file may be as old as its interval.
		usleep 1000000
		cp /tmp/luc.prom "$out-file"
	fi
	for pid in $watchers; do
		wait $pid
		is "$1: exit status of a watcher" 0 $?
	done
	kill $(cat /tmp/alpha /tmp/beta /tmp/other)
	eventually "$1: alpha's control group is empty" rmdir /sys/fs/cgroup/alpha
	page "$out-gone"
	kill -TERM $http
	wait $http
	is "$1: exit status of the exporter" 0 $?
	if [ -e /sys/fs/luc ]; then
		kill -TERM $file
		wait $file
		is "$1: exit status of the one with a file" 0 $?
		yes "$1: the file is gone" gone /tmp/luc.prom
		counters > "$out-after.json"
	fi
	cat > "$out-facts.json" << END
{
	"alpha": $(cat /tmp/alpha), "beta": $(cat /tmp/beta), "other": $(cat /tmp/other),
	"commits": $(($(transactions nullb0) - begin)),
	"commits_other": $(($(transactions nullb1) - begin_other))
}
END
}

phase plain

# With LUC on, under the policy that holds each commit for more syncs.
yes "on" luc on --policy static --set static_idle_us=3000 /mnt/0
phase held

# A change of mode or policy shows at once.
yes "observing" luc set /mnt/0 mode observe
yes "with another policy" luc set /mnt/0 policy batching
luc exporter --once > "$LUC_OUT/told-http" 2> /tmp/told.err || bad "exporter --once: $(cat /tmp/told.err)"
luc status --live=0.2 --json > "$LUC_OUT/told-live.json" || bad "status"
yes "off" luc off --all --unload
finish
