#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# ext4 fast commits: power cuts after which a synced file is missing, the file
# system does not mount, or it mounts and is inconsistent. README.md explains
# each case.
#
#   reproduce.sh [-v] [-p] [CASE...]     default: all cases
#
#   -v  show the fast-commit records in the log, and what e2fsck and the kernel say
#   -p  run e2fsck -p on the image before mounting it, as many systems do at boot
#
# Each case makes a file system in a file, does a few operations, takes the image that a
# power cut would leave, mounts it and checks it: with fast_commit, and without as a
# control. Needs root, a loop device, e2fsprogs, fsfreeze (util-linux) and some 200 MiB
# in $TMPDIR.
#
# Exit status: 0 every promise kept, 1 a promise broken, 2 could not run.
set -u

CASES='open-unlinked open-replaced torn-first torn-again ineligible joined-write
	joined-handle mkdir rmdir-mkdir rmdir-create'
BLOCK=4096
# All features are named here: the result depends on nobody's mke2fs.conf.
FEATURES=none,has_journal,extent,flex_bg,64bit,metadata_csum,dir_index,dir_nlink,filetype,extra_isize
FEATURES=$FEATURES,sparse_super,large_file,huge_file,ext_attr

say() { printf '%s\n' "$*"; }
die() {
	say "reproduce.sh: $*" >&2
	exit 2
}

verbose=
repair=
while getopts vp option; do
	case $option in
	v) verbose=yes ;;
	p) repair=yes ;;
	*) die 'usage: reproduce.sh [-v] [-p] [CASE...]' ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- $CASES
for name; do
	case " $(echo $CASES) " in
	*" $name "*) ;;
	*) die "no case '$name'; there are: $(echo $CASES)" ;;
	esac
done

[ "$(id -u)" = 0 ] || die 'must run as root'
for tool in awk cmp cp dd debugfs dmesg e2fsck fsfreeze mkfs.ext4 mktemp mount sha256sum sync \
	truncate umount; do
	command -v "$tool" >/dev/null || die "$tool not found"
done
sync --help 2>&1 | grep -q FILE || die 'sync cannot sync one file; coreutils 8.24 can'
[ -e /sys/fs/ext4/features/fast_commit ] || die 'this kernel has no ext4 fast commits'

work=$(mktemp -d "${TMPDIR:-/tmp}/fast-commit.XXXXXX") || die 'cannot make a directory'
image=$work/disk/image
cut=$work/cut.image

cleanup() {
	cd /
	resume 2>/dev/null
	for mounted in cut fs disk; do
		umount "$work/$mounted" 2>/dev/null
	done
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 2' HUP INT TERM

# The image lies on a file system that can be frozen: then the "disk" accepts reads but
# completes no write.
stall() { fsfreeze --freeze "$work/disk" || die 'cannot freeze the disk'; }
resume() { fsfreeze --unfreeze "$work/disk"; }

make_disk() {
	mkdir "$work/disk" "$work/fs" "$work/cut"
	truncate -s 96M "$work/disk.image"
	mkfs.ext4 -q -F -O ^has_journal "$work/disk.image" 2>/dev/null || die 'mkfs.ext4 failed'
	mount -t ext4 -o loop,noatime "$work/disk.image" "$work/disk" || die 'cannot mount with -o loop'
}

# $1: fast_commit or ^fast_commit. No commit is due to a timer: the case decides.
make_fs() {
	truncate -s 48M "$image"
	mkfs.ext4 -q -F -b $BLOCK -I 256 -J size=4 -O "$FEATURES,$1" "$image" 2>/dev/null ||
		die "mkfs.ext4 -O $FEATURES,$1 failed"
	mount -t ext4 -o loop,noatime,commit=300 "$image" "$work/fs" || die 'cannot mount the image'
	cd "$work/fs" || die 'cannot enter the file system'
}

device() { awk -v dir="$work/fs" '$2 == dir { print $1 }' /proc/mounts; }

# Full commit and write-back of everything.
commit() { sync -f . || die 'syncfs failed'; }

make_files() {
	n=0
	while [ $n -lt "$2" ]; do
		: >"$1$n"
		n=$((n + 1))
	done
}

sum() { sha256sum <"$1" | awk '{ print $1 }'; }

# The file $1 is durable, with the content that it has now.
promise() {
	[ -e "$1" ] || die "$1 was not made"
	promises="$promises $1=$(sum "$1")"
}

# fsync() of the file $1, which makes it durable.
fsync() {
	sync "$1" || die "fsync of $1 failed"
	promise "$1"
}

finished() { wait "$1" || die 'an operation in the background failed'; }

# Takes the image; no write is in flight.
power_cut() { cp "$image" "$cut"; }

# The power cut just before the end of an fsync() of $1: all blocks that it writes
# are on disk but the last one. That is the one with the fast commit's tail
# (without fast_commit: the commit block), written after the others.
power_cut_within_sync() {
	cp "$image" "$work/before"
	sync "$1"
	cp "$image" "$cut"
	last=$(cmp -l "$work/before" "$cut" |
		awk -v block=$BLOCK '{ last = int(($1 - 1) / block) } END { print last }')
	[ -n "$last" ] || die "fsync of $1 wrote nothing"
	dd if="$work/before" of="$cut" bs=$BLOCK skip="$last" seek="$last" count=1 conv=notrunc 2>/dev/null
}

# --- The cases: case_NAME, with _ for -

# The log holds an inode without links: a file that is still open.
case_open_unlinked() {
	echo old >old
	commit
	exec 3<old
	rm old
	echo new >new
	fsync new
	power_cut
	exec 3<&-
}

# The same, after the usual way to replace a file.
case_open_replaced() {
	echo old >file
	commit
	exec 3<file
	echo new >file.tmp
	sync file.tmp || die 'fsync failed'
	mv file.tmp file
	fsync file
	power_cut
	exec 3<&-
}

# The first fast commit of a transaction takes two blocks, one of which is written.
case_torn_first() {
	echo kept >kept
	commit
	promise kept
	make_files x 20
	power_cut_within_sync x0
}

# The same where the second block holds what an earlier fast commit left there.
case_torn_again() {
	echo kept >kept
	commit
	make_files y 20
	fsync y0
	commit
	promise kept
	make_files x 20
	power_cut_within_sync x0
}

# A file is made while a full commit is being written, which the rename of a
# directory asks for. The 40 files keep the two in different metadata blocks.
case_ineligible() {
	mkdir a
	make_files x 40
	mkdir d
	commit
	mv a b
	stall
	sync -f . &
	committer=$!
	sleep 1
	: >d/new &
	creator=$!
	sleep 1
	resume
	finished $committer
	finished $creator
	fsync d/new
	power_cut
}

# A file is made and synced while the fast commit of another file is being
# written (kernels that do not block updates meanwhile).
case_joined_write() {
	echo a >a
	make_files x 40
	mkdir d
	commit
	chmod 600 a
	stall
	sync a &
	committer=$!
	sleep 1
	dd if=/dev/null of=d/new conv=fsync 2>/dev/null &
	creator=$!
	sleep 1
	resume
	finished $committer
	finished $creator
	promise d/new
	power_cut
}

# The same while a fast commit waits for the handle that makes the file. It has
# begun and waits for the inode bitmap, which is being written back. Dirty data
# of another file makes the fast commit last until the fsync.
case_joined_handle() {
	mkdir a d
	echo c >c
	dd if=/dev/zero of=data bs=1M count=16 2>/dev/null
	make_files x 40
	commit
	: >y
	mv a b
	sync y
	chmod 600 c
	dd if=/dev/urandom of=data bs=1M count=16 conv=notrunc 2>/dev/null
	stall
	sync "$(device)" &
	writer=$!
	sleep 1
	dd if=/dev/null of=d/new conv=fsync 2>/dev/null &
	creator=$!
	sleep 1
	sync c &
	committer=$!
	sleep 1
	resume
	finished $writer
	finished $creator
	finished $committer
	promise d/new
	power_cut
}

# The log holds a new directory.
case_mkdir() {
	echo kept >kept
	commit
	mkdir d
	echo new >d/new
	fsync d/new
	power_cut
}

# A new directory has the inode number of one that was removed before.
case_rmdir_mkdir() {
	mkdir d
	commit
	rmdir d
	mkdir e
	echo new >e/new
	fsync e/new
	power_cut
}

# The same with a new file, whose first two blocks are a hole.
case_rmdir_create() {
	mkdir d
	commit
	rmdir d
	echo new | dd of=new bs=$BLOCK seek=2 conv=notrunc,fsync 2>/dev/null
	promise new
	power_cut
}

run_case() { "case_$(echo "$1" | tr - _)"; }

# --- What the power cut left

# The first lines are enough: e2fsck can have a million.
show() { head -n 60 | sed 's/^/    | /'; }

# Says what is wrong with the recovered file system, if anything is.
recover() {
	if [ -n "$repair" ]; then
		e2fsck -p "$cut" >>"$work/said" 2>&1
		[ $? -lt 4 ] || say 'e2fsck -p gives up'
	fi
	if ! mount -t ext4 -o loop "$cut" "$work/cut" 2>"$work/error"; then
		say "does not mount: $(sed -n '1s/.*: //p' "$work/error")"
		return
	fi
	for kept in $promises; do
		file=$work/cut/${kept%%=*}
		if ! [ -e "$file" ]; then
			say "${kept%%=*} is missing"
		elif [ "$(sum "$file")" != "${kept#*=}" ]; then
			say "${kept%%=*} has other content"
		fi
	done
	umount "$work/cut"
	e2fsck -fn "$cut" >>"$work/said" 2>&1 || say 'e2fsck -fn finds errors'
}

# $1: case, $2: features.
try() {
	promises=
	make_fs "$2"
	run_case "$1"
	cd /
	umount "$work/fs" || die 'cannot unmount'
	[ -z "$verbose" ] || debugfs -R logdump "$cut" 2>/dev/null | sed -n '/Fast Commit/,$p' | show
	: >"$work/said"
	dmesg >"$work/log"
	wrong=$(recover | awk '{ printf "%s%s", comma, $0; comma = ", " }')
	printf '%-14s %-13s %s\n' "$1" "$2" "${wrong:-ok}"
	[ -n "$wrong" ] || return
	broken=yes
	[ -z "$verbose" ] || {
		dmesg | awk 'NR == FNR { seen[$0] = 1; next } !($0 in seen)' "$work/log" - | show
		show <"$work/said"
	}
}

make_disk
broken=
for name; do
	for features in fast_commit ^fast_commit; do
		try "$name" "$features"
	done
done
[ -z "$broken" ]
