# A journal of 1024 blocks and 64 threads: space in it is short all the time.
. /t/lib.sh

measure() { # name of the result
	luc-lab bench create-fsync --threads 64 --bytes 4096 --seconds 3 --warmup-s 0.3 --own-dirs \
		--json /mnt/0 > "$LUC_OUT/$1.json" || bad "bench $1"
}

measure stock
luc on /mnt/0 > /dev/null
measure luc
luc status --json > "$LUC_OUT/status.json"
# Limits far beyond reason: only urgency ends a hold in time.
for knob in delay_limit_us=1000000 static_idle_us=1000000 batching=static; do
	luc set /mnt/0 "${knob%=*}" "${knob#*=}" > /dev/null || bad "set $knob"
done
yes "writers with unreasonable limits" timeout 120 \
	luc-lab bench write-delay --writers 64 --think-us 100 --seconds 1 --warmup-s 0 /mnt/0
check 0 "*module luc removed" luc off --all --unload
bench /mnt/0 8
finish
