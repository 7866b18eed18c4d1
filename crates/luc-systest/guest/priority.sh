# No commit is held for a sync of the control group that priority_cgroup names, nor of one below it.
# Policy static holds each other commit: for a second in the first part, for 40 ms in the second.
. /t/lib.sh
fs=/sys/fs/luc/nullb0
groups=/sys/fs/cgroup
mount -t cgroup2 none $groups 2> /dev/null
mkdir -p $groups/db/writer $groups/bulk || bad "mkdir of groups"

# in_group GROUP COMMAND...
in_group() {
	group=$1
	shift
	# shellcheck disable=SC2016 # the inner shell expands it
	sh -c 'echo $$ > "$0" && exec "$@"' $groups/"$group"/cgroup.procs "$@"
}

# sync_ms GROUP: how long a sync of that group takes.
sync_ms() {
	echo data > /mnt/0/file."${1##*/}"
	begin=$(awk '{ printf "%d", $1 * 1000 }' /proc/uptime)
	in_group "$1" sync /mnt/0/file."${1##*/}"
	echo $(($(awk '{ printf "%d", $1 * 1000 }' /proc/uptime) - begin))
}

held() { # GROUP
	ms=$(sync_ms "$1")
	yes "a sync of $1 is held: $ms ms" test "$ms" -ge 900
}

free() { # GROUP
	ms=$(sync_ms "$1")
	yes "a sync of $1 is not held: $ms ms" test "$ms" -lt 300
}

set_group() { # GROUP, what the knob was before
	check 0 "/mnt/0: priority_cgroup $1 (was $2)" luc set /mnt/0 priority_cgroup "$1"
}

check 0 "on: *" luc on --policy static --set static_idle_us=1000000 \
	--set delay_limit_us=1000000 /mnt/0
held db
is "events with priority before" 0 "$(counter nullb0 priority_events)"
set_group /db 0
is "the module has its id" "$(stat -c %i $groups/db)" "$(cat $fs/knobs/priority_cgroup)"
free db
free db/writer
held bulk
is "events with priority" 2 "$(counter nullb0 priority_events)"
yes "status names the group" sh -c "luc status | grep 'priority   /db: 2 sync events'"

# A hold for others ends.
echo data > /mnt/0/file.late
in_group bulk sync /mnt/0/file.late &
usleep 200000
free db
wait

check 10 "*/no: no such control group*" luc set /mnt/0 priority_cgroup /no
check 10 "*no control group;*" luc set /mnt/0 priority_cgroup /mnt/0
yes "the module refuses a negative id" sh -c "! echo -1 2> /dev/null > $fs/knobs/priority_cgroup"
set_group /db/writer /db
held db
free db/writer

# A group that is gone has no tasks: everybody is held again, also in one of the same name.
rmdir $groups/db/writer || bad "rmdir"
held db
mkdir $groups/db/writer
held db/writer
yes "status says that it is gone" sh -c "luc status | grep 'priority   id [0-9]* (gone)'"
set_group 0 "id * (gone)"

# Off and on while a sync of the group waits.
check 0 "*" luc off /mnt/0
check 0 "on: *" luc on --policy static --set static_idle_us=1000000 \
	--set delay_limit_us=1000000 --set priority_cgroup=db /mnt/0
free db
in_group bulk sync -f /mnt/0/file.late &
check 0 "*" luc off /mnt/0
wait

# mean_us: of the syncs of a service in db beside eight tasks in bulk that let themselves be held.
# The service makes too few for a percentile.
mean_us() {
	mkdir -p /mnt/0/bulk /mnt/0/db
	in_group bulk luc-lab bench create-fsync --threads 8 --seconds 1.5 /mnt/0/bulk > /dev/null &
	usleep 300000
	in_group db luc-lab bench create-fsync --threads 1 --seconds 1 --json /mnt/0/db > /tmp/db.json
	wait
	sed -n 's/.*"fsync":{[^}]*"mean_ns":\([0-9]*\)[0-9][0-9][0-9][.,}].*/\1/p' /tmp/db.json
}

stock_us=$(mean_us)
check 0 "on: *" luc on --policy static --set static_idle_us=40000 /mnt/0
held_us=$(mean_us)
set_group /db 0
free_us=$(mean_us)
echo "tell mean of a sync, us: stock $stock_us, held $held_us, with priority $free_us"
yes "holds make the service slower" test "$held_us" -gt $((stock_us * 3 / 2))
yes "priority makes it as fast as stock" test "$free_us" -le $((stock_us * 21 / 20))
check 0 "*" luc off --all --unload
finish
