//! The options of a run of a workload file.

use clap::{Args, ValueEnum};

use crate::{EnergyOptions, Folder};

/// The requests that `aiowait` waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AioWait {
    /// Nothing: check once, as Filebench does on Linux, so writes may pile up without limit
    #[default]
    Poll,
    /// Half of the thread's pending writes, but at least one: the flowop's intended behaviour
    Half,
}

/// Arguments of `luc-lab bench run`, apart from the file and its variables.
#[derive(Args, Clone, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub struct WmlOptions {
    #[command(flatten)]
    pub dir: Folder,
    /// Measure for this many seconds instead of the time in the file
    #[arg(long, value_name = "S", value_parser = crate::args::duration_s)]
    pub seconds: Option<f64>,
    /// Measure this many I/O operations of all threads together instead of a time
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    pub ops: Option<u64>,
    /// Run for this many seconds before measuring
    #[arg(long, value_name = "S", default_value_t = 0.0, value_parser = crate::args::warmup_s)]
    pub warmup_s: f64,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Draw random numbers as Filebench does: never seeded, so every run has the same files and
    /// sizes
    #[arg(long, conflicts_with = "seed")]
    pub filebench_generator: bool,
    /// Sync the file system between preparation and run (Filebench does not)
    #[arg(long)]
    pub settle: bool,
    /// Writes that the flowop aiowait waits for
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub aio_wait: AioWait,
    /// Keep the files instead of removing them at the end
    #[arg(long)]
    pub keep: bool,
    /// UNSAFE upper bound: leave out fsync and synchronous writes, so nothing is made durable
    #[arg(long)]
    pub no_fsync: bool,
    /// Create the files, report on them, and run nothing
    #[arg(long, conflicts_with_all = ["ops", "seconds", "settle"])]
    pub prepare_only: bool,
    /// Let the shell run the commands that the file gives to system, as the user who runs this
    #[arg(long)]
    pub allow_system: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub energy: EnergyOptions,
}
