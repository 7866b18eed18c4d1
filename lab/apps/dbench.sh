# dbench: each client does what a Samba server did for one of its clients, and flushes as that did.
echo begin
run dbench $WITH dbench -D "$DIR" -t "$TIME_S" "$CLIENTS"
echo end
sed -n 's|^Throughput \([0-9.]*\) MB/sec.*|throughput_mb_per_s \1|p' "$TMP/dbench.log"
# Operation, count, mean latency, longest latency.
mawk '$1 == "Flush" { print "flush_mean_ms", $3 }' "$TMP/dbench.log"
