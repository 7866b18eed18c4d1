//! Reports, and the campaign of power cuts.
//!
//! [`show`] renders a [`show::document::Document`] as text for the terminal and as one
//! self-contained HTML page. [`torture`] cuts the power of many virtual machines.

pub mod error;
mod lab;
pub mod show;
pub mod torture;

pub use error::{ReportError, Result};
pub use lab::StockLab;
pub use show::{html, text};

/// Shows the progress of a measurement. Called from several threads.
pub trait BatchProgress: Sync {
    /// `done` of `total` parts are measured; `now` is the current work of one machine.
    fn step(&self, _done: usize, _total: usize, _now: &str) {}
    /// Something that the user should know but that stops nothing; one line.
    fn note(&self, _text: &str) {}
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl BatchProgress for Quiet {}
