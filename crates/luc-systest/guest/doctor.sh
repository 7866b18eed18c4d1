# One case of the doctor: a load, and what is said of the file system meanwhile.
. /t/lib.sh

# In a process group of its own, to end all of it at once.
setsid sh -c "$LOAD" > /tmp/load.out 2>&1 &
load=$!
# Past what it does first, as making its files.
sleep "$SETTLE_S"
luc doctor --json --seconds "$SECONDS_S" /mnt/0 > "$LUC_OUT/doctor.json" 2> /tmp/doctor.err
said=$?
case $said in
0 | 26) ok "the doctor says something" ;;
*) bad "luc doctor: exit $said: $(cat /tmp/doctor.err)" ;;
esac
if kill -0 $load 2> /dev/null; then
	ok "the load went on until the end"
else
	bad "the load ended too early: $(tail -n 3 /tmp/load.out)"
fi
kill -KILL -$load
wait $load
# A task killed in an fsync dies when that is done, and has its files open until then. A thread
# at a time: of a process whose first thread is dead, the others may live. Those that nobody has
# reaped are dead.
dead() {
	cat /proc/[0-9]*/task/[0-9]*/stat 2> /dev/null |
		awk -v group="$load" '{ sub(/^.*\) /, "") } $3 == group && $1 != "Z" { n++ } END { exit n > 0 }'
}
within 100 "the load is gone" dead

# What was predicted, tried: the same load without LUC, and with it.
if [ -n "$MEASURE" ]; then
	sh -c "$MEASURE" > "$LUC_OUT/stock.json" || bad "$MEASURE: $?"
	luc on /mnt/0 > /dev/null || bad "luc on: $?"
	sh -c "$MEASURE" > "$LUC_OUT/luc.json" || bad "$MEASURE with LUC: $?"
	luc off --all --unload > /dev/null || bad "luc off: $?"
fi
finish
