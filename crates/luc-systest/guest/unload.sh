# The module is loaded and removed while threads and writers keep the journal busy.
. /t/lib.sh

# Rounds, so that files never fill the disk; each must succeed.
busy() { # name, benchmark...
	rounds=0
	name=$1
	shift
	while [ -e /tmp/go ]; do
		"$@" > "/tmp/$name.out" 2>&1 ||
			bad "$name in round $rounds: exit $?: $(tail -n 1 "/tmp/$name.out")"
		rounds=$((rounds + 1))
	done
	echo $rounds > "/tmp/$name.rounds"
}

touch /tmp/go
busy threads luc-lab bench create-fsync --threads 8 --seconds 5 --warmup-s 0 --bytes 4096 /mnt/0 &
busy writers luc-lab bench write-delay --writers 8 --think-us 20000 --seconds 5 --warmup-s 0 /mnt/0 &

commits=0 held=0 copies=0 cycle=0 begin=$(cut -d ' ' -f 1 /proc/uptime)
while [ $cycle -lt "$CYCLES" ]; do
	insmod /lib/luc/luc.ko || bad "insmod in cycle $cycle"
	# A spread of moments, the same in every run.
	(echo "$(cat /sys/class/block/nullb0/dev)" > /sys/fs/luc/attach) || bad "attach in cycle $cycle"
	usleep $(((cycle * 7919) % 64000))
	commits=$((commits + $(counter nullb0 commits)))
	held=$((held + $(counter nullb0 commits_held)))
	copies=$((copies + $(counter nullb0 copies)))
	rmmod luc 2> /dev/null && bad "the module went below its hooks in cycle $cycle"
	case $((cycle % 2)) in
	0) cat /sys/class/block/nullb0/dev > /sys/fs/luc/detach || bad "detach in cycle $cycle" ;;
	1) luc off /mnt/0 > /dev/null || bad "luc off in cycle $cycle" ;;
	esac
	is_used=$(cat /sys/module/luc/refcnt)
	[ "$is_used" = 0 ] || bad "references in cycle $cycle: $is_used"
	rmmod luc || bad "rmmod in cycle $cycle"
	[ -e /sys/fs/luc ] && bad "sysfs after cycle $cycle"
	cycle=$((cycle + 1))
done
rm /tmp/go
wait
ok "$cycle cycles from $begin s to $(cut -d ' ' -f 1 /proc/uptime) s of uptime"
for name in threads writers; do
	yes "$name went on: $(cat /tmp/$name.rounds) rounds" test "$(cat /tmp/$name.rounds)" -gt 1
done
echo "{\"cycles\":$cycle,\"commits\":$commits,\"held\":$held,\"copies\":$copies}" > "$LUC_OUT/sums.json"

# Still a file system, and LUC still works on it.
yes "luc on" luc on /mnt/0
bench /mnt/0 8
yes "luc off" luc off --all --unload
bench /mnt/0 8
umount /mnt/0
yes "fsck finds nothing" e2fsck -fn /dev/nullb0
mount /dev/nullb0 /mnt/0
finish
