//! Back-ends, which run a wave's cells: this process, or an engine.
//!
//! A back-end starts `luc-lab campaign cell`, or does the same work itself, and waits. The results
//! tell which cells are missing, so a back-end keeps no state.

use std::path::PathBuf;

use crate::cell::Cell;
use crate::error::Result;
use crate::measure::Board;
use crate::places::Setup;
use crate::store::Store;

pub mod local;
pub mod slurm;

/// Something that runs cells.
pub trait Backend {
    /// Name on the command line.
    fn name(&self) -> &'static str;

    /// Measures these cells, in about this order, and returns when all have a result or have
    /// failed.
    ///
    /// # Errors
    /// It cannot run anything, or cannot keep a result.
    fn measure(
        &self,
        cells: &[Cell],
        store: &Store,
        setup: &Setup,
        board: &mut Board<'_>,
    ) -> Result<()>;
}

/// The command line's options on how cells run.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Most cells at the same time.
    pub jobs: Option<u32>,
    pub engine: Engine,
}

/// For a cluster
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "For a cluster")]
pub struct Engine {
    /// Partition to submit the jobs to
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// Argument for sbatch, which overrides LUC's own; may be repeated
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub sbatch_arg: Vec<String>,
    /// Path of luc-lab on the nodes [default: the path of this program]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::ExecutablePath)]
    pub program: Option<PathBuf>,
    /// Seconds between two checks of the queue, 1 to 3600 [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub poll_s: Option<u32>,
}
