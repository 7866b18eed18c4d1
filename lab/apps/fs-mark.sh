# fs_mark: 100 files of 4 KiB for each client and loop, as many loops as fill the time.
cd "$TMP" || exit
echo begin
begin=$(now_ms)
end=$begin
loops=0
while [ $((end - begin)) -lt $((TIME_S * 1000)) ]; do
	run fs_mark $WITH fs_mark -S 1 -n 100 -s 4096 -t "$CLIENTS" -d "$DIR" -k -l "$TMP/fs_log"
	loops=$((loops + 1))
	end=$(now_ms)
done
echo end
echo "files_per_s $(per_s $((loops * 100 * CLIENTS)) $((end - begin)))"
