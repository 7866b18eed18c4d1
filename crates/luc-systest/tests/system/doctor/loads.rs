//! Longer loads, as scripts for the guest's shell.

/// Fewer files than a disk of 1 GiB has inodes.
pub const CREATE_STORM: &str = "while :; do luc-lab bench metarates --procs 8 --files 4000 --unique-dirs --no-fsync --dir /mnt/0; done";

/// A sync of 15 s, which begins after 22 s: the file's first steps take less than 20.
pub const ONE_SYNC: &str =
    "sleep 20 & : > /mnt/0/f; wait; sleep 2; echo x > /mnt/0/f; sync /mnt/0/f; sleep 99";

/// Two control groups on one disk, of which io.cost lets one write a hundredth. The limits of the
/// disk are 1000 requests of either kind a second.
pub const UNEQUAL_WEIGHTS: &str = "cd /sys/fs/cgroup
echo +io +memory > cgroup.subtree_control
mkdir -p poor rich
d=$(sed -n 's, /mnt/0 .*,,p' /proc/mounts)
n=$(cat /sys/class/block/${d#/dev/}/dev)
echo $n ctrl=user model=linear rbps=1000000000 rseqiops=1000 rrandiops=1000 wbps=1000000000 wseqiops=1000 wrandiops=1000 > io.cost.model
echo $n enable=1 ctrl=user min=100 max=100 > io.cost.qos
echo 10 > poor/io.weight && echo 1000 > rich/io.weight
echo 0 > rich/cgroup.procs
for i in 1 2; do
	while :; do dd if=/dev/zero of=/mnt/0/b$i bs=4k count=256 conv=notrunc oflag=direct; done &
done
echo 0 > poor/cgroup.procs
while :; do dd if=/dev/zero of=/mnt/0/f bs=4k count=4 conv=notrunc,fsync; done";

/// The file system behind dm-delay, which delays each request by 20 ms.
pub const DELAYED: &str = "d=$(sed -n 's, /mnt/0 .*,,p' /proc/mounts)
umount /mnt/0
dmsetup create slow --table \"0 $(cat /sys/class/block/${d#/dev/}/size) delay $d 0 20\" || exit
mount -t ext4 /dev/dm-0 /mnt/0 || exit
while :; do echo x >> /mnt/0/f; sync /mnt/0/f; done";

/// The file system on a RAID 1 of the two halves of the disk, which is checked again and again.
pub const CHECKED: &str = "d=$(sed -n 's, /mnt/0 .*,,p' /proc/mounts)
umount /mnt/0
half=$(($(cat /sys/class/block/${d#/dev/}/size) / 2))
echo md0 > /sys/module/md_mod/parameters/new_array
md=/sys/block/md0/md
echo none > $md/metadata_version
echo raid1 > $md/level
echo 2 > $md/raid_disks
for i in 0 1; do
	dmsetup create half$i --table \"0 $half linear $d $((i * half))\" || exit
	cat /sys/class/block/dm-$i/dev > $md/new_dev
	echo $i > $md/dev-dm-$i/slot
done
echo $((half / 2)) > $md/component_size
echo none > $md/resync_start
echo active > $md/array_state
/sbin/mke2fs -q -F -t ext4 /dev/md0 && mount -t ext4 /dev/md0 /mnt/0 || exit
while :; do echo check > $md/sync_action; sleep 1; done 2> /dev/null &
while :; do echo x >> /mnt/0/f; sync /mnt/0/f; done";

/// A program that reads 8 MiB from the disk over and over, beside one that syncs.
pub const BESIDE_READS: &str = "dd if=/dev/zero of=/mnt/0/read bs=1M count=8 conv=fsync
while :; do dd if=/mnt/0/read of=/dev/null bs=64k iflag=direct; done 2> /dev/null &
while :; do echo x >> /mnt/0/f; sync /mnt/0/f; done";

/// The file system on the first half of the disk, while something writes to the other half.
pub const BESIDE_OTHERS: &str = "d=$(sed -n 's, /mnt/0 .*,,p' /proc/mounts)
umount /mnt/0
half=$(($(cat /sys/class/block/${d#/dev/}/size) / 2))
for i in 0 1; do
	dmsetup create half$i --table \"0 $half linear $d $((i * half))\" || exit
done
/sbin/mke2fs -q -F -t ext4 /dev/dm-0 && mount -t ext4 /dev/dm-0 /mnt/0 || exit
while :; do dd if=/dev/zero of=/dev/dm-1 bs=64k count=64 oflag=direct conv=notrunc; done 2> /dev/null &
while :; do echo x >> /mnt/0/f; sync /mnt/0/f; done";

/// Programs that compute on the only processor, beside one that syncs.
pub const BESIDE_BUSY: &str = "for i in 1 2; do sh -c 'while :; do :; done' & done
luc-lab bench create-fsync --threads 2 --seconds 99 /mnt/0";

/// A control group that syncs, and may run for 5 ms in 100.
pub const THROTTLED: &str = "cd /sys/fs/cgroup
echo +cpu > cgroup.subtree_control && mkdir -p slow
echo 5000 100000 > slow/cpu.max
echo 0 > slow/cgroup.procs
luc-lab bench create-fsync --threads 2 --seconds 99 /mnt/0";

/// A file system with the mount option discard, on a disk in memory that takes discards, behind
/// dm-delay, which makes each take 20 ms. Every second file is removed, so a sync discards eight
/// pieces.
pub const DISCARDED: &str = "umount /mnt/0
mkdir -p /ram && mount -t tmpfs none /ram && dd if=/dev/zero of=/ram/image bs=1M count=64
losetup /dev/loop0 /ram/image || exit
dmsetup create slow --table '0 131072 delay /dev/loop0 0 20' || exit
/sbin/mke2fs -q -F -t ext4 -E nodiscard /dev/dm-0
mount -t ext4 -o discard /dev/dm-0 /mnt/0 || exit
while :; do
	for i in 0 1 2 3 4 5 6 7; do echo x > /mnt/0/gone$i; echo x > /mnt/0/kept$i; done
	sync /mnt/0/kept7
	rm /mnt/0/gone*
	echo x > /mnt/0/last
	sync /mnt/0/last
done";

/// The file system behind dm-multipath, which keeps requests while its only path has failed. The
/// path is back once the doctor has looked.
pub const WITHOUT_PATH: &str = "d=$(sed -n 's, /mnt/0 .*,,p' /proc/mounts)
umount /mnt/0
n=$(cat /sys/class/block/${d#/dev/}/dev)
size=$(cat /sys/class/block/${d#/dev/}/size)
dmsetup create paths --table \"0 $size multipath 1 queue_if_no_path 0 1 1 round-robin 0 1 1 $n 1000\" || exit
mount -t ext4 /dev/dm-0 /mnt/0 || exit
echo x > /mnt/0/f && sync /mnt/0/f
dmsetup message paths 0 \"fail_path $n\"
setsid sh -c \"sleep 20; dmsetup message paths 0 'reinstate_path $n'\" &
while :; do echo x >> /mnt/0/f; sync /mnt/0/f; done";

/// The file system on a thin pool that has less space than its files need. The pool grows once the
/// doctor has looked.
pub const WITHOUT_SPACE: &str = "d=$(sed -n 's, /mnt/0 .*,,p' /proc/mounts)
umount /mnt/0
dmsetup create meta --table \"0 8192 linear $d 0\" || exit
dmsetup create data --table \"0 131072 linear $d 8192\" || exit
dd if=/dev/zero of=/dev/dm-0 bs=4k count=1 conv=fsync
dmsetup create pool --table '0 131072 thin-pool /dev/dm-0 /dev/dm-1 128 0' || exit
dmsetup message pool 0 'create_thin 0'
dmsetup create thin --table '0 1000000 thin /dev/dm-2 0' || exit
/sbin/mke2fs -q -F -t ext4 /dev/dm-3 && mount -t ext4 /dev/dm-3 /mnt/0 || exit
setsid sh -c \"sleep 20
	dmsetup reload data --table '0 1000000 linear $d 8192' && dmsetup resume data
	dmsetup reload pool --table '0 1000000 thin-pool /dev/dm-0 /dev/dm-1 128 0' && dmsetup resume pool\" &
dd if=/dev/zero of=/mnt/0/big bs=1M count=100 conv=fsync";

/// 4 clients of an NFS server, which serves the file system to its own machine. The server
/// answers once those who had locks before it started have had time to claim them. Of the
/// export's flags, 2 lets clients use any port, and `0x2000` says that the last number is its
/// name.
pub const SERVED: &str = "mount -t nfsd nfsd /proc/fs/nfsd
echo 10 > /proc/fs/nfsd/nfsv4leasetime
echo 10 > /proc/fs/nfsd/nfsv4gracetime
never=2147483647
echo nfsd 127.0.0.1 $never here > /proc/net/rpc/auth.unix.ip/channel
echo here /mnt/0 $never $((2 + 0x2000)) 65534 65534 0 > /proc/net/rpc/nfsd.export/channel
echo 'here 1 \\x00000000' $never /mnt/0 > /proc/net/rpc/nfsd.fh/channel
echo -3 +4 +4.2 > /proc/fs/nfsd/versions
echo tcp 2049 > /proc/fs/nfsd/portlist
echo 4 > /proc/fs/nfsd/threads
mkdir -p /nfs
mount -t nfs4 -o vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1 127.0.0.1:/ /nfs || exit
for i in 1 2 3 4; do while :; do echo x >> /nfs/f$i; sync /nfs/f$i; done & done
wait";
