//! Workloads of `luc bench`, as programs. One is a file and a row of [`plan`].

mod burst;
mod create_fsync;
mod write_delay;

use luc_workload::{Bench, Outcome};

use crate::costs::Costs;
use crate::measured::Measured;
use crate::program::Program;

/// What is to be run, and how its figures are made.
pub struct Plan {
    pub programs: Vec<Box<dyn Program>>,
    pub measured: Measured,
    pub outcome: Box<dyn Fn(&Measured) -> Outcome>,
}

/// The plan of a benchmark; `None` of one that the simulator does not know.
pub fn plan(bench: &Bench, costs: Costs) -> Option<Plan> {
    match bench {
        Bench::CreateFsync(args) => Some(create_fsync::plan(args, costs)),
        Bench::Burst(args) => Some(burst::plan(args)),
        Bench::WriteDelay(args) => Some(write_delay::plan(args)),
        _ => None,
    }
}

/// The names of those that it knows.
pub const KNOWN: [&str; 3] = ["create-fsync", "burst", "write-delay"];

/// Of a number of seconds that a command line has accepted.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn seconds_ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// Equation 3, with each task's mean time of a file: N files in the mean of the times.
fn file_creation_rate_per_s(mean_ns: impl Iterator<Item = f64>) -> f64 {
    mean_ns.filter(|ns| *ns > 0.0).map(|ns| 1e9 / ns).sum()
}
