# With one of two processors offline, what watches and what switches still works under load.
. /t/lib.sh
cpu=/sys/devices/system/cpu/cpu1

check 0 "on: *" luc on /mnt/0
luc-lab bench create-fsync --threads 6 --seconds 999 --warmup-s 0 /mnt/0 > /dev/null &
load=$!
usleep 100000
echo 0 > $cpu/online || bad "offline"
check 0 "/mnt/0 (*steering*" luc status
timeout 100 luc doctor --seconds 1 /mnt/0 > /tmp/doctor 2>&1
yes "the doctor counts the syncs" grep -q "luc-lab  *[0-9,]* syncs (100%)" /tmp/doctor
check 0 "*/mnt/0 *luc*luc-lab *" luc top --once --interval 0.5
check 0 "*luc_commits_total{*mountpoint=\"/mnt/0\"} [1-9]*" luc exporter --once
check 0 "*mode observe*" luc set /mnt/0 mode observe
check 0 "off: *" luc off --all --unload
check 0 "on: *" luc on /mnt/0
echo 1 > $cpu/online || bad "online"
check 0 "/mnt/0 (*steering*" luc status
kill -KILL $load
wait $load 2> /dev/null
finish
