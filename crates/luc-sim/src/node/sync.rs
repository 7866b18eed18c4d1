//! Makes a file durable: writes its data, then waits for the commit of its metadata, or flushes.

use luc_disk::Request;

use super::change::Change;
use super::{Event, For, Next, Node, Owner, Stage, Thread};
use crate::processors::TaskId;
use crate::program::{Joins, Op, RecordedSync};

impl Node {
    /// Walks through an fsync, or through the sync of the bytes of a write that asked for it.
    pub(super) fn sync(&mut self, number: TaskId, from: u64, bytes: u64) -> Option<Next> {
        let at = number as usize;
        match self.tasks[at].stage {
            Stage::Begin => {
                if let Some(runtime) = &mut self.runtime {
                    runtime.entered(number);
                }
                self.go(at, Stage::Data, self.costs.sync_before)
            }
            Stage::Data => {
                let file = self.tasks[at].file;
                let dirty = self.files.inode(file).take_dirty(from, bytes);
                if dirty.is_empty() {
                    return self.go(at, Stage::Others, 0);
                }
                let task = &mut self.tasks[at];
                task.data.is_new = self.files.allocate(file, &dirty);
                task.data.pages = dirty;
                if task.data.is_new {
                    self.begin_change(at, Change::Allocate, Stage::Send);
                } else {
                    task.stage = Stage::Send;
                }
                None
            }
            Stage::Send => {
                let task = &mut self.tasks[at];
                let pages = std::mem::take(&mut task.data.pages);
                let bytes_max = self.disk.kind.request_bytes_max;
                task.data.runs = self.files.runs(task.file, &pages, bytes_max).into();
                let requests = task.data.runs.len() as u64;
                (task.data.requests, task.data.requests_left) = (requests, requests);
                let inode = self.files.inode(task.file);
                inode.sent += requests;
                if task.data.is_new && !self.mount.unwritten {
                    task.data.tid = inode.tid;
                    *self.data_of.entry(inode.tid).or_default() += requests;
                }
                let each = self.costs.writeback_page + self.costs.disk_page;
                let work = each * pages.len() as u64 + self.costs.data_request * requests;
                self.go(at, Stage::Sent, work)
            }
            Stage::Sent => {
                while !self.tasks[at].data.runs.is_empty() {
                    let is_admitted = std::mem::take(&mut self.tasks[at].data.is_admitted);
                    if !is_admitted && !self.throttle.admits(number) {
                        return Some(Next::WaitForIo);
                    }
                    if let Some(run) = self.tasks[at].data.runs.pop_front() {
                        let sector = self.layout.data_sector + run.sector;
                        self.submit(Request::write(sector, run.bytes), Owner::Data(number));
                    }
                }
                self.tasks[at].stage = Stage::Written;
                Some(Next::WaitForIo)
            }
            Stage::Written => {
                let task = &mut self.tasks[at];
                task.stage = Stage::Others;
                let ready = self.files.inode(task.file).data_done(task.data.requests);
                self.wake_all(ready);
                None
            }
            Stage::Others => {
                self.tasks[at].stage = Stage::Ask;
                // The sync of a write waits for its own bytes alone.
                let is_whole = self.tasks[at].op == Op::Fsync;
                let inode = self.files.inode(self.tasks[at].file);
                (is_whole && inode.waits_for_data(number)).then_some(Next::WaitForIo)
            }
            Stage::Ask => self.ask(number),
            Stage::Committed | Stage::Again => self.commit_ended(number),
            Stage::Flush => {
                self.tasks[at].stage = Stage::Flushed;
                self.flush(For::Task(number));
                Some(Next::WaitForIo)
            }
            Stage::Flushed => self.last(at, self.costs.sync_after),
            _ => self.in_handle(number),
        }
    }

    /// Walks through a recorded sync: waits as long as its data flush took, then goes on as
    /// [`Node::sync`].
    pub(super) fn sync_as(&mut self, number: TaskId, recorded: RecordedSync) -> Option<Next> {
        let at = number as usize;
        match (self.tasks[at].stage, recorded.joins) {
            (Stage::Data, Joins::AtBegin) => self.begin_change(at, Change::Allocate, Stage::Send),
            (Stage::Data, _) => self.tasks[at].stage = Stage::Send,
            (Stage::Send, _) => {
                self.tasks[at].stage = Stage::Written;
                if recorded.flush_ns > 0 {
                    let until_ns = self.now_ns().saturating_add(recorded.flush_ns);
                    self.calendar.enter(until_ns, Event::Begin(number));
                    return Some(Next::WaitForIo);
                }
            }
            (Stage::Written, Joins::AtEnd) => self.begin_change(at, Change::Convert, Stage::Ask),
            (Stage::Written, Joins::Never) => return self.last(at, self.costs.sync_clean),
            (Stage::Written, _) => self.tasks[at].stage = Stage::Ask,
            _ => return self.sync(number, 0, 0),
        }
        None
    }

    /// Continues a sync after a commit has ended, the one that it waits for or another.
    fn commit_ended(&mut self, number: TaskId) -> Option<Next> {
        let at = number as usize;
        // By now the inode may be in a newer transaction, for which this sync need not wait.
        let tid = self.tasks[at].went.tid;
        if self.journal.committed >= tid {
            return self.flush_or_end(at, self.costs.sync_after);
        }
        if self.tasks[at].stage == Stage::Committed {
            return self.go(at, Stage::Again, self.costs.sync_again);
        }
        self.journal.wait_for_commit(number, tid);
        self.tasks[at].stage = Stage::Committed;
        Some(Next::Wait)
    }

    fn ask(&mut self, number: TaskId) -> Option<Next> {
        let at = number as usize;
        let now_ns = self.now_ns();
        let tid = self.files.inode(self.tasks[at].file).tid;
        let went = &mut self.tasks[at].went;
        (went.asked_ns, went.tid, went.done_tid) = (now_ns, tid, self.journal.committed);
        // A commit flushes the disk before its last write; a sync that asks later does so itself.
        let is_late = self.journal.is_flushing(tid);
        let is_committed = self.journal.committed >= tid;
        self.tasks[at].data.flushes = self.disk.kind.is_volatile && (is_committed || is_late);
        if is_committed {
            return self.flush_or_end(at, self.costs.sync_clean);
        }
        let completes = self
            .runtime
            .as_mut()
            .is_some_and(|runtime| runtime.arrived(number, tid, now_ns));
        if completes && self.thread == Thread::Held {
            self.wake_journal(Thread::Looks, 0);
        }
        self.request(tid);
        self.journal.wait_for_commit(number, tid);
        self.tasks[at].stage = Stage::Committed;
        Some(Next::Wait)
    }

    fn flush_or_end(&mut self, at: usize, work: u64) -> Option<Next> {
        if self.tasks[at].data.flushes {
            return self.go(at, Stage::Flush, self.costs.flush);
        }
        self.last(at, work)
    }

    /// Notes that a request for a task's data is done.
    pub(super) fn data_arrived(&mut self, number: TaskId) {
        for admitted in self.throttle.ended() {
            self.tasks[admitted as usize].data.is_admitted = true;
            self.wake(admitted, 0);
        }
        let data = &mut self.tasks[number as usize].data;
        data.requests_left -= 1;
        let (is_last, is_new, tid) = (data.requests_left == 0, data.is_new, data.tid);
        // New blocks are marked as written before their pages are clean.
        let converts = is_new && self.mount.unwritten;
        if is_last && converts {
            self.convert(number);
        } else if is_last {
            self.wake(number, 0);
        }
        if is_new && !converts {
            let left = self.data_of.entry(tid).or_default();
            *left -= 1;
            if *left == 0 {
                self.data_of.remove(&tid);
                self.ordered_data_written(tid);
            }
        }
    }
}
