# `luc guard` on a load that LUC helps, and on one that it is made to harm; and faults. The
# disks of /mnt/0 and /mnt/1 are so slow that a pair takes 24 s and two minutes pass between pairs:
# that leaves little to compute. /mnt/2 is mounted and unmounted.
. /t/lib.sh
. /t/guarding_lib.sh

# A load that LUC helps is certified. Midway the guard is killed, and resumes.
load 4 /mnt/0
yes "LUC is on" luc on /mnt/0
guard
waits 100 "guarded" "grep -q guarded /tmp/guard.said"
check 11 "*luc guard, process*already guards it*" luc guard /mnt/0
sleep 150
is "stance" '"stance": "trying"' "$(stance)"
kill -KILL $guard
wait $guard 2> /dev/null
guard
waits 100 "taken up again" "grep -q 'guarded again, from where it stopped' /tmp/guard.said"
yes "a trial comes in between" luc try /mnt/0 --minutes 1
# It took 29 to 37 pairs in four runs. 6000 s are room for 41, and were once too short.
waits 12000 "certified" "grep -q 'certified after [0-9]* pairs: at least 0.99 of stock' /tmp/guard.said"
is "stance" '"stance": "certified"' "$(stance)"
luc status --json > "$LUC_OUT/certified.json"

# LUC is switched off and on, and the module loaded again, under the guard.
yes "off by hand" luc off --all --unload
waits 100 "no longer guarded" "grep -q 'no longer guarded' /tmp/guard.said"
yes "unloaded" gone /sys/fs/luc
: > /tmp/guard.said
yes "LUC is on again" luc on /mnt/0
waits 100 "guarded anew" "grep -q ': guarded' /tmp/guard.said"
is "stance" '"stance": "trying"' "$(stance)"
# A mode that was set by hand is left alone.
yes "observing by hand" luc set /mnt/0 mode observe
waits 200 "left alone" "grep -q 'left alone until LUC is switched on again' /tmp/guard.said"
sleep 150
is "mode" observe "$(knob /mnt/0 mode)"
kill -TERM $guard
wait $guard
is "exit code of a guard that was ended" 0 $?
is "mode" observe "$(knob /mnt/0 mode)"
no_load
yes "off" luc off --all

# LUC harms, as each commit of a lone task waits for company that never comes. It is refuted, and
# stands aside.
load 1 /mnt/1
yes "LUC is on" luc on /mnt/1 --policy static --set static_idle_us=50000
guard
waits 6000 "refuted" "grep -q 'refuted after [0-9]* pairs: less than 0.99 of stock' /tmp/guard.said"
is "mode" observe "$(knob /mnt/1 mode)"
is "stance" '"stance": "aside"' "$(stance)"
luc status --json > "$LUC_OUT/refuted.json"

# While it stands aside, file systems are mounted and unmounted, and the time of day jumps.
for _ in $(seq 200); do
	umount /mnt/2 && mount "$LUC_DISK2" /mnt/2 && cat "/sys/class/block/${LUC_DISK2#/dev/}/dev" > /sys/fs/luc/attach ||
		bad "a mount"
done
sleep 10
umount /mnt/2
sleep 10
is "file systems that LUC is on for" 1 "$(ls /sys/fs/luc | grep -c '^nullb')"
date -s 2031-01-01 > /dev/null
sleep 10
date -s 2021-01-01 > /dev/null
sleep 10
is "mode" observe "$(knob /mnt/1 mode)"
is "stance" '"stance": "aside"' "$(stance)"
kill -TERM $guard
wait $guard
is "exit code of a guard that was ended" 0 $?
yes "off" luc off --all

# A full /run: notes cannot be written.
no_load
load 4 /mnt/1
mount -t tmpfs -o size=64k none /run/luc
: > /run/luc/nullb1.lock
: > /run/luc/nullb1.guard.lock
dd if=/dev/zero of=/run/luc/filler bs=4k count=100 2> /dev/null
yes "LUC is on" luc on /mnt/1
: > /tmp/guard.said
guard
waits 200 "told" "grep -q 'LUC stays on, but the guard does not try it' /tmp/guard.said"
sleep 150
is "mode" steer "$(knob /mnt/1 mode)"
is "said once" 1 "$(grep -c 'LUC stays on, but the guard does not try it' /tmp/guard.said)"
rm /run/luc/filler
waits 400 "tried again" "grep -q 'LUC.s state can be saved again' /tmp/guard.said"
kill -TERM $guard
wait $guard
no_load
yes "off" luc off --all
bench /mnt/1 4
finish
