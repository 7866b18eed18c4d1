//! Back-ends, which run a wave's cells: this process, or an engine. Each is a file and a row of
//! [`ALL`].
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

/// The command line's options on where and how cells run.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Most cells at the same time.
    pub jobs: Option<u32>,
    /// Options for engines that run jobs.
    pub engine: Option<Engine>,
}

/// The command line's options for an engine's jobs.
#[derive(Clone, Debug, Default)]
pub struct Engine {
    /// Partition for the jobs; `None`: the engine chooses.
    pub partition: Option<String>,
    /// Extra arguments for the submit command.
    pub submit_args: Vec<String>,
    /// The program that a job runs; `None`: this one.
    pub program: Option<PathBuf>,
    /// Seconds between two queries of the queue; `None`: the back-end's default.
    pub poll_s: Option<u32>,
}

/// A back-end on the command line.
pub struct BackendRow {
    /// Name, one word.
    pub name: &'static str,
    /// Description, one line.
    pub help: &'static str,
    /// # Errors
    /// This back-end does not support an option.
    pub make: fn(&Wishes) -> Result<Box<dyn Backend>>,
}

/// Every back-end; the first is the default.
pub const ALL: &[BackendRow] = &[
    BackendRow {
        name: local::NAME,
        help: "This machine",
        make: local::make,
    },
    BackendRow {
        name: slurm::NAME,
        help: "Slurm jobs; the results must be on a file system that the nodes share",
        make: slurm::make,
    },
];

#[cfg(test)]
mod tests {
    use super::{ALL, Engine, Wishes};

    #[test]
    fn rows_have_the_names_of_their_back_ends() {
        for row in ALL {
            let backend = (row.make)(&Wishes::default()).unwrap();
            assert_eq!(backend.name(), row.name);
        }
        let wishes = Wishes {
            engine: Some(Engine::default()),
            ..Wishes::default()
        };
        assert!(
            (ALL[0].make)(&wishes).is_err(),
            "this machine takes no jobs"
        );
    }
}
