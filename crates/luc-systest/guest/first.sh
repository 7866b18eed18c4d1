# The short way through LUC: on, measured, off, gone.
. /t/lib.sh

# The warm-up is long enough for the first trial of holding.
measure() { # name of the result
	luc-lab bench create-fsync --threads 4 --seconds 0.5 --warmup-s 0.8 --json /mnt/0 \
		> "$LUC_OUT/$1.json" || bad "bench $1"
}

measure stock
check 0 "on: /mnt/0 (nullb0, ext4): policy luc, steering, set point automatic" luc on /mnt/0
is "hooks not attached" "" "$(grep -v ' attached' /sys/fs/luc/hooks)"
measure luc
yes "writers" luc-lab bench write-delay --writers 8 --seconds 0.3 --warmup-s 0 /mnt/0
check 0 "*off: /mnt/0 (nullb0): of * commits, LUC held *module luc removed" luc off /mnt/0 --unload
yes "no trace in sysfs" gone /sys/fs/luc
measure after
finish
