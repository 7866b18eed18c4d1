# fio: each client appends to a file of its own and syncs each append.
echo begin
run fio $WITH fio --name=luc --directory="$DIR" --rw=write --bs=4k --size=1g --fallocate=none --fsync=1 \
	--numjobs="$CLIENTS" --time_based --runtime="$TIME_S" --randseed="$SEED" --group_reporting \
	--output-format=json --output="$TMP/fio.json"
echo end
mawk -F'[:,]' '
	/"write" : {/ { part = "write" }
	/"sync" : {/ { part = "sync" }
	part == "write" && /"iops" :/ { printf "writes_per_s %.3f\n", $2; part = "" }
	part == "sync" && /"99.000000" :/ { printf "sync_p99_ms %.4f\n", $2 / 1e6; part = "" }' "$TMP/fio.json"
