# Every condition that forbids a hold ends one under way, and the kernel log reports it. Policy
# static holds each commit for a second here.
. /t/lib.sh
fs=/sys/fs/luc/nullb0
long="--policy static --set static_idle_us=1000000 --set delay_limit_us=1000000"

now_ms() {
	awk '{ printf "%d\n", $1 * 1000 }' /proc/uptime
}

held_sync() {
	echo data > /mnt/0/file
	sync /mnt/0/file
	now_ms > /tmp/synced
}

# held WHAT: a commit is held, from now on.
held() {
	rm -f /tmp/synced
	held_sync &
	usleep 200000
	[ ! -e /tmp/synced ] || bad "$1: the commit was not held"
}

# ends WHAT COMMAND...: it ends a hold that would last 0.8 s more.
ends() {
	what=$1
	held "$what"
	begin_ms=$(now_ms)
	shift
	"$@" || bad "$what: $?"
	wait
	took_ms=$(($(cat /tmp/synced) - begin_ms))
	yes "$what ends a hold: after $took_ms ms" test $took_ms -lt 300
}

set_knob() { # name, value
	echo "$2" > $fs/knobs/"$1"
}

# logged HOW_OFTEN TEXT
logged() {
	is "lines '$2' in the kernel log" "$1" "$(dmesg | grep -c "luc: .*$2")"
}

# shellcheck disable=SC2086 # words
check 0 "on: *" luc on $long /mnt/0
logged 1 "nullb0 .*: on, steering, batching static, copyout off"

begin_ms=$(now_ms)
held_sync
yes "a hold lasts a second" test $(($(now_ms) - begin_ms)) -ge 900
held "a look at its state"
# The holder wakes every millisecond: one look may miss its sleep.
looks=0
until grep -q "^procs_blocked 1$" /proc/stat || [ $looks = 20 ]; do
	looks=$((looks + 1))
done
yes "a hold is a wait for I/O" test $looks -lt 20
wait

ends "mode observe" set_knob mode observe
logged 1 "nullb0: mode set to observe"
set_knob mode steer
ends "batching off" set_knob batching off
set_knob batching static

urgent=$(counter nullb0 urgent_events)
ends "reclaim" insmod /t/pressure_reclaim.ko journal_task="$(cat /sys/fs/ext4/nullb0/journal_task)"
yes "its wait was urgent" test "$(counter nullb0 urgent_events)" -gt "$urgent"
rmmod pressure_reclaim

# The freezer reaches the journal's thread last, and waits for the sync first. The kernel's
# own sync before a suspend would end the hold as well.
echo 0 > /sys/power/sync_on_suspend || bad "sync_on_suspend"
insmod /t/pressure_suspend.ko frozen_ms=1 || bad "insmod pressure_suspend"
suspend() {
	echo freeze 2> /dev/null > /sys/power/state && bad "the suspend did not fail"
	return 0
}
ends "suspend" suspend
is "freezes" 2 "$(dmesg | grep -c "Freezing .*elapsed")"
rmmod pressure_suspend

# The mount option that forbids batching, at any time.
ends "max_batch_time=0" mount -o remount,max_batch_time=0 /mnt/0
before=$(counter nullb0 commits_held)
begin_ms=$(now_ms)
held_sync
held_sync
yes "no hold with max_batch_time=0" test $(($(now_ms) - begin_ms)) -lt 300
is "commits held with max_batch_time=0" "$before" "$(counter nullb0 commits_held)"
logged 1 "nullb0: no commit is held: mount option max_batch_time=0"
yes "status says it" sh -c "luc status | grep 'mount option max_batch_time=0'"
yes "status says it as JSON" sh -c "luc status --json | grep '\"holds_barred_by\": \"mount option max_batch_time=0\"'"
mount -o remount,max_batch_time=15000 /mnt/0
yes "status has nothing to say" sh -c "luc status --json | grep '\"holds_barred_by\": null'"
begin_ms=$(now_ms)
held_sync
yes "held again" test $(($(now_ms) - begin_ms)) -ge 900

ends "off" luc off /mnt/0
logged 1 "nullb0 .*: off, detached; [0-9]* commits"

luc on /mnt/0 > /dev/null
umount /mnt/0
eventually "off by the unmount" gone $fs
logged 1 "nullb0 .*: off, unmounted"
mount "$LUC_DISK0" /mnt/0
luc on /mnt/0 > /dev/null
# A program that writes a knob all the time does not fill the log: ten lines a minute.
for ms in $(seq 30); do
	set_knob delay_limit_us ${ms}000
done
logged 10 "nullb0: delay_limit_us set to"
check 0 "*module luc removed" luc off --all --unload
logged 3 "nullb0 .*: on,"
logged 3 "nullb0 .*: off,"
logged 1 "the module is being unloaded"
finish
