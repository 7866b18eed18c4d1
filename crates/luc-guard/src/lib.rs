//! Is LUC at least 0.99 of stock on the live load? Measured by switching LUC to observing and back.
//!
//! [`run`] times one pair of windows, LUC steering in one and observing in the other, in random
//! order. [`course`] runs it on a file system whose knobs others may change meanwhile. [`pair`]
//! reduces a pair to one number: the logarithm of LUC's ratio to stock. [`evidence`] has two bets
//! on these numbers, for and against LUC, with the C code of the module's own trial: a capital that
//! has grown a hundredfold is a verdict. [`judge`] starts afresh when the load changes, and decides
//! whether throughput or latency counts; [`slow`] bets on the 99th percentile. [`guard`] says when
//! to try, and in which mode to rest between pairs; [`keeper`] does it. [`descent`] tries clocks of
//! the processors in the same way.
//!
//! Nothing here reads a file or a clock: time and counts are arguments, and all state can be saved.
//! `cargo run --release -p luc-guard --example verdicts` shows how often verdicts are wrong.

pub mod course;
pub mod descent;
pub mod evidence;
pub mod guard;
pub mod judge;
pub mod keeper;
pub mod pair;
pub mod run;
pub mod slow;
pub mod times;

pub use course::{Course, Step, Subject, Trouble, Why};
pub use descent::{ClockTrial, ClockVerdict, Descent, Tails, Undecided};
pub use evidence::{ALPHA, Evidence, LIMIT, TrialVerdict};
pub use guard::{Change, Guard, Stance};
pub use judge::{Heard, Judge};
pub use keeper::{Event, Keeper, Saved};
pub use pair::{Measure, Pair, Side, Window};
pub use run::{Lengths, Next, Run, Totals};
pub use slow::Slow;
pub use times::{Bucket, TAIL_CALLS_MIN, Times};
