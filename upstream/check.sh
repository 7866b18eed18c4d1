#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Does a held commit start when a waiter is urgent? A program behind the struct_ops of
# upstream/later holds every commit for ever, and the journal's max_batch_time is 5 s. A
# file is synced, so that its commit is held, and half a second later comes an urgent
# operation. Prints, for each, after how many hundredths of a second it was done; more
# than 100 is a failure, and so is a file system that is not sound afterwards. Then, by
# the rules of patches 2 and 3 and without that program, the same under load.
#
#   luc-lab debug-kernel 7.2-upstream && make -C upstream/bpf
#   upstream/check.sh [SMP]
#
# KERNEL names another kernel. 7.2-upstream-debug and 7.2-upstream-races check themselves,
# and any report of theirs is a failure; they have no BPF, so the part under load is all.
set -eu

KERNEL=${KERNEL:-7.2-upstream}

BOUND=500	# hundredths of a second
PROMPT=100

# --- in the guest ----------------------------------------------------------

now() {
	awk '{ print int($1 * 100) }' /proc/uptime
}

held_sync() {
	echo data >"$dir/held"
	# Opens it for reading, so that it may be remounted. Fails if the journal aborts.
	sync "$dir/held" 2>/dev/null || true
	now >/tmp/synced
}

# NAME COMMAND...: runs it while a commit is held, and waits for both.
meanwhile() {
	name=$1
	shift
	rm -f /tmp/synced
	held_sync &
	sleep 0.5
	if [ -e /tmp/synced ]; then
		echo "FAIL $name: the commit was not held"
		failed=1
		return
	fi
	begin=$(now)
	"$@"
	acted=$(($(now) - begin))
	wait
	synced=$(($(cat /tmp/synced) - begin))
	verdict=ok
	if [ "$acted" -gt $PROMPT ] || [ "$synced" -gt $PROMPT ]; then
		verdict=FAIL
		failed=1
	fi
	echo "$verdict $name: $acted, the sync $synced"
}

thaw() {
	fsfreeze --freeze "$dir" && fsfreeze --unfreeze "$dir"
}

switch_off_and_on() {
	echo 0 >"/sys/fs/ext4/$dev/journal_hold"
	wait
	echo 1 >"/sys/fs/ext4/$dev/journal_hold"
}

bound() {
	begin=$(now)
	held_sync
	took=$(($(now) - begin))
	verdict=ok
	if [ $took -lt $((BOUND - 10)) ] || [ $took -gt $((BOUND + PROMPT)) ]; then
		verdict=FAIL
		failed=1
	fi
	echo "$verdict max_batch_time: $took"
}

mount_again() {
	mount "/dev/$dev" "$dir" -o max_batch_time=5000000,errors=remount-ro
	echo 1 >"/sys/fs/ext4/$dev/journal_hold"
}

sound() {
	umount "$dir"
	if e2fsck -fn "/dev/$dev" >/tmp/fsck 2>&1; then
		echo "ok fsck $1"
	else
		echo "FAIL fsck $1"
		cat /tmp/fsck
		failed=1
	fi
}

# The rules of jbd2 itself, with few copies, while urgent operations come.
under_load() {
	mount_again
	echo 64 >"/sys/fs/ext4/$dev/journal_copyout_max"
	luc-lab bench create-fsync --threads 16 --seconds 0.6 --warmup-s 0 "$dir" >/dev/null &
	luc-lab bench write-delay --writers 16 --seconds 0.6 --warmup-s 0 "$dir" >/dev/null &
	sleep 0.3
	sync
	thaw
	echo 0 >"/sys/fs/ext4/$dev/journal_hold"
	sleep 0.1
	echo 1 >"/sys/fs/ext4/$dev/journal_hold"
	mount -o remount,commit=3 "$dir"
	wait
}

with_a_stubborn_program() {
	mkdir /sys/fs/bpf/stubborn
	bpftool struct_ops register /stubborn.bpf.o /sys/fs/bpf/stubborn
	echo 1 >"/sys/fs/ext4/$dev/journal_hold"
	bound
	meanwhile sync sync
	meanwhile freeze thaw
	meanwhile remount mount -o remount,ro "$dir"
	mount -o remount,rw "$dir"
	meanwhile switch switch_off_and_on
	sound "after these"
	mount_again
	meanwhile abort sh -c "echo 1 >/sys/fs/ext4/$dev/trigger_fs_error"
	umount "$dir"
	e2fsck -fy "/dev/$dev" >/dev/null 2>&1 || true
	mount_again
	sound "after an abort"
	rm -r /sys/fs/bpf/stubborn
}

guest() {
	failed=0
	dir=/mnt/0
	dev=$(awk -v dir="$dir" '$2 == dir { sub(".*/", "", $1); print $1 }' /proc/mounts)
	cd /
	if grep -qw bpf /proc/filesystems; then
		mount -t bpf bpf /sys/fs/bpf
		with_a_stubborn_program
	else
		echo "left out: this kernel has no BPF to hold a commit for ever"
		umount "$dir"
	fi
	for round in 1 2 3; do
		under_load
		sound "after load, round $round"
	done
	return $failed
}

# --- on the host -----------------------------------------------------------

host() {
	here=$(dirname "$0")
	program=
	if [ "$KERNEL" = 7.2-upstream ]; then
		. "$here/bpftool.sh"
		program="--file $here/bpf/stubborn.bpf.o:/stubborn.bpf.o $(bpftool_files)"
	fi
	"${LUC_LAB:-luc-lab}" run --kernel "$KERNEL" --no-module --smp "${1:-2}" \
		--disk 1ms:64:mount=max_batch_time=5000000,errors=remount-ro \
		--allow-log EXT4-fs --allow-log JBD2 --allow-log Aborting \
		--file "$here/check.sh:/check.sh" $program \
		-- sh /check.sh guest
}

if [ "${1:-}" = guest ]; then
	guest
else
	host "$@"
fi
