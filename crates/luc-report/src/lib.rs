//! Measures LUC's gain, and shows it.
//!
//! Two programs of measurement: [`demo`] for a newcomer, [`matrix`] for a reader who checks the
//! figures. Each plans cells ([`plan`]), has a [`Lab`] measure them, keeps the raw [`Records`] as
//! JSON ([`measure`]), and renders a [`show::document::Document`] from the records alone: as text
//! for the terminal and as one self-contained HTML page ([`show`]). [`render_demo`] and
//! [`render_matrix`] render a kept file again; nothing is measured twice to be shown twice.
//!
//! Stock and LUC are always measured in the same boot of the same virtual machine, one after the
//! other, each on a file system of its own.

pub mod demo;
pub mod error;
pub mod matrix;
pub mod measure;
pub mod plan;
pub mod run;
pub mod show;
pub mod torture;

pub use error::{ReportError, Result};
pub use measure::lab::{Lab, StockLab};
pub use measure::record::{Record, Records};
pub use plan::args::{DemoArgs, MatrixArgs, OutputArgs};
pub use run::{Outcome, Progress, Quiet, demo, matrix, render_demo, render_matrix};
pub use show::{html, text};
