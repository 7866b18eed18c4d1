# One case of the doctor: a load, and the diagnosis of the file system meanwhile.
. /t/lib.sh

# In a process group of its own, to end all of it at once.
setsid sh -c "$LOAD" > /tmp/load.out 2>&1 &
load=$!
# Past the load's first steps, such as making its files.
sleep "$SETTLE_S"
luc doctor --json --seconds "$SECONDS_S" /mnt/0 > "$LUC_OUT/doctor.json" 2> /tmp/doctor.err
said=$?
case $said in
0 | 26 | 34 | 35) ok "the doctor says something" ;;
*) bad "luc doctor: exit $said: $(cat /tmp/doctor.err)" ;;
esac
if kill -0 $load 2> /dev/null; then
	ok "the load went on until the end"
else
	bad "the load ended too early: $(tail -n 3 /tmp/load.out)"
fi
kill -KILL -$load
wait $load
# A task that is killed in an fsync dies when the fsync is done, and keeps its files open until
# then. Check each thread: if a process's first thread is dead, others may live. Zombies are dead.
dead() {
	cat /proc/[0-9]*/task/[0-9]*/stat 2> /dev/null |
		awk -v group="$load" '{ sub(/^.*\) /, "") } $3 == group && $1 != "Z" { n++ } END { exit n > 0 }'
}
within 400 "the load is gone" dead
[ -z "$UNDO" ] || yes "what it mounted is unmounted" sh -c "$UNDO"

# Test the prediction: the same load without LUC, and with it.
if [ -n "$MEASURE" ]; then
	sh -c "$MEASURE" > "$LUC_OUT/stock.json" || bad "$MEASURE: $?"
	luc on /mnt/0 > /dev/null || bad "luc on: $?"
	sh -c "$MEASURE" > "$LUC_OUT/luc.json" || bad "$MEASURE with LUC: $?"
	luc off --all --unload > /dev/null || bad "luc off: $?"
fi
finish
