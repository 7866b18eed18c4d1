//! The cases: what happens, and which answer is right. The answer follows from how the case is
//! built, not from what the doctor measures.
//!
//! On a disk such as `4ms:1` each request takes 4 ms, one request at once, and there is no cache to
//! flush; a commit is two requests one after the other, its blocks and its commit record. The
//! others are presets of `luc-lab disks`.

use super::loads::{
    BESIDE_BUSY, BESIDE_OTHERS, BESIDE_READS, CHECKED, CREATE_STORM, DELAYED, DISCARDED, ONE_SYNC,
    SERVED, THROTTLED, UNEQUAL_WEIGHTS, WITHOUT_PATH, WITHOUT_SPACE,
};

/// One case. The cases of a kernel are grouped by answer.
pub struct Case {
    pub name: &'static str,
    pub kernel: &'static str,
    pub disk: &'static str,
    pub mkfs: &'static [&'static str],
    /// The load, which runs in the guest until the script kills it.
    pub load: &'static str,
    /// The kind of its first verdict, as in `luc doctor --json`.
    pub expected: &'static str,
    /// Why that is the answer.
    pub why: &'static str,
    /// Virtual time before watching, s.
    pub settle_s: &'static str,
    /// Words that the remedies must contain; empty if any will do.
    pub remedy: &'static str,
    /// The level of confidence, where too little can be seen; empty if any will do.
    pub sure: &'static str,
    /// The process whose syncs take most time; empty if it is not checked.
    pub syncer: &'static str,
    /// The load for a limited time, measured without LUC and with it; empty if it is not measured.
    pub measure: &'static str,
    /// A command that unmounts what the load mounted, once it is gone; empty if nothing.
    pub undo: &'static str,
    /// Texts of kernel log lines that the load may cause.
    pub allow: &'static [&'static str],
}

const fn case(
    kernel: &'static str,
    name: &'static str,
    disk: &'static str,
    expected: &'static str,
    load: &'static str,
    why: &'static str,
) -> Case {
    Case {
        name,
        kernel,
        disk,
        mkfs: &[],
        load,
        expected,
        why,
        settle_s: "0.5",
        remedy: "",
        sure: "",
        syncer: "",
        measure: "",
        undo: "",
        allow: &[],
    }
}

/// Kernel log lines of dm-multipath, and of the kernel's complaint that the lab's disk sleeps in a
/// request, as it sometimes does: dm-multipath calls it where nothing may sleep.
const MULTIPATH_LINES: &[&str] = &[
    "device-mapper: multipath: ",
    "rcu_note_context_switch",
    "Call Trace:",
];

/// 4 MiB is the smallest journal that mke2fs makes with 4 KiB blocks.
const TINY_JOURNAL: &[&str] = &["-J", "size=4"];

/// 4 tasks that write in one way of `writer.c`.
macro_rules! writers {
    ($how:literal) => {
        concat!(
            "for i in 1 2 3 4; do /t/writer ",
            $how,
            " /mnt/0/f$i & done; wait"
        )
    };
}

pub const CASES: &[Case] = &[
    // Debian 12's kernel.
    case(
        "6.1",
        "sync_16_threads",
        "1ms:8",
        "sync_delays",
        "luc-lab bench create-fsync --threads 16 --seconds 99 /mnt/0",
        "16 threads that sync nothing but metadata, and a thread that comes back early asks while the others' commit runs",
    ),
    Case {
        measure: "luc-lab bench write-delay --seconds 2 --json /mnt/0",
        ..case(
            "6.1",
            "writes_48_writers",
            "4ms:1",
            "write_delays",
            "luc-lab bench write-delay --seconds 99 /mnt/0",
            "48 writers append, sharing bitmaps and inode blocks with one stream of commits of 8 ms",
        )
    },
    case(
        "6.1",
        "writes_slow_disk",
        "hdd-7200-wc-off",
        "write_delays",
        "luc-lab bench write-delay --writers 16 --think-us 500 --seconds 99 /mnt/0",
        "16 writers that seldom wait share their metadata with a stream of commits on a rotating \
         disk without a write cache: each block of a commit takes milliseconds",
    ),
    case(
        "6.1",
        "data_8_mib",
        "cloud-volume",
        "data_flush",
        "while :; do dd if=/dev/zero of=/mnt/0/f bs=1M count=8 conv=fsync 2> /dev/null; done",
        "8 MiB at 131 MB/s are 64 ms of data before a commit of 2 ms",
    ),
    case(
        "6.1",
        "device_one_thread",
        "4ms:1",
        "device",
        "luc-lab bench create-fsync --threads 1 --seconds 99 /mnt/0",
        "one thread: no commit but its own, and that is two requests of 4 ms",
    ),
    case(
        "6.1",
        "journal_create_storm",
        "1ms:8",
        "journal_too_small",
        CREATE_STORM,
        "8 processes make files without syncs, which a journal of 4 MiB takes faster than 8 requests of 1 ms empty it",
    )
    .tiny_journal(),
    case(
        "6.1",
        "quiet_idle",
        "hdd-7200",
        "no_pressure",
        "sleep 99",
        "nothing happens",
    ),
    case(
        "6.1",
        "quiet_editor",
        "hdd-7200",
        "no_pressure",
        "while :; do echo x >> /mnt/0/f; sync /mnt/0/f; sleep 1; done",
        "one sync of some 20 ms each second",
    ),
    // Debian 13's kernel.
    Case {
        mkfs: &["-O", "fast_commit"],
        sure: "low",
        ..case(
            "6.12",
            "device_fast_commits",
            "4ms:1",
            "device",
            "luc-lab bench create-fsync --threads 4 --bytes 4096 --seconds 99 /mnt/0",
            "4 threads wait for fast commits, which cannot be traced: what is left is a few full commits",
        )
    },
    Case {
        measure: "luc-lab bench create-fsync --threads 4 --seconds 2 --json /mnt/0",
        ..case(
            "6.12",
            "sync_4_threads",
            "4ms:1",
            "sync_delays",
            "luc-lab bench create-fsync --threads 4 --seconds 99 /mnt/0",
            "4 threads that sync nothing but metadata: two convoys that take turns",
        )
    },
    case(
        "6.12",
        "sync_hdd",
        "hdd-7200",
        "sync_delays",
        "luc-lab bench create-fsync --threads 8 --seconds 99 /mnt/0",
        "8 threads that sync nothing but metadata, on a disk that turns",
    ),
    case(
        "6.12",
        "sync_random_arrivals",
        "4ms:1",
        "sync_delays",
        "luc-lab bench fsync-storm --rate-per-s 150 --seconds 99 --dir /mnt/0",
        "syncs at random moments, 150 per second: commits of 8 ms run nearly always, so most come while one runs",
    ),
    case(
        "6.12",
        "writes_beside_syncs",
        "4ms:1",
        "write_delays",
        "luc-lab bench write-delay --seconds 99 /mnt/0",
        "as on 6.1, where writers sleep in another function",
    ),
    case(
        "6.12",
        "data_4_writers",
        "cloud-volume",
        "data_flush",
        "luc-lab bench create-fsync --threads 4 --bytes 1048576 --seconds 99 /mnt/0",
        "4 threads share 131 MB/s for 1 MiB each: 32 ms of data before a commit of 2 ms",
    ),
    Case {
        remedy: "Raise wbps in io.max of /low",
        ..case(
            "6.12",
            "data_limited",
            "cloud-volume",
            "data_flush",
            "mkdir -p /cg && mount -t cgroup2 none /cg && echo +io +memory > /cg/cgroup.subtree_control && mkdir -p /cg/low; d=$(sed -n 's, /mnt/0 .*,,p' /proc/mounts); echo $(cat /sys/class/block/${d#/dev/}/dev) wbps=2097152 > /cg/low/io.max; echo 0 > /cg/low/cgroup.procs; while :; do dd if=/dev/zero of=/mnt/0/f bs=64k count=4 conv=fsync 2> /dev/null; done",
            "the disk writes 131 MB/s, and the control group may write 2 MB/s: 256 KiB are 125 ms of data",
        )
    },
    Case {
        remedy: "Raise io.weight of /poor",
        ..case(
            "6.12",
            "data_weighed",
            "1ms:8",
            "data_flush",
            UNEQUAL_WEIGHTS,
            "io.cost lets one control group write ten requests a second beside another's thousand",
        )
    },
    case(
        "6.12",
        "device_hdd_appends",
        "hdd-7200",
        "device",
        "luc-lab bench fsync-storm --threads 1 --burst 1 --period-ms 1 --spread-us 0 --op append --bytes 100 --seconds 99 --drain-s 0 --dir /mnt/0",
        "one thread appends 100 bytes and syncs, over and over: no commit but its own",
    ),
    case(
        "6.12",
        "device_overwrites",
        "sata-ssd",
        "device",
        "dd if=/dev/zero of=/mnt/0/f bs=64k count=4; while :; do dd if=/dev/zero of=/mnt/0/f bs=4k count=1 conv=notrunc,fsync 2> /dev/null; done",
        "one program after the other overwrites 4 KiB and syncs: 25 us for the data, 1.5 ms for each flush of the disk's cache",
    ),
    case(
        "6.12",
        "journal_slow_disk",
        "4ms:1",
        "journal_too_small",
        CREATE_STORM,
        "as on 6.1, with a disk that writes one block at a time",
    )
    .tiny_journal(),
    case(
        "6.12",
        "quiet_buffered_writes",
        "nvme",
        "no_pressure",
        "while :; do dd if=/dev/zero of=/mnt/0/f bs=64k count=16 2> /dev/null; usleep 20000; done",
        "files are written and nobody syncs them",
    ),
    case(
        "6.12",
        "quiet_reads",
        "1ms:8",
        "no_pressure",
        "dd if=/dev/zero of=/mnt/0/f bs=64k count=16 conv=fsync; while :; do cat /mnt/0/f > /dev/null; usleep 1000; done",
        "files are read, from the page cache",
    ),
    case(
        "6.12",
        "unclear_sync_option",
        "1ms:8",
        "unclear",
        "mount -o remount,sync /mnt/0; while :; do mkdir /mnt/0/d; rmdir /mnt/0/d; done",
        "with the mount option sync each change of a directory waits for a commit, and no task calls sync: the waits can be counted, their time cannot",
    ),
    // Syncs that are no call of fsync: O_SYNC, O_DSYNC, RWF_DSYNC, direct I/O, syncfs, io_uring,
    // NFS.
    case(
        "6.12",
        "sync_by_osync",
        "4ms:1",
        "sync_delays",
        writers!("osync"),
        "4 tasks append to files with O_SYNC: two convoys that take turns",
    ),
    Case {
        settle_s: "15",
        syncer: "nfsd",
        undo: "umount /nfs; echo 0 > /proc/fs/nfsd/threads; umount /proc/fs/nfsd",
        ..case(
            "6.12",
            "sync_below_nfs",
            "sata-ssd",
            "sync_delays",
            SERVED,
            "4 clients of an NFS server, whose threads sync for them: those that come back early ask while the others' commit runs",
        )
    },
    case(
        "6.12",
        "data_by_odsync",
        "4ms:1",
        "data_flush",
        writers!("overwrite"),
        "4 tasks overwrite 4 KiB in files with O_DSYNC: nothing to commit, and 16 ms for the data of all",
    ),
    case(
        "6.12",
        "data_by_flag",
        "4ms:1",
        "data_flush",
        writers!("flag"),
        "the same with RWF_DSYNC",
    ),
    case(
        "6.12",
        "data_by_io_uring",
        "4ms:1",
        "data_flush",
        writers!("uring"),
        "4 tasks append and sync by io_uring: 16 ms for the data of all, and commits of 8 ms",
    ),
    case(
        "6.12",
        "device_by_syncfs",
        "4ms:1",
        "device",
        "while :; do echo x >> /mnt/0/f; sync -f /mnt/0/f; done",
        "one program after the other calls syncfs: no commit but its own; whichever is in it when the watch begins is gone long before the end",
    ),
    Case {
        syncer: "loop0",
        ..case(
            "6.12",
            "device_below_a_loop",
            "4ms:1",
            "device",
            "truncate -s 64M /mnt/0/image && /sbin/mke2fs -q -F -t ext4 /mnt/0/image && mkdir -p /upper && mount -t ext4 -o loop /mnt/0/image /upper && luc-lab bench create-fsync --threads 4 --seconds 99 /upper",
            "4 tasks sync on a file system in a file: a kernel thread syncs the file for them, again and again, and there is no commit but its own",
        )
    },
    Case {
        // Mounting takes 5 s.
        settle_s: "10",
        remedy: "Take the delay out of the table of /dev/mapper/slow",
        undo: "umount /mnt/0 && dmsetup remove slow",
        ..case(
            "6.12",
            "device_delayed",
            "nvme",
            "device",
            DELAYED,
            "one program after the other syncs, and device mapper delays each request by 20 ms",
        )
    },
    Case {
        settle_s: "10",
        remedy: "Array /dev/md0 is being checked",
        undo: "umount /mnt/0 && echo clear > /sys/block/md0/md/array_state && dmsetup remove half0 half1",
        ..case(
            "6.12",
            "device_checked",
            "hdd-7200",
            "device",
            CHECKED,
            "one program after the other syncs, and the array below reads all its blocks meanwhile",
        )
    },
    Case {
        settle_s: "2",
        remedy: "Let sh read at another time",
        ..case(
            "6.12",
            "device_beside_reads",
            "hdd-7200",
            "device",
            BESIDE_READS,
            "one program after the other syncs, and a shell's programs read from the disk meanwhile",
        )
    },
    Case {
        settle_s: "2",
        remedy: "mostly /dev/mapper/half1, ",
        undo: "umount /mnt/0 && dmsetup remove half0 half1",
        ..case(
            "6.12",
            "device_beside_others",
            "hdd-7200",
            "device",
            BESIDE_OTHERS,
            "one program after the other syncs, while the other half of the disk is written",
        )
    },
    Case {
        remedy: "sh in / uses",
        ..case(
            "6.12",
            "processor_busy",
            "nvme-plp",
            "processor",
            BESIDE_BUSY,
            "two programs compute on one processor: each step of a commit waits for its turn, and the disk takes a tenth of a millisecond",
        )
    },
    Case {
        settle_s: "1",
        remedy: "Control group /slow used all of its cpu.max (5000 100000)",
        undo: "rmdir /sys/fs/cgroup/slow",
        ..case(
            "6.12",
            "processor_throttled",
            "nvme-plp",
            "processor",
            THROTTLED,
            "the control group that syncs has used its 5 ms when a commit ends, and waits for the rest of the 100",
        )
    },
    Case {
        settle_s: "4",
        remedy: "Mount without discard",
        undo: "umount /mnt/0 && dmsetup remove slow && losetup -d /dev/loop0 && umount /ram",
        ..case(
            "6.12",
            "device_discarding",
            "nvme",
            "device",
            DISCARDED,
            "each commit that frees blocks waits for their discards",
        )
    },
    Case {
        settle_s: "10",
        remedy: "Bring back a path of /dev/mapper/paths",
        undo: "umount /mnt/0 && dmsetup remove paths",
        allow: MULTIPATH_LINES,
        ..case(
            "6.12",
            "lasting_without_path",
            "nvme",
            "lasting_syncs",
            WITHOUT_PATH,
            "a sync begins when the only path to the disk has failed",
        )
    },
    Case {
        settle_s: "10",
        remedy: "Extend the thin pool /dev/mapper/pool",
        undo: "umount /mnt/0 && dmsetup remove thin && dmsetup remove pool && dmsetup remove meta data",
        allow: &["device-mapper: thin: "],
        ..case(
            "6.12",
            "lasting_without_space",
            "nvme",
            "lasting_syncs",
            WITHOUT_SPACE,
            "a sync writes 100 MiB, and the pool below has room for 64",
        )
    },
    case(
        "6.12",
        "quiet_direct",
        "4ms:1",
        "no_pressure",
        writers!("direct"),
        "4 tasks overwrite 4 KiB with direct I/O and O_DSYNC: they wait for the disk, the journal has no part in it",
    ),
    Case {
        // Past the reads of its first steps.
        settle_s: "30",
        remedy: "kernel log",
        ..case(
            "6.12",
            "lasting_slow_disk",
            "3s:1",
            "lasting_syncs",
            "while :; do echo x >> /mnt/0/f; sync /mnt/0/f; done",
            "each request takes 3 s, and a sync some of them: none begins and ends within 5 s",
        )
    },
    Case {
        settle_s: "23",
        remedy: "kernel log",
        ..case(
            "6.12",
            "lasting_since_before",
            "3s:1:64M",
            "lasting_syncs",
            ONE_SYNC,
            "one sync begins 1 s before the watch and ends long after it",
        )
    },
    Case {
        settle_s: "20",
        remedy: "kernel log",
        ..case(
            "6.12",
            "lasting_from_within",
            "3s:1:64M",
            "lasting_syncs",
            ONE_SYNC,
            "one sync begins 2 s into the watch and ends long after it",
        )
    },
    // Debian's newest kernel.
    case(
        "7.2",
        "sync_metarates",
        "hdd-7200",
        "sync_delays",
        "luc-lab bench metarates --procs 8 --files 100000 --dir /mnt/0",
        "8 processes make and sync files, on a disk that turns",
    ),
    case(
        "7.2",
        "sync_varmail",
        "sata-ssd",
        "sync_delays",
        "luc-lab bench run varmail --seconds 99 --dir /mnt/0",
        "16 threads of a mail server sync small files on a disk whose flush takes most of a commit",
    ),
    case(
        "7.2",
        "writes_touch_shared",
        "1ms:8",
        "write_delays",
        "luc-lab bench write-delay --writers 32 --seconds 99 /mnt/0",
        "32 writers append, sharing bitmaps and inode blocks with one stream of commits of 2 ms",
    ),
    case(
        "7.2",
        "data_iozone",
        "sata-ssd",
        "data_flush",
        "while :; do luc-lab bench iozone --threads 4 --size 4m --record 256k --fsync --no-stonewall --dir /mnt/0; done",
        "4 files of 4 MiB at 534 MB/s are 32 ms of data, and commits of 2 ms",
    ),
    case(
        "7.2",
        "device_beside_a_reader",
        "1ms:8",
        "device",
        "d=$(sed -n 's, /mnt/0 .*,,p' /proc/mounts); while :; do dd if=$d of=/dev/null bs=1M iflag=direct 2> /dev/null; done & luc-lab bench create-fsync --threads 1 --seconds 99 /mnt/0",
        "one thread syncs, no commit but its own, and others read the disk as fast as it gives",
    ),
    case(
        "7.2",
        "journal_hdd",
        "hdd-7200",
        "journal_too_small",
        CREATE_STORM,
        "as on 6.1, with a disk that turns",
    )
    .tiny_journal(),
    case(
        "7.2",
        "quiet_logger",
        "nvme-plp",
        "no_pressure",
        "luc-lab bench fsync-storm --threads 2 --rate-per-s 50 --op append --seconds 99 --dir /mnt/0",
        "50 syncs per second of 0.1 ms each, on a disk that need not flush",
    ),
    case(
        "7.2",
        "quiet_metadata",
        "sata-ssd",
        "no_pressure",
        "while :; do mkdir /mnt/0/d; rmdir /mnt/0/d; usleep 10000; done",
        "directories are made and removed, and no task syncs: only the timer commits, every 5 s",
    ),
];

impl Case {
    const fn tiny_journal(mut self) -> Self {
        self.mkfs = TINY_JOURNAL;
        self
    }
}
