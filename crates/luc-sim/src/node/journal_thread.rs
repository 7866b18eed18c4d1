//! The journal's thread: from one commit into the next.

use luc_disk::Request;

use super::{BLOCK_BYTES, BLOCK_SECTORS, Event, For, Next, Node, Owner, Thread};
use crate::processors::CpuId;
use crate::recorder::Phase;
use crate::runtime::Decision;

/// The log: 64 MiB in the middle of a disk of 1 GiB, as mkfs puts it.
const LOG_SECTOR: u64 = 1 << 20;
const LOG_SECTORS: u64 = 1 << 17;

impl Node {
    pub(super) fn commit(&mut self, cpu: CpuId) -> Next {
        match self.thread {
            Thread::Looks => self.look(),
            Thread::Locked => self.switch(),
            // The next point of preemption: tasks that the last commit released may go first.
            Thread::Switched => {
                self.thread = Thread::Begun;
                Next::Work(self.costs.journal_fill)
            }
            Thread::Begun => self.fill(cpu),
            Thread::Fills => {
                self.thread = Thread::Writes;
                let blocks = self.buffers_now + 1;
                let sector = self.log_sector(blocks);
                let bytes = u32::try_from(blocks).unwrap_or(u32::MAX / BLOCK_BYTES);
                self.submit(Request::write(sector, bytes * BLOCK_BYTES), Owner::Log);
                Next::Wait
            }
            Thread::Written if self.has_data_under_way() => {
                self.thread = Thread::Data;
                Next::Wait
            }
            Thread::Written => {
                self.thread = Thread::Records;
                if self.disk.kind.is_volatile {
                    self.flush(For::Record);
                } else {
                    self.record();
                }
                Next::Wait
            }
            Thread::Recorded => self.end_commit(),
            // It sleeps.
            Thread::Asleep
            | Thread::Held
            | Thread::Locks
            | Thread::Writes
            | Thread::Data
            | Thread::Records => Next::Wait,
        }
    }

    /// Whether data of the transaction that commits is under way: the record comes behind it.
    fn has_data_under_way(&self) -> bool {
        let tids = self.data_of.keys();
        tids.into_iter().any(|tid| self.journal.is_committing(*tid))
    }

    /// The last data of a transaction is on the disk.
    pub(super) fn ordered_data_written(&mut self) {
        if self.thread == Thread::Data && !self.has_data_under_way() {
            self.wake_journal(Thread::Written, 0);
        }
    }

    fn look(&mut self) -> Next {
        let now_ns = self.now_ns();
        let decision = match &mut self.runtime {
            Some(runtime) => {
                let recorder = &mut self.recorder;
                runtime.look(&self.journal, self.average_ns, now_ns, recorder)
            }
            None => Decision::Commit,
        };
        if let Decision::Hold { until_ns } = decision {
            self.thread = Thread::Held;
            self.hold += 1;
            self.calendar.enter(until_ns, Event::Hold(self.hold));
            return Next::Wait;
        }
        self.measured.commit(now_ns);
        self.recorder.commit(Phase::Locks, &self.journal, now_ns);
        if self.journal.lock() {
            self.thread = Thread::Locked;
            return Next::Unbroken(self.costs.journal_lock);
        }
        self.thread = Thread::Locks;
        Next::Wait
    }

    /// The transaction is locked and still: it commits.
    fn switch(&mut self) -> Next {
        self.locked_ns = self.now_ns();
        let waiting = self.journal.switch();
        self.recorder
            .commit(Phase::Flushes, &self.journal, self.locked_ns);
        self.wake_all(waiting);
        self.thread = Thread::Switched;
        Next::Unbroken(self.costs.journal_begin)
    }

    /// Prepares the log's write: buffers are shadowed from here on.
    fn fill(&mut self, cpu: CpuId) -> Next {
        self.recorder
            .commit(Phase::Logs, &self.journal, self.now_ns());
        let copies = self.runtime.as_ref().is_some_and(|it| it.copies);
        let (buffers, spared) = self.journal.write_buffers(copies);
        self.buffers_now = buffers as u64;
        let copying = self.costs.frozen_copy * spared as u64;
        if let Some(runtime) = self.runtime.as_mut().filter(|_| spared > 0) {
            runtime.copied(self.processors.time_ns(cpu, copying));
        }
        self.thread = Thread::Fills;
        let each = self.costs.journal_buffer * self.buffers_now;
        Next::Work(each + copying)
    }

    /// Writes the commit record, which is durable when it is done.
    pub(super) fn record(&mut self) {
        let sector = self.log_sector(1);
        self.submit(Request::write_fua(sector, BLOCK_BYTES), Owner::Record);
    }

    fn log_sector(&mut self, blocks: u64) -> u64 {
        let at = self.log_blocks * BLOCK_SECTORS % LOG_SECTORS;
        self.log_blocks += blocks;
        LOG_SECTOR + at
    }

    fn end_commit(&mut self) -> Next {
        let took_ns = self.now_ns() - self.locked_ns;
        self.average_ns = if self.average_ns == 0 {
            took_ns
        } else {
            (took_ns + 3 * self.average_ns) / 4
        };
        self.recorder
            .commit(Phase::Ends, &self.journal, self.now_ns());
        let waited = self.journal.committed();
        self.wake_all(waited);
        if self.journal.is_wanted() {
            self.thread = Thread::Looks;
            return Next::Unbroken(self.costs.journal_wake);
        }
        self.thread = Thread::Asleep;
        Next::Wait
    }
}
