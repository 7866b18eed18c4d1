# ext4's own fault, of which `luc doctor` warns (Journal::leaves_data_cached): before 6.15 (kernel
# commit aac45075f6d7), if the journal is on another disk, a sync does not flush the file system's
# own disk, unless data is ordered. LUC is not loaded here. If a kernel no longer does this, the
# warning can go.
. /t/disk_lib.sh

mkdir -p /t/synced /t/after

# kept OPTIONS: how many of eight synced files have their data after a power cut of the file
# system's disk. The journal's disk keeps all.
kept() {
	disk lucdisk0 size_mib=64 cache_bytes=67108864 cache_volatile=1
	disk lucdisk1 size_mib=64 cache_volatile=0
	/sbin/mke2fs -q -F -b 4096 -O journal_dev /dev/lucdisk1
	/sbin/mke2fs -q -F -b 4096 -t ext4 -E nodiscard -J device=/dev/lucdisk1 /dev/lucdisk0
	mount -t ext4 -o "$1" /dev/lucdisk0 /t/synced || bad "cannot mount it"
	sync
	put lucdisk0 record 1
	for n in 1 2 3 4 5 6 7 8; do
		/t/synced_write fsync /t/synced/$n 0 || bad "cannot write file $n"
	done
	end=$(here lucdisk0)
	disk lucdisk_b replica=lucdisk0
	put lucdisk_b cut "$end none 0"
	disk lucdisk2 size_mib=64 cache_volatile=0
	dd if=/dev/lucdisk1 of=/dev/lucdisk2 bs=1M 2> /dev/null
	mount -t ext4 -o journal_path=/dev/lucdisk2 /dev/lucdisk_b /t/after || bad "cannot mount the rest"
	kept=0
	for n in 1 2 3 4 5 6 7 8; do
		cmp -s /t/synced/$n /t/after/$n && kept=$((kept + 1))
	done
	umount /t/after /t/synced
	undisk lucdisk_b lucdisk0 lucdisk1 lucdisk2
}

case $(uname -r) in
6.? | 6.?.* | 6.1[0-4] | 6.1[0-4].*) faulty=0 ;;
*) faulty=8 ;;
esac
kept delalloc
is "a fault of ext4 on some kernels: files kept" $faulty "$kept"
kept dioread_lock
is "files kept with dioread_lock" 8 "$kept"
kept nodelalloc
is "files kept without delayed allocation" 8 "$kept"
rmmod lucdisk
finish
