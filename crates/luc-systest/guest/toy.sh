# A controller, a benchmark and an export format that were added to a copy of the sources, each by
# one file and one row.
. /t/lib.sh
check 0 "on: /mnt/0 (nullb0, ext4): policy custom, steering, set point automatic" \
	luc on /mnt/0 --set batching=toy --set copyout=off
yes "luc set shows it" sh -c "luc set /mnt/0 batching | grep -q 'toy.*|toy'"
yes "and says what it does" sh -c "luc set --help | grep -q 'hold for 2 ms'"
check 0 "*policy     custom (batching toy, copyout off), steering*" luc status
yes "it is recorded" luc trace record -o /tmp/recording -- \
	luc-lab bench create-fsync --threads 2 --seconds 0.5 --warmup-s 0 /mnt/0
held=$(counter nullb0 commits_held) commits=$(counter nullb0 commits)
yes "it held $held of $commits commits" test "$held" -gt $((commits / 2))
# The journal's thread may have to wait for the processor once its time is up.
longest=$(counter nullb0 held_max_ns)
yes "for $longest ns at most" test "$longest" -ge 2000000 -a "$longest" -lt 10000000
check 0 "* 0 different*" luc replay /tmp/recording
yes "the format writes" sh -c "luc trace export --format toy /tmp/recording | grep -q '^[1-9][0-9]* spans$'"
yes "and is told of" sh -c "luc trace export --help | grep -q 'toy:.*Number of spans'"
check 0 "toy, 3 turns, in /mnt/0*" luc-lab bench toy --turns 3 /mnt/0
yes "the benchmark's JSON" sh -c "luc-lab bench toy --json /mnt/0 | grep -q '\"workload\":\"toy\"'"
yes "and its help" sh -c "luc-lab bench --help | grep -q 'toy  *Makes one file durable'"
met=$(counter nullb0 closed_setpoint)
# Four threads: after a batch of three, the fourth opens the next and waits for two that return.
bench /mnt/0 4
yes "$(($(counter nullb0 closed_setpoint) - met)) commits had enough" \
	test "$(counter nullb0 closed_setpoint)" -gt "$met"
check 0 "*module luc removed" luc off --all --unload
finish
