//! Kernel threads that mark new blocks as written when their data is on the disk. To the scheduler
//! they are tasks of their own, apart from the tasks that wait for them.

use std::collections::VecDeque;

use super::change::Change;
use super::{Next, Node, Stage};
use crate::processors::TaskId;

/// Number of workers; the kernel creates more as needed. Assumed.
pub(super) const WORKERS: usize = 8;

#[derive(Debug)]
pub(super) struct Workers {
    /// The first worker's number; the programs' tasks have lower ones.
    pub first: TaskId,
    /// The worker that was busy last is taken first.
    idle: Vec<TaskId>,
    /// Tasks whose data no worker has taken.
    waiting: VecDeque<TaskId>,
}

impl Workers {
    pub fn new(first: TaskId) -> Self {
        Self {
            first,
            idle: (first..).take(WORKERS).collect(),
            waiting: VecDeque::new(),
        }
    }
}

impl Node {
    /// Lets a worker convert a task's new blocks, as their data is on the disk.
    pub(super) fn convert(&mut self, waiter: TaskId) {
        match self.workers.idle.pop() {
            Some(worker) => {
                self.take_on(worker, waiter);
                self.wake(worker, self.costs.convert_before);
            }
            None => self.workers.waiting.push_back(waiter),
        }
    }

    fn take_on(&mut self, worker: TaskId, waiter: TaskId) {
        let at = worker as usize;
        self.tasks[at].file = self.tasks[waiter as usize].file;
        self.tasks[at].serves = waiter;
        self.begin_change(at, Change::Convert, Stage::Written);
    }

    /// Continues a worker: it takes one task's data after the other.
    pub(super) fn work(&mut self, worker: TaskId) -> Next {
        let at = worker as usize;
        while self.tasks[at].stage != Stage::Written {
            if let Some(next) = self.in_handle(worker) {
                return next;
            }
        }
        self.wake(self.tasks[at].serves, 0);
        if let Some(waiter) = self.workers.waiting.pop_front() {
            self.take_on(worker, waiter);
            return Next::Work(self.costs.convert_before);
        }
        self.workers.idle.push(worker);
        Next::Wait
    }
}
