//! The benchmarks: one file and one row of the table below for each. The command line, its help and
//! man page, the JSON and the text follow from these.

mod app;
mod burst;
mod bursts;
mod create_fsync;
mod fsync_cost;
mod fsync_storm;
mod iozone;
mod mdtest;
mod metarates;
mod scaling;
mod write_burst;
mod write_delay;

use std::path::Path;
use std::time::Duration;

use clap::Subcommand;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::benchmark::{Benchmark, Found, Measured, Named};
use crate::wml::WmlResult;
use crate::worker::{self, Link, Part};
use crate::{Result, Stop, WorkloadError, processes};

pub use app::{App, AppResult};
pub use burst::{Burst, BurstResult, BurstTurn};
pub use bursts::Bursts;
pub use create_fsync::{CreateFsync, CreateFsyncCalls, CreateFsyncResult};
pub use fsync_cost::{FsyncCost, FsyncCostResult, Times};
pub use fsync_storm::{FsyncStorm, FsyncStormResult, Gaps, StormOp};
pub use iozone::{Iozone, IozoneResult};
pub use mdtest::{Mdtest, MdtestResult};
pub use metarates::{Metarates, MetaratesResult};
pub use scaling::{Scaling, ScalingResult, ScalingStep};
pub use write_burst::{WriteBurst, WriteBurstResult, WriteBurstTurn};
pub use write_delay::{WriteDelay, WriteDelayResult};

macro_rules! benches {
    ($($(#[$help:meta])+ $name:literal $args:ident $found:ident,)+) => {
        /// One benchmark with its arguments.
        #[derive(Clone, Debug, PartialEq, Subcommand)]
        pub enum Bench {
            $($(#[$help])+ #[command(name = $name)] $args($args),)+
            /// A worker process of one of the above; not for use by hand
            #[command(hide = true)]
            Worker,
        }

        /// The figures of one benchmark.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "workload")]
        pub enum Outcome {
            $(#[doc = concat!("The figures of `", $name, "`.")] #[serde(rename = $name)] $args($found),)+
            /// The figures of a workload file (`run`).
            #[serde(rename = "wml")]
            Wml(WmlResult),
        }

        impl Bench {
            /// Returns its name on the command line.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$args(_) => $name,)+
                    Self::Worker => processes::WORKER,
                }
            }

            /// Tells whether the user asked for JSON instead of text.
            pub fn json(&self) -> bool {
                match self {
                    $(Self::$args(args) => args.common.json,)+
                    Self::Worker => false,
                }
            }

            /// Tells whether the user asked for energy.
            pub fn wants_energy(&self) -> bool {
                match self {
                    $(Self::$args(args) => args.common.energy.is_wanted(),)+
                    Self::Worker => false,
                }
            }

            /// Returns how long it takes; `None` if that is known only when it is over.
            pub fn length(&self) -> Option<Duration> {
                match self {
                    $(Self::$args(args) => {
                        args.length().map(|length| args.common.energy.rest() + length)
                    })+
                    Self::Worker => None,
                }
            }

            /// Runs it; a worker process never returns.
            pub(crate) fn measure(&self, stop: &Stop) -> Result<Measured<Outcome>> {
                match self {
                    $(Self::$args(args) => args.run(stop).map(|it| it.map(Outcome::$args)),)+
                    Self::Worker => worker::process(work),
                }
            }
        }

        impl Outcome {
            /// Returns the directory it ran in.
            pub fn dir(&self) -> &Path {
                match self {
                    $(Self::$args(found) => &found.args.common.dir,)+
                    Self::Wml(found) => &found.dir,
                }
            }

            pub fn found(&self) -> &dyn Found {
                match self {
                    $(Self::$args(found) => found,)+
                    Self::Wml(found) => found,
                }
            }
        }

        $(impl Named for $args {
            const NAME: &'static str = $name;
        })+

        /// Does a worker's part of the benchmark of this name.
        fn work(name: &str, job: Value, link: &mut Link) -> Result<Vec<Part>> {
            match name {
                $($name => $args::work(job, link),)+
                _ => Err(WorkloadError::Arguments(format!("no benchmark {name}"))),
            }
        }
    };
}

benches! {
    /// N threads loop: create a file, optionally write it, fsync, close
    "create-fsync" CreateFsync CreateFsyncResult,
    /// Writers append to their own files while other threads create and fsync files
    "write-delay" WriteDelay WriteDelayResult,
    /// Threads wake close together, then each creates a file, fsyncs and closes it
    "burst" Burst BurstResult,
    /// Threads wake close together, then each writes a new file in pieces and fsyncs it
    "write-burst" WriteBurst WriteBurstResult,
    /// One thread measures the processor time of an fsync with and without its commit
    "fsync-cost" FsyncCost FsyncCostResult,
    /// Threads, each pinned to its own processor, fsync committed files as fast as they can
    "scaling" Scaling ScalingResult,
    /// Processes create, stat and touch files, phase by phase (`metarates`)
    "metarates" Metarates MetaratesResult,
    /// Children each write a new file; the first to finish stops the clocks (`iozone`)
    "iozone" Iozone IozoneResult,
    /// Processes create, stat and unlink files in a tree of directories (`mdtest`)
    "mdtest" Mdtest MdtestResult,
    /// Fsyncs arrive at a given rate or in bursts, whether or not earlier ones have ended
    "fsync-storm" FsyncStorm FsyncStormResult,
    /// A real program with its clients: etcd, dpkg, git and others, each by its own measures
    "app" App AppResult,
}
