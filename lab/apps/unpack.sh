# tar unpacks an image, in rounds.
image 1000
round=0
echo begin
begin=$(now_ms)
end=$begin
while [ $((end - begin)) -lt $((TIME_S * 1000)) ]; do
	round=$((round + 1))
	mkdir "$DIR/$round"
	run tar $WITH tar -C "$DIR/$round" -xf "$TMP/image.tar"
	[ "$SYNC" = no ] || run sync $WITH sync -f "$DIR"
	end=$(now_ms)
	rm -r "$DIR/$round"
done
echo end
echo "files_per_s $(per_s $((round * 1000)) $((end - begin)))"
