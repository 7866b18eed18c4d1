//! The analytical model: a trace in, a verdict out.
//!
//! An fsync on ext4 waits for a commit of the journal, and one commit runs at a time. The model is
//! about the two delays that follow:
//!
//! - **Sync delay.** A task that calls fsync while a commit runs waits for the rest of it and for
//!   all of the next: two commits instead of one.
//! - **Write delay.** A write that must change a block which a commit is just writing sleeps until
//!   the block is written.
//!
//! | module | |
//! |---|---|
//! | [`algorithms`] | Algorithm 4.1 as published and the sets of Algorithm 4.2, beside the measured times |
//! | [`observed`] | a trace as syncs with the commits that served them, and writes with their waits |
//! | [`foretold`] | what LUC would give: the threads of a trace, run again by the simulator |
//! | [`causes`] | what goes with throughput over many traces |
//! | [`comparison`] | what `luc trace model` says |
//! | [`summary`] | what `luc trace summary` says |
//! | [`mod@diagnosis`] | what `luc doctor` says |
//!
//! Everything is a pure function of its arguments: no clock, no files, no privilege. Any trace is
//! taken, also one in which time runs backwards or half of the spans are lost. Unknown quantities
//! are counted as such and never guessed. Times are ns of the monotonic clock.
//!
//! # Known errors
//!
//! The algorithms know when a sync began and when commits did, and decide by comparing the two.
//! They are wrong in these cases; the replay's own assumptions are listed in
//! [`luc_sim::replayed`].
//!
//! - *A sync belongs to the transaction that took in its change*, not to the one that is open when
//!   it asks. A sync with data joins when its blocks are allocated, and asks once they are written.
//! - *A commit begins before its transaction is locked.* In between a sync can still join.
//! - *Another grouping means other begins of fsync*, as a released thread asks again after a while
//!   of its own. Algorithm 4.1 explains a trace; only the replay can predict another rule.
//! - *Equations 11 and 12 are identities* once the measured end of the write is put in.
//! - *Algorithm 4.2 takes a commit to block every writer from its begin to its end.* In fact a
//!   block is held only while it is written, and writers of other blocks pass.
//! - *The processor is free.* Waiting for it is part of an operation's time here.
//! - *One file system.* Several on one disk slow each other down unseen.

pub mod algorithms;
pub mod causes;
pub mod comparison;
pub mod diagnosis;
pub mod foretold;
pub mod observed;
mod stats;
mod stretches;
pub mod summary;

pub use algorithms::{CreationRate, FsyncModel, SetSummary, WriteModel, fsync_model, write_model};
pub use causes::{Cause, CauseError, Causes, Quantities, Throughput, rank};
pub use diagnosis::{Diagnosis, Facts, diagnose};
pub use foretold::{Foretold, Rule};
pub use observed::{Observed, Table};
pub use stats::Times;
