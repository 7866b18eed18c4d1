# Which tasks may use LUC's files. A task that writes needs CAP_SYS_ADMIN besides the file's mode.
# A file that every task may read must not wait for writers.
. /t/lib.sh
dev=$(cat /sys/class/block/nullb0/dev)
root=/sys/fs/luc
fs=$root/nullb0
ON="on: /mnt/0 (nullb0, ext4): policy luc, steering, set point automatic"
REFUSED="not permitted; run it as root"

# Root in a container owns the file, or is handed it open.
refused() { # value, file
	check 1 "*Operation not permitted*" /t/without rights sh -c "echo $1 > $2"
	check 1 "*Operation not permitted*" /t/without rights sh -c "echo $1 >&3" 3> "$2"
}

insmod /lib/luc/luc.ko
refused "$dev" $root/attach
check 3 "luc: cannot switch LUC on for /mnt/0: $REFUSED" /t/without rights luc on /mnt/0
yes "LUC is off" gone $fs
check 0 "$ON" luc on /mnt/0
refused "$dev" $root/detach
check 3 "luc: cannot switch LUC off for /mnt/0: $REFUSED" /t/without rights luc off /mnt/0
yes "LUC is on" test -e $fs
for knob in $fs/knobs/*; do
	value=$(cat "$knob")
	refused "$value" "$knob"
done
check 3 "luc: cannot set mode of /mnt/0: $REFUSED" /t/without rights luc set /mnt/0 mode observe
is "mode" steer "$(cat $fs/knobs/mode)"
yes "a task without rights reads hooks" /t/without rights cat $root/hooks
yes "and counters" /t/without rights cat $fs/counters/commits

now_ms() {
	awk '{ printf "%d\n", $1 * 1000 }' /proc/uptime
}

# Removing hooks takes grace periods, which is long for a task that waits for it.
luc-lab bench create-fsync --threads 8 --seconds 2 --warmup-s 0 /mnt/0 > /dev/null &
load=$!
usleep 300000
begin=$(now_ms)
(echo "$dev" > $root/detach; now_ms > /tmp/off_ms) &
longest=0 reads=0
until [ -e /tmp/off_ms ]; do
	before=$(now_ms)
	cat $root/hooks > /dev/null
	took=$(($(now_ms) - before))
	[ $took -gt $longest ] && longest=$took
	reads=$((reads + 1))
done
off=$(($(cat /tmp/off_ms) - begin))
wait $load
echo "tell off took $off ms; $reads reads of hooks meanwhile, the longest $longest ms"
yes "off took $off ms, $reads reads of hooks meanwhile" test $off -ge 60 -a $reads -ge 3
yes "the longest read took $longest ms" test $longest -le $((off / 3))
is "hooks attached" "" "$(grep ' attached' $root/hooks)"
yes "rmmod" rmmod luc
bench /mnt/0 8
finish
