# MariaDB with sysbench, by its socket alone. Its own tables are made where nothing is measured.
data=$DIR/data
for_nobody "$TMP"
(as_nobody mariadb-install-db --no-defaults --force --auth-root-authentication-method=normal \
	--skip-test-db --tmpdir="$TMP" --datadir="$TMP/data" >"$TMP/install.log" 2>&1) ||
	failed "mariadb-install-db: $(reason "$TMP/install.log")"
run cp cp -a "$TMP/data" "$data"
sync -f "$data"
server() {
	as_nobody $WITH mariadbd --no-defaults --datadir="$data" --socket="$TMP/socket" --skip-networking \
		--pid-file="$TMP/pid" --tmpdir="$TMP" --innodb-buffer-pool-size=64M
}
serve mariadb server
await mariadb mariadb --no-defaults -S "$TMP/socket" -u root -e 'SELECT 1'
run database mariadb --no-defaults -S "$TMP/socket" -u root -e 'CREATE DATABASE luc'
bench="sysbench oltp_write_only --mysql-socket=$TMP/socket --mysql-user=root --mysql-db=luc
	--tables=2 --table-size=10000 --percentile=99 --threads=$CLIENTS --time=$TIME_S --rand-seed=$SEED"
run prepare $bench prepare
echo begin
run sysbench $bench run
echo end
kill -0 "$SERVER" 2>/dev/null || failed "MariaDB ended early: $(reason "$TMP/mariadb.log")"
sed -n 's/^ *transactions: .*(\([0-9.]*\) per sec.*/transactions_per_s \1/p
	s/^ *99th percentile: *\([0-9.]*\).*/answer_p99_ms \1/p' "$TMP/sysbench.log"
