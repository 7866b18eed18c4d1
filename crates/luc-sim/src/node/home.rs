//! Writing metadata home: checkpoints, which make space in the log, and the flusher.
//!
//! A task that finds too little space for a transaction sleeps, and a thread frees some, in jbd2's
//! order (`__jbd2_log_wait_for_space()`): it moves the tail as far as possible, else writes the
//! buffers that the oldest transaction keeps in the log, else asks for the commit that its other
//! buffers wait for. In the kernel one of the tasks does this while the others wait for a mutex;
//! here a thread does it, which the flusher uses, too. The flusher writes all metadata when the
//! oldest has waited for 30 s. A buffer that is being written home delays tasks that want to change
//! it.
//!
//! A log that is itself the home ([`Home::Log`]) has a cleaner instead of checkpoints, and no
//! flusher.

use luc_disk::Request;

use super::{BLOCK_BYTES, Event, For, Next, Node, Owner};
use crate::journal::BufferId;
use crate::journal::kind::Home;
use crate::units::BLOCK_SECTORS;

/// How often the flusher looks, and the age from which it writes metadata: the kernel's defaults of
/// `dirty_writeback_centisecs` and `dirty_expire_centisecs`.
const FLUSHER_INTERVAL_NS: u64 = 5_000_000_000;
const DIRTY_EXPIRE_NS: u64 = 30_000_000_000;
/// Buffers that are written at a time (`JBD2_NR_BATCH`).
const BATCH: usize = 64;

/// The state of the thread that writes metadata home.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Asleep,
    Looks,
    /// Has prepared a batch.
    Submits,
    /// Waits for this many writes.
    Writes(usize),
    /// Waits for a commit to end.
    Commits,
    /// Waits for a flush, and then for the superblock with this tail.
    MovesTail(u64),
}

#[derive(Debug, Default)]
pub(super) struct HomeWriter {
    step: Step,
    batch: Vec<BufferId>,
    /// Buffers that the flusher has yet to write, in reverse order.
    old: Vec<BufferId>,
    flusher_is_due: bool,
}

impl Node {
    fn wake_home(&mut self) {
        self.home.step = Step::Looks;
        self.wake(self.home_thread(), 0);
    }

    /// Makes space in the log for a task that waits.
    pub(super) fn make_space(&mut self) {
        if self.home.step == Step::Asleep {
            self.wake_home();
        }
    }

    /// Notes that a commit has ended: its buffers are dirty.
    pub(super) fn after_commit(&mut self) {
        if self.home.step == Step::Commits {
            self.wake_home();
        }
        let has_home = self.journal.kind.home == Home::InPlace;
        if has_home && !self.home.flusher_is_due && self.journal.has_dirty() {
            self.home.flusher_is_due = true;
            let old_ns = self.now_ns() + DIRTY_EXPIRE_NS;
            let at_ns = old_ns.next_multiple_of(FLUSHER_INTERVAL_NS);
            self.calendar.enter(at_ns, Event::Flusher);
        }
    }

    /// Lets the flusher write old metadata, unless all programs have ended: it would delay no task.
    pub(super) fn flush_old(&mut self) {
        self.home.flusher_is_due = false;
        if self.programs_left > 0 {
            self.write_dirty();
        }
    }

    fn write_dirty(&mut self) {
        self.home.old = self.journal.dirty();
        self.home.old.sort_unstable_by(|a, b| b.cmp(a));
        self.make_space();
    }

    /// Writes all metadata home and waits for that, as a syncfs does after its commit.
    pub(super) fn write_dirty_and_wait(&mut self) {
        if self.journal.kind.home == Home::InPlace {
            self.write_dirty();
            while self.home.step != Step::Asleep && self.step(u64::MAX) {}
        }
    }

    /// Continues the thread, whose work for its step is done.
    pub(super) fn go_home(&mut self) -> Next {
        match self.home.step {
            Step::Looks => self.look_home(),
            Step::Submits => self.submit_home(),
            Step::Asleep | Step::Writes(_) | Step::Commits | Step::MovesTail(_) => Next::Wait,
        }
    }

    fn look_home(&mut self) -> Next {
        if self.journal.has_space_waiters() {
            if self.journal.lacks_space() {
                return self.checkpoint();
            }
            let waiting = self.journal.space_waiters();
            self.wake_all(waiting);
        }
        while !self.home.old.is_empty() {
            let from = self.home.old.len().saturating_sub(BATCH);
            let batch = self.home.old.split_off(from);
            if let Some(next) = self.prepare_home(batch) {
                return next;
            }
        }
        self.home.step = Step::Asleep;
        Next::Wait
    }

    /// Prepares the idle ones of these buffers; `None` if there are none.
    fn prepare_home(&mut self, mut batch: Vec<BufferId>) -> Option<Next> {
        batch.sort_unstable();
        batch.retain(|buffer| self.journal.write_home(*buffer));
        let buffers = batch.len() as u64;
        self.home.batch = batch;
        self.home.step = Step::Submits;
        (buffers > 0).then(|| Next::Work(self.costs.home_buffer * buffers))
    }

    /// Writes adjacent buffers in one request, as the block layer merges them.
    fn submit_home(&mut self) -> Next {
        let batch = std::mem::take(&mut self.home.batch);
        let home = |buffer: BufferId| self.layout.home_of(buffer);
        let is_next =
            |a: &BufferId, b: &BufferId| a + 1 == *b && home(*a) + BLOCK_SECTORS == home(*b);
        let runs = batch.chunk_by(is_next);
        let mut requests = Vec::new();
        for run in runs {
            let Some(first) = run.first().copied() else {
                continue;
            };
            let count = u32::try_from(run.len()).unwrap_or(u32::MAX);
            requests.push((home(first), first, count));
        }
        let writes = requests.len();
        for (sector, first, count) in requests {
            self.submit(
                Request::write(sector, count * BLOCK_BYTES),
                Owner::Home { first, count },
            );
        }
        self.home.step = Step::Writes(writes);
        Next::Wait
    }

    fn home_interrupt(&mut self) {
        self.processors
            .interrupt(self.home_thread(), self.costs.interrupt);
    }

    /// Handles the interrupt of a write of buffers to their homes.
    pub(super) fn home_written(&mut self, first: BufferId, count: u32) {
        self.home_interrupt();
        let slept = self.journal.homed(first, count);
        self.wake_all(slept);
        if let Step::Writes(left) = &mut self.home.step {
            *left -= 1;
            if *left == 0 {
                self.wake_home();
            }
        }
    }

    /// Takes the next step that makes space in the log.
    fn checkpoint(&mut self) -> Next {
        if let Some(to) = self.journal.tail_move_of_checkpoint() {
            self.home.step = Step::MovesTail(to);
            self.flush(For::Tail);
            return Next::Wait;
        }
        match self.journal.kind.home {
            Home::InPlace => {
                let mut oldest = self.journal.checkpoint();
                oldest.truncate(BATCH);
                if let Some(next) = self.prepare_home(oldest) {
                    return next;
                }
                if let Some(tid) = self.journal.running.as_ref().map(|it| it.tid) {
                    self.demand(tid);
                }
            }
            Home::Log => {
                let now_ns = self.now_ns();
                let tid = self.journal.clean(now_ns);
                self.is_log_full = self.journal.is_full();
                if let Some(tid) = tid.filter(|_| !self.is_log_full) {
                    self.demand(tid);
                }
            }
        }
        self.home.step = Step::Commits;
        Next::Wait
    }

    /// Notes that the superblock has a checkpoint's tail.
    pub(super) fn tail_of_checkpoint_written(&mut self) {
        if let Step::MovesTail(to) = self.home.step {
            self.home_interrupt();
            self.move_tail(to);
            self.wake_home();
        }
    }
}
