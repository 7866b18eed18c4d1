//! The state that all threads of a run share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use luc_wml::plan;
use luc_workload::Recorder;
use luc_workload::wml::parts::{Entries, Stats, Tree};
use luc_workload::wml::{AioWait, WmlOptions};

use super::pool::Pool;
use luc_sim::costs::Costs;
use luc_sim::files::FileId;
use luc_sim::processors::TaskId;

/// A fileset.
pub struct Set {
    pub name: String,
    /// The first numbers of its files and directories among those of the machine.
    pub first_file: FileId,
    pub first_dir: u32,
    pub tree: Tree,
    pub files: Entries,
}

/// The two levels of a `semblock`.
#[derive(Default)]
pub struct Semaphore {
    pub low: i64,
    pub high: i64,
    /// Posts that the tasks in `blocked` wait for.
    pub wanted: i64,
    pub blocked: Vec<TaskId>,
    /// Tasks that wait to post.
    pub posting: Vec<TaskId>,
}

/// Takes from a level if it is high enough; else returns false.
pub fn take(level: &mut i64, value: i64) -> bool {
    let has = *level >= value;
    if has {
        *level -= value;
    }
    has
}

#[derive(Default)]
pub struct State {
    /// For each fileset, its files' lengths, and the tasks that wait for a busy entry.
    pub bytes: Vec<Vec<u64>>,
    pub for_entry: Vec<Vec<TaskId>>,
    pub semaphores: Vec<Semaphore>,
    /// Tasks that wait at each `block`.
    pub gates: Vec<Vec<TaskId>>,
    /// The pool of each process; it stays empty without asynchronous writes.
    pub pools: Vec<Pool>,
    /// When the last event of the generator came.
    pub event_ns: u64,
    /// For each kind of thread, the counts of its flowops.
    pub stats: Vec<Vec<Stats>>,
    pub fsync: Recorder,
    pub dsync: Recorder,
    /// The end of the last measured operation.
    pub last_ns: u64,
    pub loops: u64,
    pub ops: u64,
    /// Whether as many operations are done as were asked for.
    pub is_done: bool,
    pub failure: Option<String>,
}

pub struct Shared {
    pub plan: Arc<plan::Plan>,
    pub costs: Costs,
    pub sets: Vec<Set>,
    pub from_ns: u64,
    pub until_ns: u64,
    pub no_fsync: bool,
    pub waits_for_half: bool,
    pub ops_wanted: Option<u64>,
    state: Mutex<State>,
}

impl Shared {
    pub fn new(
        plan: Arc<plan::Plan>,
        costs: &Costs,
        options: &WmlOptions,
        (from_ns, until_ns): (u64, u64),
    ) -> Self {
        let kinds = plan.processes.iter().flat_map(|process| &process.threads);
        let counts = |thread: &plan::Thread| {
            let flowops = thread.all_flowops();
            flowops.iter().map(|_| Stats::new()).collect()
        };
        let state = State {
            stats: kinds.map(counts).collect(),
            ..State::default()
        };
        Self {
            costs: *costs,
            sets: Vec::new(),
            from_ns,
            until_ns,
            no_fsync: options.no_fsync,
            waits_for_half: options.aio_wait == AioWait::Half,
            ops_wanted: options.ops,
            state: Mutex::new(state),
            plan,
        }
    }

    /// Creates what the threads share besides files: a semaphore for each high water, gates, and
    /// for each process with asynchronous writes `tasks` tasks from the next number on.
    pub fn share(
        &mut self,
        high_waters: &[i64],
        gates: usize,
        pools: &[bool],
        mut numbers: impl Iterator<Item = TaskId>,
        tasks: usize,
    ) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.semaphores = high_waters
            .iter()
            .map(|high| Semaphore {
                high: *high,
                ..Semaphore::default()
            })
            .collect();
        state.gates = vec![Vec::new(); gates];
        state.pools = pools
            .iter()
            .map(|has| {
                let first = if *has { numbers.next() } else { None };
                first.map_or_else(Pool::default, |first| Pool::new((first..).take(tasks)))
            })
            .collect();
        let sets = || self.sets.iter();
        state.for_entry = sets().map(|_| Vec::new()).collect();
        state.bytes = sets()
            .map(|set| {
                let lengths = set.tree.files.iter().map(|leaf| leaf.bytes);
                lengths.collect()
            })
            .collect();
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tasks that write for a process.
    pub fn pool_tasks(&self, process: usize) -> Vec<TaskId> {
        self.state().pools[process].fresh.iter().copied().collect()
    }

    /// Tells whether an operation that ends now is measured.
    pub fn measures(&self, end_ns: u64) -> bool {
        end_ns > self.from_ns && end_ns <= self.until_ns
    }
}
