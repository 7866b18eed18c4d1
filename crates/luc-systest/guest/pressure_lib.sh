# Sourced by the scripts about faults and pressure: one load, with LUC and without.
. /t/disk_lib.sh
fs=/sys/fs/luc/lucdisk0
mkdir -p /mnt/p

# make MKFS_ARG...: a disk with a volatile cache and a small journal, mounted.
make() {
	disk lucdisk0 size_mib=64 write_latency_ns=500000 cache_bytes=1048576 \
		cache_write_ns=50000 flush_ns=500000
	mkfs lucdisk0 -J size=4 "$@"
	mount -t ext4 /dev/lucdisk0 /mnt/p || bad "mount"
}

# Unmounts and removes the disk, whatever the fault has left.
unmake() {
	umount /mnt/p || bad "umount: $(cat /proc/mounts)"
	undisk lucdisk0
}

# steer stock|luc|static: with LUC or without. Policy luc copies every buffer once
# a write was delayed; policy static holds every commit for a while.
steer() {
	case $1 in
	luc)
		luc on /mnt/p --set copyout=published --set copyout_threshold_permille=0 > /dev/null ||
			bad "luc on"
		;;
	static) luc on /mnt/p --policy static --set static_idle_us=20000 > /dev/null || bad "luc on" ;;
	esac
}

now_us() {
	# Clock ticks of 10 ms are fine enough for these bounds.
	awk '{ printf "%d\n", $1 * 1000000 }' /proc/uptime
}

# unsteer stock|luc|static: switches LUC off and unloads it. Then held_us is the longest hold, and
# did tells what LUC did.
unsteer() {
	did=-
	[ "$1" = stock ] && return
	if [ -d $fs ]; then
		held_us=$(($(counter lucdisk0 held_max_ns) / 1000))
		did="held $(counter lucdisk0 commits_held) of $(counter lucdisk0 commits) commits,"
		did="$did $held_us us at most, $(counter lucdisk0 copies) copies"
		knob_us=$(cat $fs/knobs/delay_limit_us)
		# The holder is woken by a timer and must get the processor.
		[ "$held_us" -le $((knob_us + 2000)) ] ||
			bad "a commit was held $held_us us, the limit is $knob_us"
	fi
	# The program may be one that is not optimised: its own start does not count.
	begin_us=$(now_us)
	luc status > /dev/null 2>&1
	start_us=$(($(now_us) - begin_us))
	begin_us=$(now_us)
	luc off --all --unload > /tmp/off.out 2>&1 || bad "luc off: $(cat /tmp/off.out)"
	off_us=$(($(now_us) - begin_us))
	[ $((off_us - start_us)) -le 1000000 ] || bad "luc off --unload took $off_us us"
	did="$did, off in $off_us us"
	[ ! -e /sys/module/luc ] || bad "the module is still there"
}

# val NAME FILE: the number of NAME=... in a line of syncers.
val() {
	tr ' ' '\n' < "$2" | sed -n "s/^$1=//p"
}

# most WHAT LIMIT GOT
most() {
	yes "$1: $3, at most $2" test "$3" -le "$2"
}

# A number for the host to print.
tell() {
	echo "tell $*"
}
