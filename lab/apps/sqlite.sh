# SQLite: each client fills a database of its own, one row a transaction.
insert='INSERT INTO t VALUES (randomblob(100));'
client() {
	run "client.$1" sqlite3 "$DIR/$1.db" "PRAGMA journal_mode=$JOURNAL; CREATE TABLE t(a);"
}
number=0
while [ $number -lt "$CLIENTS" ]; do
	client $number
	number=$((number + 1))
done
sync -f "$DIR"
echo begin
begin=$(now_ms)
number=0
clients=
while [ $number -lt "$CLIENTS" ]; do
	(echo 'PRAGMA synchronous=FULL;'; yes "$insert") 2>/dev/null |
		$WITH sqlite3 "$DIR/$number.db" 2>"$TMP/error.$number" &
	clients="$clients $!"
	number=$((number + 1))
done
SERVERS=$clients
sleep "$TIME_S"
for pid in $clients; do kill "$pid" 2>/dev/null || failed "sqlite3 ended early: $(cat "$TMP"/error.* | tail -n 1)"; done
for pid in $clients; do wait "$pid"; done
end=$(now_ms)
echo end
rows=0
number=0
while [ $number -lt "$CLIENTS" ]; do
	own=$(sqlite3 "$DIR/$number.db" 'SELECT count(*) FROM t;') || failed "database $number cannot be read"
	rows=$((rows + own))
	number=$((number + 1))
done
echo "transactions_per_s $(per_s $rows $((end - begin)))"
