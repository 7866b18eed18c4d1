# A file system is mounted, steered, used and unmounted a thousand times; LUC switches itself off
# each time and must leave nothing behind.
. /t/pressure_lib.sh

# kB in the caches from which a module's small allocations and its sysfs files come, and kB of used
# pages that cannot be reclaimed. The latter hold the large allocations, and memory that RCU or
# vmalloc has not given back yet.
memory() {
	sync
	echo 3 > /proc/sys/vm/drop_caches
	usleep 300000
	small_kb=$(awk '/^(kmalloc-[0-9]|kernfs_node_cache)/ { b += $2 * $4 } END { print int(b / 1024) }' \
		/proc/slabinfo)
	pages_kb=$(awk '/^MemTotal/ { n = $2 } /^(MemFree|SReclaimable|Cached|Buffers)/ { n -= $2 } END { print n }' \
		/proc/meminfo)
}

# leaves UP_TO: 128 bytes left behind in each of 800 mounts would be 100 kB, and
# the entries of 800 file systems, a large piece each, 25 MB.
leaves() {
	memory
	small_before=$small_kb pages_before=$pages_kb from=$i
	cycles "$1"
	memory
	tell "mounts $from to $i: $small_before kB of small pieces before, $small_kb kB after," \
		"pages $pages_before kB and $pages_kb kB"
	most "kB more in small pieces" 96 $((small_kb - small_before))
	most "kB more in pages" 8000 $((pages_kb - pages_before))
}

small() { # disk, mount point
	disk "$1" size_mib=8
	/sbin/mke2fs -q -F -T ext4 -E nodiscard "/dev/$1" || bad "mke2fs"
	mkdir -p "$2"
	mount -t ext4 "/dev/$1" "$2"
}

cycle() {
	mount -t ext4 /dev/lucdisk0 /mnt/p &&
		echo "$device" > /sys/fs/luc/attach &&
		echo $i > /mnt/p/file &&
		sync /mnt/p/file &&
		read -r n < $fs/counters/commits &&
		commits=$((commits + n)) &&
		umount /mnt/p
}

# cycles UP_TO: the first that fails ends it all.
cycles() {
	while [ $i -lt "$1" ]; do
		cycle || { bad "cycle $i"; return; }
		i=$((i + 1))
	done
	eventually "the last entry goes" gone $fs
}

small lucdisk0 /mnt/p
umount /mnt/p
small lucdisk1 /mnt/q
device=$(cat /sys/block/lucdisk0/dev)
i=0 commits=0
# While one file system stays attached, the hooks stay too. That is quicker.
luc on /mnt/q > /dev/null
cycles 100
leaves 900
luc off --all > /dev/null
cycles 910
# Each of these removes the hooks as well.
leaves 1000
is "mounts" 1000 $i
yes "commits that LUC saw: $commits" test $commits -ge 1000
is "users of the module" 0 "$(cat /sys/module/luc/refcnt)"
is "hooks left" "" "$(grep " attached" /sys/fs/luc/hooks)"
mount -t ext4 /dev/lucdisk0 /mnt/p
is "what the last one wrote" 999 "$(cat /mnt/p/file)"
check 0 "on: *" luc on /mnt/p
umount /mnt/p
eventually "rmmod" rmmod luc
umount /mnt/q
undisk lucdisk1 lucdisk0
finish
