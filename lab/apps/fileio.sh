# sysbench fileio: each client writes 16 KiB to places drawn in 128 files.
bench="sysbench fileio --file-total-size=64M --file-test-mode=rndwr --file-fsync-all=$EACH
	--threads=$CLIENTS --time=$TIME_S --rand-seed=$SEED --percentile=99"
cd "$DIR" || exit
run prepare $bench prepare
sync -f "$DIR"
echo begin
run sysbench $WITH $bench run
echo end
sed -n 's|^ *writes/s: *\([0-9.]*\).*|writes_per_s \1|p' "$TMP/sysbench.log"
