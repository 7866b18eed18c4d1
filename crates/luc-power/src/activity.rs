//! What the parts of a machine did within a measurement, from which a model computes its energy.
//!
//! A result keeps the activity, not the energy: other watts, or another machine, then need no
//! other run.

use serde::{Deserialize, Serialize};

/// What a machine did within a measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// Length of the measurement, ns.
    pub elapsed_ns: u64,
    pub processors: Vec<ProcessorActivity>,
    pub disks: DiskActivity,
}

/// What one processor did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorActivity {
    /// Busy time at each clock, by clock.
    pub busy: Vec<AtClock>,
    /// Idle periods by length; what is neither busy nor in one of them is a period that began or
    /// ended outside the measurement.
    pub idle: Vec<IdlePeriods>,
}

/// Busy time at one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtClock {
    /// Thousand instructions per second: the speed at this clock.
    pub kips: u64,
    pub busy_ns: u64,
}

/// Idle periods of similar length: at least 2^`log2_ns` ns, less than twice that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdlePeriods {
    pub log2_ns: u8,
    pub count: u64,
    pub sum_ns: u64,
}

/// What the disks did, all of an array together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskActivity {
    pub disks: u64,
    /// Time with at least one request in service, of all disks together, ns.
    pub busy_ns: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub flushes: u64,
}
