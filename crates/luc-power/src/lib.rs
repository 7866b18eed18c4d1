//! Energy: what a machine's counters and meters say, and what a model makes of its parts' activity.
//!
//! - [`activity`]: what the parts of a machine did within a measurement; the simulator knows it.
//! - [`machine`]: watts of machines, and the energy of an activity on them.
//! - [`meter`]: what this machine's counters and meters measured.

pub mod activity;
pub mod machine;
pub mod meter;
