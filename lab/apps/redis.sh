# Redis with an append-only file that is synced before each answer.
PORT=23791
free $PORT
serve redis $WITH redis-server --port $PORT --bind 127.0.0.1 --dir "$DIR" --save '' --appendonly yes \
	--appendfsync always
await redis redis-cli -p $PORT ping
load() {
	run redis-benchmark redis-benchmark -p $PORT -c "$CLIENTS" -n "$1" -t set -r 100000 --csv
}
# A short run tells how many sets fill the time.
begin=$(now_ms)
load 500
end=$(now_ms)
sets=$((500 * TIME_S * 1000 / (end - begin + 1) + 500))
echo begin
load $sets
echo end
# "test","rps","avg","min","p50","p95","p99","max"
tail -n 1 "$TMP/redis-benchmark.log" | tr -d '"' |
	mawk -F, '{ printf "sets_per_s %s\nanswer_p99_ms %s\n", $2, $7 }'
