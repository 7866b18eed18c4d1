//! Code that the programs share and that knows nothing of file systems.
//!
//! - [`words`]: numbers as people read them. [`nearest_name`]: what a misspelt name means.
//!   [`random`]: numbers that a seed fixes for good. [`Latency`]: times of operations, and a
//!   [`Recorder`] that collects them. [`Stop`]: asks a run to end early. [`Programs`]: where they
//!   are. [`replace_file`]: no reader sees half a file. [`Locked`]: one process at a time has one.
//!   [`Asleep`]: whether the machine slept.

// Names end with their unit, so many of them look alike.
#![allow(clippy::similar_names, clippy::struct_field_names)]

mod asleep;
mod latency;
mod locked;
mod names;
mod programs;
pub mod random;
mod replace;
mod stop;
pub mod words;

pub use asleep::Asleep;
pub use latency::{HIGHEST_NS, Latency, Mean, Recorder, summary};
pub use locked::Locked;
pub use names::nearest_name;
pub use programs::Programs;
pub use replace::{replace_file, replace_file_durably};
pub use stop::Stop;
