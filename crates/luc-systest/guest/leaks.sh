# Memory that the cells before have leaked: nothing points to it any more.
. /t/lib.sh
leaks=/sys/kernel/debug/kmemleak

yes "the detector is at work" test -e $leaks
# Memory younger than five seconds may still be in use; the second scan is sure.
for scan in 1 2; do
	sleep 6
	echo scan > $leaks || bad "scan $scan"
done
cat $leaks > "$LUC_OUT/leaks"
is "leaks" 0 "$(grep -c "^unreferenced object" $leaks)"
[ -s "$LUC_OUT/leaks" ] && bad "$(head -n 20 $leaks)"
finish
