//! What runs the cells of a wave: this process, or an engine. A back-end is a file and a row.
//!
//! A back-end only starts `luc campaign cell` or does the same itself, and waits. What is missing
//! is found out from the results, so none of them keeps a state of its own.

use crate::cell::Cell;
use crate::error::Result;
use crate::measure::Board;
use crate::places::Setup;
use crate::store::Store;

pub mod local;

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
