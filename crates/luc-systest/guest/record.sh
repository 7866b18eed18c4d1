# A recording of LUC at work, for comparison with one of another run.
. /t/lib.sh

check 0 "on: *" luc on /mnt/0
check 0 "*0 lost*" luc trace record -o "$LUC_OUT/recording" -- \
	luc-lab bench create-fsync --threads 8 --seconds 0.3 --warmup-s 0 --json /mnt/0
luc status --json > "$LUC_OUT/status.json" || bad "status"
luc-lab bench write-burst --bursts 2 --warmup-bursts 0 --json /mnt/0 > "$LUC_OUT/burst.json" ||
	bad "write-burst"
check 0 "*module luc removed" luc off --all --unload
finish
