//! The analytical model: a trace in, a verdict out.
//!
//! An fsync on ext4 waits for a commit of the journal, and one commit runs at
//! a time. Two delays follow, and the model is about nothing else:
//!
//! - **Sync delay.** Who asks while a commit runs waits for the rest of it and
//!   for all of the next: two commits instead of one. [`grouping`] is
//!   Algorithm 4.1, which says who shares a commit with whom; [`mod@fsync_model`]
//!   puts its times beside those measured.
//! - **Write delay.** A write that must change a block which a commit is just
//!   writing sleeps until that is written. [`mod@write_model`] is Algorithm 4.2,
//!   which says which writers a commit blocks.
//!
//! [`observed`] reads the quantities of both off a trace: the commit that
//! served each sync, by its number where the trace knows it, and the waits
//! inside each write. [`whatif`] walks the threads of a trace again under
//! another rule, and so says what batching or copying out would give, before
//! anything is installed. [`cause`] looks over many traces for what goes with
//! throughput. [`mod@diagnosis`] names the delay that a file system has, what it
//! costs, and what would help: it is what `luc doctor` says.
//!
//! Everything is a pure function of its arguments: no clock, no files, no
//! privilege. Any trace is taken, also one in which time runs backwards or
//! half of the spans are lost; what cannot be known is counted as such and
//! never guessed. Times are ns of the monotonic clock.
//!
//! # What it assumes, and where it is known to be wrong
//!
//! The algorithms know when a sync began and when commits did. They decide by
//! comparing the two, and that is wrong in these cases:
//!
//! - *A sync belongs to the transaction that took in its change*, and not to
//!   the one that is open when it asks. A sync with data joins when its blocks
//!   are allocated, asks once they are written, and may find its commit under
//!   way or done. Algorithm 4.1 gives it the next one; [`mod@fsync_model`] counts how
//!   often it is right. The replay knows the difference.
//! - *A commit begins before its transaction is locked.* In between a sync can
//!   still join what Algorithm 4.1 takes for closed. The replay uses the lock.
//! - *Threads do not appear at their begin of fsync from nowhere.* Who is
//!   released by a commit asks again after a while of its own, so another
//!   grouping means other begins. Algorithm 4.1 explains a trace; only the
//!   replay can say what would have been.
//! - *Equations 11 and 12 are identities* once the measured end of the write is
//!   put in. [`mod@write_model`] says what it puts in instead.
//! - *Algorithm 4.2 takes a commit to block every writer from its begin to its
//!   end.* In fact a block is held only while it is written, and writers of
//!   other blocks pass. The measured waits stand beside the prediction.
//! - *The processor is free.* Waiting for it is part of an operation's time here; the
//!   replay knows how many processors there are.
//! - *One file system.* Several on one disk slow each other down unseen.
//!
//! The assumptions of the replay are listed in [`whatif`].

pub mod cause;
pub mod diagnosis;
pub mod fsync_model;
pub mod grouping;
pub mod observed;
mod pca;
mod stats;
pub mod whatif;
pub mod write_model;

pub use cause::{Cause, CauseError, Causes, Quantities, Throughput, rank};
pub use diagnosis::{Diagnosis, Facts, diagnose};
pub use fsync_model::{CreationRate, FsyncModel, fsync_model};
pub use observed::{Observed, Table};
pub use stats::Times;
pub use whatif::{Rule, WhatIf, WhatIfError, what_if};
pub use write_model::{WriteModel, write_model};
