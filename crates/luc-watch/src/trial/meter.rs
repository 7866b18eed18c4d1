//! Counts of a file system: the module's, and the tracer's if there is one.
//!
//! The module counts calls that waited for a commit. With LUC, more calls find their data already
//! committed, so the tracer, which sees every call and how long it takes, is better. It watches
//! both modes alike.

use luc_bpf::Counts;
use luc_control::Dev;
use luc_guard::Totals;
use luc_host::System;
use luc_host::sysfs::{self, Attached};

use crate::WatchError;
use crate::sample::Sampler;

/// Totals at one moment; `None` if not seen.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    pub calls: u64,
    pub commits: u64,
    pub traced: Option<Counts>,
    pub writes_delayed: Option<u64>,
    /// CPU time of the journal's thread.
    pub thread_ns: Option<u64>,
}

impl Sums {
    pub fn totals(&self) -> Totals {
        Totals {
            calls: self.calls,
            commits: self.commits,
            waited_ns: self.traced.as_ref().map(|counts| counts.sync_ns),
        }
    }
}

pub struct Meter {
    sampler: Sampler,
    device: Dev,
    name: String,
}

impl Meter {
    /// Creates the meter of a file system with LUC on, and lists the sources that are missing.
    pub fn new(
        attached: &Attached,
        system: &dyn System,
    ) -> Result<(Self, Vec<String>), WatchError> {
        let sampler = Sampler::even_blind(Some(attached.device), None, system)?;
        let mut sampler = sampler.without_processes();
        let lacks = sampler.read(system)?.lacks;
        let meter = Self {
            sampler,
            device: attached.device,
            name: attached.name.clone(),
        };
        Ok((meter, lacks))
    }

    /// Reads the totals at this moment; `None` if LUC is off.
    pub fn read(&self, system: &dyn System) -> Option<Sums> {
        let commits = self.counter(system, "commits")?;
        let traced = self.sampler.counts(self.device);
        let calls = if let Some(counts) = &traced {
            counts.syncs
        } else {
            let waited = self.counter(system, "sync_events")?;
            waited + self.counter(system, "fast_commits").unwrap_or(0)
        };
        Some(Sums {
            calls,
            commits,
            traced,
            writes_delayed: self.counter(system, "writes_delayed"),
            thread_ns: self.thread_ns(system),
        })
    }

    fn counter(&self, system: &dyn System, name: &str) -> Option<u64> {
        let attached = Attached {
            name: self.name.clone(),
            device: self.device,
        };
        let value = sysfs::counter_value(system, &attached, luc_control::counter(name)?)?;
        u64::try_from(value).ok()
    }

    /// Reads how long the journal's thread ran, ns: the first number of `schedstat`.
    fn thread_ns(&self, system: &dyn System) -> Option<u64> {
        let task = system.read(&format!("/sys/fs/ext4/{}/journal_task", self.name));
        let task: u32 = task.ok()?.trim().parse().ok()?;
        let stat = system.read(&format!("/proc/{task}/schedstat")).ok()?;
        stat.split_whitespace().next()?.parse().ok()
    }
}
