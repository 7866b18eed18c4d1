# The kernel's own trial of holds on a load that they help: its verdict is one line in the kernel
# log. Ten pairs of windows, with rests in between, take minutes.
. /t/lib.sh
yes "LUC is on" luc on /mnt/0
luc-lab bench create-fsync --threads 4 --seconds 600 --warmup-s 0 /mnt/0 > /dev/null
line="luc: nullb0: verdict after [0-9]* pairs: go on; throughput +[0-9]* permille, waiting +[0-9]* permille better by holding"
is "verdicts" 1 "$(dmesg | grep -c "$line")"
is "lines about verdicts" 1 "$(dmesg | grep -c 'luc: .*verdict')"
yes "off" luc off --all
finish
