#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Measures the kernel of upstream/ in four ways, in one boot for each disk: as it is, with
# the module, with the hold and the copies of patches 2 and 3, and with the controllers
# as BPF behind the struct_ops of upstream/later. Each way has a fresh file system.
#
#   luc-lab debug-kernel 7.2-upstream && make -C upstream/bpf
#   upstream/measure.sh [SMP [SEED]]
#
# The ways without "bpf" need neither make nor bpftool.
#
# LUC_LAB names the program luc-lab if it is not in PATH, RUNS what to measure (all of
# "4ms 1ms 100us delay cost" otherwise), WAYS the ways (otherwise "stock module hold
# bpf"; there is "copies", too: patch 2 alone), BPFTOOL a bpftool of 7.2 or later, as
# earlier ones attach nothing.
set -eu

# DISK THREADS: how long to measure and to warm up, seconds. Virtual time in which
# the processor idles costs nearly nothing.
lengths() {
	case $1-$2 in
	4ms:1-64) echo 2.4 0.8 ;;
	4ms:1-16) echo 2 0.8 ;;
	4ms:1-*) echo 4 0.8 ;;
	1ms:64-*) echo 1 0.3 ;;
	*-64) echo 0.6 0.2 ;;
	*) echo 0.5 0.2 ;;
	esac
}

# --- in the guest ----------------------------------------------------------

switch() {
	dev=$(awk -v dir="$dir" '$2 == dir { sub(".*/", "", $1); print $1 }' /proc/mounts)
	echo "$1" >"/sys/fs/ext4/$dev/journal_hold"
	echo "$2" >"/sys/fs/ext4/$dev/journal_copyout_max"
}

begin() {
	case $way in
	module) luc on "$dir" >/dev/null ;;
	copies) switch 0 2048 ;;
	hold) switch 1 2048 ;;
	bpf)
		grep -q " /sys/fs/bpf bpf " /proc/mounts || mount -t bpf bpf /sys/fs/bpf
		mkdir /sys/fs/bpf/luc
		bpftool prog loadall /luc.bpf.o /sys/fs/bpf/luc-tracing autoattach
		bpftool struct_ops register /luc.bpf.o /sys/fs/bpf/luc
		switch 1 2048
		;;
	esac
}

end() {
	case $way in
	module) luc off "$dir" >/dev/null ;;
	copies | hold) switch 0 0 ;;
	bpf)
		switch 0 0
		[ -z "${VERBOSE:-}" ] || bpftool map dump name journals
		rm -r /sys/fs/bpf/luc /sys/fs/bpf/luc-tracing
		rm /sys/fs/bpf/journals /sys/fs/bpf/calls
		;;
	esac
}

# Figures of a report by their names; "outer/inner" where another has the same.
figures() {
	for name; do
		case $name in
		*/*) pattern="\"${name%/*}\":{[^}]*\"${name#*/}\":" ;;
		*) pattern="\"$name\":" ;;
		esac
		value=$(grep -o "$pattern[-0-9.e]*" /tmp/report | head -n 1)
		printf ' %s=%s' "$name" "${value##*:}"
	done
}

bench() {
	"$@" --json "$dir" >/tmp/report
	printf '%s %s' "$way" "$label"
}

creates() {
	label="create-fsync $disk threads=$1"
	set -- "$1" $(lengths "$disk" "$1")
	bench luc-lab bench create-fsync --threads "$1" --seconds "$2" --warmup-s "$3"
	figures ops_per_s fsync/mean_ns fsync/p99_ns fsyncs_per_commit
	echo
}

guest() {
	disk=$1
	load=$2
	shift 2
	i=0
	for way; do
		dir=/mnt/$i
		i=$((i + 1))
		begin
		case $load in
		create) for threads in 1 4 16 64; do creates "$threads"; done ;;
		delay)
			label="write-delay $disk writers=48"
			bench luc-lab bench write-delay --writers 48 --seconds 1.5 --warmup-s 0.5
			figures writes_per_s delayed_share write/p99_ns fsyncs_per_s
			echo
			;;
		cost)
			label="fsync-cost $disk"
			bench luc-lab bench fsync-cost
			figures clean/usual_ns committed/usual_ns commit/usual_ns \
				commit_buffers/usual_ns
			echo
			;;
		esac
		end
	done
}

# --- on the host -----------------------------------------------------------

boot() {
	disk=$1
	load=$2
	set --
	for way in $ways; do
		set -- "$@" --disk "$disk$mount"
	done
	case " $ways " in
	*" bpf "*) set -- "$@" --file "$here/bpf/luc.bpf.o:/luc.bpf.o" $(bpftool_files) ;;
	esac
	"$lab" run --kernel 7.2-upstream --smp "$smp" --seed "$seed" --memory-mib 3072 \
		--timeout 3600 "$@" --file "$here/measure.sh:/measure.sh" \
		-- sh /measure.sh guest "$disk" "$load" $ways
}

host() {
	smp=${1:-1}
	seed=${2:-1}
	here=$(dirname "$0")
	. "$here/bpftool.sh"
	lab=${LUC_LAB:-luc-lab}
	ways=${WAYS:-stock module hold bpf}
	echo "# 7.2-upstream, $smp virtual processors, seed $seed"
	for run in ${RUNS:-4ms 1ms 100us delay cost}; do
		mount=
		case $run in
		4ms) boot 4ms:1 create ;;
		1ms) boot 1ms:64 create ;;
		100us) boot 100us:64 create ;;
		delay) boot 4ms:1 delay ;;
		cost)
			# Completes at once, so that time is instructions; commits by timer.
			mount=:mount=commit=1
			boot 0ns:1 cost
			;;
		esac
	done
}

if [ "${1:-}" = guest ]; then
	shift
	guest "$@"
else
	host "$@"
fi
