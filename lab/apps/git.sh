# git add with core.fsync=all, in rounds of 200 new files.
cd "$DIR" || exit
HOME=$TMP
export HOME
run git git init -q "$DIR"
round=0
files=0
echo begin
begin=$(now_ms)
end=$begin
while [ $((end - begin)) -lt $((TIME_S * 1000)) ]; do
	round=$((round + 1))
	mkdir "$DIR/$round"
	mawk -v round=$round -v seed="$SEED" -v dir="$DIR/$round" 'BEGIN {
		for (file = 1; file <= 200; file++) print seed, round, file > (dir "/" file) }'
	run git $WITH git -c core.fsync=all -c core.fsyncMethod=fsync add "$round"
	files=$((files + 200))
	end=$(now_ms)
done
echo end
echo "files_per_s $(per_s $files $((end - begin)))"
