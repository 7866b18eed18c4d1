# `luc try` on loads that LUC helps, changes nothing for, and is made to harm; and every way in
# which a trial can end. trying.rs judges the results.
. /t/lib.sh

load() { # threads
	luc-lab bench create-fsync --threads "$1" --seconds 100000 --warmup-s 0 /mnt/0 > /dev/null 2>&1 &
	load=$!
}

no_load() {
	kill -KILL $load
	wait $load 2> /dev/null
}

# tried NAME MINUTES ARG...: saves the answer as JSON; LUC is unloaded again.
tried() {
	name=$1 minutes=$2
	shift 2
	yes "$name: a trial" sh -c "luc try /mnt/0 --minutes $minutes --json $* > $LUC_OUT/$name.json"
	yes "$name: unloaded as before" gone /sys/fs/luc
}

load 4
tried helped 1
no_load
load 1
tried lone 1
tried harmed 1 --policy static-16ms
no_load

# Nothing to compare by.
check 31 "*too few sync calls*" luc try /mnt/0 --minutes 0.4

# A trial of a file system that LUC is on for, and what ends it early. It is at work after five
# seconds: the tracer is attached, and the first windows are over.
load 4
yes "LUC is on" luc on /mnt/0 --set kp_milli=700
begun() {
	luc try /mnt/0 --minutes 10 > /tmp/try.said 2>&1 &
	trial=$!
	sleep 5
}
ended() { # what, exit code, mode
	wait $trial
	is "exit code of a trial: $1" "$2" $?
	is "mode: $1" "$3" "$(knob /mnt/0 mode)"
	is "a knob: $1" 700 "$(knob /mnt/0 kp_milli)"
}
begun
check 11 "*luc try, process*already switches LUC here*" luc try /mnt/0 --minutes 1
kill -TERM $trial
ended "ended by a signal" 130 steer
begun
yes "observing by hand" luc set /mnt/0 mode observe
ended "the mode by hand" 30 observe
yes "steering again" luc set /mnt/0 mode steer
begun
yes "off by hand" luc off /mnt/0
wait $trial
is "exit code of a trial: off by hand" 30 $?
check 9 "*LUC is not on*" luc set /mnt/0 mode

# Killed by SIGKILL, in either mode: the next command puts LUC back, and says so.
yes "LUC is on" luc on /mnt/0 --set kp_milli=700
begun
kill -KILL $trial
wait $trial 2> /dev/null
check 0 "*was killed; LUC is restored to its earlier state*" luc set /mnt/0 kp_milli 700
is "mode: put back after kill -9" steer "$(knob /mnt/0 mode)"
yes "LUC is off" luc off --all
no_load
bench /mnt/0 4
finish
