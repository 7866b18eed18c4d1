# The kernel's own trial of holds on a load that they help: its verdict is one line in the kernel
# log. It takes some ten pairs of windows, with rests of a minute in between.
. /t/lib.sh
yes "LUC is on" luc on /mnt/0
luc-lab bench create-fsync --threads 4 --seconds 100000 --warmup-s 0 /mnt/0 > /dev/null 2>&1 &
load=$!
told() {
	dmesg | grep -c 'luc: .*verdict'
}
for _ in $(seq 360); do
	[ "$(told)" = 0 ] || break
	sleep 10
done
kill -KILL $load
wait $load 2> /dev/null
line="luc: nullb0: verdict after [0-9]* pairs: go on; throughput +[0-9]* permille, waiting +[0-9]* permille better by holding"
is "verdicts" 1 "$(dmesg | grep -c "$line")"
is "lines about verdicts" 1 "$(told)"
dmesg | grep 'luc: .*verdict'
yes "off" luc off --all
finish
