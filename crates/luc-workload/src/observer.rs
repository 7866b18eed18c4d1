//! Counters of the kernel, read before and after a measurement.

use crate::JournalCounts;
use crate::journal::Journal;
use crate::scratch::Scratch;
use crate::usage::Usage;

/// The difference of two readings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed {
    /// Commits, where the kernel shows them to this user.
    pub journal: Option<JournalCounts>,
    /// Busy time of all processors, nanoseconds, where it can be read.
    pub cpu_busy_ns: Option<u64>,
}

impl Observed {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let journal = self.journal.zip(other.journal);
        let busy_ns = self.cpu_busy_ns.zip(other.cpu_busy_ns);
        Self {
            journal: journal.map(|(a, b)| JournalCounts {
                commits: a.commits + b.commits,
                requested: a.requested + b.requested,
            }),
            cpu_busy_ns: busy_ns.map(|(a, b)| a + b),
        }
    }
}

/// Reads the counters of one file system and of the machine.
pub struct Observer {
    pub journal: Option<Journal>,
}

#[derive(Clone, Copy)]
pub struct Reading {
    journal: Option<JournalCounts>,
    usage: Option<Usage>,
}

impl Observer {
    pub fn of(scratch: &Scratch) -> Self {
        let journal = Journal::below(scratch.path());
        Self { journal }
    }

    pub fn read(&self) -> Reading {
        Reading {
            journal: self.journal.as_ref().and_then(Journal::counts),
            usage: Usage::read(),
        }
    }
}

impl Reading {
    pub fn until(self, later: Self) -> Observed {
        let journal = later.journal.zip(self.journal);
        let usage = later.usage.zip(self.usage);
        Observed {
            journal: journal.map(|(b, a)| b.since(a)),
            cpu_busy_ns: usage.map(|(b, a)| b.busy_ns_since(a)),
        }
    }
}
