//! Transactions, their metadata buffers, the log's space, and the tasks that wait for them.
//!
//! One transaction runs, others are on their way to the disk. An operation that changes metadata
//! holds a handle on the running one, and needs write access to each buffer that it changes. In
//! jbd2 a buffer whose log write is under way is *shadowed*: a task that needs it sleeps until the
//! write has ended. A buffer that the commit has yet to write is copied first, and no task sleeps.
//! [`kind`] tells what other journals do; this module is the same for all. It knows no disk and
//! reads no clock; it tells its caller which tasks to wake, in the order of the kernel's wait
//! queues: the last to sleep comes first.

pub(crate) mod buffers;
pub mod kind;
mod space;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use luc_control::Copies;

use crate::processors::TaskId;
use kind::{Choice, Home, Kind, LogEnd, Writers};
use space::Space;

/// A transaction's number.
pub type Tid = u32;

/// A metadata buffer's number.
pub type BufferId = u32;

/// The transaction that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Running {
    pub tid: Tid,
    pub begun_ns: u64,
    /// Operations that hold a handle on it now.
    pub updates: u32,
    /// Blocks that these operations may yet add to it.
    pub credits: u64,
    /// Handles begun on it so far.
    pub handles: u32,
    pub buffers: Vec<BufferId>,
    /// Its commit waits for the updates to end, and no operation may begin.
    pub is_locked: bool,
}

/// A transaction on its way to the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committing {
    pub tid: Tid,
    pub locked_ns: u64,
    pub buffers: Vec<BufferId>,
    /// Blocks of the log that it may take; 0 once its place is known.
    reserved: u64,
    /// Its first block in the log, once its place is known.
    start: Option<u64>,
    /// Number of its blocks, without the record.
    blocks: u64,
    is_written: bool,
    /// The flush before its last write has begun.
    is_flushing: bool,
    pub is_durable: bool,
}

/// The write of a buffer that is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Write {
    #[default]
    None,
    /// To the log, from the buffer itself.
    Shadow,
    /// To the log, from a copy.
    Copy,
    /// To its home.
    Home,
}

#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    /// The newest transaction that it belongs to; 0: none.
    tid: Tid,
    write: Write,
    /// Copies left until the buffer no longer counts as contended.
    copies_left: u8,
}

/// The same as `LUC_COPIES_UNUSED_MAX` of `abi/luc_decision.h`.
const COPIES_UNUSED_MAX: u8 = 16;

impl Buffer {
    /// Returns how a commit writes the buffer if operations sleep on buffers being written.
    fn asleep_or_copied(&mut self, copies: Copies) -> Write {
        match copies {
            Copies::All => Write::Copy,
            Copies::Contended if self.copies_left > 0 => {
                self.copies_left -= 1;
                Write::Copy
            }
            Copies::None | Copies::Contended => Write::Shadow,
        }
    }
}

/// Whether an operation may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    Granted(Tid),
    /// The task sleeps until the locked transaction commits, then asks again.
    Locked,
    /// Like `Locked`, but this transaction is full: the caller must request its commit.
    Full(Tid),
    /// The task sleeps until the log has space.
    NoSpace,
}

/// Whether an operation may change a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Granted,
    /// Granted, after a copy of what the commit has yet to write.
    Copied,
    /// Granted: the commit has made a copy.
    Spared,
    /// The task sleeps until the log write has ended, then asks again.
    Waits,
    /// The task sleeps until the buffer's write to its home has ended, then asks again.
    WaitsForHome,
}

#[derive(Debug)]
pub struct Journal {
    pub kind: &'static Kind,
    pub running: Option<Running>,
    /// Transactions on their way to the disk, oldest first.
    pub committing: VecDeque<Committing>,
    /// The newest transaction that is committed.
    pub committed: Tid,
    /// The newest transaction whose commit was requested.
    pub requested: Tid,
    buffers: Vec<Buffer>,
    space: Space,
    /// Tasks that sleep because the running transaction is locked or full.
    for_lock: Vec<TaskId>,
    for_space: Vec<TaskId>,
    for_commit: Vec<(Tid, TaskId)>,
    for_buffer: BTreeMap<BufferId, Vec<TaskId>>,
}

impl Default for Journal {
    fn default() -> Self {
        Self::new(&Choice::default())
    }
}

impl Journal {
    pub fn new(choice: &Choice) -> Self {
        Self {
            kind: choice.kind,
            running: None,
            committing: VecDeque::new(),
            committed: 0,
            requested: 0,
            buffers: Vec::new(),
            space: Space::new(choice.layout().log_blocks, choice.kind.share),
            for_lock: Vec::new(),
            for_space: Vec::new(),
            for_commit: Vec::new(),
            for_buffer: BTreeMap::new(),
        }
    }

    /// Begins an operation that may add up to `credits` blocks to the running transaction.
    pub fn begin(&mut self, task: TaskId, credits: u64, now_ns: u64) -> Begin {
        if let Some(running) = &self.running {
            if running.is_locked {
                self.for_lock.push(task);
                return Begin::Locked;
            }
            if self.outstanding() + credits > self.space.transaction_max() {
                self.for_lock.push(task);
                return Begin::Full(running.tid);
            }
        }
        if self.lacks_space() {
            self.for_space.push(task);
            return Begin::NoSpace;
        }
        let running = self.run(now_ns);
        running.updates += 1;
        running.handles += 1;
        running.credits += credits;
        Begin::Granted(running.tid)
    }

    /// Returns the newest transaction whose commit has begun.
    pub fn newest(&self) -> Tid {
        self.committing.back().map_or(self.committed, |it| it.tid)
    }

    fn run(&mut self, now_ns: u64) -> &mut Running {
        let newest = self.newest();
        self.running.get_or_insert_with(|| Running {
            tid: newest + 1,
            begun_ns: now_ns,
            ..Running::default()
        })
    }

    /// Returns how many blocks of the log the running transaction may take.
    fn outstanding(&self) -> u64 {
        let running = self.running.as_ref();
        running.map_or(0, |it| {
            it.buffers.len() as u64 + it.credits + self.space.overhead()
        })
    }

    /// Returns how many blocks of the log are neither taken nor reserved.
    fn space_left(&self) -> u64 {
        let reserved = self.committing.iter().map(|it| it.reserved).sum();
        self.space.left(reserved)
    }

    /// Tells whether handles must wait: the log has too little space for a whole transaction.
    pub fn lacks_space(&self) -> bool {
        let most = self.space.transaction_max();
        let cleaner = match self.kind.home {
            Home::InPlace => 0,
            Home::Log => most,
        };
        self.space_left() < most + cleaner
    }

    /// Tells whether space is short or soon will be, so that no commit may be held.
    pub fn is_short(&self) -> bool {
        self.outstanding() > self.space.transaction_max() / 4 * 3
            || self.lacks_space()
            || self.has_space_waiters()
    }

    fn is_unwritten(&self, tid: Tid) -> bool {
        let first = self.committing.front().map_or(tid, |it| it.tid);
        let at = tid.checked_sub(first).map(|at| at as usize);
        let committing = at.and_then(|at| self.committing.get(at));
        committing.is_some_and(|it| !it.is_written)
    }

    /// Asks for write access to a buffer, for an operation of the running transaction.
    pub fn access(&mut self, task: TaskId, buffer: BufferId) -> Access {
        let at = buffer as usize;
        if at + 1 >= self.buffers.len() {
            self.buffers.resize(at + 2, Buffer::default());
        }
        let Buffer { tid, write, .. } = self.buffers[at];
        let Some(running) = &mut self.running else {
            return Access::Granted;
        };
        if tid == running.tid {
            return Access::Granted;
        }
        if matches!(write, Write::Shadow | Write::Copy) {
            // The next one too: inode tables and directories fill one block after the other.
            for contended in [at, at + 1] {
                self.buffers[contended].copies_left = COPIES_UNUSED_MAX;
            }
        }
        if matches!(write, Write::Shadow | Write::Home) {
            self.for_buffer.entry(buffer).or_default().push(task);
            return if write == Write::Home {
                Access::WaitsForHome
            } else {
                Access::Waits
            };
        }
        self.buffers[at].tid = running.tid;
        self.buffers[at].write = Write::None;
        running.buffers.push(buffer);
        if self.kind.writers == Writers::Relog || !self.is_unwritten(tid) {
            Access::Granted
        } else if write == Write::Copy {
            Access::Spared
        } else {
            Access::Copied
        }
    }

    /// Ends an operation that began with `credits`. Returns true if a commit waits and this was the
    /// last operation under way.
    pub fn end(&mut self, credits: u64) -> bool {
        let Some(running) = &mut self.running else {
            return false;
        };
        running.updates -= 1;
        running.credits -= credits;
        running.is_locked && running.updates == 0
    }

    /// Requests the commit of a transaction; returns true if the journal's thread must be told.
    pub fn request(&mut self, tid: Tid) -> bool {
        let is_running = self.running.as_ref().is_some_and(|it| it.tid == tid);
        let is_news = is_running && self.requested != tid;
        if is_news {
            self.requested = tid;
        }
        is_news
    }

    /// Tells whether a requested commit may begin.
    pub fn is_wanted(&self) -> bool {
        let has_room = self.committing.len() < self.kind.in_flight;
        let running = self.running.as_ref().filter(|_| has_room);
        running.is_some_and(|it| it.tid == self.requested && !it.is_locked)
    }

    /// Lets the task sleep until this transaction's commit ends, or any if the kind wakes all.
    pub fn wait_for_commit(&mut self, task: TaskId, tid: Tid) {
        self.for_commit.push((tid, task));
    }

    /// Tells whether tasks sleep because the running transaction is locked or full.
    pub fn has_lock_waiters(&self) -> bool {
        !self.for_lock.is_empty()
    }

    /// Tells whether tasks wait for space in the log.
    pub fn has_space_waiters(&self) -> bool {
        !self.for_space.is_empty()
    }

    /// Returns the tasks that waited for space, now that there may be some.
    pub fn space_waiters(&mut self) -> Vec<TaskId> {
        last_first(std::mem::take(&mut self.for_space))
    }

    /// Closes the running transaction for new operations; returns true if none is under way in it.
    pub fn lock(&mut self) -> bool {
        let Some(running) = &mut self.running else {
            return true;
        };
        running.is_locked = true;
        running.updates == 0
    }

    /// Returns whether no operation is under way in the running transaction; `None` if it is not
    /// locked.
    pub fn locked(&self) -> Option<bool> {
        let running = self.running.as_ref().filter(|it| it.is_locked);
        running.map(|it| it.updates == 0)
    }

    /// Begins the commit of the locked transaction; returns the tasks that waited for the lock.
    pub fn switch(&mut self, now_ns: u64) -> Vec<TaskId> {
        let reserved = self.outstanding();
        if let Some(running) = self.running.take() {
            assert_switches(&running);
            self.committing.push_back(Committing {
                tid: running.tid,
                locked_ns: now_ns,
                buffers: running.buffers,
                reserved,
                ..Committing::default()
            });
        }
        self.assert_in_order();
        last_first(std::mem::take(&mut self.for_lock))
    }

    /// Transactions commit one after the other, and no more at once than the kind allows.
    fn assert_in_order(&self) {
        assert!(self.committing.len() <= self.kind.in_flight);
        let tids = self.committing.iter().map(|it| it.tid);
        assert!(tids.eq((self.committed + 1..).take(self.committing.len())));
    }

    /// Begins the log write of the newest commit. Its buffers are shadowed, except those that were
    /// copied before and those that `copies` has copied now. Returns how many buffers it has, and
    /// how many are copied now.
    pub fn write_buffers(&mut self, copies: Copies) -> (usize, usize) {
        let Some(commit) = self.committing.back_mut() else {
            return (0, 0);
        };
        let has_record = self.kind.end != LogEnd::Checksum;
        let (start, blocks) = self.space.take(commit.buffers.len(), has_record);
        (commit.start, commit.blocks, commit.reserved) = (Some(start), blocks, 0);
        let writers = self.kind.writers;
        let mut frozen = 0;
        for buffer in &commit.buffers {
            let known = &mut self.buffers[*buffer as usize];
            // A buffer that the running transaction has taken was copied at that moment.
            if known.tid == commit.tid {
                known.write = match writers {
                    Writers::Sleep => known.asleep_or_copied(copies),
                    Writers::Pass => Write::Copy,
                    Writers::Relog => Write::None,
                };
                frozen += usize::from(known.write == Write::Copy);
            }
        }
        (commit.buffers.len(), frozen)
    }

    fn commit_of(&self, tid: Tid) -> Option<&Committing> {
        self.committing.iter().find(|it| it.tid == tid)
    }

    /// Returns where in the log a commit's write begins, and how many blocks it has.
    pub fn log_write(&self, tid: Tid) -> Option<(u64, u64)> {
        let commit = self.commit_of(tid)?;
        let record = u64::from(self.kind.end == LogEnd::Ordered);
        Some((self.space.place(commit.start?), commit.blocks + record))
    }

    /// Returns where in the log the record of a commit lies.
    pub fn record(&self, tid: Tid) -> Option<u64> {
        let commit = self.commit_of(tid)?;
        Some(self.space.place(commit.start? + commit.blocks))
    }

    /// Ends a commit's write to the log. Returns the number of its buffers, the tasks that slept on
    /// the first one, and those that slept on the others. The commit waits for the first buffer, so
    /// it is woken between these tasks.
    pub fn written(&mut self, tid: Tid) -> (usize, Vec<TaskId>, Vec<TaskId>) {
        let Some(commit) = self.committing.iter_mut().find(|it| it.tid == tid) else {
            return (0, Vec::new(), Vec::new());
        };
        commit.is_written = true;
        for buffer in &commit.buffers {
            let known = &mut self.buffers[*buffer as usize];
            // A newer transaction may have taken it by now.
            if known.tid == tid {
                known.write = Write::None;
            }
        }
        let count = commit.buffers.len();
        let first = commit.buffers.first().copied();
        let first = first.and_then(|first| self.for_buffer.remove(&first));
        let rest = self.woken_by_writes();
        (count, first.map_or_else(Vec::new, last_first), rest)
    }

    /// Returns the tasks that slept on buffers that are no longer being written.
    fn woken_by_writes(&mut self) -> Vec<TaskId> {
        let mut woken = Vec::new();
        for (buffer, tasks) in std::mem::take(&mut self.for_buffer) {
            match self.buffers[buffer as usize].write {
                Write::Shadow | Write::Home => {
                    self.for_buffer.insert(buffer, tasks);
                }
                Write::None | Write::Copy => woken.extend(last_first(tasks)),
            }
        }
        woken
    }

    /// Notes that the flush before a commit's last write has begun. It covers no later write.
    pub fn flushes(&mut self, tid: Tid) {
        if let Some(commit) = self.committing.iter_mut().find(|it| it.tid == tid) {
            commit.is_flushing = true;
        }
    }

    /// Tells whether the flush before a commit's last write has begun.
    pub fn is_flushing(&self, tid: Tid) -> bool {
        self.commit_of(tid).is_some_and(|it| it.is_flushing)
    }

    /// Notes that all blocks of a transaction are on the disk; returns true if all transactions
    /// before it are committed.
    pub fn durable(&mut self, tid: Tid) -> bool {
        if let Some(commit) = self.committing.iter_mut().find(|it| it.tid == tid) {
            commit.is_durable = true;
        }
        self.committing.front().is_some_and(|it| it.tid == tid)
    }

    /// Ends the oldest commit; returns it without its buffers, and the tasks to wake.
    pub fn committed(&mut self) -> (Committing, Vec<TaskId>) {
        self.assert_in_order();
        let mut commit = self.committing.pop_front().unwrap_or_default();
        self.committed = self.committed.max(commit.tid);
        let buffers = std::mem::take(&mut commit.buffers);
        self.space
            .committed(commit.tid, commit.start.unwrap_or_default(), buffers);
        let all = std::mem::take(&mut self.for_commit);
        let (woken, left): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|(tid, _)| self.kind.wakes_all || *tid <= self.committed);
        self.for_commit = left;
        let woken = woken.into_iter().map(|(_, task)| task).collect();
        (commit, last_first(woken))
    }

    /// Returns where the log's tail may move, if that frees at least `at_least` blocks.
    fn tail_move(&self, at_least: u64) -> Option<u64> {
        let in_flight = self.committing.front().and_then(|it| it.start);
        let to = self.space.tail_may_be(in_flight);
        (self.space.gain(to) >= at_least).then_some(to)
    }

    /// Returns where the tail may move when a commit ends. jbd2 writes the superblock then only if
    /// that frees the blocks of a whole transaction.
    pub fn tail_move_of_commit(&self) -> Option<u64> {
        self.tail_move(self.space.transaction_max())
    }

    /// Returns where the tail may move after a checkpoint: one freed block is enough.
    pub fn tail_move_of_checkpoint(&self) -> Option<u64> {
        self.tail_move(1)
    }

    /// Moves the tail: the superblock with the new tail is on the disk.
    pub fn move_tail(&mut self, to: u64) {
        self.space.move_tail(to);
    }

    /// Tells whether a buffer is neither in an uncommitted transaction nor being written.
    fn is_idle(&self, buffer: BufferId) -> bool {
        let Buffer { tid, write, .. } = self.buffers[buffer as usize];
        tid <= self.committed && write == Write::None
    }

    /// Returns the buffers that the oldest transaction keeps in the log and that can be written
    /// home. For its other buffers a commit or a write is under way, or will be.
    pub fn checkpoint(&self) -> Vec<BufferId> {
        let oldest = self.space.transactions().next().into_iter().flatten();
        oldest.filter(|buffer| self.is_idle(*buffer)).collect()
    }

    /// Returns all buffers that can be written home.
    pub fn dirty(&self) -> Vec<BufferId> {
        let all = self.space.transactions().flatten();
        all.filter(|buffer| self.is_idle(*buffer)).collect()
    }

    /// Tells whether some buffer's newest committed content is in the log alone.
    pub fn has_dirty(&self) -> bool {
        self.space.live() > 0
    }

    /// Begins a buffer's write to its home; returns false if the buffer is no longer idle.
    pub fn write_home(&mut self, buffer: BufferId) -> bool {
        let is_idle = self.is_idle(buffer);
        if is_idle {
            self.buffers[buffer as usize].write = Write::Home;
        }
        is_idle
    }

    /// Ends the writes of `count` buffers to their homes; returns the tasks that slept on them.
    pub fn homed(&mut self, first: BufferId, count: u32) -> Vec<TaskId> {
        for buffer in first..first + count {
            self.buffers[buffer as usize].write = Write::None;
            self.space.homed(buffer);
        }
        self.woken_by_writes()
    }

    /// Cleans a log that is the home: the buffers that the oldest transactions keep there join a
    /// new transaction, which takes as many transactions' buffers as fit. Returns the transaction
    /// to commit, the new one or one that already runs; `None` if that is locked or nothing can
    /// move.
    pub fn clean(&mut self, now_ns: u64) -> Option<Tid> {
        if let Some(running) = &self.running {
            return (!running.is_locked).then_some(running.tid);
        }
        let room = self.space.transaction_max() - self.space.overhead();
        let mut moved: Vec<BufferId> = Vec::new();
        for buffers in self.space.transactions() {
            let idle = buffers.filter(|buffer| self.is_idle(*buffer));
            let before = moved.len();
            moved.extend(idle);
            if moved.len() as u64 > room {
                moved.truncate(before);
                break;
            }
        }
        if moved.is_empty() {
            return None;
        }
        let tid = self.run(now_ns).tid;
        for buffer in &moved {
            self.buffers[*buffer as usize].tid = tid;
        }
        self.run(now_ns).buffers = moved;
        Some(tid)
    }

    /// Tells whether a log that is the home is full of valid blocks.
    pub fn is_full(&self) -> bool {
        self.kind.home == Home::Log && self.space.is_full_of_live()
    }
}

fn assert_switches(running: &Running) {
    assert!(running.is_locked && running.updates == 0);
}

fn last_first(mut tasks: Vec<TaskId>) -> Vec<TaskId> {
    tasks.reverse();
    tasks
}
