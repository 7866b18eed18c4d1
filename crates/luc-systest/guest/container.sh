# A container: /sys is read-only, and neither tracefs nor debugfs is mounted. Watching works; a verb
# that would switch something is refused in one line, and nothing changes.
. /t/lib.sh
LOCKED="not permitted; /sys is mounted read-only here, as in a container; run it on the host"

enclose() {
	mount --bind /sys /sys || bad "bind /sys"
	mount -o remount,bind,ro /sys || bad "remount /sys"
}

yes "LUC is on" luc on /mnt/0
umount /sys/kernel/debug/tracing 2> /dev/null
umount /sys/kernel/debug 2> /dev/null
umount /sys/kernel/tracing || bad "umount tracefs"
enclose
luc-lab bench create-fsync --threads 4 --seconds 999 --warmup-s 0 /mnt/0 > /dev/null &
load=$!
usleep 300000
check 0 "/mnt/0 (nullb0, *policy *luc, steering*" luc status /mnt/0
timeout 60 luc doctor --seconds 1 /mnt/0 > /tmp/doctor 2>&1
yes "the doctor traces" grep -q "processes that sync:" /tmp/doctor
check 0 "*/mnt/0 *luc: *luc-lab*" luc top --once --interval 0.5
check 0 "*luc_file_system_fault{*fault=\"frozen\"} 0*" luc exporter --once
check 0 "*LUC can watch everything on this machine.*" luc probe
check 12 "*offers no scaling_max_freq in */cpufreq*or a container only the host can*" luc power /mnt/0
check 19 "*no energy counters in /sys/class/powercap*" luc-lab bench create-fsync --energy /mnt/0
check 0 "*batching *returns*" luc set /mnt/0
check 3 "luc: cannot set batching of /mnt/0: $LOCKED" luc set /mnt/0 policy static
check 3 "luc: cannot set mode of /mnt/0: $LOCKED" luc set /mnt/0 mode observe
check 3 "luc: cannot switch LUC off for /mnt/0: $LOCKED" luc off /mnt/0
check 3 "luc: cannot switch LUC off for /mnt/0: $LOCKED" luc off --all
check 3 "luc: cannot try LUC on /mnt/0: $LOCKED" luc try /mnt/0
check 3 "luc: *cannot guard nullb0: $LOCKED" timeout 60 luc guard /mnt/0
is "batching" returns "$(cat /sys/fs/luc/nullb0/knobs/batching)"
is "mode" steer "$(cat /sys/fs/luc/nullb0/knobs/mode)"
umount /sys
check 0 "off: /mnt/0 *" luc off /mnt/0
enclose
check 3 "luc: cannot switch LUC on for /mnt/0: $LOCKED" luc on /mnt/0
umount /sys
kill -KILL $load
wait $load 2> /dev/null
yes "nothing was switched on" gone /sys/fs/luc/nullb0
check 0 "on: /mnt/0 *" luc on /mnt/0
bench /mnt/0 2
finish
