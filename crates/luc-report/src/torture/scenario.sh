#!/bin/sh
# One scenario of the power cuts, in a lab guest. From the environment:
#   FS MKFS MOUNT DATA	file system, arguments of mke2fs, mount options, data mode
#   POLICY		of LUC, or stock for none
#   EXTERNAL		1: the journal is a partition of its own
#   CHURN		1: LUC is switched off and on, and unloaded, all the time
#   SYNCS		what else the workload is told of syncs
#   THREADS PROCESSES OPS CUTS FSCK_EVERY SEED SIZE_MIB
#   DID			file for how many commits were held, and blocks copied
# The last line is the summary as JSON.
set -e
disks=/sys/kernel/config/lucdisk

# A process that waits for that long waits for ever.
for knob in hung_task_timeout_secs=60 hung_task_panic=1; do
	echo ${knob#*=} > /proc/sys/kernel/${knob%%=*}
done

# 16 MiB from the first mebibyte, and what follows of 64 MiB.
partition_table() {
	printf '\0\0\0\0\203\0\0\0\0\010\0\0\0\200\0\0'
	printf '\0\0\0\0\203\0\0\0\0\210\0\0\0\170\001\0'
}

make_disk() { # name, ATTRIBUTE=VALUE...
	name=$1
	mkdir "$disks/$name"
	shift
	for pair in "$@"; do
		echo "${pair#*=}" > "$disks/$name/${pair%%=*}"
	done
}

# The cache takes all that the workload writes: whatever is not flushed may be lost.
make_disk lucdisk0 size_mib=$SIZE_MIB cache_bytes=1073741824 cache_volatile=1 \
	cache_write_ns=20000 flush_ns=500000 write_latency_ns=100000 read_latency_ns=100000 \
	channels=32 queue_requests=64 record_mib=512 partitions=$EXTERNAL power=1
make_disk lucdisk1 partitions=$EXTERNAL

device=/dev/lucdisk0 journal_mkfs= journal_mount= where=
if [ $EXTERNAL = 1 ]; then
	partition_table | dd of=$device bs=1 seek=446 conv=fsync 2> /dev/null
	printf '\125\252' | dd of=$device bs=1 seek=510 conv=fsync 2> /dev/null
	echo 0 > $disks/lucdisk0/power
	echo 1 > $disks/lucdisk0/power
	/sbin/mke2fs -q -F -b 4096 -O journal_dev ${device}p1 >&2
	journal_mkfs="-J device=${device}p1"
	journal_mount=",journal_path=${device}p1"
	where="--partition p2 --journal p1"
	device=${device}p2
fi

# At least two groups: the second has the copy by which e2fsck repairs a torn superblock.
/sbin/mke2fs -q -F -g 8192 -t $FS -E lazy_itable_init=0,lazy_journal_init=0,nodiscard $MKFS \
	$journal_mkfs $device >&2
echo 1 > $disks/lucdisk0/record
mkdir -p /t
mount -t $FS -o "$MOUNT$journal_mount" $device /t

# Copies are what might lose something: once a write was delayed all buffers are copied for ever.
eager="--set copyout=published --set copyout_threshold_permille=0 --set copyout_clean_runs=1000000"

# The longest hold and the most copies are the kernel's own.
series() { # 1 or 0
	echo $1 > /sys/fs/ext4/${device##*/}/journal_hold
	echo $(($1 * 2048)) > /sys/fs/ext4/${device##*/}/journal_copyout_max
}

churn() {
	while [ $POLICY = series ]; do
		series 1
		sleep 0.1
		series 0
		sleep 0.02
	done
	while :; do
		luc on /t --policy $POLICY $eager
		sleep 0.05
		luc set /t policy copyout
		sleep 0.05
		luc off /t --unload
		sleep 0.02
	done
}

case $POLICY:$CHURN in
stock:*) ;;
*:1) churn > /dev/null & churning=$! ;;
series:*) series 1 ;;
*) luc on /t --policy $POLICY $eager > /dev/null ;;
esac
luc-lab promises work --dir /t --acks /dev/lucdisk0-log --processes $PROCESSES \
	--threads $THREADS --ops $OPS --seed $SEED $SYNCS >&2
if [ "$churning" ]; then
	kill $churning
	wait $churning || true
	luc off --all --unload > /dev/null 2>&1 || true
elif [ $POLICY != stock ] && [ $POLICY != series ]; then
	luc status >&2
	cat /sys/fs/luc/*/counters/commits_held /sys/fs/luc/*/counters/copies > $LUC_OUT/$DID
	luc off --all --unload > /dev/null
fi
echo 0 > $disks/lucdisk0/record
umount /t
# Its answer goes out even where promises are broken; then the status tells.
status=0
luc-lab promises cuts --recorded lucdisk0 --replica lucdisk1 $where --at /r --fs-type $FS --mount "$MOUNT" \
	--data-mode $DATA --cuts $CUTS --fsck-every $FSCK_EVERY --seed $SEED --json || status=$?
echo 0 > $disks/lucdisk0/power
rmdir $disks/lucdisk1 $disks/lucdisk0
exit $status
