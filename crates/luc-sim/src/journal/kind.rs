//! Kinds of journals: jbd2 and possible replacements.
//!
//! Every kind has the transactions of [`super::Journal`]: operations join the running one, a
//! request closes it, its blocks go to the log, and syncs wait until it is durable. A kind is a row
//! of [`KINDS`]; it tells how a closed transaction becomes durable:
//!
//! - how many transactions may be in flight at once; they become durable in their order;
//! - how the log ends: with a commit record after a flush, with a record that the disk keeps behind
//!   the log, or with a checksum in the log's own write;
//! - what a writer does that needs a buffer in flight;
//! - where the log lies, and whether metadata also has a home elsewhere.
//!
//! `node/journal_thread.rs` takes all kinds through the same path; a flag of the row decides at
//! each fork.

use thiserror::Error;

use super::BufferId;
use crate::units::{BLOCK_BYTES, BLOCK_SECTORS};

const BLOCKS_PER_MIB: u64 = (1 << 20) / BLOCK_BYTES as u64;

/// How a closed transaction becomes durable.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    pub name: &'static str,
    /// Description, one line.
    pub help: &'static str,
    /// Transactions that may be in flight to the disk at once.
    pub in_flight: usize,
    pub end: LogEnd,
    pub writers: Writers,
    pub home: Home,
    /// A transaction takes at most 1/`share` of the log.
    pub share: u64,
    /// Waiters for all transactions share one queue: each commit that ends wakes all of them.
    pub wakes_all: bool,
    /// Whether LUC's controllers can steer it.
    pub takes_luc: bool,
    /// Size of its log if none is given, MiB.
    pub default_mib: u32,
}

/// The mark by which recovery knows that a transaction is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEnd {
    /// A commit record, written when the log's write has ended and has been flushed.
    Record,
    /// A commit record in one request with the log, on a disk that keeps the order of writes. A
    /// flush behind both makes them durable.
    Ordered,
    /// A checksum in the log's write, which is durable when it ends.
    Checksum,
}

/// How a task may change a buffer whose older content is being written to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// The task sleeps until the write has ended, unless a copy was made before the write began.
    Sleep,
    /// The task continues: the commit copied every buffer before its write.
    Pass,
    /// The task continues: changes are copied to the log's buffers when an operation ends.
    Relog,
}

/// Where metadata is read from after the log's space is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Its own place on the disk: a checkpoint writes it there.
    InPlace,
    /// The log: blocks that are still valid are written to its head again.
    Log,
}

const LAB_MIB: u32 = luc_disk::file_system::JOURNAL_MIB;
/// A tenth of a disk of the default size.
const TENTH_MIB: u32 = 409;

/// Every kind; the first is the default.
pub static KINDS: [Kind; 6] = [JBD2, CONCURRENT, ORDERED, DELAYED, PER_SYNC, DUALFS];

/// ext4's journal. One thread commits one transaction at a time. It writes the log blocks and waits
/// for them, then flushes and writes the commit record.
const JBD2: Kind = Kind {
    name: "jbd2",
    help: "as in ext4: one commit at a time, a commit record after a flush; writers sleep \
           on shadowed buffers",
    in_flight: 1,
    end: LogEnd::Record,
    writers: Writers::Sleep,
    home: Home::InPlace,
    share: 3,
    wakes_all: true,
    takes_luc: true,
    default_mib: LAB_MIB,
};

/// CJFS (Oh and others, FAST 2023) on a disk that does not keep the order of writes: the next
/// transaction may commit while others are in flight. A buffer has up to five versions: one in the
/// running transaction, four in commits. A record waits for its log as jbd2's does, so that only
/// concurrency differs from jbd2. The block layer serves as the compound flush of CJFS: records
/// that wait for a flush share one.
const CONCURRENT: Kind = Kind {
    name: "concurrent-commits",
    help: "jbd2 with up to four commits in flight, each with its own buffer versions",
    in_flight: 4,
    writers: Writers::Pass,
    takes_luc: false,
    ..JBD2
};

/// CJFS as published, on a disk that keeps the order: no commit waits between its log and its
/// record, and commits that wait for the flush behind their records share one.
const ORDERED: Kind = Kind {
    name: "ordered-commits",
    help: "as in CJFS: the same on a disk that keeps the order of writes, so that one flush behind \
           the record is enough",
    end: LogEnd::Ordered,
    ..CONCURRENT
};

/// Like XFS: changes go to in-core logs; a sync closes the open one and waits for it and for those
/// before. It closes the log only when the previous log write has ended (`xlog_force_lsn()`), so
/// that later syncs can join. The log's write has a checksum and comes after a flush, with FUA.
/// XFS logs only the changed parts of a buffer; here a buffer is logged whole.
const DELAYED: Kind = Kind {
    name: "delayed-logging",
    help: "as in XFS: one checksummed log write at a time, no commit record; writers do not sleep \
           on buffers",
    in_flight: 1,
    end: LogEnd::Checksum,
    writers: Writers::Relog,
    wakes_all: false,
    takes_luc: false,
    ..JBD2
};

/// Like the kind above, but without waiting for the previous log write: each sync has its own write
/// as long as one of XFS's eight in-core logs is free.
const PER_SYNC: Kind = Kind {
    name: "log-per-sync",
    help: "delayed-logging with up to eight log writes in flight: a sync starts its write without \
           waiting for another sync",
    in_flight: 8,
    ..DELAYED
};

/// Like `DualFS` (Piernas and others): metadata is a separate log-structured file system on the
/// outer tenth of the disk, data lies on the rest. A partial segment is one write with a checksum
/// in its summary; the segment writer of BSD-LFS copies the blocks into it. Metadata has no other
/// copy, so nothing is written home; a cleaner moves valid blocks from the oldest segments to the
/// head. `DualFS` also prefetches 16 blocks when it reads metadata; the simulator has all metadata
/// in memory.
const DUALFS: Kind = Kind {
    name: "dualfs",
    help: "the outer tenth of the disk is a log that holds all metadata: written once, never \
           checkpointed",
    end: LogEnd::Checksum,
    writers: Writers::Pass,
    home: Home::Log,
    // The cleaner needs room for a transaction when none is left for others.
    share: 8,
    wakes_all: false,
    takes_luc: false,
    default_mib: TENTH_MIB,
    ..JBD2
};

/// The place of everything on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// First sector of the log; the block before it is its superblock.
    pub log_sector: u64,
    pub log_blocks: u64,
    /// Data begins here.
    pub data_sector: u64,
    /// Homes of a flexible group's metadata begin here.
    pub home_sector: u64,
}

impl Layout {
    /// Returns the home of a buffer. Buffers beyond the size of a table share the homes of others.
    pub fn home_of(&self, buffer: BufferId) -> u64 {
        use super::buffers::{BLOCKS, DIRS, GROUP, INODES, PARENT, PARENT_INODE, SUPER, TABLE};
        let behind = |blocks: u64| self.home_sector + blocks * BLOCK_SECTORS;
        match buffer {
            // The first group holds those of the whole file system.
            SUPER | GROUP | PARENT | PARENT_INODE => u64::from(buffer) * BLOCK_SECTORS,
            BLOCKS => behind(0),
            INODES => behind(GROUPS_TOGETHER),
            DIRS.. => behind(TABLES_BLOCKS + u64::from(buffer - DIRS) % DIRS_BLOCKS),
            _ => behind(BITMAPS_BLOCKS + u64::from(buffer - TABLE) % INODES_BLOCKS),
        }
    }
}

/// jbd2 refuses a log with fewer blocks (`JBD2_MIN_JOURNAL_BLOCKS`, 1024).
const MIB_MIN: u32 = 4;
/// The largest log that the simulated disk has room for.
const MIB_MAX: u32 = 512;

/// A block group, in sectors.
const GROUP_SECTORS: u64 = 1 << 18;
/// The groups of the lab's file systems before the one in which the log begins.
const GROUPS_BEFORE_LOG: u64 = 15;
/// Groups in a flexible group.
const GROUPS_TOGETHER: u64 = 16;
/// Bitmaps of a flexible group, of blocks and then of inodes, and its inode tables.
const BITMAPS_BLOCKS: u64 = GROUPS_TOGETHER * 2;
const INODES_BLOCKS: u64 = GROUPS_TOGETHER * 512;
const TABLES_BLOCKS: u64 = BITMAPS_BLOCKS + INODES_BLOCKS;
/// Blocks of directories, which lie between the tables and the files.
const DIRS_BLOCKS: u64 = 512;

/// A journal: its kind and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub kind: &'static Kind,
    pub mib: u32,
}

/// Why a journal does not exist.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum NoJournal {
    #[error("no journal is called {name}; there are: {}", names().join(", "))]
    Name { name: String },
    #[error(
        "a journal of {mib} MiB: below {MIB_MIN} a transaction would not fit, and the simulated disk \
         has room for {MIB_MAX}; give {MIB_MIN} to {MIB_MAX} MiB"
    )]
    Size { mib: u32 },
}

impl Default for Choice {
    fn default() -> Self {
        let kind = &KINDS[0];
        let mib = kind.default_mib;
        Self { kind, mib }
    }
}

impl Choice {
    /// Finds a kind by its name; its size is `mib`, or else the kind's default.
    ///
    /// # Errors
    /// No kind has this name, a transaction does not fit in this size, or the disk has no room for
    /// it.
    pub fn new(name: &str, mib: Option<u32>) -> Result<Self, NoJournal> {
        let kind = KINDS.iter().find(|kind| kind.name == name);
        let kind = kind.ok_or_else(|| NoJournal::Name {
            name: name.to_owned(),
        })?;
        let mib = mib.unwrap_or(kind.default_mib);
        if !(MIB_MIN..=MIB_MAX).contains(&mib) {
            return Err(NoJournal::Size { mib });
        }
        Ok(Self { kind, mib })
    }

    /// Like [`Choice::new`], but the default size of a journal beside the home of metadata is that
    /// of the lab's journal on a disk of this size.
    ///
    /// # Errors
    /// As [`Choice::new`].
    pub fn on(name: &str, mib: Option<u32>, disk_mib: u32) -> Result<Self, NoJournal> {
        let own = Self::new(name, mib)?;
        let of_disk = luc_disk::file_system::journal_mib(disk_mib);
        match of_disk.filter(|_| mib.is_none() && own.kind.home == Home::InPlace) {
            Some(mib) => Ok(Self { mib, ..own }),
            None => Ok(own),
        }
    }

    /// Returns its layout on the disk.
    pub fn layout(&self) -> Layout {
        let log_blocks = u64::from(self.mib) * BLOCKS_PER_MIB;
        match self.kind.home {
            // As with the lab's mkfs, the log lies in the middle. The tables of the flexible group
            // that gets a new file system's first directory lie around the log there, and behind it
            // here.
            Home::InPlace => {
                let log_sector = GROUPS_BEFORE_LOG * GROUP_SECTORS;
                let home_sector = log_sector + log_blocks * BLOCK_SECTORS;
                Layout {
                    log_sector,
                    log_blocks,
                    data_sector: home_sector + (TABLES_BLOCKS + DIRS_BLOCKS) * BLOCK_SECTORS,
                    home_sector,
                }
            }
            Home::Log => {
                let log_sector = BLOCK_SECTORS;
                let data_sector = log_sector + log_blocks * BLOCK_SECTORS;
                Layout {
                    log_sector,
                    log_blocks,
                    data_sector,
                    home_sector: data_sector,
                }
            }
        }
    }
}

/// Returns the names of all kinds.
pub fn names() -> Vec<&'static str> {
    KINDS.iter().map(|kind| kind.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SECTORS;
    use crate::files::DATA_SECTORS;

    #[test]
    fn kinds_and_sizes_that_are_none() {
        let error = |name, mib| Choice::new(name, mib).unwrap_err().to_string();
        assert!(error("jbd3", None).contains("jbd2, concurrent-commits"));
        assert!(error("jbd2", Some(3)).contains("give 4 to 512 MiB"));
        assert!(error("dualfs", Some(513)).contains("513"));
        assert_eq!(Choice::new("jbd2", None), Ok(Choice::default()));
        let mib = |name, mib| Choice::on(name, mib, 512).map(|it| it.mib);
        assert_eq!(mib("jbd2", None), Ok(16), "mke2fs's");
        assert_eq!(
            (mib("jbd2", Some(64)), mib("dualfs", None)),
            (Ok(64), Ok(TENTH_MIB))
        );
    }

    #[test]
    fn places_do_not_overlap() {
        for kind in &KINDS {
            for mib in [MIB_MIN, kind.default_mib, MIB_MAX] {
                let layout = Choice { kind, mib }.layout();
                let log_end = layout.log_sector + layout.log_blocks * BLOCK_SECTORS;
                assert!(log_end <= SECTORS && layout.log_sector >= BLOCK_SECTORS);
                assert!(layout.home_sector >= log_end && layout.data_sector >= layout.home_sector);
                assert!(layout.data_sector + DATA_SECTORS <= SECTORS);
            }
        }
        // A tenth, without the superblock.
        let dualfs = Choice::new("dualfs", None).unwrap().layout();
        assert!((95..=100).contains(&(dualfs.log_blocks * BLOCK_SECTORS * 1000 / SECTORS)));
    }
}
