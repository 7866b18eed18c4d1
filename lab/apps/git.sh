# git add with core.fsync=all, in rounds of 200 new files.
cd "$DIR" || exit
HOME=$TMP
export HOME
run git git init -q "$DIR"
add() {
	mkdir "$DIR/$round"
	mawk -v round=$round -v seed="$SEED" -v dir="$DIR/$round" 'BEGIN {
		for (file = 1; file <= 200; file++) print seed, round, file > (dir "/" file) }'
	run git $WITH git -c core.fsync=all -c core.fsyncMethod=fsync add "$round"
}
rounds files_per_s 200 add
