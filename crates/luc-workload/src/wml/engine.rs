//! The state that all threads of a run share, and the program that each thread loops over.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use luc_wml::plan::{Flowop, Op, Plan, Thread, Value};

use super::aio::Pool;
use super::draw::Draws;
use super::fileset::LiveFileset;
use super::halt::Flow;
use super::options::AioWait;
use super::sync::{Events, Gate, Semaphore};
use crate::dir::Dir;
use crate::{Result, Stop, WorkloadError};

pub struct Engine<'p> {
    pub plan: &'p Plan,
    pub filesets: Vec<LiveFileset<'p>>,
    /// The run's directory.
    pub root: Dir,
    pub semaphores: Vec<Semaphore>,
    pub gates: Vec<Gate>,
    pub events: Events,
    /// Counts per thread, if a flowop asks for the sum.
    pub totals: Option<Vec<Totals>>,
    /// I/O operations measured so far, and the number asked for.
    pub budget: Option<(AtomicU64, u64)>,
    /// Whether fsync and synchronous writes are left out.
    pub no_fsync: bool,
    pub aio_wait: AioWait,
    /// Whether the run ended early without an error.
    pub finished: AtomicBool,
}

/// The operations of one thread since it began, on a cache line of their own.
#[derive(Default)]
#[repr(align(128))]
pub struct Totals {
    pub ops: AtomicU64,
    pub bytes: AtomicU64,
    pub transfers: AtomicU64,
    pub transfer_bytes: AtomicU64,
}

impl Engine<'_> {
    /// Returns the sum over all threads; 0 if no flowop asks for it.
    pub fn total(&self, part: impl Fn(&Totals) -> &AtomicU64) -> u64 {
        let all = self.totals.iter().flatten();
        all.map(|totals| part(totals).load(Ordering::Relaxed)).sum()
    }

    /// Ends the run for every thread, and wakes those that wait.
    pub fn finish(&self, ended: &Stop) {
        self.finished.store(true, Ordering::Relaxed);
        ended.set();
        self.wake();
    }

    /// Wakes waiting threads, so that they check whether the run has ended.
    pub fn wake(&self) {
        self.semaphores.iter().for_each(Semaphore::wake);
        self.gates.iter().for_each(Gate::wake);
        for fileset in &self.filesets {
            for entries in [&fileset.files, &fileset.leaf_dirs, &fileset.dirs] {
                entries.idle.wake();
            }
        }
    }
}

/// A step of a thread's loop, with its own state.
pub struct Step<'p> {
    pub flowop: &'p Flowop,
    /// Index of its counts in the thread's list.
    pub stats: usize,
    pub bound: Bound,
    /// For a limit: the count that it watches, as read the last time.
    pub last: u64,
    /// For a limit: events, or bytes of one, that it has left.
    pub bucket: i64,
    pub children: Vec<Step<'p>>,
}

impl Step<'_> {
    /// Returns the error of a flowop that cannot be done.
    pub fn refused<T>(&self, why: impl Into<String>) -> Flow<T> {
        Err(WorkloadError::flowop(self.flowop, why).into())
    }
}

/// One thread of the run before it starts.
#[derive(Clone)]
pub struct Place<'p> {
    /// Number of the thread over all processes, from 0.
    pub number: usize,
    /// Number of the thread within its process, from 0.
    pub within: usize,
    pub nice: i32,
    pub thread: &'p Thread,
    pub pool: Option<Arc<Pool>>,
}

/// Returns a semaphore's value as signed; more than 2^31 would be a mistake and could overflow.
pub fn signed(flowop: &Flowop, value: u64) -> Result<i64> {
    i32::try_from(value).map(i64::from).map_err(|_| {
        let why = format!("a semaphore cannot count to {value}; give a smaller value");
        WorkloadError::flowop(flowop, why)
    })
}

/// The values that a thread's flowop gets before the run: references it shares with others, and
/// values drawn once.
#[derive(Clone, Debug, Default)]
pub struct Bound {
    /// The `value` of a limit, or the working set of a transfer.
    pub constant: u64,
    /// The semaphore of this `semblock`, or the gate of this `block`.
    pub own: usize,
    /// The semaphores or gates that this flowop posts to or wakes.
    pub targets: Arc<[usize]>,
    /// Index, among the thread's flowops, of the one whose counts a limit watches; `None` if it
    /// watches all flowops of the run.
    pub counted: Option<usize>,
}

/// Gives flowops the semaphores and gates that they share, thread by thread in order.
pub struct Compiler {
    /// Semaphores, by the name of their flowop.
    semaphore_ids: HashMap<String, Arc<[usize]>>,
    gate_ids: HashMap<String, Arc<[usize]>>,
    semaphores: usize,
    gates: usize,
}

impl Compiler {
    /// Gives each `semblock` and `block` of each thread its semaphore or gate; returns the high
    /// water of each semaphore, and the number of gates. The order is that of the threads, and
    /// within a thread that of its flowops.
    ///
    /// # Errors
    /// If a high water is too large for a semaphore.
    pub fn new<'p>(
        threads: impl Iterator<Item = &'p Thread>,
        draws: &mut Draws<'_>,
    ) -> Result<(Self, Vec<i64>, usize)> {
        let mut semaphore_ids: HashMap<_, Vec<usize>> = HashMap::new();
        let mut gate_ids: HashMap<_, Vec<usize>> = HashMap::new();
        let (mut high_waters, mut gates) = (Vec::new(), 0);
        for flowop in threads.flat_map(Thread::all_flowops) {
            let name = flowop.name.clone();
            match &flowop.op {
                Op::SemBlock { high_water, .. } => {
                    semaphore_ids
                        .entry(name)
                        .or_default()
                        .push(high_waters.len());
                    high_waters.push(signed(flowop, draws.whole(*high_water))?);
                }
                Op::Block => gate_ids.entry(name).or_default().push(advance(&mut gates)),
                _ => {}
            }
        }
        let shared = |ids: HashMap<String, Vec<usize>>| {
            let rows = ids.into_iter().map(|(name, ids)| (name, ids.into()));
            rows.collect()
        };
        let compiler = Self {
            semaphore_ids: shared(semaphore_ids),
            gate_ids: shared(gate_ids),
            semaphores: 0,
            gates: 0,
        };
        Ok((compiler, high_waters, gates))
    }

    /// Returns the values for each flowop of a thread, in the order of [`Thread::all_flowops`].
    ///
    /// # Errors
    /// If a flowop's target does not exist.
    pub fn bind(&mut self, thread: &Thread, draws: &mut Draws<'_>) -> Result<Vec<Bound>> {
        let flowops = thread.all_flowops();
        let names: Vec<&str> = flowops.iter().map(|flowop| flowop.name.as_str()).collect();
        let bind = |flowop: &&Flowop| self.one(flowop, &names, draws);
        flowops.iter().map(bind).collect()
    }

    fn one(&mut self, flowop: &Flowop, names: &[&str], draws: &mut Draws<'_>) -> Result<Bound> {
        let mut bound = Bound::default();
        match &flowop.op {
            Op::SemBlock { .. } => bound.own = advance(&mut self.semaphores),
            Op::Block => bound.own = advance(&mut self.gates),
            Op::SemPost { target, .. } => {
                bound.targets = targets(flowop, &self.semaphore_ids, "semblock", target)?;
            }
            Op::Wakeup { target } => {
                bound.targets = targets(flowop, &self.gate_ids, "block", target)?;
            }
            op => {
                let target = op.limit_target().and_then(Option::as_deref);
                bound.counted = target.map(|it| within(flowop, it, names)).transpose()?;
            }
        }
        bound.constant = constant(&flowop.op).map_or(0, |value| draws.whole(value));
        Ok(bound)
    }

    pub fn steps<'p>(
        &mut self,
        thread: &'p Thread,
        draws: &mut Draws<'_>,
    ) -> Result<Vec<Step<'p>>> {
        let mut bound = self.bind(thread, draws)?.into_iter();
        Ok(steps(&thread.flowops, &mut bound, &mut 0))
    }
}

/// Returns the steps of flowops, each with its values.
pub fn steps<'p>(
    flowops: &'p [Flowop],
    bound: &mut std::vec::IntoIter<Bound>,
    stats: &mut usize,
) -> Vec<Step<'p>> {
    let mut steps = Vec::with_capacity(flowops.len());
    for flowop in flowops {
        let mut step = Step {
            flowop,
            stats: advance(stats),
            bound: bound.next().unwrap_or_default(),
            last: 0,
            bucket: 0,
            children: Vec::new(),
        };
        if let Op::Composite(inner) = &flowop.op {
            step.children = self::steps(inner, bound, stats);
        }
        steps.push(step);
    }
    steps
}

fn targets(
    flowop: &Flowop,
    ids: &HashMap<String, Arc<[usize]>>,
    kind: &str,
    target: &str,
) -> Result<Arc<[usize]>> {
    ids.get(target).cloned().ok_or_else(|| {
        let why = format!(
            "its target {target} does not exist: no thread has a {kind} flowop of that name"
        );
        WorkloadError::flowop(flowop, why)
    })
}

fn advance(next: &mut usize) -> usize {
    *next += 1;
    *next - 1
}

fn within(flowop: &Flowop, target: &str, names: &[&str]) -> Result<usize> {
    let found = names.iter().position(|&name| name == target);
    found.ok_or_else(|| {
        let why =
            format!("its target {target} does not exist: its thread has no flowop of that name");
        WorkloadError::flowop(flowop, why)
    })
}

/// Returns the value that Filebench draws once, before the run, if the operation has one.
fn constant(op: &Op) -> Option<Value> {
    match op {
        Op::FinishOnCount { count, .. } => Some(*count),
        Op::FinishOnBytes { bytes, .. } => Some(*bytes),
        _ => op.transfer().map(|transfer| transfer.working_set_bytes),
    }
}
