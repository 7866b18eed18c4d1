//! Counts of a file system: the module's, and the tracer's if there is one.
//!
//! The module counts calls that waited for a commit. With LUC, more calls find their data already
//! committed, so the tracer, which sees every call and how long it takes, is better. It watches
//! both modes alike.

use luc_bpf::{Counts, Histogram};
use luc_guard::{Bucket, Subject, Times, Totals};
use luc_host::sysfs::{self, Attached};
use luc_host::{HostError, System, journal};
use luc_power::meter::Sample;

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
    pub energy: Option<Sample>,
}

impl Sums {
    /// The totals that windows are made of.
    pub fn totals(&self) -> Totals {
        let traced = self.traced.as_ref();
        Totals {
            calls: self.calls,
            commits: self.commits,
            waited_ns: traced.map(|counts| counts.sync_ns),
            times: traced.map(|counts| times(&counts.sync_hist)),
        }
    }
}

fn times(histogram: &Histogram) -> Times {
    let mut from_ns = 0;
    Times::new(histogram.buckets_ns().map(|(to_ns, syncs)| Bucket {
        from_ns: std::mem::replace(&mut from_ns, to_ns),
        to_ns,
        syncs,
    }))
}

/// A subject with more to read at the edges of its windows.
pub trait Measured: Subject {
    type Sums: Clone;

    /// Reads the totals up to now; `None` if nothing counts any more.
    fn sums(&self) -> Option<Self::Sums>;
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
        Self::with(
            Sampler::even_blind(Some(attached.device), None, system)?,
            attached,
            system,
        )
    }

    /// Creates the meter of a file system that the tracer watches, or else LUC.
    pub fn with_or_without_luc(
        attached: &Attached,
        system: &dyn System,
    ) -> Result<(Self, Vec<String>), WatchError> {
        let sampler = Sampler::new(Some(attached.device), None, system)?;
        let (meter, lacks) = Self::with(sampler, attached, system)?;
        if meter.read_any(system).is_none() {
            // Without a tracer only LUC counts.
            let path = attached.name.replace('!', "/");
            return Err(HostError::NotOn { path }.into());
        }
        Ok((meter, lacks))
    }

    fn with(
        sampler: Sampler,
        attached: &Attached,
        system: &dyn System,
    ) -> Result<(Self, Vec<String>), WatchError> {
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
            energy: None,
        })
    }

    /// Reads the totals at this moment, with LUC on or off; `None` if nothing counts.
    pub fn read_any(&self, system: &dyn System) -> Option<Sums> {
        self.read(system).or_else(|| {
            let counts = self.sampler.counts(self.attached.device)?;
            Some(Sums {
                calls: counts.syncs,
                commits: counts.commits,
                traced: Some(counts),
                ..Sums::default()
            })
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

#[cfg(test)]
mod tests {
    use luc_guard::slow::{CERTIFIED, REFUTED};

    use super::*;

    /// The claim of a certificate allows for the buckets: LUC's percentile may lie anywhere below
    /// the first bound above 1.2 q, and stock's anywhere in the bucket below q.
    #[test]
    fn the_tracers_buckets_are_as_narrow_as_a_certificate_claims() {
        let mut histogram = Histogram::default();
        histogram.record(1 << 39);
        let bounds: Vec<f64> = histogram.buckets_ns().map(|(ns, _)| ns as f64).collect();
        for stock in bounds.windows(2).filter(|ends| ends[0] > 1000.0) {
            let slow = bounds.iter().find(|ns| **ns >= REFUTED * stock[1]);
            assert!(
                slow.is_none_or(|ns| ns / stock[0] <= CERTIFIED),
                "{stock:?}"
            );
        }
    }

    #[test]
    fn windows_have_the_times_that_the_tracer_counted() {
        let mut counts = Counts::default();
        for ns in [5_000_000, 5_000_001, 70_000_000] {
            counts.syncs += 1;
            counts.sync_hist.record(ns);
        }
        let sums = Sums {
            calls: 9,
            traced: Some(counts),
            ..Sums::default()
        };
        let times = sums.totals().times.expect("seen");
        let [fast, slow] = times.buckets() else {
            panic!("{times:?}");
        };
        assert_eq!((fast.syncs, slow.syncs), (2, 1));
        assert!((slow.from_ns..slow.to_ns).contains(&70_000_000));
        assert_eq!(Sums::default().totals().times, None);
    }
}
