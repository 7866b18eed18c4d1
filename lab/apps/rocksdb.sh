# RocksDB's db_bench: each client puts values of 100 bytes, and the log is synced before each
# answer.
echo begin
run db_bench $WITH db_bench --db="$DIR/db" --benchmarks=fillrandom --sync=true --value_size=100 \
	--threads="$CLIENTS" --duration="$TIME_S" --ops_between_duration_checks=10 --seed="$SEED" \
	--compression_type=none --histogram=true
echo end
sed -n 's|^fillrandom .* micros/op \([0-9.]*\) ops/sec.*|puts_per_s \1|p' "$TMP/db_bench.log"
sed -n 's/^Percentiles: .* P99: \([0-9.]*\) .*/\1/p' "$TMP/db_bench.log" |
	mawk '{ printf "answer_p99_ms %.4f\n", $1 / 1000 }'
