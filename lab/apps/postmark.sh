# postmark: one task makes 500 short-lived files of a mail server, uses them in 1000 transactions,
# and removes them, in rounds. It syncs none of them, and does not notice a full disk.
room 16
postmark_round() {
	mkdir "$DIR/$round"
	printf 'set location %s\nset seed %s\nset transactions 1000\nset report terse\nrun\nquit\n' \
		"$DIR/$round" $((SEED + round)) >"$TMP/round"
	run postmark $WITH postmark "$TMP/round"
	! grep -q '^Error' "$TMP/postmark.log" || failed "postmark: $(grep '^Error' "$TMP/postmark.log")"
}
rounds transactions_per_s 1000 postmark_round
