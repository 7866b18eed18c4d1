//! Workloads of `luc bench`, as programs. One is a file and a row of [`plan`].

mod barrier;
mod burst;
mod bursts;
mod create_fsync;
mod iozone;
mod metarates;
#[cfg(test)]
mod tests;
mod wml;
mod write_burst;
mod write_delay;

use luc_workload::{Bench, Outcome};

pub use wml::FileLoad;

use crate::SimError;
use crate::costs::Costs;
use crate::disk::DiskKind;
use crate::files::Prepared;
use crate::measured::Measured;
use crate::program::Program;
use crate::script::{Script, Task};

/// What is to be run, and how its figures are made.
pub struct Plan {
    pub programs: Vec<Box<dyn Program>>,
    /// Files that are there before.
    pub files: Vec<Prepared>,
    pub measured: Measured,
    /// Each task begins at a moment of its own within this time.
    pub begin_spread_ns: u64,
    pub outcome: Figures,
}

/// A benchmark's figures, and the time that they are of.
pub struct Found {
    pub outcome: Outcome,
    pub elapsed_ns: u64,
}

/// Makes a benchmark's figures of what was measured; or tells why the run has none.
pub type Figures = Box<dyn Fn(&Measured) -> Result<Found, SimError>>;

/// The figures of a benchmark that can always give them.
fn figures(outcome: impl Fn(&Measured) -> Outcome + 'static) -> Figures {
    Box::new(move |measured| {
        Ok(Found {
            outcome: outcome(measured),
            elapsed_ns: measured.elapsed_ns(),
        })
    })
}

/// A benchmark with its arguments, or a workload file.
#[derive(Debug)]
pub enum Load {
    Bench(Bench),
    File(FileLoad),
}

impl Load {
    /// Its name, or the file's.
    pub fn name(&self) -> &str {
        match self {
            Self::Bench(bench) => bench.name(),
            Self::File(file) => &file.source,
        }
    }
}

/// The plan of a benchmark.
///
/// # Errors
/// The simulator does not know it, or its arguments do not fit each other.
pub fn plan(load: &Load, costs: &Costs, disk: &DiskKind) -> Result<Plan, SimError> {
    let bench = match load {
        Load::Bench(bench) => bench,
        Load::File(file) => return wml::plan(file, costs),
    };
    match bench {
        Bench::CreateFsync(args) => Ok(create_fsync::plan(args, costs, disk)),
        Bench::Burst(args) => Ok(burst::plan(args)),
        Bench::Metarates(args) => Ok(metarates::plan(args)),
        Bench::Iozone(args) => iozone::plan(args),
        Bench::WriteDelay(args) => Ok(write_delay::plan(args)),
        Bench::WriteBurst(args) => Ok(write_burst::plan(args)),
        _ => Err(SimError::Unknown { name: bench.name() }),
    }
}

/// The names of those that it knows.
pub const KNOWN: [&str; 7] = [
    "create-fsync",
    "burst",
    "metarates",
    "iozone",
    "write-delay",
    "write-burst",
    "run with a workload file",
];

/// Processes leave a barrier: timers of several processors, and their wake-ups; assumed.
const BARRIER_SPREAD_NS: u64 = 50_000;

/// A program for each of so many tasks.
fn programs<P: Program + 'static>(tasks: u32, program: impl Fn(u32) -> P) -> Vec<Box<dyn Program>> {
    let boxed = |number| Box::new(program(number)) as Box<dyn Program>;
    (0..tasks).map(boxed).collect()
}

/// A script for each of so many tasks, from the task and its number.
fn scripts<F: Future<Output = ()> + Send + 'static>(
    tasks: u32,
    script: impl Fn(Task, u32) -> F,
) -> Vec<Box<dyn Program>> {
    programs(tasks, |number| Script::new(|task| script(task, number)))
}

/// Of a number of seconds that a command line has accepted.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn seconds_ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}
