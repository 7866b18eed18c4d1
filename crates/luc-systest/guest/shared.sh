# Control groups share a journal, and the commits that each causes are known. trace.rs judges the
# blame.
. /t/lib.sh
groups=/tmp/cgroup
mkdir -p $groups
mount -t cgroup2 none $groups
mkdir $groups/unpack "$groups/the \"db\""

cat > /tmp/lib.sh << 'END'
# turn GROUP FILE FSYNCS: a process syncs one file as often as told.
turn() {
	rm -f /tmp/done
	(echo 0 > "/tmp/cgroup/$1/cgroup.procs"; exec watched load "$2" "/mnt/0/$2" "$3" 0 5000 > /tmp/done) &
	while [ ! -s /tmp/done ]; do
		usleep 20000
	done
	kill "$(cat /tmp/done)"
	wait $! 2> /dev/null
}
END
cat > /tmp/turns.sh << 'END'
. /tmp/lib.sh
turn unpack tar 40
turn 'the "db"' etcd 25
mount -o remount,sync /mnt/0
(echo 0 > /tmp/cgroup/unpack/cgroup.procs; exec mkdir /mnt/0/synchronous)
mount -o remount,async /mnt/0
END
cat > /tmp/together.sh << 'END'
. /tmp/lib.sh
(echo 0 > /tmp/cgroup/unpack/cgroup.procs
	exec luc-lab bench create-fsync --threads 4 --seconds 99 --warmup-s 0 /mnt/0) > /dev/null &
load=$!
usleep 300000
turn 'the "db"' etcd 60
kill -KILL $load
wait $load 2> /dev/null
true
END

# The exporter's totals, beside the recordings. It adds up every five seconds.
luc exporter --blame /mnt/0 --textfile /tmp/luc.prom --interval 0.5 2> /tmp/exporter.err &
exporter=$!
within 200 "the exporter writes" test -s /tmp/luc.prom

for name in turns together; do
	sync -f /mnt/0
	yes "$name is recorded" luc trace record -o /tmp/$name --on /mnt/0 -- sh /tmp/$name.sh
	luc trace summary --json /tmp/$name > "$LUC_OUT/$name.json" || bad "summary of $name"
	luc trace summary /tmp/$name | grep -E "^  (commits caused|waits  ) " | sed "s/^ */tell $name: /"
	sleep 7
	cp /tmp/luc.prom "$LUC_OUT/$name.prom"
done
# A group that is gone is counted among the others when the next one comes.
mkdir $groups/later
rmdir $groups/unpack || bad "rmdir"
echo data > /mnt/0/new
(echo 0 > $groups/later/cgroup.procs; exec sync /mnt/0/new)
sleep 7
cp /tmp/luc.prom "$LUC_OUT/gone.prom"
mkdir $groups/unpack
kill -TERM $exporter
wait $exporter
is "exit status of the exporter" 0 $?

# The same live, on the screen of luc top: by process, and by control group.
mkdir -p /dev/pts
mount -t devpts none /dev/pts
sed -i 's/ 60$/ 99999/' /tmp/together.sh
setsid sh /tmp/together.sh > /dev/null 2>&1 &
load=$!
usleep 500000
KEYS=b yes "by process" watched screen "$LUC_OUT/processes" 20 luc top
KEYS=bb yes "by control group" watched screen "$LUC_OUT/groups" 20 luc top
kill -KILL -$load
wait $load 2> /dev/null
finish
