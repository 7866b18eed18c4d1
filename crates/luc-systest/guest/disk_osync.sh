# ext4's own fault, for which the judge of power cuts makes an exception
# (FileHistory::synced_range): with delayed allocation, a write with O_SYNC or O_DSYNC does not make
# the file's size durable while a write further on has no blocks yet. LUC is not loaded here. If a
# kernel no longer does this, the exception can go.
. /t/disk_lib.sh

mkdir -p /t/osync /t/after

# after HOW OPTIONS: the size after a power cut, of a file whose second sector was written HOW.
after() {
	disk lucdisk0 size_mib=64 cache_bytes=67108864 cache_volatile=1
	/sbin/mke2fs -q -F -t ext4 -E nodiscard /dev/lucdisk0
	mount -t ext4 -o "$2" /dev/lucdisk0 /t/osync || bad "cannot mount it"
	put lucdisk0 record 1
	/t/synced_write fsync /t/osync/file 0 || bad "cannot write the first sector"
	/t/synced_write plain /t/osync/file 8192 || bad "cannot write further on"
	/t/synced_write "$1" /t/osync/file 512 || bad "cannot write the second sector"
	end=$(here lucdisk0)
	disk lucdisk_b replica=lucdisk0
	put lucdisk_b cut "$end none 0"
	mount -t ext4 /dev/lucdisk_b /t/after || bad "cannot mount what is left"
	bytes=$(stat -c %s /t/after/file)
	umount /t/after /t/osync
	undisk lucdisk_b lucdisk0
}

for how in osync odsync; do
	after $how delalloc
	is "a fault of ext4: size after $how" 512 "$bytes"
	after $how nodelalloc
	is "size after $how without delayed allocation" 8704 "$bytes"
done
after fsync delalloc
is "size after fsync" 8704 "$bytes"
rmmod lucdisk
finish
