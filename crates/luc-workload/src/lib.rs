//! Workloads that make a file system commit its journal, and the times of their operations.
//!
//! Nothing here knows whether LUC steers commits: the same program runs against any file system,
//! and prints its own result. Times come from `CLOCK_MONOTONIC`, so on a virtual
//! clock they are virtual times.
//!
//! Rules that all workloads keep:
//!
//! - Real threads or processes start together at one moment; the measured loops take no lock and
//!   make no allocation that grows.
//! - Every system call that fails ends the run, and the error names the call and the file.
//! - All files live in one new directory, `luc-bench.<pid>`, inside the directory that was given,
//!   and are removed with it unless the caller wants to keep them. Unlinking happens after the
//!   measurement, or, if a loop must bound its files, outside the timed operations.
//! - The same arguments and seed ask for the same operations in the same order per thread.

// Names end with their unit, so many of them look alike.
#![allow(clippy::similar_names, clippy::struct_field_names)]

pub mod apps;
mod args;
mod benches;
mod benchmark;
mod clock;
mod crew;
mod dir;
mod energy;
mod error;
mod file_phase;
mod folder;
mod hardware;
mod journal;
mod lab_disks;
mod letters;
mod marks;
mod observer;
mod phases;
mod processes;
mod random;
mod rates;
mod report;
mod scratch;
mod text;
mod usage;
pub mod wml;
mod worker;

pub use args::Common;
pub use benches::*;
pub use benchmark::{Figures, Found, Measured};
pub use clock::{gathering_ns, seconds_ns};
pub use energy::EnergyOptions;
pub use error::{Result, WorkloadError};
pub use file_phase::Step;
pub use folder::Folder;
pub use hardware::HardwareCounts;
pub use journal::JournalCounts;
pub use luc_base::{Latency, Recorder, Stop};
pub use observer::Observed;
pub use phases::PhaseResult;
pub use processes::Phase;
pub use report::{BenchReport, SCHEMA};
pub use text::Lines;
pub use worker::Part;
