//! Threads of the kernel that mark new blocks as written when their data is on the disk. The
//! scheduler knows them apart from the tasks that wait for that.

use std::collections::VecDeque;

use super::change::Change;
use super::{Next, Node, Stage};
use crate::processors::TaskId;

/// The kernel makes more as they are needed; assumed.
pub(super) const WORKERS: usize = 8;

#[derive(Debug)]
pub(super) struct Workers {
    /// Their numbers begin here, behind those of the programs' tasks.
    pub first: TaskId,
    /// Who was busy last is asked first.
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
    /// A task's new data is on the disk.
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

    /// A worker's way: from one task's data to the next.
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
