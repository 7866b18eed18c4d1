# Freezing and thawing under load: the freezer never waits for a held commit.
. /t/lib.sh

# Only a kernel with types shows that a file system is frozen.
frozen=0
[ -e /sys/kernel/btf/vmlinux ] && frozen=36

luc on /mnt/0 --policy static --set delay_limit_us=1000000 --set static_idle_us=1000000 > /dev/null
luc-lab bench create-fsync --threads 8 --seconds 3 --warmup-s 0 --json /mnt/0 > /tmp/load &
usleep 100000
for turn in 1 2 3 4 5; do
	yes "freeze $turn" timeout 5 fsfreeze --freeze /mnt/0
	check $frozen "*" luc status /mnt/0
	usleep 50000
	yes "thaw $turn" timeout 5 fsfreeze --unfreeze /mnt/0
	usleep 100000
done
# Off and on again while frozen.
yes "freeze" timeout 5 fsfreeze --freeze /mnt/0
check 0 "off: *" luc off /mnt/0
device=$(cat /sys/class/block/nullb0/dev)
yes "on, by the module" sh -c "echo $device > /sys/fs/luc/attach"
yes "thaw" timeout 5 fsfreeze --unfreeze /mnt/0
wait $!
is "exit code of the load" 0 $?
# Other calls that must not wait.
for turn in 1 2 3; do
	yes "sync -f $turn" timeout 5 sync -f /mnt/0
	yes "sync $turn" timeout 5 sync
done
bench /mnt/0 8
check 0 "*module luc removed" luc off --all --unload
bench /mnt/0 8
finish
