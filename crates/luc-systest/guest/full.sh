# No space left while LUC steers: ext4 commits to free blocks, and must not be
# kept waiting for it.
. /t/lib.sh

luc on /mnt/0 > /dev/null
for turn in 1 2; do
	check 14 "luc-lab: create-fsync: cannot * /mnt/0/*space*" \
		luc-lab bench create-fsync --threads 16 --bytes 65536 --seconds 600 --warmup-s 0 /mnt/0
	bench /mnt/0 8
done
# Nearly full, with files that come and go.
dd if=/dev/zero of=/mnt/0/filler bs=64k > /dev/null 2>&1
for i in 1 2 3 4 5 6 7 8; do
	rm /mnt/0/filler
	(dd if=/dev/zero of=/mnt/0/filler bs=64k conv=fsync 2>&1 || true) > /tmp/dd.out
	grep -q "No space left" /tmp/dd.out || bad "dd in turn $i: $(cat /tmp/dd.out)"
done
rm /mnt/0/filler
bench /mnt/0 8
check 0 "*module luc removed" luc off --all --unload
bench /mnt/0 8
finish
