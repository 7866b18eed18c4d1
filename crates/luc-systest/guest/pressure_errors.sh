# The disk fails a commit's writes, in each of its phases, once while LUC holds commits and copies
# out and once without LUC: the results must be the same.
#
# Everything that was acknowledged before the error must be there. After it, kernels make mistakes
# of their own: a task that still wrote data when its commit failed, and asks for the commit only
# then, is told that all is well. The numbers have these as "acknowledged all the same".
. /t/pressure_lib.sh

# Sectors of the journal's superblock; of its blocks, except for the few before the inodes; of the
# inodes; and of everything after these.
layout() {
	# shellcheck disable=SC2046 # two words
	set -- $(dumpe2fs /dev/lucdisk0 2> /dev/null |
		sed -n 's/.*Inode table at \([0-9]*\)-\([0-9]*\).*/\1 \2/p')
	super=$(debugfs -R "bmap <8> 0" /dev/lucdisk0 2> /dev/null)
	last=$(debugfs -R "bmap <8> 1023" /dev/lucdisk0 2> /dev/null)
	[ "$super" -gt 0 ] && [ "$super" -lt "$1" ] && [ $((last - $2)) -gt 900 ] ||
		bad "another layout: inodes at $*, journal from $super to $last"
	super="$((super * 8)) $((super * 8 + 7))"
	home="$(($1 * 8)) $(($2 * 8 + 7))"
	journal="$(($2 * 8 + 8)) $((last * 8 + 7))"
	behind="$((last * 8 + 8)) 131071"
}

# fault PHASE: from now on the first such request fails, or all do.
fault() {
	case $1 in
	data) put lucdisk0 fault "write $behind 1000000 eio 4" ;;
	blocks) put lucdisk0 fault "write $journal 1000000 eio 1" ;;
	record) put lucdisk0 fault "fua $journal 1000000 eio 1" ;;
	# A single error might meet no commit, but the flush of an fsync that needs none.
	flush) put lucdisk0 fault "flush 0 0 1000000 eio" ;;
	tail) put lucdisk0 fault "fua $super 1000000 eio 1" ;;
	home) put lucdisk0 fault "write $home 1000000 eio" ;;
	all) put lucdisk0 fault "any 0 131071 1000000 eio" ;;
	esac
}

at_work() {
	[ "$(counter lucdisk0 commits_held)" -gt 5 ] && [ "$(counter lucdisk0 copies)" -gt 5 ]
}

# one PHASE stock|luc: leaves the result in facts.
one() {
	make
	layout
	steer "$2"
	# Longer than all of it takes: once the journal is aborted the load gives up.
	syncers load /mnt/p 6 30 /tmp/acks > /tmp/load &
	load=$!
	usleep 250000
	# It is chance when a task is first delayed and LUC copies.
	[ "$2" = luc ] && within 40 "$1: commits are held and blocks copied" at_work
	fault_us=$(now_us)
	fault "$1"
	# Errors of data do not end the load.
	[ "$1" = data ] && { usleep 1000000; kill -TERM $load; }
	wait $load
	hits=$(get lucdisk0 fault_hits)
	yes "$1, $2: $hits errors" test "$hits" -gt 0
	touch /mnt/p/after 2> /dev/null
	facts="new files $?"
	# In this phase the file system goes before the module, otherwise after it.
	[ "$1" = record ] && { umount /mnt/p || bad "$1, $2: umount"; }
	unsteer "$2"
	[ "$1" = record ] || umount /mnt/p || bad "$1, $2: umount"
	put lucdisk0 fault ""
	e2fsck -fy /dev/lucdisk0 > /tmp/fsck.out 2>&1
	facts="$facts, e2fsck $?"
	mount -t ext4 /dev/lucdisk0 /mnt/p || bad "$1, $2: mount afterwards"
	syncers verify /mnt/p /tmp/acks "$fault_us" > /tmp/verify
	facts="$facts, lost $(val lost /tmp/verify), wrong $(val wrong /tmp/verify)"
	# Whether some fsync is under way when a checkpoint fails is chance.
	case $1 in
	tail | home) ;;
	*) facts="$facts, fsync fails $(($(val failed /tmp/load) > 0))" ;;
	esac
	tell "error at $1, $2: $hits errors, $(val acked /tmp/load) files," \
		"$(val failed /tmp/load) fsyncs failed (errno $(val first /tmp/load))," \
		"$(val again_ok /tmp/load) of them not when asked again," \
		"$(val late /tmp/verify) acknowledged all the same," \
		"longest $(val max_us /tmp/load) us; $did; $facts"
	unmake
}

for phase in data blocks record flush tail home all; do
	one $phase stock
	stock=$facts
	one $phase luc
	is "errors at $phase" "$stock" "$facts"
	case $facts in
	*"lost 0, wrong 0"*) ok "every promise kept at $phase" ;;
	*) bad "promises broken at $phase: $facts" ;;
	esac
done
finish
