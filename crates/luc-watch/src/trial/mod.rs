//! LUC against stock on a file system that is in use, for `luc try` and `luc guard`.
//!
//! `luc_guard` decides when to switch and what pairs show. This module has what it acts on:
//! [`HostSubject`], the module's files of a file system, with the counts there; [`trial_files`],
//! files below `/run/luc` from which the next command can restore LUC after a crash; [`recovery`],
//! which restores LUC's state after `luc try`; [`GuardedFileSystems`], those that a process
//! guards; [`GuardFindings`], a guard's notes as other commands show them.

mod guard_findings;
mod guarded;
mod host_subject;
mod meter;
mod pair;
pub mod recovery;
mod tally;
pub mod trial_files;

pub use guard_findings::GuardFindings;
pub use guarded::GuardedFileSystems;
pub use host_subject::HostSubject;
pub use meter::{Measured, Meter, Sums};
pub use pair::{Ended, Windows, compare_pair, run_pair};
pub use tally::{Half, Ratio, Shown, Tally, sentence};

/// A number that two processes hardly ever share.
pub fn seed() -> u64 {
    crate::time::now_ns() ^ u64::from(std::process::id()).rotate_left(32)
}
