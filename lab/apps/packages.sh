# dpkg installs 60 packages, in rounds.
debs 60
sync -f "$DIR"
round=0
echo begin
begin=$(now_ms)
end=$begin
while [ $((end - begin)) -lt $((TIME_S * 1000)) ]; do
	round=$((round + 1))
	install_debs "$DIR/$round"
	end=$(now_ms)
done
echo end
echo "packages_per_s $(per_s $((round * 60)) $((end - begin)))"
