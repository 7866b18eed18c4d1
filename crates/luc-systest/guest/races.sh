# Several processors run the module at once, for a detector that watches one access in some
# hundreds: calls without a commit are frequent, while commits are held, writers delayed, copies
# made, knobs changed and counters read.
. /t/lib.sh
fs=/sys/fs/luc/nullb0
kcsan=/sys/kernel/debug/kcsan

stat() {
	sed -n "s/^$1: //p" $kcsan
}

is "the detector" 1 "$(stat enabled)"
before=$(stat setup_watchpoints)
luc on /mnt/0 $always_copy > /dev/null
mkdir /mnt/0/calls
for policy in luc static copyout batching; do
	luc set /mnt/0 policy $policy > /dev/null || bad "policy $policy"
	syncers calls /mnt/0/calls 4 "$SECONDS_EACH" > /tmp/calls &
	calls=$!
	luc-lab bench create-fsync --threads 4 --seconds "$SECONDS_EACH" --warmup-s 0 /mnt/0 > /dev/null &
	threads=$!
	luc-lab bench write-delay --writers 4 --think-us 5000 --seconds "$SECONDS_EACH" --warmup-s 0 \
		/mnt/0 > /dev/null &
	writers=$!
	for turn in 1 2 3 4 5 6; do
		echo $((turn * 7 % 20)) > $fs/knobs/static_idle_us
		cat $fs/counters/* $fs/knobs/* > /dev/null
		usleep 200000
	done
	wait $calls || bad "calls: $(cat /tmp/calls)"
	wait $threads || bad "create-fsync: exit $?"
	wait $writers || bad "write-delay: exit $?"
	echo "tell $policy: $(cat /tmp/calls), $(counter nullb0 commits) commits," \
		"$(counter nullb0 commits_held) held, $(counter nullb0 copies) copies so far"
done
watched=$(($(stat setup_watchpoints) - before))
yes "$watched accesses were watched" test $watched -gt 10000
echo "tell $watched accesses watched, $(stat data_races) races, the kernel's own among them"
yes "off" luc off --all --unload
finish
