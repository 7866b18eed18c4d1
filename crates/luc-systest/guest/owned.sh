# A BPF program owns a function that LUC hooks, or wants to; a livepatch shares it.
. /t/lib.sh

NEEDED=jbd2_journal_commit_transaction
OPTIONAL=ext4_sync_file
ON="on: /mnt/0 (nullb0, ext4): policy luc, steering, set point automatic"
OWNED="owned by a BPF program"
PATCHED="livepatched: LUC does without it until the livepatch is removed"
TRACING=/sys/kernel/tracing
LIVEPATCH=/sys/kernel/livepatch/owner_livepatch

# A process that reads this pipe holds a BPF program in place.
mkfifo /tmp/hold

bpf_comes() { # function
	/t/fentry "$1" < /tmp/hold > /tmp/fentry.out &
	exec 3> /tmp/hold
	eventually "a BPF program is on $1" grep -q "^attached" /tmp/fentry.out
}

bpf_goes() {
	exec 3>&-
	wait
	yes "the BPF program ran: $(tail -n 1 /tmp/fentry.out)" grep -q "^ran [1-9]" /tmp/fentry.out
}

# Older kernels answer EBUSY, 7.2 answers EINVAL.
bpf_is_refused() { # function
	check 1 "attach: *" /t/fentry "$1" < /dev/null
}

# The kernel tries once a second to move the tasks that were busy.
within_10_s() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		"$@" && return
		sleep 1
	done
	return 1
}

moved() {
	[ "$(cat $LIVEPATCH/transition)" = 0 ]
}

livepatch_comes() { # function
	yes "a livepatch of $1 loads" insmod /t/owner_livepatch.ko function="$1"
	yes "all tasks use the livepatch" within_10_s moved
}

livepatch_goes() {
	calls=$(cat /sys/module/owner_livepatch/parameters/calls)
	yes "the livepatch was called $calls times" [ "$calls" -gt 0 ]
	echo 0 > $LIVEPATCH/enabled
	yes "no task uses the livepatch" within_10_s gone $LIVEPATCH
	yes "the livepatch leaves" rmmod owner_livepatch
}

# Functions of LUC's list that are hooked, by any owner.
hooked() {
	cut -d ' ' -f 1 $TRACING/enabled_functions |
		grep -xE "jbd2_[a-z_]+|ext4_sync_file|out_of_line_wait_on_bit|wait_transaction_locked"
}

not_attached() {
	grep -v ' attached' /sys/fs/luc/hooks
}

# LUC's counters tell whether it still works. Policy static holds whatever may be held, whereas
# policy luc may have found that holding loses.
luc_steers() {
	luc set /mnt/0 policy static > /dev/null || bad "policy static"
	before=$(counter nullb0 commits_held)
	bench /mnt/0 8
	luc set /mnt/0 policy luc > /dev/null || bad "policy luc"
	after=$(counter nullb0 commits_held)
	yes "LUC held $((after - before)) commits meanwhile" [ "$after" -gt "$before" ]
}

on_and_off() {
	check 0 "$ON" luc on /mnt/0
	is "hooks not attached" "" "$(not_attached)"
	check 0 "*module luc removed" luc off --all --unload
	is "functions hooked" "" "$(hooked)"
}

needed_is_owned() { # owner
	"$1_comes" $NEEDED
	bench /mnt/0 8
	check 11 "luc: $NEEDED: $OWNED; detach that program first *" luc on /mnt/0
	yes "LUC is not left loaded" gone /sys/fs/luc
	check 13 "*missing  hooks  *$NEEDED $OWNED *" luc probe
	insmod /lib/luc/luc.ko
	check 11 "luc: $NEEDED: $OWNED; detach that program first *" luc on /mnt/0
	is "hooks not to be had" "$NEEDED busy" "$(grep -v ' detached' /sys/fs/luc/hooks)"
	is "functions hooked" $NEEDED "$(hooked)"
	rmmod luc
	bench /mnt/0 8
	"$1_goes"
	on_and_off
}

optional_is_owned() { # owner
	without="without $OPTIONAL ($OWNED)"
	"$1_comes" $OPTIONAL
	bench /mnt/0 8
	check 0 "$ON; $without" luc on /mnt/0
	is "hooks not attached" "$OPTIONAL busy optional" "$(not_attached)"
	check 0 "*
  without    ${without#without }" luc status
	check 0 "*note     hooks  *$OPTIONAL $OWNED *" luc probe
	luc_steers
	# The next `luc on` hooks the function again.
	"$1_goes"
	luc_steers
	check 0 "*module luc removed" luc off --all --unload
	on_and_off
}

comes_second() { # owner
	check 0 "$ON" luc on /mnt/0
	for function in $NEEDED $OPTIONAL; do
		"$1_is_refused" $function
	done
	is "hooks not attached" "" "$(not_attached)"
	luc_steers
	check 0 "*module luc removed" luc off --all --unload
	# Switched off, LUC is in nobody's way.
	"$1_comes" $NEEDED
	bench /mnt/0 8
	"$1_goes"
	on_and_off
}

# A kprobe does not own a function: both work.
kprobe_shares() {
	check 0 "$ON" luc on /mnt/0
	echo "p:shared/commit $NEEDED" > $TRACING/kprobe_events
	echo 1 > $TRACING/events/shared/commit/enable
	luc_steers
	hits=$(awk '$1 == "commit" { print $2 }' $TRACING/kprobe_profile)
	yes "a kprobe was hit ${hits:-0} times" [ "${hits:-0}" -gt 0 ]
	check 0 "*module luc removed" luc off --all --unload
	bench /mnt/0 8
	more=$(awk '$1 == "commit" { print $2 }' $TRACING/kprobe_profile)
	yes "and later ${more:-0} times" [ "${more:-0}" -gt "${hits:-0}" ]
	# In the other order.
	check 0 "$ON" luc on /mnt/0
	luc_steers
	echo 0 > $TRACING/events/shared/commit/enable
	echo > $TRACING/kprobe_events
	luc_steers
	check 0 "*module luc removed" luc off --all --unload
}

# A livepatch may be a security fix: it loads and leaves while LUC is on or off, and LUC goes on.
livepatch_shares() { # function
	livepatch_comes "$1"
	check 0 "*note     hooks  *$1 $PATCHED *" luc probe
	check 0 "$ON; without $1 ($PATCHED)" luc on /mnt/0
	is "hooks not attached" "" "$(not_attached)"
	bench /mnt/0 8
	livepatch_goes
	luc_steers
	check 0 "*module luc removed" luc off --all --unload
	on_and_off
	# The other way round, and under load.
	check 0 "$ON" luc on /mnt/0
	luc-lab bench create-fsync --threads 8 --seconds 3 --warmup-s 0 /mnt/0 > /dev/null &
	load=$!
	livepatch_comes "$1"
	check 0 "*
  without    $1 ($PATCHED)" luc status
	wait $load
	# The journal's thread may have moved to it only when the load ended.
	bench /mnt/0 8
	livepatch_goes
	luc_steers
	check 0 "*module luc removed" luc off --all --unload
	on_and_off
}

# LUC does without a function while it is patched: the other hooks still steer.
patched_sync_file_is_steered() {
	check 0 "$ON" luc on /mnt/0
	livepatch_comes $OPTIONAL
	luc_steers
	livepatch_goes
	check 0 "*module luc removed" luc off --all --unload
}

needed_is_owned bpf
optional_is_owned bpf
comes_second bpf
for function in $NEEDED $OPTIONAL jbd2_journal_write_metadata_buffer out_of_line_wait_on_bit; do
	livepatch_shares $function
done
patched_sync_file_is_steered
kprobe_shares
bench /mnt/0 8
finish
