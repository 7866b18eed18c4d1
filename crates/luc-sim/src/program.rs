//! Programs of tasks: a program returns one operation after the other.

use crate::files::FileId;
use crate::journal::Tid;
use crate::processors::TaskId;

/// An operation. A task has one file at a time, at first the file with the task's own number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Sleeps until this time, ns.
    SleepUntil(u64),
    /// Computes this many instructions.
    Compute(u64),
    /// Sleeps until another task wakes it, or not at all if one has done so since the last time.
    Park,
    /// Wakes a parked task.
    Wake(TaskId),
    /// Makes this the task's file; costs nothing.
    Use(FileId),
    /// Creates a directory, unless another task has.
    MakeDir {
        dir: u32,
    },
    /// Creates the task's file anew, in this directory.
    Create {
        dir: u32,
    },
    Open,
    /// Looks up a file by its name.
    Stat,
    /// Sets the times of a file by its name.
    Utime,
    Unlink,
    /// Appends this many bytes to the file.
    Write {
        bytes: u32,
    },
    WriteAt {
        at: u64,
        bytes: u32,
    },
    /// Reads this many bytes, which are in memory.
    Read {
        bytes: u32,
    },
    Fsync,
    /// Makes these bytes durable, as a write with `O_SYNC` does after it has written.
    SyncRange {
        at: u64,
        bytes: u32,
    },
    /// Repeats a sync of a recording.
    SyncAs(RecordedSync),
    Close,
    End,
}

/// A sync from a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedSync {
    /// Duration of its data flush, ns: a recording does not tell what is written.
    pub flush_ns: u64,
    pub joins: Joins,
}

/// When a sync's change joins a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joins {
    /// An operation before the sync makes it.
    Before,
    /// The sync allocates blocks for the data, before the flush.
    AtBegin,
    /// The sync marks the data as written, after the flush.
    AtEnd,
    /// The sync needs no commit.
    Never,
}

/// How the last operation went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Went {
    pub begun_ns: u64,
    pub ended_ns: u64,
    /// For a sync, when it asked for its transaction, and that transaction; 0 and 0 for others.
    pub asked_ns: u64,
    pub tid: Tid,
    /// The newest transaction that was committed then.
    pub done_tid: Tid,
}

impl Went {
    pub fn took_ns(&self) -> u64 {
        self.ended_ns - self.begun_ns
    }

    /// Converts the times to a clock that started at this time.
    #[must_use]
    pub fn since(mut self, start_ns: u64) -> Self {
        for at_ns in [&mut self.begun_ns, &mut self.ended_ns, &mut self.asked_ns] {
            *at_ns = at_ns.saturating_sub(start_ns);
        }
        self
    }

    /// Returns how many commits a sync had to wait for when it asked.
    pub fn commits_ahead(&self) -> u32 {
        self.tid.saturating_sub(self.done_tid)
    }
}

/// A task's program.
pub trait Program {
    /// Returns the next operation; `went` describes the one before, which ends now.
    fn next(&mut self, went: &Went) -> Op;
}
