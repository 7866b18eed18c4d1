# A task that calls fsync() on a clean file as often as it can must not steer LUC: such a call waits
# for no commit. LUC does not hold the commits of others more often for it, and they lose nothing.
# The call still has the disk flush its cache, so others wait longer beside it, also without LUC.
. /t/lib.sh
cat > /tmp/spinner.f <<'EOF'
set $dir=/tmp
define fileset name=clean,path=$dir,entries=1,size=4k,prealloc
define process name=spinner {
  thread name=spinner,memsize=1m {
    flowop openfile name=open,filesetname=clean,fd=1
    flowop fsync name=sync,iters=2000,fd=1
    flowop closefile name=close,fd=1
  }
}
EOF

# load THREADS: sets files_per_s, p99_us of a sync, and how many of 1000 commits were held.
load() {
	held=$(counter nullb0 commits_held) commits=$(counter nullb0 commits)
	luc-lab bench create-fsync --threads "$1" --seconds 2 --warmup-s 0 --json /mnt/0 > /tmp/load ||
		bad "the load of $1 threads: exit $?"
	files_per_s=$(sed 's/.*"ops_per_s":\([0-9]*\).*/\1/' /tmp/load)
	p99_us=$(sed 's/.*"fsync":{[^}]*"p99_ns":\([0-9]*\)[0-9]\{3\}[,}].*/\1/' /tmp/load)
	held=$((($(counter nullb0 commits_held) - held) * 1000 /
		($(counter nullb0 commits) - commits)))
}

check 0 "on: *" luc on /mnt/0
for threads in 1 8; do
	load $threads
	alone_held=$held alone_files_per_s=$files_per_s
	luc-lab bench run /tmp/spinner.f --dir /mnt/0 --seconds 6 --json > /tmp/spun &
	usleep 300000
	load $threads
	beside_held=$held beside_files_per_s=$files_per_s beside_p99_us=$p99_us
	yes "observing" luc set /mnt/0 mode observe
	load $threads
	yes "the spinner ran on" test -d /proc/$!
	wait $!
	yes "steering" luc set /mnt/0 mode steer
	echo "tell $threads threads, of 1000 commits held $alone_held alone, $beside_held beside a spinner;" \
		"files/s $alone_files_per_s, $beside_files_per_s;" \
		"p99 of a sync beside it, us: $beside_p99_us, without holds $p99_us"
	yes "$threads threads: LUC holds no more often than without a spinner" \
		test $beside_held -le $((alone_held + 200))
	yes "$threads threads: the rate stays" \
		test $((beside_files_per_s * 10)) -ge $((alone_files_per_s * 9))
	# Where next to nothing is held, two short runs differ by their few slowest calls alone.
	yes "$threads threads: holds are rare, or do not lengthen the 99th percentile" \
		test $beside_held -le 20 -o $((beside_p99_us * 10)) -le $((p99_us * 11))
done
check 0 "off: *" luc off /mnt/0
finish
