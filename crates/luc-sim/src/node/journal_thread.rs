//! The journal's thread: from one commit into the next.
//!
//! The differences between journals are in [`crate::journal::kind`]. With several commits in flight
//! the thread does one piece of work at a time: first the work that is `due`, then the next commit.

use luc_control::Copies;
use luc_disk::Request;

use super::{BLOCK_BYTES, BLOCK_SECTORS, Event, For, Next, Node, Owner, Thread};
use crate::journal::kind::LogEnd;
use crate::journal::{Begin, Tid};
use crate::processors::TaskId;
use crate::recorder::{Phase, Sleep};
use crate::runtime::Decision;

impl Node {
    /// Begins an operation that may add up to `credits` blocks to its transaction, and returns the
    /// transaction's number; `None` if the task must sleep and ask again.
    pub(super) fn begin_handle(&mut self, task: TaskId, credits: u64) -> Option<Tid> {
        let now_ns = self.now_ns();
        let sleep = match self.journal.begin(task, credits, now_ns) {
            Begin::Granted(tid) => return Some(tid),
            Begin::Locked => Sleep::Locked,
            Begin::Full(tid) => {
                self.demand(tid);
                Sleep::Locked
            }
            Begin::NoSpace => {
                self.make_space();
                Sleep::Space
            }
        };
        let op = &self.tasks[task as usize].op;
        self.recorder.sleeps(task, op, sleep, now_ns);
        None
    }

    /// Ends an operation that began with `credits`.
    pub(super) fn end_handle(&mut self, credits: u64) {
        if self.journal.end(credits) && self.thread == Thread::Locks {
            self.wake_journal(Thread::Locked, self.costs.journal_lock);
        }
    }

    /// Requests the commit of a transaction.
    pub(super) fn request(&mut self, tid: Tid) {
        let is_news = self.journal.request(tid);
        if is_news && self.thread == Thread::Asleep && self.journal.is_wanted() {
            self.wake_journal(Thread::Looks, self.costs.journal_wake);
        }
    }

    /// Requests the commit of a transaction; it may not be held.
    pub(super) fn demand(&mut self, tid: Tid) {
        if let Some(runtime) = &mut self.runtime {
            runtime.urged(tid);
        }
        self.request(tid);
        if self.thread == Thread::Held {
            self.wake_journal(Thread::Looks, 0);
        }
    }

    pub(super) fn wake_journal(&mut self, to: Thread, instructions: u64) {
        self.thread = to;
        self.wake(self.journal_thread(), instructions);
    }

    /// Gives the thread a piece of work, which it starts at once if it is idle.
    fn due(&mut self, to: Thread, instructions: u64) {
        match self.thread {
            Thread::Asleep | Thread::Held | Thread::Locks => self.wake_journal(to, instructions),
            _ => self.due.push_back((to, instructions)),
        }
    }

    /// Chooses the next piece of work after the thread has done one.
    fn next_due(&mut self) -> Next {
        if let Some((to, instructions)) = self.due.pop_front() {
            self.thread = to;
            return Next::Work(instructions);
        }
        match self.journal.locked() {
            Some(true) => return self.lock(),
            Some(false) => self.thread = Thread::Locks,
            None if self.journal.is_wanted() => {
                self.thread = Thread::Looks;
                return Next::Unbroken(self.costs.journal_wake);
            }
            None if self.journal.committing.is_empty() => self.thread = Thread::Asleep,
            None => {
                self.thread = Thread::Asleep;
                return Next::WaitForIo;
            }
        }
        Next::Wait
    }

    /// Takes the thread's next step: it has a processor, and has done the work of its stage.
    pub(super) fn commit(&mut self) -> Next {
        match self.thread {
            Thread::Looks => self.look(),
            Thread::Locked => self.switch(),
            // The next point of preemption: tasks that the last commit released may go first.
            Thread::Switched => {
                self.thread = Thread::Begun;
                Next::Work(self.costs.journal_fill)
            }
            Thread::Begun => self.fill(),
            Thread::Fills(tid) => {
                match self.journal.kind.end {
                    LogEnd::Record | LogEnd::Ordered => self.write_log(tid),
                    LogEnd::Checksum => self.make_durable(tid),
                }
                self.next_due()
            }
            Thread::Ready(tid) => {
                self.make_durable(tid);
                self.next_due()
            }
            Thread::Recorded => match self.journal.tail_move_of_commit() {
                Some(to) => {
                    self.write_superblock(Owner::TailOfCommit(to));
                    self.next_due()
                }
                None => self.end_commit(),
            },
            Thread::TailMoved => self.end_commit(),
            Thread::Asleep | Thread::Held | Thread::Locks => Next::Wait,
        }
    }

    /// Flushes the disk for a commit's last write, once the transaction's data is on the disk.
    fn make_durable(&mut self, tid: Tid) {
        if self.data_of.contains_key(&tid) {
            self.for_data.push(tid);
            return;
        }
        self.journal.flushes(tid);
        self.flush(For::Commit(tid));
    }

    /// Continues a commit that waited for its data: the last of it is on the disk.
    pub(super) fn ordered_data_written(&mut self, tid: Tid) {
        if let Some(at) = self.for_data.iter().position(|it| *it == tid) {
            self.for_data.swap_remove(at);
            self.due(Thread::Ready(tid), 0);
        }
    }

    fn look(&mut self) -> Next {
        let now_ns = self.now_ns();
        let decision = match &mut self.runtime {
            Some(runtime) => {
                let busy_ns = || self.processors.busy_mean_ns();
                let recorder = &mut self.recorder;
                runtime.look(&self.journal, self.average_ns, busy_ns, now_ns, recorder)
            }
            None => Decision::Commit,
        };
        if let Decision::Hold { until_ns } = decision {
            self.thread = Thread::Held;
            self.hold += 1;
            self.calendar.enter(until_ns, Event::Hold(self.hold));
            return Next::WaitForIo;
        }
        self.measured.commit(now_ns);
        self.recorder.commit(Phase::Locks, &self.journal, now_ns);
        if self.journal.lock() {
            return self.lock();
        }
        self.thread = Thread::Locks;
        Next::Wait
    }

    /// Takes up the locked transaction, in which no operation is under way.
    fn lock(&mut self) -> Next {
        self.thread = Thread::Locked;
        Next::Unbroken(self.costs.journal_lock)
    }

    /// Begins the commit of the locked transaction.
    fn switch(&mut self) -> Next {
        let now_ns = self.now_ns();
        let waiting = self.journal.switch(now_ns);
        self.recorder.commit(Phase::Flushes, &self.journal, now_ns);
        self.wake_all(waiting);
        self.thread = Thread::Switched;
        Next::Unbroken(self.costs.journal_begin)
    }

    /// Prepares the log write: from here on the buffers are shadowed or copied.
    fn fill(&mut self) -> Next {
        self.recorder
            .commit(Phase::Logs, &self.journal, self.now_ns());
        let copies = self.runtime.as_ref().map_or(Copies::None, |it| it.copies);
        let (buffers, frozen) = self.journal.write_buffers(copies);
        let copying = self.costs.frozen_copy * frozen as u64 + self.memory(frozen as u64);
        let newest = self.journal.committing.back().map_or(0, |it| it.tid);
        self.thread = Thread::Fills(newest);
        Next::Work(self.costs.journal_buffer * buffers as u64 + copying)
    }

    fn log_sector(&self, block: u64) -> u64 {
        self.layout.log_sector + block * BLOCK_SECTORS
    }

    fn write_log(&mut self, tid: Tid) {
        let Some((block, blocks)) = self.journal.log_write(tid) else {
            return;
        };
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX / BLOCK_BYTES);
        let (sector, bytes) = (self.log_sector(block), blocks * BLOCK_BYTES);
        let request = match self.journal.kind.end {
            LogEnd::Record | LogEnd::Ordered => Request::write(sector, bytes),
            LogEnd::Checksum => Request::write_fua(sector, bytes),
        };
        self.submit(request, Owner::Log(tid));
    }

    /// Writes what makes a commit durable after a flush: its record, or the whole commit if it has
    /// a checksum. Nothing is left to write if the record was ordered behind the log.
    pub(super) fn write_last(&mut self, tid: Tid) {
        match self.journal.kind.end {
            LogEnd::Checksum => self.write_log(tid),
            LogEnd::Ordered => self.durable(tid),
            LogEnd::Record => {
                if let Some(block) = self.journal.record(tid) {
                    let request = Request::write_fua(self.log_sector(block), BLOCK_BYTES);
                    self.submit(request, Owner::Record(tid));
                }
            }
        }
    }

    /// Writes the journal's superblock, which lies before the log's first block.
    pub(super) fn write_superblock(&mut self, owner: Owner) {
        let sector = self.layout.log_sector - BLOCK_SECTORS;
        self.submit(Request::write_fua(sector, BLOCK_BYTES), owner);
    }

    /// Handles the interrupt of a log write: ends the shadows and wakes the tasks that slept.
    pub(super) fn log_written(&mut self, tid: Tid) {
        let (buffers, first, rest) = self.journal.written(tid);
        let each = self.costs.journal_buffer_end * buffers as u64;
        self.journal_interrupt(self.costs.interrupt + each);
        self.wake_all(first);
        match self.journal.kind.end {
            LogEnd::Record | LogEnd::Ordered => {
                self.due(Thread::Ready(tid), self.costs.journal_record);
            }
            LogEnd::Checksum => self.durable(tid),
        }
        self.wake_all(rest);
    }

    /// Handles the interrupt of a record's write.
    pub(super) fn record_written(&mut self, tid: Tid) {
        self.journal_interrupt(self.costs.interrupt);
        self.durable(tid);
    }

    fn journal_interrupt(&mut self, instructions: u64) {
        self.processors
            .interrupt(self.journal_thread(), instructions);
    }

    /// Notes that the write that makes a transaction durable has ended.
    fn durable(&mut self, tid: Tid) {
        self.written_behind_flush();
        if self.journal.durable(tid) {
            self.due(Thread::Recorded, self.costs.journal_end);
        }
    }

    /// Handles the interrupt of a superblock write that belongs to a commit.
    pub(super) fn tail_of_commit_written(&mut self, to: u64) {
        self.journal_interrupt(self.costs.interrupt);
        self.move_tail(to);
        self.due(Thread::TailMoved, 0);
    }

    /// Moves the log's tail; tasks that waited for space ask again.
    pub(super) fn move_tail(&mut self, to: u64) {
        self.journal.move_tail(to);
        let waiting = self.journal.space_waiters();
        self.wake_all(waiting);
    }

    fn end_commit(&mut self) -> Next {
        self.recorder
            .commit(Phase::Ends, &self.journal, self.now_ns());
        let (commit, waited) = self.journal.committed();
        let took_ns = self.now_ns() - commit.locked_ns;
        self.average_ns = if self.average_ns == 0 {
            took_ns
        } else {
            (took_ns + 3 * self.average_ns) / 4
        };
        self.wake_all(waited);
        self.after_commit();
        if self
            .journal
            .committing
            .front()
            .is_some_and(|it| it.is_durable)
        {
            self.thread = Thread::Recorded;
            return Next::Work(self.costs.journal_end);
        }
        self.next_due()
    }
}
