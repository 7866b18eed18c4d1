//! Counters of the kernel, read before and after a measurement.

use std::cell::RefCell;
use std::path::Path;

use crate::JournalCounts;
use crate::hardware::{Counters, HardwareCounts};
use crate::journal::Journal;
use crate::lab_disks;
use crate::scratch::Scratch;
use crate::usage::{Ticks, Usage};
use luc_power::activity::DiskActivity;
use luc_power::meter::{Meter, Sample, Spent};

/// The difference of two readings.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Commits, if the kernel shows them to this user.
    pub journal: Option<JournalCounts>,
    /// Busy time of all processors, nanoseconds, if it can be read.
    pub cpu_busy_ns: Option<u64>,
    /// How often a processor went idle, if it can be read.
    pub cpu_idle_periods: Option<u64>,
    /// Time between the readings of processors and disks, nanoseconds.
    pub cpu_elapsed_ns: Option<u64>,
    /// Activity of the lab's disks, if the machine has any.
    pub disks: Option<DiskActivity>,
    /// Time of all processors in programs and in the kernel, nanoseconds, by ticks.
    pub cpu_user_kernel_ns: Option<(u64, u64)>,
    pub hardware: HardwareCounts,
    /// Energy, if it was asked for.
    pub energy: Option<Spent>,
}

impl Observed {
    /// Adds the measurements of one run.
    pub fn sum(all: Vec<Self>) -> Self {
        all.into_iter().reduce(Self::and).unwrap_or_default()
    }

    fn and(self, other: Self) -> Self {
        let journal = self.journal.zip(other.journal);
        let busy_ns = self.cpu_busy_ns.zip(other.cpu_busy_ns);
        let idle_periods = self.cpu_idle_periods.zip(other.cpu_idle_periods);
        let elapsed_ns = self.cpu_elapsed_ns.zip(other.cpu_elapsed_ns);
        // The same disks again, so their number does not add up.
        let disks = self.disks.zip(other.disks).map(|(a, b)| DiskActivity {
            disks: a.disks,
            ..a.and(b)
        });
        let split_ns = self.cpu_user_kernel_ns.zip(other.cpu_user_kernel_ns);
        Self {
            journal: journal.map(|(a, b)| JournalCounts {
                commits: a.commits + b.commits,
                requested: a.requested + b.requested,
            }),
            cpu_busy_ns: busy_ns.map(|(a, b)| a + b),
            cpu_idle_periods: idle_periods.map(|(a, b)| a + b),
            cpu_elapsed_ns: elapsed_ns.map(|(a, b)| a + b),
            disks,
            cpu_user_kernel_ns: split_ns.map(|(a, b)| (a.0 + b.0, a.1 + b.1)),
            hardware: self.hardware.and(other.hardware),
            energy: self.energy.zip(other.energy).map(|(a, b)| a.and(b)),
        }
    }
}

/// Reads the counters of one file system and of the machine.
pub struct Observer {
    pub journal: Option<Journal>,
    counters: RefCell<Counters>,
    meter: Option<Meter>,
}

pub struct Reading {
    journal: Option<JournalCounts>,
    usage: Option<Usage>,
    ticks: Option<Ticks>,
    disks: Option<DiskActivity>,
    hardware: HardwareCounts,
    energy: Option<Sample>,
}

impl Observer {
    pub fn new(scratch: &Scratch, meter: Option<Meter>) -> Self {
        Self {
            journal: Journal::below(scratch.path()),
            counters: RefCell::new(Counters::open()),
            meter,
        }
    }

    pub fn read(&self) -> Reading {
        Reading {
            journal: self.journal.as_ref().and_then(Journal::counts),
            usage: Usage::read(),
            ticks: Ticks::read(),
            disks: lab_disks::activity(Path::new(lab_disks::ROOT)),
            hardware: self.counters.borrow_mut().read(),
            energy: self.meter.as_ref().map(Meter::sample),
        }
    }
}

impl Reading {
    pub fn until(&self, later: &Self) -> Observed {
        let journal = later.journal.zip(self.journal);
        let usage = later.usage.zip(self.usage);
        let ticks = later.ticks.zip(self.ticks);
        let disks = later.disks.zip(self.disks);
        let energy = later.energy.as_ref().zip(self.energy.as_ref());
        Observed {
            journal: journal.map(|(b, a)| b.since(a)),
            cpu_busy_ns: usage.map(|(b, a)| b.busy_ns_since(a)),
            cpu_idle_periods: usage.map(|(b, a)| b.idle_periods_since(a)),
            cpu_elapsed_ns: usage.map(|(b, a)| b.elapsed_ns_since(a)),
            disks: disks.map(|(b, a)| b.since(a)),
            cpu_user_kernel_ns: ticks.map(|(b, a)| b.since(a)),
            hardware: later.hardware.since(self.hardware),
            energy: energy.map(|(b, a)| a.until(b)),
        }
    }
}
