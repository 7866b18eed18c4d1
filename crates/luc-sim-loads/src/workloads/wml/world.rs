//! The state that all threads of a run share.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use luc_workload::Recorder;
use luc_workload::wml::parts::{Counted, Engine, EntryId, Queue, Ticket};

use luc_sim::costs::Costs;
use luc_sim::files::FileId;
use luc_sim::processors::TaskId;

/// Tasks that wait for a state to change.
#[derive(Default)]
pub struct Waiting(Mutex<Vec<TaskId>>);

impl Waiting {
    fn tasks(&self) -> MutexGuard<'_, Vec<TaskId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, task: TaskId) {
        self.tasks().push(task);
    }

    pub fn take(&self) -> Vec<TaskId> {
        std::mem::take(&mut self.tasks())
    }
}

/// A requested write.
pub struct Request {
    pub entry: EntryId,
    pub at: u64,
    pub bytes: u32,
    pub is_synced: bool,
    pub ticket: Ticket,
}

/// The asynchronous writes of one process: at most twenty of its tasks do them, and a new one
/// starts if none is idle.
#[derive(Default)]
pub struct Pool {
    /// By the thread that opened the file, and its slot.
    pub requests: Queue<(TaskId, usize), Request>,
    /// Tasks that have not begun, and tasks that are idle.
    pub fresh: VecDeque<TaskId>,
    pub idle: VecDeque<TaskId>,
}

#[derive(Default)]
pub struct State {
    /// For each fileset, its files' lengths.
    pub bytes: Vec<Vec<u64>>,
    /// The pool of each process; it stays empty without asynchronous writes.
    pub pools: Vec<Pool>,
    /// The counts of each kind of thread, and the synchronous ones of asynchronous writes.
    pub counted: Vec<Counted>,
    pub written: Recorder,
    pub failure: Option<String>,
}

pub struct World {
    pub engine: Engine<Waiting>,
    pub costs: Costs,
    pub from_ns: u64,
    pub until_ns: u64,
    /// The first numbers of each fileset's files and directories among those of the machine.
    pub firsts: Vec<(FileId, u32)>,
    /// For each process, the tasks that wait for its asynchronous writes.
    pub writing: Vec<Waiting>,
    pub state: Mutex<State>,
}

impl World {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whether an operation that ends now is measured.
    pub fn measures(&self, end_ns: u64) -> bool {
        end_ns > self.from_ns && end_ns <= self.until_ns
    }

    /// Tells whether the run is over for every thread.
    pub fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.until_ns || self.engine.finished.load(Ordering::Relaxed)
    }

    /// Returns the number of a file among those of the machine.
    pub fn file(&self, entry: EntryId) -> FileId {
        self.firsts[entry.fileset].0 + entry.index
    }

    /// Notes that a write ended at this offset.
    pub fn wrote(&self, entry: EntryId, end: u64) {
        let known = &mut self.state().bytes[entry.fileset][entry.index as usize];
        *known = (*known).max(end);
    }
}
