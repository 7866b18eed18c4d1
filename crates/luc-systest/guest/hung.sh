# A disk that does not answer: the watchdog for hung tasks reports a writer that waits for a block
# of the commit under way, with and without LUC; LUC can be unloaded all the same.
. /t/pressure_lib.sh
sysctl=/proc/sys/kernel/hung_task_timeout_secs

# hung stock|luc
hung() {
	make
	# Hooks are in place, and the commit writes no copies.
	[ "$1" = stock ] || luc on /mnt/p --policy stock > /dev/null || bad "luc on"
	mkdir /mnt/p/warm
	sync
	dmesg -c > /dev/null
	# Without data the first writes are the journal's: the descriptor, and more.
	put lucdisk0 fault "write 0 131071 1000000 12000000000"
	: > /mnt/p/file
	sync /mnt/p/file &
	usleep 300000
	yes "requests that stall: $(get lucdisk0 fault_hits)" \
		test "$(get lucdisk0 fault_hits)" -ge 2
	put lucdisk0 fault ""
	# busybox by its path: the name of the task in the log.
	/bin/busybox mkdir /mnt/p/folder &
	writer=$!
	sleep 7
	yes "the watchdog reports the writer, $1" \
		sh -c "dmesg | grep 'task busybox:.* blocked .*for more than'"
	unsteer "$1"
	is "state of the writer" D "$(cut -d ' ' -f 3 /proc/$writer/stat)"
	wait
	yes "the writer goes on, $1" test -d /mnt/p/folder
	unmake
}

before=$(cat $sysctl)
echo 2 > $sysctl
echo -1 > /proc/sys/kernel/hung_task_warnings
hung stock
hung luc
echo "$before" > $sysctl
finish
