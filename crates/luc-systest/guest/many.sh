# Eight file systems at once, each with its own controller and policy.
. /t/lib.sh

i=0
for policy in stock static batching copyout luc stock static batching; do
	check 0 "on: /mnt/$i (nullb$i, ext4): policy $policy, steering*" \
		luc on "/mnt/$i" --policy $policy
	i=$((i + 1))
done
for i in 0 1 2 3 4 5 6 7; do
	luc-lab bench create-fsync --threads 4 --seconds 1 --warmup-s 0 "/mnt/$i" > "/tmp/$i.out" 2>&1 ||
		bad "bench on $i: $(cat /tmp/$i.out)" &
done
wait
luc status --json > "$LUC_OUT/status.json" || bad "status"
# One is switched off, and the others do not notice.
check 0 "off: /mnt/4 *" luc off /mnt/4
check 9 "luc: /mnt/4: LUC is not on for this file system; *" luc status /mnt/4
umount /mnt/5
eventually "the unmounted one is gone" gone /sys/fs/luc/nullb5
is "file systems left" 6 "$(ls -d /sys/fs/luc/nullb* | wc -l)"
bench /mnt/0 4
bench /mnt/4 4
bench /mnt/7 4
check 11 "luc: kernel module luc: LUC is still on for nullb*" luc off --unload
# All at once, under load.
for i in 0 1 2 3; do
	luc-lab bench create-fsync --threads 4 --seconds 0.5 --warmup-s 0 "/mnt/$i" > /dev/null ||
		bad "bench on $i" &
done
usleep 100000
check 0 "*module luc removed" luc off --all --unload
wait
mount /dev/nullb5 /mnt/5
bench /mnt/5 4
finish
