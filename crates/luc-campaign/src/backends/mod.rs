//! The runner of a wave's cells: this process, or an engine. A back-end is a file and a row of
//! [`ALL`].
//!
//! A back-end only starts `luc campaign cell` or does the same itself, and waits. What is missing
//! is found out from the results, so none of them keeps a state of its own.

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
    /// As on the command line.
    fn name(&self) -> &'static str;

    /// Measures these cells, in about this order, and returns when all have a result or failed.
    ///
    /// # Errors
    /// It can run nothing, or a result cannot be kept.
    fn measure(
        &self,
        cells: &[Cell],
        store: &Store,
        setup: &Setup,
        board: &mut Board<'_>,
    ) -> Result<()>;
}

/// The command line's wishes about where and how cells run.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Cells at the same time, at most.
    pub jobs: Option<u32>,
    /// For engines that run jobs.
    pub engine: Option<Engine>,
}

/// The command line's wishes for jobs of an engine.
#[derive(Clone, Debug, Default)]
pub struct Engine {
    /// Where the jobs go; `None`: where the engine puts them.
    pub partition: Option<String>,
    /// Further arguments of the command that submits.
    pub submit_args: Vec<String>,
    /// The program that a job runs; `None`: this one.
    pub program: Option<PathBuf>,
    /// Seconds between two looks at the queue; `None`: as the back-end has it.
    pub poll_s: Option<u32>,
}

/// A back-end on the command line.
pub struct Row {
    /// One word.
    pub name: &'static str,
    /// One line.
    pub help: &'static str,
    /// # Errors
    /// A wish that this back-end cannot fulfil.
    pub make: fn(&Wishes) -> Result<Box<dyn Backend>>,
}

/// Every back-end; the first is the default.
pub const ALL: &[Row] = &[
    Row {
        name: local::NAME,
        help: "This machine",
        make: local::make,
    },
    Row {
        name: slurm::NAME,
        help: "Jobs of Slurm; the results must lie on a file system that its nodes share",
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
