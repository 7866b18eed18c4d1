//! Counters of the kernel, read before and after a measurement.

use std::cell::RefCell;

use crate::JournalCounts;
use crate::hardware::{Counters, HardwareCounts};
use crate::journal::Journal;
use crate::scratch::Scratch;
use crate::usage::{Ticks, Usage};

/// The difference of two readings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed {
    /// Commits, if the kernel shows them to this user.
    pub journal: Option<JournalCounts>,
    /// Busy time of all processors, nanoseconds, if it can be read.
    pub cpu_busy_ns: Option<u64>,
    /// Time of all processors in programs and in the kernel, nanoseconds, by ticks.
    pub cpu_user_kernel_ns: Option<(u64, u64)>,
    pub hardware: HardwareCounts,
}

impl Observed {
    /// Adds two measurements.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let journal = self.journal.zip(other.journal);
        let busy_ns = self.cpu_busy_ns.zip(other.cpu_busy_ns);
        let split_ns = self.cpu_user_kernel_ns.zip(other.cpu_user_kernel_ns);
        Self {
            journal: journal.map(|(a, b)| JournalCounts {
                commits: a.commits + b.commits,
                requested: a.requested + b.requested,
            }),
            cpu_busy_ns: busy_ns.map(|(a, b)| a + b),
            cpu_user_kernel_ns: split_ns.map(|(a, b)| (a.0 + b.0, a.1 + b.1)),
            hardware: self.hardware.and(other.hardware),
        }
    }
}

/// Reads the counters of one file system and of the machine.
pub struct Observer {
    pub journal: Option<Journal>,
    counters: RefCell<Counters>,
}

#[derive(Clone, Copy)]
pub struct Reading {
    journal: Option<JournalCounts>,
    usage: Option<Usage>,
    ticks: Option<Ticks>,
    hardware: HardwareCounts,
}

impl Observer {
    pub fn of(scratch: &Scratch) -> Self {
        Self {
            journal: Journal::below(scratch.path()),
            counters: RefCell::new(Counters::open()),
        }
    }

    pub fn read(&self) -> Reading {
        Reading {
            journal: self.journal.as_ref().and_then(Journal::counts),
            usage: Usage::read(),
            ticks: Ticks::read(),
            hardware: self.counters.borrow_mut().read(),
        }
    }
}

impl Reading {
    pub fn until(self, later: Self) -> Observed {
        let journal = later.journal.zip(self.journal);
        let usage = later.usage.zip(self.usage);
        let ticks = later.ticks.zip(self.ticks);
        Observed {
            journal: journal.map(|(b, a)| b.since(a)),
            cpu_busy_ns: usage.map(|(b, a)| b.busy_ns_since(a)),
            cpu_user_kernel_ns: ticks.map(|(b, a)| b.since(a)),
            hardware: later.hardware.since(self.hardware),
        }
    }
}
