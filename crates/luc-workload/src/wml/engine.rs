//! What all threads of a run share, and the program that each thread loops over.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use luc_wml::plan::{Flowop, Op, Plan, Thread, Value};

use super::aio::Pool;
use super::draw::Draws;
use super::fileset::LiveFileset;
use super::options::AioWait;
use super::sync::{Events, Gate, Semaphore};
use crate::{Result, Stop, WorkloadError};

/// One run.
pub struct Engine<'p> {
    pub plan: &'p Plan,
    pub filesets: Vec<LiveFileset<'p>>,
    /// The run's directory.
    pub root: OwnedFd,
    /// Its path, for messages.
    pub root_path: PathBuf,
    pub semaphores: Vec<Semaphore>,
    pub gates: Vec<Gate>,
    pub events: Events,
    /// Counts of each thread, where somebody asks for the sum.
    pub totals: Option<Vec<Totals>>,
    /// I/O operations measured so far, and how many are asked for.
    pub budget: Option<(AtomicU64, u64)>,
    /// fsync and synchronous writes are left out.
    pub no_fsync: bool,
    /// What `aiowait` waits for.
    pub aio_wait: AioWait,
    /// Whether the run ended before its time, without an error.
    pub finished: AtomicBool,
}

/// What one thread did since it began; on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
pub struct Totals {
    pub ops: AtomicU64,
    pub bytes: AtomicU64,
    pub transfers: AtomicU64,
    pub transfer_bytes: AtomicU64,
}

impl Engine<'_> {
    /// The sum over all threads; nothing where nobody asks for it.
    pub fn total(&self, part: impl Fn(&Totals) -> &AtomicU64) -> u64 {
        let all = self.totals.iter().flatten();
        all.map(|totals| part(totals).load(Ordering::Relaxed)).sum()
    }

    /// Ends the run for every thread, and makes waiting ones see it.
    pub fn finish(&self, ended: &Stop) {
        self.finished.store(true, Ordering::Relaxed);
        ended.set();
        self.wake();
    }

    /// Lets waiting threads look whether the run has ended.
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

/// A step of a thread's loop, with what it needs of its own.
pub struct Step<'p> {
    pub flowop: &'p Flowop,
    /// Index of its counts in the thread's list.
    pub stats: usize,
    /// Drawn once: `value` of a limit, or the working set of a transfer.
    pub constant: u64,
    pub extra: Extra<'p>,
}

/// What only some steps have.
pub enum Extra<'p> {
    None,
    /// The semaphore of this `semblock`, or the gate of this `block`.
    Own(usize),
    /// The semaphores or gates that this step posts to or wakes.
    Targets(Arc<[usize]>),
    /// A limit: whose counts it looks at, what they were, and what is left of its events.
    Limit {
        target: Option<usize>,
        last: u64,
        bucket: i64,
    },
    Children(Vec<Step<'p>>),
}

/// One thread of the run before it starts.
pub struct Place<'p> {
    /// Which thread, counted over all processes from 0.
    pub number: usize,
    /// Which thread of its process.
    pub within: usize,
    pub nice: i32,
    pub thread: &'p Thread,
    pub pool: Option<Arc<Pool>>,
}

/// Semaphores and gates, by the name of their flowop.
pub struct Shared {
    semaphores: HashMap<String, Vec<usize>>,
    gates: HashMap<String, Vec<usize>>,
}

/// Gives each `semblock` and `block` of each thread its semaphore or gate. The order is that of
/// the threads, and within a thread that of its steps.
pub fn share(
    places: &[Place<'_>],
    draws: &mut Draws<'_>,
) -> Result<(Shared, Vec<Semaphore>, Vec<Gate>)> {
    let mut shared = Shared {
        semaphores: HashMap::new(),
        gates: HashMap::new(),
    };
    let (mut semaphores, mut gates) = (Vec::new(), Vec::new());
    for place in places {
        each(&place.thread.flowops, &mut |flowop| {
            match &flowop.op {
                Op::SemBlock { high_water, .. } => {
                    let ids = shared.semaphores.entry(flowop.name.clone()).or_default();
                    ids.push(semaphores.len());
                    semaphores.push(Semaphore::new(signed(flowop, draws.whole(*high_water))?));
                }
                Op::Block => {
                    let ids = shared.gates.entry(flowop.name.clone()).or_default();
                    ids.push(gates.len());
                    gates.push(Gate::default());
                }
                _ => {}
            }
            Ok(())
        })?;
    }
    Ok((shared, semaphores, gates))
}

/// A semaphore's value; more than 2^31 would be a mistake, and could overflow.
pub fn signed(flowop: &Flowop, value: u64) -> Result<i64> {
    i32::try_from(value).map(i64::from).map_err(|_| {
        WorkloadError::flowop(
            flowop,
            format!("a semaphore cannot count to {value}; give less"),
        )
    })
}

/// Calls `f` for each flowop, those within composite ones after them.
pub fn each<'p>(flowops: &'p [Flowop], f: &mut impl FnMut(&'p Flowop) -> Result<()>) -> Result<()> {
    for flowop in flowops {
        f(flowop)?;
        if let Op::Composite(inner) = &flowop.op {
            each(inner, f)?;
        }
    }
    Ok(())
}

/// Makes threads' programs, one after the other in the order of [`share`].
pub struct Compiler {
    shared: Shared,
    semaphores: usize,
    gates: usize,
    lists: HashMap<String, Arc<[usize]>>,
}

impl Compiler {
    pub fn new(shared: Shared) -> Self {
        Self {
            shared,
            semaphores: 0,
            gates: 0,
            lists: HashMap::new(),
        }
    }

    /// The steps of one thread.
    pub fn steps<'p>(
        &mut self,
        thread: &'p Thread,
        draws: &mut Draws<'_>,
    ) -> Result<Vec<Step<'p>>> {
        let mut names = Vec::new();
        each(&thread.flowops, &mut |flowop| {
            names.push(flowop.name.as_str());
            Ok(())
        })?;
        let mut stats = 0;
        self.list(&thread.flowops, &names, &mut stats, draws)
    }

    fn list<'p>(
        &mut self,
        flowops: &'p [Flowop],
        names: &[&str],
        stats: &mut usize,
        draws: &mut Draws<'_>,
    ) -> Result<Vec<Step<'p>>> {
        let mut steps = Vec::with_capacity(flowops.len());
        for flowop in flowops {
            let own = *stats;
            *stats += 1;
            let extra = match &flowop.op {
                Op::SemBlock { .. } => Extra::Own(advance(&mut self.semaphores)),
                Op::Block => Extra::Own(advance(&mut self.gates)),
                Op::SemPost { target, .. } => Extra::Targets(self.targets(flowop, target, true)?),
                Op::Wakeup { target } => Extra::Targets(self.targets(flowop, target, false)?),
                Op::BwLimit { target }
                | Op::IopsLimit { target }
                | Op::OpsLimit { target }
                | Op::FinishOnCount { target, .. }
                | Op::FinishOnBytes { target, .. } => Extra::Limit {
                    target: target
                        .as_deref()
                        .map(|t| within(flowop, t, names))
                        .transpose()?,
                    last: 0,
                    bucket: 0,
                },
                Op::Composite(inner) => Extra::Children(self.list(inner, names, stats, draws)?),
                _ => Extra::None,
            };
            steps.push(Step {
                flowop,
                stats: own,
                constant: constant(&flowop.op).map_or(0, |value| draws.whole(value)),
                extra,
            });
        }
        Ok(steps)
    }

    fn targets(&mut self, flowop: &Flowop, target: &str, semaphores: bool) -> Result<Arc<[usize]>> {
        let (map, kind) = if semaphores {
            (&self.shared.semaphores, "semblock")
        } else {
            (&self.shared.gates, "block")
        };
        let Some(ids) = map.get(target) else {
            return Err(WorkloadError::flowop(
                flowop,
                format!("no {kind} flowop of any thread has the name {target}, its target"),
            ));
        };
        let list = self.lists.entry(target.to_owned());
        Ok(Arc::clone(list.or_insert_with(|| ids.clone().into())))
    }
}

fn advance(next: &mut usize) -> usize {
    *next += 1;
    *next - 1
}

fn within(flowop: &Flowop, target: &str, names: &[&str]) -> Result<usize> {
    names
        .iter()
        .position(|&name| name == target)
        .ok_or_else(|| {
            WorkloadError::flowop(
                flowop,
                format!("its thread has no flowop of the name {target}, its target"),
            )
        })
}

/// Values that Filebench draws once, before the run.
fn constant(op: &Op) -> Option<Value> {
    match op {
        Op::Read(transfer)
        | Op::Write(transfer)
        | Op::AioWrite(transfer)
        | Op::ReadWholeFile(transfer)
        | Op::WriteWholeFile { transfer, .. }
        | Op::AppendFile(transfer)
        | Op::AppendFileRand(transfer) => Some(transfer.working_set_bytes),
        Op::FinishOnCount { count, .. } => Some(*count),
        Op::FinishOnBytes { bytes, .. } => Some(*bytes),
        _ => None,
    }
}

/// What a flowop's operations count as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// An I/O operation that reads.
    Read,
    /// An I/O operation that writes.
    Write,
    /// An I/O operation that does neither.
    Io,
    /// Not an I/O operation: left out of the summary.
    Other,
}

/// How the summary counts this flowop.
pub fn counts(op: &Op) -> Counts {
    match op {
        Op::Read(_) | Op::ReadWholeFile(_) => Counts::Read,
        Op::Write(_)
        | Op::AioWrite(_)
        | Op::WriteWholeFile { .. }
        | Op::AppendFile(_)
        | Op::AppendFileRand(_) => Counts::Write,
        Op::AioWait
        | Op::OpenFile(_)
        | Op::CreateFile(_)
        | Op::CloseFile { .. }
        | Op::DeleteFile(_)
        | Op::StatFile(_)
        | Op::Fsync(_)
        | Op::FsyncSet(_)
        | Op::MakeDir(_)
        | Op::RemoveDir(_)
        | Op::ListDir(_) => Counts::Io,
        Op::SemBlock { .. }
        | Op::SemPost { .. }
        | Op::Block
        | Op::Wakeup { .. }
        | Op::Hog { .. }
        | Op::Delay { .. }
        | Op::EventLimit
        | Op::BwLimit { .. }
        | Op::IopsLimit { .. }
        | Op::OpsLimit { .. }
        | Op::FinishOnCount { .. }
        | Op::FinishOnBytes { .. }
        | Op::Composite(_) => Counts::Other,
    }
}

/// Whether this flowop asks for the sum over all threads.
pub fn wants_totals(op: &Op) -> bool {
    matches!(
        op,
        Op::BwLimit { target: None }
            | Op::IopsLimit { target: None }
            | Op::OpsLimit { target: None }
            | Op::FinishOnCount { target: None, .. }
            | Op::FinishOnBytes { target: None, .. }
    )
}
