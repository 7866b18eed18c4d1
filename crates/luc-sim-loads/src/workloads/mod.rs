//! Workloads of `luc-lab bench` as programs. Each has a file and a row in [`plan`].

mod barrier;
mod bursts;
mod create_fsync;
mod iozone;
mod metarates;
#[cfg(test)]
mod tests;
mod wml;
mod write_delay;

use luc_workload::{Bench, Outcome};

pub use wml::FileLoad;

use crate::script::{Script, Task};
use luc_sim::costs::Costs;
use luc_sim::disk::DiskKind;
use luc_sim::files::Prepared;
use luc_sim::measured::Measured;
use luc_sim::program::Program;
use luc_sim::{Node, Setup, SimError};

/// Programs to run, and how to compute the figures of the run.
pub struct Plan {
    pub programs: Vec<Box<dyn Program>>,
    /// Files that exist before the run.
    pub files: Vec<Prepared>,
    pub measured: Measured,
    /// Each task begins at its own moment within this time.
    pub begin_spread_ns: u64,
    pub outcome: Figures,
}

impl Plan {
    /// Creates the machine before its first task begins; also returns how to compute the figures.
    pub fn node(self, setup: &Setup) -> (Node, Figures) {
        let mut node = Node::new(setup, self.programs, self.measured);
        node.prepare_files(&self.files);
        node.spread_begins(setup.seed, self.begin_spread_ns);
        (node, self.outcome)
    }
}

/// A benchmark's figures, and the time that they cover.
pub struct Found {
    pub outcome: Outcome,
    pub elapsed_ns: u64,
}

/// Computes a benchmark's figures from the measurement, or tells why there are none.
pub type Figures = Box<dyn Fn(&Measured) -> Result<Found, SimError>>;

/// Wraps the figures of a benchmark that always has some.
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
    /// Returns the benchmark's name, or the file's.
    pub fn name(&self) -> &str {
        match self {
            Self::Bench(bench) => bench.name(),
            Self::File(file) => &file.source,
        }
    }
}

/// Returns the plan of a benchmark.
///
/// # Errors
/// The simulator does not have it, or its arguments do not fit together.
pub fn plan(load: &Load, costs: &Costs, disk: &DiskKind) -> Result<Plan, SimError> {
    let bench = match load {
        Load::Bench(bench) => bench,
        Load::File(file) => return wml::plan(file, costs),
    };
    match bench {
        Bench::CreateFsync(args) => Ok(create_fsync::plan(args, costs, disk)),
        Bench::Burst(args) => Ok(bursts::burst(args)),
        Bench::Metarates(args) => Ok(metarates::plan(args)),
        Bench::Iozone(args) => iozone::plan(args),
        Bench::WriteDelay(args) => Ok(write_delay::plan(args)),
        Bench::WriteBurst(args) => Ok(bursts::write_burst(args)),
        _ => Err(SimError::Unknown {
            name: bench.name(),
            has: KNOWN.join(", "),
        }),
    }
}

/// Names of the benchmarks that the simulator has.
pub const KNOWN: [&str; 7] = [
    "create-fsync",
    "burst",
    "metarates",
    "iozone",
    "write-delay",
    "write-burst",
    "run with a workload file",
];

/// Spread of the times at which processes leave a barrier, caused by timers of several processors
/// and by wake-ups; assumed.
const BARRIER_SPREAD_NS: u64 = 50_000;

/// Creates a program for each task.
fn programs<P: Program + 'static>(tasks: u32, program: impl Fn(u32) -> P) -> Vec<Box<dyn Program>> {
    let boxed = |number| Box::new(program(number)) as Box<dyn Program>;
    (0..tasks).map(boxed).collect()
}

/// Creates a script for each task, from the task and its number.
fn scripts<F: Future<Output = ()> + Send + 'static>(
    tasks: u32,
    script: impl Fn(Task, u32) -> F,
) -> Vec<Box<dyn Program>> {
    programs(tasks, |number| Script::new(|task| script(task, number)))
}
