//! Is LUC at least 0.99 of stock on the load that runs here? Measured while it runs, by switching
//! LUC to observing and back.
//!
//! [`run`] times one pair of windows, LUC steering in one and observing in the other, in random order;
//! [`course`] leads it on a file system that others may touch meanwhile. [`pair`] makes one number of a
//! pair: the logarithm of what LUC makes of stock. [`evidence`] has two bets on these numbers, for and
//! against LUC, made by the C code that the module has, too: a capital that has grown a hundredfold is a
//! verdict. [`judge`] starts anew where the load changes, and decides whether throughput or latency counts. [`guard`]
//! says when to try, and in which mode to rest meanwhile; [`keeper`] does it.
//!
//! Nothing here reads a file or a clock: time and counts are arguments, and what is remembered can be
//! written down. `cargo run --release -p luc-guard --example verdicts` shows what it is worth.

pub mod course;
pub mod evidence;
pub mod guard;
pub mod judge;
pub mod keeper;
pub mod pair;
pub mod run;

pub use course::{Course, Step, Subject, Trouble, Why};
pub use evidence::{ALPHA, Evidence, LIMIT, Verdict};
pub use guard::{Change, Guard, Stance};
pub use judge::{Heard, Judge};
pub use keeper::{Event, Keeper, Saved};
pub use pair::{Measure, Pair, Side, Window};
pub use run::{Lengths, Next, Run, Totals};
