# PostgreSQL with pgbench, by its socket alone.
data=$DIR/data
mkdir "$data"
for_nobody "$data" "$TMP"
(as_nobody initdb --no-sync --no-locale -E UTF8 -A trust -U luc -D "$data" >"$TMP/initdb.log" 2>&1) ||
	failed "initdb: $(tail -n 1 "$TMP/initdb.log")"
server() { as_nobody $WITH postgres -D "$data" -k "$TMP" -h '' -c wal_sync_method="$SYNC" -c shared_buffers=32MB; }
serve postgres server
await postgres psql -h "$TMP" -U luc -c 'SELECT 1' postgres
run init pgbench -h "$TMP" -U luc -i -q -s 2 postgres
run checkpoint psql -h "$TMP" -U luc -c CHECKPOINT postgres
cd "$TMP" || exit
echo begin
run pgbench pgbench -h "$TMP" -U luc -n -c "$CLIENTS" -j 1 -T "$TIME_S" -l --random-seed="$SEED" postgres
echo end
sed -n 's/^tps = \([0-9.]*\).*/transactions_per_s \1/p' "$TMP/pgbench.log"
times=$(cat pgbench_log.* | wc -l)
[ "$times" -gt 0 ] || failed "pgbench ended no transaction"
cat pgbench_log.* | mawk '{ print $3 }' | sort -n |
	mawk -v at=$(((times * 99 + 99) / 100)) 'NR == at { printf "answer_p99_ms %.3f\n", $1 / 1000 }'
