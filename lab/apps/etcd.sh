# etcd, alone or beside a neighbour on the same file system.
URL=http://127.0.0.1:23790
free 23790 23800
case ${NEIGHBOUR:-} in
unpack) image 500 ;;
install) debs 20 ;;
esac

neighbour() {
	round=0
	while :; do
		round=$((round + 1))
		mkdir "$DIR/neighbour.$round"
		if [ "$NEIGHBOUR" = unpack ]; then
			tar -C "$DIR/neighbour.$round" -xf "$TMP/image.tar" && sync -f "$DIR/neighbour.$round" ||
				failed "the neighbour cannot unpack"
		else
			install_debs "$DIR/neighbour.$round"
		fi
		rm -r "$DIR/neighbour.$round"
	done
}

metrics() { curl -sf $URL/metrics | grep '^etcd_disk_wal_fsync_duration_seconds'; }

serve etcd in_group $WITH etcd --name luc --data-dir "$DIR/etcd" --log-level warn \
	--listen-client-urls $URL --advertise-client-urls $URL \
	--listen-peer-urls http://127.0.0.1:23800 \
	--initial-advertise-peer-urls http://127.0.0.1:23800 \
	--initial-cluster luc=http://127.0.0.1:23800
etcd=$SERVER
await etcd curl -sf $URL/health
value=$(head -c 256 /dev/zero | base64 -w 0)
printf '{"key":"bHVj","value":"%s"}' "$value" >"$TMP/put"
other=
if [ -n "${NEIGHBOUR:-}" ]; then
	neighbour &
	other=$!
	SERVERS="$SERVERS $other"
fi
metrics >"$TMP/before" || failed "etcd shows no metrics"
echo begin
run ab ab -q -l -k -c "$CLIENTS" -t "$TIME_S" -n 2000000 -e "$TMP/times" -p "$TMP/put" \
	-T application/json $URL/v3/kv/put
echo end
metrics >"$TMP/after" || failed "etcd shows no metrics any more"
kill -0 "$etcd" 2>/dev/null || failed "etcd ended early: $(tail -n 1 "$TMP/etcd.log")"
[ -z "$other" ] || kill -0 "$other" 2>/dev/null || failed "the neighbour ended early"
grep -q '^Failed requests: *0$' "$TMP/ab.log" || failed "etcd refused puts"
! grep -q "^Non-2xx" "$TMP/ab.log" || failed "etcd refused puts"
sed -n 's/^Requests per second: *\([0-9.]*\).*/puts_per_s \1/p' "$TMP/ab.log"
sed -n 's/^99,/put_p99_ms /p' "$TMP/times"
# The buckets' counts are sums from the first bucket on; within a bucket, times are taken to be
# spread evenly.
mawk '
	function bound(text) { sub(/.*le="/, "", text); sub(/".*/, "", text); return text }
	FNR == NR { before[$1] = $2; next }
	/_bucket/ { last++; le[last] = bound($1); sum[last] = $2 - before[$1] }
	/_sum/ { time = $2 - before[$1] }
	/_count/ { count = $2 - before[$1] }
	END {
		if (count == 0) { print "failed etcd synced nothing"; exit }
		printf "wal_fsync_mean_ms %.4f\n", time / count * 1000
		for (at = 1; sum[at] < 0.99 * count && at < last; at++);
		low = at > 1 ? le[at - 1] : 0; below = at > 1 ? sum[at - 1] : 0
		high = le[at] == "+Inf" ? low : le[at]
		inside = sum[at] - below
		share = inside > 0 ? (0.99 * count - below) / inside : 1
		printf "wal_fsync_p99_ms %.4f\n", (low + (high - low) * share) * 1000
	}' "$TMP/before" "$TMP/after"
