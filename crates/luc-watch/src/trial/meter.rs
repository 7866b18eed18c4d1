//! Counts of a file system: the module's, and the tracer's if there is one.
//!
//! The module counts calls that waited for a commit. With LUC, more calls find their data already
//! committed, so the tracer, which sees every call and how long it takes, is better. It watches
//! both modes alike.

use luc_bpf::Counts;
use luc_host::sysfs::{self, Attached};
use luc_host::{System, journal};

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

pub struct Meter {
    sampler: Sampler,
    attached: Attached,
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
            attached: attached.clone(),
        };
        Ok((meter, lacks))
    }

    /// Reads the totals at this moment; `None` if LUC is off.
    pub fn read(&self, system: &dyn System) -> Option<Sums> {
        let commits = self.counter(system, "commits")?;
        let traced = self.sampler.counts(self.attached.device);
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
        let value = sysfs::counter_value(system, &self.attached, luc_control::counter(name)?)?;
        u64::try_from(value).ok()
    }

    /// Reads how long the journal's thread ran, ns: the first number of `schedstat`.
    fn thread_ns(&self, system: &dyn System) -> Option<u64> {
        let task = journal::thread(system, &self.attached.name)?;
        let stat = system.read(&format!("/proc/{task}/schedstat")).ok()?;
        stat.split_whitespace().next()?.parse().ok()
    }
}
