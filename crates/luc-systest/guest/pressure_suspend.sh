# The machine suspends while commits are held: tasks freeze in time, the last device refuses, and
# all tasks go on. Then a processor goes offline and comes back.
. /t/pressure_lib.sh

# Lines "Freezing ... (elapsed 0.012 seconds)": the longest, in us.
freezing_us() {
	dmesg | grep "Freezing .*elapsed" | sed 's/.*elapsed \([0-9.]*\) .*/\1/' |
		awk '$1 > m { m = $1 } END { print m * 1000000 }'
}

# suspends stock|luc|static
suspends() {
	make
	steer "$1"
	insmod /t/pressure_suspend.ko frozen_ms=100 || bad "insmod pressure_suspend"
	syncers load /mnt/p 6 3 /tmp/acks > /tmp/load &
	dmesg -c > /dev/null
	for i in 1 2 3 4 5 6 7 8; do
		usleep $((100000 + i * 7919))
		echo freeze 2> /dev/null > /sys/power/state && bad "suspend $i did not fail"
	done
	wait $!
	is "asked to suspend" 8 "$(cat /sys/module/pressure_suspend/parameters/asked)"
	is "errors" "" "$(val errors /tmp/load)"
	is "freezes" 16 "$(dmesg | grep -c "Freezing .*elapsed")"
	longest_us=$(freezing_us)
	dmesg | grep -q "failed after" && bad "$(dmesg | grep "failed after")"
	# LUC holds a commit only where that pays: here one in fifty.
	least=6
	[ "$1" = static ] || least=1
	[ "$1" = stock ] || yes "commits held: $(counter lucdisk0 commits_held)" \
		test "$(counter lucdisk0 commits_held)" -ge $least
	rmmod pressure_suspend
	unsteer "$1"
	tell "8 suspends, $1: tasks frozen in $longest_us us at most," \
		"$(val late /tmp/load) files in the last second, longest fsync $(val max_us /tmp/load) us; $did"
	yes "promises: $(syncers verify /mnt/p /tmp/acks)" syncers verify /mnt/p /tmp/acks
	unmake
}

suspends stock
stock_us=$longest_us
for policy in luc static; do
	suspends $policy
	# One hold and the commit after it; the kernel allows 20 s.
	most "freezing of all tasks, $policy" $((stock_us + 80000)) "$longest_us"
done

# plug stock|luc: the second processor goes offline and comes back.
plug() {
	make
	steer "$1"
	syncers load /mnt/p 6 1.5 /tmp/acks > /tmp/load &
	for i in 1 2 3 4 5 6; do
		usleep $((100000 + i * 7919))
		echo 0 > $cpu/online || bad "offline $i"
		usleep $((50000 + i * 7919))
		echo 1 > $cpu/online || bad "online $i"
	done
	wait $!
	is "errors" "" "$(val errors /tmp/load)"
	longest_us=$(val max_us /tmp/load)
	yes "promises: $(syncers verify /mnt/p /tmp/acks)" syncers verify /mnt/p /tmp/acks
	# Off and unloaded by the only processor that is left, which is busy.
	rm -rf /mnt/p/*
	syncers load /mnt/p 6 1 > /tmp/load &
	usleep 100000
	echo 0 > $cpu/online || bad "offline"
	unsteer "$1"
	echo 1 > $cpu/online || bad "online"
	wait $!
	is "errors" "" "$(val errors /tmp/load)"
	tell "a processor goes 7 times, $1: longest fsync $longest_us us," \
		"$(val max_us /tmp/load) us while LUC goes off; $did"
	unmake
}

cpu=/sys/devices/system/cpu/cpu1
plug stock
stock_us=$longest_us
plug luc
most "longest fsync while a processor goes" $((stock_us + 52000)) "$longest_us"
finish
