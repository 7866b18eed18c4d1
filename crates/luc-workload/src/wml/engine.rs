//! The state that all threads of a run share, and the program that each thread loops over.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use luc_wml::plan::{Flowop, Op, Plan, Thread, Value};

use super::draw::Draws;
use super::fileset::LiveFileset;
use super::halt::Flow;
use super::options::{AioWait, WmlOptions};
use super::sync::{Events, Gate, Semaphore};
use crate::{Result, WorkloadError};

pub struct Engine<W> {
    pub plan: Arc<Plan>,
    pub filesets: Vec<LiveFileset<W>>,
    pub semaphores: Vec<Semaphore<W>>,
    pub gates: Vec<Gate<W>>,
    pub events: Events,
    /// Counts per thread, if a flowop asks for the sum.
    pub totals: Option<Vec<Totals>>,
    /// I/O operations measured so far, and the number asked for.
    pub budget: Option<(AtomicU64, u64)>,
    /// Whether fsync and synchronous writes are left out.
    pub no_fsync: bool,
    pub aio_wait: AioWait,
    /// Whether the run ended early.
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

impl<W: Default> Engine<W> {
    pub fn new(
        plan: &Arc<Plan>,
        filesets: Vec<LiveFileset<W>>,
        program: &Program,
        options: &WmlOptions,
    ) -> Self {
        let of_all = plan.processes.iter().flat_map(|process| &process.threads);
        let mut flowops = of_all.flat_map(Thread::all_flowops);
        let is_summed = flowops.any(|flowop| flowop.op.limit_target() == Some(&None));
        let totals = || program.jobs.iter().map(|_| Totals::default()).collect();
        let high_waters = program.high_waters.iter();
        Self {
            plan: Arc::clone(plan),
            filesets,
            semaphores: high_waters.map(|high| Semaphore::new(*high)).collect(),
            gates: (0..program.gates).map(|_| Gate::default()).collect(),
            events: Events::default(),
            totals: is_summed.then(totals),
            budget: options.ops.map(|ops| (AtomicU64::new(0), ops)),
            no_fsync: options.no_fsync,
            aio_wait: options.aio_wait,
            finished: AtomicBool::new(false),
        }
    }

    /// Returns the sum over all threads; 0 if no flowop asks for it.
    pub fn total(&self, part: impl Fn(&Totals) -> &AtomicU64) -> u64 {
        let all = self.totals.iter().flatten();
        all.map(|totals| part(totals).load(Ordering::Relaxed)).sum()
    }
}

/// The threads of a run before they start, and the number of things that they share.
pub struct Program {
    pub jobs: Vec<Job>,
    /// The high water of each semaphore.
    pub high_waters: Vec<i64>,
    pub gates: usize,
}

/// One thread, ready to run.
pub struct Job {
    pub place: Place,
    pub bound: Vec<Bound>,
    pub draws: Draws,
    /// Size of its memory; 0 if that grows to the largest transfer.
    pub memory_bytes: u64,
}

/// The place of a thread among all.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Number of the thread over all processes, from 0.
    pub number: usize,
    /// Number of the thread within its process, from 0.
    pub within: u64,
    /// Number of its process over all instances, from 0.
    pub instance: usize,
    /// Index of its process in the plan, of its thread there, and of that over all processes.
    pub process: usize,
    pub thread: usize,
    pub kind: usize,
}

impl Place {
    pub fn thread<'p>(&self, plan: &'p Plan) -> &'p Thread {
        &plan.processes[self.process].threads[self.thread]
    }

    /// Returns the thread's steps, each with its values.
    pub fn steps<'p>(&self, plan: &'p Plan, bound: Vec<Bound>) -> Vec<Step<'p>> {
        steps(&self.thread(plan).flowops, &mut bound.into_iter(), &mut 0)
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
        draws: &mut Draws,
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
    pub fn bind(&mut self, thread: &Thread, draws: &mut Draws) -> Result<Vec<Bound>> {
        let flowops = thread.all_flowops();
        let names: Vec<&str> = flowops.iter().map(|flowop| flowop.name.as_str()).collect();
        let bind = |flowop: &&Flowop| self.one(flowop, &names, draws);
        flowops.iter().map(bind).collect()
    }

    fn one(&mut self, flowop: &Flowop, names: &[&str], draws: &mut Draws) -> Result<Bound> {
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
}

/// Returns the steps of flowops, each with its values.
fn steps<'p>(
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
