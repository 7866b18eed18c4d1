# Data that was written is read back, with a file system and without, and stays.
. /t/disk_lib.sh

# advertised CACHE_BYTES CACHE_VOLATILE CACHE FUA
advertised() {
	disk lucdisk0 size_mib=16 "cache_bytes=$1" "cache_volatile=$2"
	is "cache of $1, volatile $2" "$3, FUA $4" \
		"$(cat /sys/block/lucdisk0/queue/write_cache), FUA $(cat /sys/block/lucdisk0/queue/fua)"
	is "rotational" 0 "$(cat /sys/block/lucdisk0/queue/rotational)"
	undisk lucdisk0
}
advertised 0 0 "write through" 0
advertised 0 1 "write through" 0
advertised 1048576 0 "write through" 0
advertised 1048576 1 "write back" 1

# Single sectors, writes across pages, overlapping writes, compared with a plain file.
disk lucdisk0 size_mib=16 cache_bytes=65536 cache_write_ns=1000 flush_ns=100000
is "size in sectors" 32768 "$(cat /sys/block/lucdisk0/size)"
head -c 16777216 /dev/zero > /tmp/model
i=0
while [ $i -lt 200 ]; do
	at=$((i * 7919 % 4000)) n=$((i % 23 + 1))
	noise $((n * 512)) $i > /tmp/piece
	# Small writes go through the page cache, as dd does not align smaller buffers.
	for to in "/dev/lucdisk0 oflag=seek_bytes,direct" "/tmp/model oflag=seek_bytes"; do
		# shellcheck disable=SC2086 # two words
		dd if=/tmp/piece bs=$((n * 512)) seek=$((at * 512)) conv=notrunc of=$to 2> /dev/null
	done
	i=$((i + 1))
done
is "200 overlapping writes" "$(sum /tmp/model)" "$(sum /dev/lucdisk0)"
put lucdisk0 power 0
put lucdisk0 flush_ns 0
put lucdisk0 power 1
is "after power off and on" "$(sum /tmp/model)" "$(sum /dev/lucdisk0)"
blkdiscard -o 5120 -l 1048576 /dev/lucdisk0
dd if=/dev/zero of=/tmp/model bs=512 seek=10 count=2048 conv=notrunc 2> /dev/null
is "after a discard" "$(sum /tmp/model)" "$(sum /dev/lucdisk0)"
put lucdisk0 power 0
put lucdisk0 size_mib 1
put lucdisk0 power 1
put lucdisk0 power 0
put lucdisk0 size_mib 16
put lucdisk0 power 1
head -c 1048576 /tmp/model > /tmp/small
head -c 15728640 /dev/zero >> /tmp/small
is "what a smaller size cut off is gone" "$(sum /tmp/small)" "$(sum /dev/lucdisk0)"
undisk lucdisk0
rm /tmp/model /tmp/small

for knobs in "cache_bytes=0" "cache_bytes=8388608 cache_write_ns=20000 flush_ns=1000000" \
	"seek_min_ns=500000 seek_max_ns=8000000 rotation_ns=4000000 cache_bytes=8388608"; do
	# shellcheck disable=SC2086 # words
	disk lucdisk0 size_mib=128 $knobs
	mkfs lucdisk0
	mount -t ext4 /dev/lucdisk0 /mnt
	for i in 1 2 3 4 5 6 7 8; do
		noise 100000 $i > /mnt/$i
		mkdir /mnt/d$i
		cp /mnt/$i /mnt/d$i/copy
	done
	rm /mnt/3 /mnt/d5/copy
	before=$(sum /mnt/[1-8] /mnt/d*/copy)
	umount /mnt
	yes "e2fsck ($knobs)" e2fsck -fn /dev/lucdisk0
	put lucdisk0 power 0
	put lucdisk0 power 1
	mount -t ext4 /dev/lucdisk0 /mnt
	is "files after a remount" "$before" "$(sum /mnt/[1-8] /mnt/d*/copy)"
	umount /mnt
	undisk lucdisk0
done
rmmod lucdisk
finish
