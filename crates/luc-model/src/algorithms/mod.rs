//! The published model, section 4 of the dissertation: Algorithm 4.1 for fsyncs, Algorithm 4.2 for
//! writers.

mod fsync_model;
pub mod grouping;
mod line;
pub mod write_model;

pub use fsync_model::{Accuracy, CreationRate, FsyncModel, SyncPrediction, fsync_model};
pub use write_model::{SetSummary, WriteModel, write_model};
