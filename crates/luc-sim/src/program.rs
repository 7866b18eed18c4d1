//! What a task does: a program gives one operation after the other.

use crate::files::FileId;
use crate::journal::Tid;
use crate::processors::TaskId;

/// An operation. A task has one file at a time, at first that of its own number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Sleeps until this time, ns.
    SleepUntil(u64),
    /// Computes so many instructions.
    Compute(u64),
    /// Sleeps until another task wakes it, or not at all if one has since the last time.
    Park,
    /// Wakes a task that parks.
    Wake(TaskId),
    /// This is the task's file from now on; costs nothing.
    Use(FileId),
    /// Makes a directory, unless another task has.
    MakeDir {
        dir: u32,
    },
    /// Makes the task's file anew, in this directory.
    Create {
        dir: u32,
    },
    Open,
    /// Looks at a file by its name.
    Stat,
    /// Sets the times of a file by its name.
    Utime,
    Unlink,
    /// Appends so many bytes to the file.
    Write {
        bytes: u32,
    },
    WriteAt {
        at: u64,
        bytes: u32,
    },
    /// Reads so many bytes, which are in memory.
    Read {
        bytes: u32,
    },
    Fsync,
    /// Makes these bytes durable, as a write with `O_SYNC` does when it has written.
    SyncRange {
        at: u64,
        bytes: u32,
    },
    /// A sync as a recording has it.
    SyncAs(RecordedSync),
    Close,
    End,
}

/// A sync, as a recording has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedSync {
    /// Its data flush takes so long, ns: a recording does not tell what is written.
    pub flush_ns: u64,
    pub joins: Joins,
}

/// When a sync's change joins a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joins {
    /// An operation before the sync has made it.
    Before,
    /// The sync gives blocks to the data, before the flush.
    AtBegin,
    /// The sync marks the data as written, behind the flush.
    AtEnd,
    /// The sync needs no commit.
    Never,
}

/// How the operation before went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Went {
    pub begun_ns: u64,
    pub ended_ns: u64,
    /// Of a sync: when it asked for its transaction, and which that is; 0 and 0 of others.
    pub asked_ns: u64,
    pub tid: Tid,
    /// The last transaction that was committed then.
    pub done_tid: Tid,
}

impl Went {
    pub fn took_ns(&self) -> u64 {
        self.ended_ns - self.begun_ns
    }

    /// On a clock that began at this time.
    #[must_use]
    pub fn since(mut self, start_ns: u64) -> Self {
        for at_ns in [&mut self.begun_ns, &mut self.ended_ns, &mut self.asked_ns] {
            *at_ns = at_ns.saturating_sub(start_ns);
        }
        self
    }

    /// How many commits a sync had to wait for when it asked.
    pub fn commits_ahead(&self) -> u32 {
        self.tid.saturating_sub(self.done_tid)
    }
}

/// A task's program.
pub trait Program {
    /// The next operation; `went` tells of the one before, whose end is now.
    fn next(&mut self, went: &Went) -> Op;
}
