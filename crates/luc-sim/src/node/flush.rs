//! Flushes of the disk, as the block layer issues them (`block/blk-flush.c`).
//!
//! One flush is under way at a time; all requests that come meanwhile share the next one. The next
//! flush is delayed while a write that followed a flush is under way, so that more may share it.

use luc_disk::Request;

use super::{Node, Owner};
use crate::journal::Tid;
use crate::processors::TaskId;

/// The purpose of a flush.
#[derive(Clone, Copy, Debug)]
pub(super) enum For {
    /// A commit's last write, which follows.
    Commit(Tid),
    /// A checkpoint's superblock, which follows.
    Tail,
    Task(TaskId),
}

#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// Requests that the flush under way serves.
    now: Vec<For>,
    next: Vec<For>,
    /// Writes under way that followed a flush.
    writes: u32,
}

impl Node {
    /// Flushes the disk's cache if it is volatile.
    pub(super) fn flush(&mut self, who: For) {
        if self.disk.kind.is_volatile {
            self.flushes.next.push(who);
            self.begin_flush();
        } else {
            self.flushed_for(who);
        }
    }

    fn begin_flush(&mut self) {
        let flushes = &mut self.flushes;
        if flushes.now.is_empty() && flushes.writes == 0 && !flushes.next.is_empty() {
            flushes.now = std::mem::take(&mut flushes.next);
            self.submit(Request::flush(), Owner::Flush);
        }
    }

    pub(super) fn flushed(&mut self) {
        for who in std::mem::take(&mut self.flushes.now) {
            if matches!(who, For::Commit(_)) {
                self.flushes.writes += 1;
            }
            self.flushed_for(who);
        }
        self.begin_flush();
    }

    /// Notes that a write after a flush has ended.
    pub(super) fn written_behind_flush(&mut self) {
        if self.disk.kind.is_volatile {
            self.flushes.writes -= 1;
            self.begin_flush();
        }
    }

    fn flushed_for(&mut self, who: For) {
        match who {
            For::Commit(tid) => self.write_last(tid),
            For::Tail => self.write_superblock(Owner::TailOfCheckpoint),
            For::Task(task) => {
                self.processors.interrupt(task, self.costs.interrupt);
                self.wake(task, 0);
            }
        }
    }
}
