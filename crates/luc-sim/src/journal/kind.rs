//! Kinds of journals: jbd2, and what could stand in its place.
//!
//! Every kind has the transactions of [`super::Journal`]: operations join the running one, a request
//! closes it, its blocks go to the log, and syncs wait until it is durable. A kind is a row of
//! [`KINDS`] and says how a closed transaction becomes durable:
//!
//! - how many transactions may be on their way at once; they become durable in their order;
//! - what the log's end is: a commit record behind a flush, or a checksum in the log's own write;
//! - what writers do that need a buffer on its way;
//! - where the log lies, and whether metadata has a home besides.
//!
//! `node/journal_thread.rs` walks all of them through the same path; a flag of the row decides at
//! each fork.

use thiserror::Error;

use super::BufferId;
use crate::units::{BLOCK_BYTES, BLOCK_SECTORS};

const BLOCKS_PER_MIB: u64 = (1 << 20) / BLOCK_BYTES as u64;

/// A way from the closed transaction to the durable one.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    pub name: &'static str,
    /// In one line.
    pub help: &'static str,
    /// Transactions that may be on their way to the disk at once.
    pub in_flight: usize,
    pub end: LogEnd,
    pub writers: Writers,
    pub home: Home,
    /// One transaction has at most this share of the log: 1 / so many.
    pub share: u64,
    /// One queue for the waiters of all transactions: each end wakes all of them.
    pub wakes_all: bool,
    /// LUC's controllers steer it.
    pub takes_luc: bool,
    /// MiB of its log unless another size is asked for.
    pub default_mib: u32,
}

/// What tells recovery that a transaction is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEnd {
    /// A commit record, written when the log's write has ended and is flushed.
    Record,
    /// A checksum in the log's write, which is durable by itself.
    Checksum,
}

/// What a task does that changes a buffer whose older content is being written to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// It sleeps until the write has ended, unless a copy was made before it began.
    Sleep,
    /// It goes on: the commit has copied every buffer before its write.
    Pass,
    /// It goes on: changes are copied into the log's buffers when an operation ends.
    Relog,
}

/// Where metadata is read from after the log's space is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Its own place on the disk: a checkpoint writes it there.
    InPlace,
    /// The log: what is still valid is written to its head again.
    Log,
}

const LAB_MIB: u32 = luc_disk::file_system::JOURNAL_MIB;
/// A tenth of the disk.
const TENTH_MIB: u32 = 409;

/// Every kind; the first is the default.
pub static KINDS: [Kind; 5] = [JBD2, CONCURRENT, DELAYED, PER_SYNC, DUALFS];

/// ext4's journal. One thread commits one transaction at a time. Log blocks are written and waited
/// for, then flush and commit record.
const JBD2: Kind = Kind {
    name: "jbd2",
    help: "ext4's: one commit at a time, a record behind a flush, writers sleep on shadowed buffers",
    in_flight: 1,
    end: LogEnd::Record,
    writers: Writers::Sleep,
    home: Home::InPlace,
    share: 3,
    wakes_all: true,
    takes_luc: true,
    default_mib: LAB_MIB,
};

/// As CJFS (Oh and others, FAST 2023): the next transaction may commit while others are on their
/// way. A buffer has up to five versions: one in the running transaction, four in commits. CJFS
/// sends log and record as ordered writes to a disk that keeps order. Here a record waits for its
/// log as jbd2's does, so that what differs from jbd2 is concurrency alone. Its compound flush is
/// the block layer's: records that wait for a flush share one.
const CONCURRENT: Kind = Kind {
    name: "concurrent-commits",
    help: "as CJFS: jbd2 with four commits on their way at once, each with versions of its buffers",
    in_flight: 4,
    writers: Writers::Pass,
    takes_luc: false,
    ..JBD2
};

/// As XFS: changes go to in-core logs, a sync closes the one that is open and waits for it and
/// those before. It closes it when the log write before has ended (`xlog_force_lsn()`), so that
/// later syncs join. The log's write has a checksum and is written behind a flush, with FUA. XFS
/// logs the changed parts of a buffer; here it is all of it.
const DELAYED: Kind = Kind {
    name: "delayed-logging",
    help: "as XFS: one checksummed log write at a time, no record, nobody sleeps on buffers",
    in_flight: 1,
    end: LogEnd::Checksum,
    writers: Writers::Relog,
    wakes_all: false,
    takes_luc: false,
    ..JBD2
};

/// The same without the wait for the log write before: each sync has a write of its own, as long
/// as one of XFS' eight in-core logs is free.
const PER_SYNC: Kind = Kind {
    name: "log-per-sync",
    help: "the same with up to eight log writes on their way: a sync waits for no other to begin",
    in_flight: 8,
    ..DELAYED
};

/// As `DualFS` (Piernas and others): metadata is a log-structured file system of its own on the outer
/// tenth of the disk, data lies on the rest. A partial segment is one write with a checksum in its
/// summary, which the segment writer of BSD-LFS copies the blocks into. Metadata has no other copy, so that nothing is written home; a cleaner moves what is
/// valid from the oldest segments to the head. Prefetch of 16 blocks is about reads of metadata,
/// and the simulator has all of it in memory.
const DUALFS: Kind = Kind {
    name: "dualfs",
    help: "metadata is a log of its own on the outer tenth of the disk, written once, never home",
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

/// Where on the disk everything lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// First sector of the log; the block before is its superblock.
    pub log_sector: u64,
    pub log_blocks: u64,
    /// Data begins here.
    pub data_sector: u64,
    /// Homes of a flexible group's metadata begin here.
    pub home_sector: u64,
}

impl Layout {
    /// The home of a buffer. Those that a table has no room for share others' homes.
    pub fn home_of(&self, buffer: BufferId) -> u64 {
        use super::buffers::{BLOCKS, DIRS, GROUP, INODES, PARENT, PARENT_INODE, SUPER, TABLE};
        let behind = |blocks: u64| self.home_sector + blocks * BLOCK_SECTORS;
        match buffer {
            // The first group has those of the whole file system.
            SUPER | GROUP | PARENT | PARENT_INODE => u64::from(buffer) * BLOCK_SECTORS,
            BLOCKS => behind(0),
            INODES => behind(GROUPS_TOGETHER),
            DIRS.. => behind(TABLES_BLOCKS + u64::from(buffer - DIRS) % DIRS_BLOCKS),
            _ => behind(BITMAPS_BLOCKS + u64::from(buffer - TABLE) % INODES_BLOCKS),
        }
    }
}

/// jbd2 takes none with fewer blocks (`JBD2_MIN_JOURNAL_BLOCKS`, 1024).
const MIB_MIN: u32 = 4;
/// The simulated disk has room for so much.
const MIB_MAX: u32 = 512;

/// A block group, in sectors.
const GROUP_SECTORS: u64 = 1 << 18;
/// The groups of the lab's file systems before the one that the log begins in.
const GROUPS_BEFORE_LOG: u64 = 15;
/// A flexible group has so many.
const GROUPS_TOGETHER: u64 = 16;
/// Their bitmaps, of blocks and then of inodes, and their inode tables.
const BITMAPS_BLOCKS: u64 = GROUPS_TOGETHER * 2;
const INODES_BLOCKS: u64 = GROUPS_TOGETHER * 512;
const TABLES_BLOCKS: u64 = BITMAPS_BLOCKS + INODES_BLOCKS;
/// Blocks of directories lie behind them, before the files'.
const DIRS_BLOCKS: u64 = 512;

/// A journal: its kind and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub kind: &'static Kind,
    pub mib: u32,
}

/// Why there is no such journal.
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
    /// A kind by its name, of this size, or of its own.
    ///
    /// # Errors
    /// No kind has that name, or a transaction does not fit in that size, or the disk has no room.
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

    /// As [`Choice::new`]; a journal beside the home of metadata has the size that the lab's has on a
    /// disk of this size.
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

    /// Its place on the disk.
    pub fn layout(&self) -> Layout {
        let log_blocks = u64::from(self.mib) * BLOCKS_PER_MIB;
        match self.kind.home {
            // As the lab's mkfs puts it: the log in the middle, and around it the tables of the flexible
            // group that the first directory of a new file system comes to. Here they lie behind it.
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

/// The names of all kinds.
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
        // A tenth, without its superblock.
        let dualfs = Choice::new("dualfs", None).unwrap().layout();
        assert!((95..=100).contains(&(dualfs.log_blocks * BLOCK_SECTORS * 1000 / SECTORS)));
    }
}
