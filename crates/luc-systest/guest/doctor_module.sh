# The doctor without tracing: what it finds by LUC's module in loads with a known trouble, and that
# it says what it does not know.
. /t/lib.sh

# said NAME LOAD...: what the doctor says while the load runs.
said() {
	name=$1
	shift
	setsid "$@" > /tmp/load.out 2>&1 &
	load=$!
	sleep 0.5
	luc doctor --json --seconds 3 /mnt/0 > "$LUC_OUT/$name.json" 2> "/tmp/$name.err"
	code=$?
	luc doctor --seconds 1 /mnt/0 > /tmp/text 2> /dev/null
	kill -0 $load || bad "the load $name ended too early: $(tail -n 3 /tmp/load.out)"
	kill -KILL -$load
	wait $load
	sed 's/^/tell /' /tmp/text
}

# As on a kernel without CONFIG_DEBUG_INFO_BTF.
mount -t tmpfs none /sys/kernel/btf || bad "cannot hide the kernel's types"

check 24 "*luc on --observe PATH*has no type information*" luc doctor --seconds 1 /mnt/0
yes "observing" luc on --observe /mnt/0
said convoys luc-lab bench create-fsync --threads 4 --seconds 99 /mnt/0
is "exit status with convoys" 26 $code
yes "it says what it goes by" grep -q "the verdict rests only on what LUC's module counts" /tmp/convoys.err
said alone luc-lab bench create-fsync --threads 1 --seconds 99 /mnt/0
is "exit status of a lone thread" 35 $code
said writers luc-lab bench write-delay --seconds 99 /mnt/0
is "exit status with delayed writers" 26 $code
said idle sleep 99
is "exit status of nothing" 0 $code

# A recording of the same load.
setsid luc-lab bench create-fsync --threads 4 --seconds 99 /mnt/0 > /tmp/load.out 2>&1 &
load=$!
luc trace record --seconds 3 -o /tmp/module.luc 2> /dev/null || bad "luc trace record: $?"
kill -KILL -$load
wait $load
luc doctor --json --from /tmp/module.luc > "$LUC_OUT/recorded.json" 2> /tmp/recorded.err
is "exit status with a recording" 26 $?

# Counters alone.
umount /sys/kernel/tracing || bad "cannot unmount tracefs"
umount /sys/kernel/debug 2> /dev/null
said counters luc-lab bench create-fsync --threads 1 --seconds 99 /mnt/0
yes "it says that these are counters" grep -q "only the module's counters are read" /tmp/counters.err
yes "off" luc off --all --unload
finish
