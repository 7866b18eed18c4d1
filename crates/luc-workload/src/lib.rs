//! Workloads that make a file system commit its journal, and what each operation took.
//!
//! | workload | question it answers |
//! |---|---|
//! | [`CreateFsync`] | how many files per second can N threads create and make durable |
//! | [`WriteDelay`] | how often do small writes sleep because a commit is writing their metadata |
//! | [`Burst`] | do fsyncs that arrive close together share one commit |
//! | [`WriteBurst`] | do writes that arrive close together block behind each other's commits |
//! | [`FsyncCost`] | how much processor time does a lone fsync take, and how much its commit |
//! | [`Scaling`] | how many fsyncs that need no commit can N processors make |
//! | [`Metarates`] | how many files per second can N processes create, stat and touch |
//! | [`Iozone`] | how fast can N children write new files while all of them write |
//! | [`Mdtest`] | the same as Metarates in a tree of directories, and unlink |
//! | [`FsyncStorm`] | how long do fsyncs wait that arrive at a given rate, or in bursts |
//!
//! Nothing here knows whether, or by whom, commits are steered: the same program runs against any
//! file system, and prints its own result. Times come from `CLOCK_MONOTONIC`, so on a virtual
//! clock they are virtual times.
//!
//! Rules that all workloads keep:
//!
//! - Real threads or processes, started together at one moment; no lock and no allocation that
//!   grows in the measured loops.
//! - Every system call that fails ends the run with its name and the file it failed on.
//! - All files live in one new directory, `luc-bench.<pid>`, inside the directory that was given,
//!   and go away with it, unless the caller wants to keep them. Unlinking happens after the
//!   measurement, or, where a loop must bound its files, outside the timed operations.
//! - The same arguments and seed ask for the same operations in the same order per thread.

// Names end with their unit, so many of them look alike.
#![allow(clippy::similar_names, clippy::struct_field_names)]

use std::time::Duration;

mod args;
mod burst;
mod clock;
mod create_fsync;
mod crew;
mod dir;
mod error;
mod file_phase;
mod folder;
mod fsync_cost;
mod fsync_storm;
mod iozone;
mod journal;
mod latency;
mod marks;
mod mdtest;
mod metarates;
mod micro_args;
mod micro_text;
mod phases;
mod processes;
mod random;
mod report;
mod scaling;
mod scratch;
mod stop;
mod usage;
pub mod wml;
mod worker;
mod write_burst;
mod write_delay;

pub use args::{Bench, Burst, Common, CreateFsync, FsyncCost, Scaling, WriteBurst, WriteDelay};
pub use burst::BurstResult;
pub use create_fsync::CreateFsyncResult;
pub use error::{Result, WorkloadError};
pub use folder::Folder;
pub use fsync_cost::{FsyncCostResult, Times};
pub use fsync_storm::FsyncStormResult;
pub use iozone::IozoneResult;
pub use journal::JournalCounts;
pub use latency::Latency;
pub use mdtest::MdtestResult;
pub use metarates::MetaratesResult;
pub use micro_args::{FsyncStorm, Gaps, Iozone, Mdtest, Metarates, StormOp};
pub use phases::PhaseResult;
pub use report::{BenchReport, Outcome, SCHEMA};
pub use scaling::{ScalingResult, ScalingStep};
pub use stop::Stop;
pub use write_burst::WriteBurstResult;
pub use write_delay::WriteDelayResult;

impl Bench {
    /// Runs the workload and waits for its end.
    ///
    /// # Errors
    /// The first system call that failed, with the file's name; files made so far are removed
    /// (unless they are to be kept). An interrupt through `stop` is not an error: the report then
    /// covers what was done so far and says so.
    pub fn run(&self, stop: &Stop) -> Result<BenchReport> {
        match self {
            Self::CreateFsync(args) => create_fsync::run(args, stop),
            Self::WriteDelay(args) => write_delay::run(args, stop),
            Self::Burst(args) => burst::run(args, stop),
            Self::WriteBurst(args) => write_burst::run(args, stop),
            Self::FsyncCost(args) => fsync_cost::run(args, stop),
            Self::Scaling(args) => scaling::run(args, stop),
            Self::Metarates(args) => metarates::run(args, stop),
            Self::Iozone(args) => iozone::run(args, stop),
            Self::Mdtest(args) => mdtest::run(args, stop),
            Self::FsyncStorm(args) => fsync_storm::run(args, stop),
            Self::Worker => worker::process(),
        }
    }

    /// Whether the user asked for JSON instead of text.
    pub fn json(&self) -> bool {
        self.common().is_some_and(|common| common.json)
    }

    /// How long it takes; `None` where that shows only when it is over.
    pub fn length(&self) -> Option<Duration> {
        let seconds =
            |warmup_s: f64, seconds: f64| Some(Duration::from_secs_f64(warmup_s + seconds));
        let bursts = |warmup: u32, bursts: u32, period_ms: u32| {
            let bursts = u64::from(warmup) + u64::from(bursts);
            Some(Duration::from_millis(bursts * u64::from(period_ms)))
        };
        match self {
            Self::CreateFsync(args) if args.ops.is_none() => seconds(args.warmup_s, args.seconds),
            Self::WriteDelay(args) => seconds(args.warmup_s, args.seconds),
            Self::FsyncStorm(args) => seconds(args.warmup_s, args.seconds),
            Self::Burst(args) => bursts(args.warmup_bursts, args.bursts, args.period_ms),
            Self::WriteBurst(args) => bursts(args.warmup_bursts, args.bursts, args.period_ms),
            _ => None,
        }
    }

    fn common(&self) -> Option<&Common> {
        Some(match self {
            Self::CreateFsync(args) => &args.common,
            Self::WriteDelay(args) => &args.common,
            Self::Burst(args) => &args.common,
            Self::WriteBurst(args) => &args.common,
            Self::FsyncCost(args) => &args.common,
            Self::Scaling(args) => &args.common,
            Self::Metarates(args) => &args.common,
            Self::Iozone(args) => &args.common,
            Self::Mdtest(args) => &args.common,
            Self::FsyncStorm(args) => &args.common,
            Self::Worker => return None,
        })
    }
}
