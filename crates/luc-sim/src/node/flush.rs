//! Flushes of the disk: one at a time, and those that come meanwhile share the next.

use luc_disk::Request;

use super::{Node, Owner};
use crate::processors::TaskId;

/// Who wants a flush.
#[derive(Clone, Copy, Debug)]
pub(super) enum For {
    /// The commit record, which follows.
    Record,
    Task(TaskId),
}

#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// Those that the running one is for.
    now: Vec<For>,
    next: Vec<For>,
}

impl Node {
    pub(super) fn flush(&mut self, who: For) {
        self.flushes.next.push(who);
        self.begin_flush();
    }

    fn begin_flush(&mut self) {
        if self.flushes.now.is_empty() && !self.flushes.next.is_empty() {
            self.flushes.now = std::mem::take(&mut self.flushes.next);
            self.submit(Request::flush(), Owner::Flush);
        }
    }

    pub(super) fn flushed(&mut self) {
        for who in std::mem::take(&mut self.flushes.now) {
            match who {
                For::Record => self.record(),
                For::Task(task) => {
                    self.processors.interrupt(task, self.costs.interrupt);
                    self.wake(task, 0);
                }
            }
        }
        self.begin_flush();
    }
}
