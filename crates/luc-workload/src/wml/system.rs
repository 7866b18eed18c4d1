//! The system under a thread of a run: files, time, and other threads.
//!
//! The flowops are written once, over [`System`]. On a real system (`real`) a call is over when it
//! returns, so a future is ready at its first poll. In the simulator a call suspends its thread.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use luc_wml::plan::OpenFlags;

use super::fileset::Kind;
use super::halt::Flow;
use super::stats::Stats;
use crate::Result;
use luc_base::Recorder;

/// A file or leaf directory of a fileset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryId {
    pub fileset: usize,
    pub index: u32,
}

/// Whether an asynchronous write is still under way; reused for another write once it is not.
pub type Ticket = Arc<AtomicBool>;

/// The part of a thread's memory that a call reads or writes.
#[derive(Clone, Copy)]
pub struct Chunk {
    pub offset: u64,
    pub bytes: u64,
    /// Whether it begins at the next page boundary.
    pub direct: bool,
}

/// A position in a file.
#[derive(Clone, Copy)]
pub enum Position {
    Start,
    End,
}

/// A call by name.
#[derive(Clone, Copy)]
pub enum ByName {
    Stat,
    Unlink,
    MakeDir,
    RemoveDir,
}

/// Processor time between the calls. A real processor spends it by itself.
#[derive(Clone, Copy)]
pub enum Work {
    /// The engine's own, for one flowop.
    Flowop,
    /// A loop over all flowops that began then ends.
    Loop { begin_ns: u64 },
    /// Posts to a semaphore.
    Post,
    /// Stores one byte this many times.
    Hog { times: u64 },
}

/// The counts of a thread, or of several.
pub struct Counted {
    /// In the order of [`all_flowops`](luc_wml::plan::Thread::all_flowops).
    pub stats: Vec<Stats>,
    pub fsync: Recorder,
    pub dsync: Recorder,
    /// End of the last measured operation, nanoseconds; 0 without one.
    pub last_ns: u64,
    pub loops: u64,
}

impl Counted {
    pub fn new(thread: &luc_wml::plan::Thread) -> Self {
        let flowops = thread.all_flowops();
        Self {
            stats: flowops.iter().map(|_| Stats::new()).collect(),
            fsync: Recorder::new(),
            dsync: Recorder::new(),
            last_ns: 0,
            loops: 0,
        }
    }
}

/// The system as one thread of a run sees it.
#[expect(
    async_fn_in_trait,
    reason = "each caller knows the type, and so whether its futures are Send"
)]
pub trait System {
    /// An open file.
    type File;
    /// Threads that wait for a state to change.
    type Waiters: Default;

    /// Reads the clock, nanoseconds.
    fn now_ns(&mut self) -> u64;
    /// Tells whether the run was over at the last reading of the clock.
    fn is_over(&self) -> bool;
    /// Tells whether an operation that ended at this moment is part of the measurement.
    fn measures(&self, end_ns: u64) -> bool;
    /// Ends the run for every thread.
    fn finish(&self);
    /// Changes the thread's counts.
    fn count<T>(&mut self, change: impl FnOnce(&mut Counted) -> T) -> T;
    /// Makes the thread's memory at least this large.
    fn reserve(&mut self, bytes: u64);

    async fn work(&mut self, work: Work);
    /// Sleeps until then or until the end of the run.
    async fn sleep_until(&mut self, deadline_ns: u64);
    /// Waits until `attempt` returns a value; halts if the run ends before.
    async fn until<T>(
        &self,
        waiters: &Self::Waiters,
        attempt: impl FnMut() -> Option<T>,
    ) -> Flow<T>;
    /// Wakes all waiters, after a change by a sequentially consistent atomic exchange.
    async fn wake(&self, waiters: &Self::Waiters);

    /// Sets the entry that the calls by name are about: those that take no open file.
    async fn aim(&mut self, kind: Kind, entry: EntryId);
    async fn by_name(&mut self, call: ByName) -> Result<()>;
    async fn open(&mut self, entry: EntryId, flags: OpenFlags) -> Result<Self::File>;
    /// Looks up the parent directory, then creates the file, or opens it if it is there.
    async fn create(&mut self, entry: EntryId, flags: OpenFlags) -> Result<Self::File>;
    /// Reads a directory of a fileset; returns the bytes of its entries.
    async fn list_dir(&mut self, fileset: usize, dir: u32) -> Result<u64>;

    async fn close(&mut self, file: Self::File);
    async fn stat_open(&mut self, file: &Self::File) -> Result<()>;
    async fn fsync(&mut self, file: &Self::File) -> Result<()>;
    async fn seek(&mut self, file: &mut Self::File, to: Position) -> Result<()>;
    /// Reads at this offset, or at the file's position; returns how many bytes there were.
    async fn read(&mut self, file: &mut Self::File, to: Chunk, at: Option<u64>) -> Result<u64>;
    async fn write(&mut self, file: &mut Self::File, from: Chunk, at: Option<u64>) -> Result<()>;

    /// Begins a write of zeros.
    async fn submit(
        &mut self,
        slot: usize,
        file: &Self::File,
        at: u64,
        bytes: u64,
        ticket: Ticket,
    ) -> Result<()>;
    /// Waits until `enough` of the thread's asynchronous writes have ended.
    async fn submitted(&self, enough: impl Fn() -> bool) -> Flow;
    /// Tells whether an asynchronous write can be as large as this.
    fn can_submit(&self, _bytes: u64) -> bool {
        true
    }
    /// # Errors
    /// An asynchronous write of this process failed.
    fn submissions(&self) -> Result<()> {
        Ok(())
    }
}
