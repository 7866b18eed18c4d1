# ftrace stops for good after a fault of its own, and its patches stay in place. Here a module stops
# it, WHEN LUC is off or on: code that may still be called must stay.
. /t/lib.sh

ON="on: /mnt/0 (nullb0, ext4): policy luc, steering, set point automatic"
CANNOT="cannot switch LUC on: the kernel's ftrace has failed; *"
STAYS="kernel module luc: it cannot be removed, because its hooks cannot: the kernel's ftrace has failed; *"

ftrace_stops() {
	address=$(awk '$3 == "ftrace_kill" { print $1 }' /proc/kallsyms)
	yes "ftrace stops" insmod /t/stop_ftrace.ko function="0x$address"
}

# Nothing is hooked, so nothing stays.
stops_while_off() {
	check 0 "$ON" luc on /mnt/0
	check 0 "*module luc removed" luc off --all --unload
	ftrace_stops
	check 33 "luc: /mnt/0: $CANNOT" luc on /mnt/0
	yes "LUC is not left loaded" gone /sys/fs/luc
	insmod /lib/luc/luc.ko
	check 33 "luc: /mnt/0: $CANNOT" luc on /mnt/0
	is "hooks that stay" "" "$(grep -E ' (attached|stuck)' /sys/fs/luc/hooks)"
	yes "rmmod" rmmod luc
}

stops_while_on() {
	check 0 "$ON" luc on /mnt/0
	bench /mnt/0 8
	ftrace_stops
	bench /mnt/0 8
	check 33 "luc: /mnt/0: LUC is off, but its hooks stay: the kernel's ftrace has failed; *" \
		luc off /mnt/0
	yes "the kernel log says so" sh -c "dmesg | grep -q 'luc: ftrace has failed'"
	is "hooks that are not stuck" "" "$(grep -v ' stuck' /sys/fs/luc/hooks)"
	check 0 "LUC is on for no file system; *" luc status
	bench /mnt/0 8
	rmmod luc 2> /dev/null && bad "the module has gone, and its hooks have not"
	check 33 "luc: $STAYS" luc off --unload
	check 33 "luc: /mnt/0: $CANNOT" luc on /mnt/0
	check 13 "*missing  ftrace  *it has failed*" luc probe
	# The hooks are still called.
	bench /mnt/0 8
	umount /mnt/0
	mount /dev/nullb0 /mnt/0
	check 33 "luc: /mnt/0: $CANNOT" luc on /mnt/0
	bench /mnt/0 8
}

"stops_while_$WHEN"
bench /mnt/0 8
finish
