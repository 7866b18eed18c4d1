//! The analytical model: a trace in, a verdict out.
//!
//! An fsync on ext4 waits for a commit of the journal, and one commit runs at a time. The model
//! covers the two delays that follow from this:
//!
//! - **Sync delay.** A task that calls fsync while a commit runs waits for the rest of it and for
//!   all of the next: two commits instead of one.
//! - **Write delay.** A write that must change a block which a commit is writing sleeps until the
//!   block is written.
//!
//! | module | |
//! |---|---|
//! | [`algorithms`] | Algorithm 4.1 as published and the sets of Algorithm 4.2, beside the measured times |
//! | [`observed`] | a trace as syncs with the commits that served them, and writes with their waits |
//! | [`foretold`] | predicted gains from LUC: the simulator runs the threads of a trace again |
//! | [`clocks`] | the answer of `luc power --from`: the same threads at lower clocks |
//! | [`sharing`] | the metadata blocks for which tasks wait, and whose inodes they hold |
//! | [`causes`] | the quantities that move with throughput over many traces |
//! | [`comparison`] | the answer of `luc trace model` |
//! | [`summary`] | the answer of `luc trace summary` |
//! | [`mod@diagnosis`] | the answer of `luc doctor` |
//!
//! Everything is a pure function of its arguments: no clock, no files, no privilege. Any trace is
//! accepted, even one in which time runs backwards or half of the spans are lost. Unknown
//! quantities count as unknown and are never guessed. Times are ns of the monotonic clock.
//!
//! # Known errors
//!
//! The algorithms know when syncs and commits began, and decide by comparing the two. They are
//! wrong in these cases; the replay's own assumptions are listed in [`luc_sim::replayed`].
//!
//! - *A sync belongs to the transaction that took in its change*, not to the one that is open when
//!   it asks. A sync with data joins when its blocks are allocated, and asks once they are written.
//! - *A commit begins before its transaction is locked.* Until then a sync can still join.
//! - *Another grouping means other starts of fsync*, because each released thread takes its own
//!   time to ask again. Algorithm 4.1 explains a trace; only the replay can predict another rule.
//! - *Equations 11 and 12 are identities* once they use the measured end of the write.
//! - *Algorithm 4.2 assumes that a commit blocks every writer from its start to its end.* In fact a
//!   block is held only while it is written, and writers of other blocks pass.
//! - *The processor is free.* A wait for it is part of an operation's time here.
//! - *One file system.* File systems on one disk slow each other down unseen.

pub mod algorithms;
pub mod blame;
pub mod causes;
pub mod clocks;
pub mod comparison;
pub mod diagnosis;
pub mod foretold;
pub mod lasting;
pub mod observed;
pub mod sharing;
mod stats;
mod stretches;
pub mod summary;
mod totals;
pub mod untimed;
mod writeback;

pub use algorithms::{CreationRate, FsyncModel, SetSummary, WriteModel, fsync_model, write_model};
pub use causes::{Cause, CauseError, Causes, Quantities, Throughput, rank};
pub use diagnosis::{Diagnosis, Facts, diagnose};
pub use foretold::{Foretold, Rule};
pub use observed::{Observed, ObservedTable};
pub use totals::Totals;
