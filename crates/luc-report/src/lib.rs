//! Measuring what LUC gives, and showing it.
//!
//! Two programs of measurement: [`demo`] for a newcomer, [`matrix`] for whoever checks the
//! figures. Each plans cells ([`load`]), has a [`Lab`] measure them, keeps the raw [`Records`] as
//! JSON, and renders a [`document::Document`] from the records alone: as text for the terminal and
//! as one self-contained HTML page. [`render_demo`] and [`render_matrix`] do the second half again
//! from a kept file; nothing is measured twice to be shown twice.
//!
//! Stock and LUC are always measured in the same boot of the same virtual machine, one after the
//! other, each on a file system of its own.

pub mod args;
pub mod demo;
pub mod document;
pub mod error;
pub mod host;
pub mod html;
pub mod lab;
pub mod load;
pub mod matrix;
pub mod mode;
pub mod modelled;
pub mod origin;
mod pool;
pub mod record;
pub mod run;
pub mod svg;
pub mod targets;
pub mod text;
pub mod torture;

pub use args::{DemoArgs, MatrixArgs, OutputArgs};
pub use error::{ReportError, Result};
pub use lab::{Lab, StockLab};
pub use record::{Record, Records};
pub use run::{Outcome, Progress, Quiet, demo, matrix, render_demo, render_matrix};
