# A short load that takes the module through everything it does, under every lock and in every hook,
# so that a broken part shows.
. /t/lib.sh

# A thread's stack may still refer to the last file system, but not to those before.
for turn in 1 2 3; do
	luc on /mnt/0 > /dev/null
	yes "on and off in turn $turn" luc off --all --unload
done
luc on /mnt/0 $always_copy > /dev/null
# Copies are made once a write was delayed, which takes a while in a slow guest, and longer if
# commits are held.
for round in 1 2 3 4 5 6 7 8; do
	[ $round -eq 1 ] || luc set /mnt/0 policy copyout > /dev/null
	luc-lab bench create-fsync --threads 8 --seconds 8 --warmup-s 0 --bytes 4096 /mnt/0 \
		> /dev/null 2>&1 &
	luc-lab bench write-delay --writers 16 --fsync-streams 4 --think-us 2000 --seconds 8 \
		--warmup-s 0 /mnt/0 > /dev/null 2>&1 &
	wait
	[ "$(counter nullb0 copies)" -eq 0 ] || [ $round -eq 1 ] || break
done
yes "$(counter nullb0 commits) commits" test "$(counter nullb0 commits)" -gt 0
yes "$(counter nullb0 copies) copies" test "$(counter nullb0 copies)" -gt 0
yes "off" luc off --all --unload
finish
