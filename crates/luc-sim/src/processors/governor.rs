//! Governors: the kernel's rules that choose the processors' clock from their load.
//!
//! `schedutil` (`kernel/sched/cpufreq_schedutil.c` of 6.12) follows the scheduler's averages: a
//! quarter more than a processor's share of busy time. That share is an average with a half-life
//! of 32 ms, in which time at a lower clock counts less. A task that wakes from `io_schedule()`
//! raises the share to an eighth, and doubles it at each further such wake-up within a tick. Waits
//! for a shadowed buffer, for the log's writes and for data are of this kind; the wait of an fsync
//! for its commit is not, so that tasks in fsync get no boost.
//!
//! `ondemand` (`drivers/cpufreq/cpufreq_ondemand.c`) samples every 10 ms: the highest clock above a
//! load of 95%, else a clock in proportion to the load. On Intel's processors it counts idle time
//! as load while a task waits in `io_schedule()`.
//!
//! `du-dvfs` chooses by the disk: the lowest clock while the disk is busy all the time, else the
//! highest (Imamura, Yoshida and Oe: Reducing CPU Power Consumption with Device Utilization-Aware
//! DVFS for Low-Latency SSDs, IEICE Transactions on Information and Systems E102-D 9, 2019). The
//! abstract gives neither period nor threshold; they are those of `ondemand` here.
//!
//! Simplifications: a task takes no share with it to another processor, the scheduler's estimate of
//! a task that sleeps (`util_est`) is left out, and a change of the clock takes no time.

use std::ops::Range;

use crate::named::{self, NotSimulated};

/// Half-life of the scheduler's averages, ns.
const HALF_LIFE_NS: f64 = 32e6;
/// The headroom that schedutil leaves.
const HEADROOM: f64 = 1.25;
/// The first boost of a task that waited for the disk.
const BOOST_FIRST: f64 = 0.125;
/// Shortest time between two changes by schedutil: that of `intel_pstate` in passive mode, ns.
const CHANGE_NS: u64 = 500_000;
/// Period of the governors that sample, ns, and the load from which the clock is the highest.
const SAMPLE_NS: u64 = 10_000_000;
const LOAD_HIGH: f64 = 0.95;

/// A rule that chooses clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Highest,
    Lowest,
    Schedutil,
    Ondemand,
    DiskUtilization,
}

/// A governor of the kernel, or of the literature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Governor {
    pub name: &'static str,
    pub help: &'static str,
    pub rule: Rule,
}

pub const GOVERNORS: [Governor; 5] = [
    Governor {
        name: "performance",
        help: "the highest clock",
        rule: Rule::Highest,
    },
    Governor {
        name: "powersave",
        help: "the lowest clock",
        rule: Rule::Lowest,
    },
    Governor {
        name: "schedutil",
        help: "by the scheduler's averages, with a boost after waits for the disk",
        rule: Rule::Schedutil,
    },
    Governor {
        name: "ondemand",
        help: "by the load of the last 10 ms, waits for the disk included",
        rule: Rule::Ondemand,
    },
    Governor {
        name: "du-dvfs",
        help: "the lowest clock while the disk is busy all the time, else the highest",
        rule: Rule::DiskUtilization,
    },
];

/// Returns the governor with this name.
///
/// # Errors
/// There is no such governor.
pub fn named(name: &str) -> Result<&'static Governor, NotSimulated> {
    named::find("governor", &GOVERNORS, |governor| governor.name, name)
}

/// Clocks, and the governor that chooses among them.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    pub governor: &'static Governor,
    /// The speeds at the clocks, MIPS, in ascending order; at least one.
    pub clocks_mips: Vec<f64>,
    /// Each processor has its own clock; otherwise one clock serves all.
    pub is_per_processor: bool,
}

/// How a processor is used at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Busy,
    /// Idle while a task waits for the disk that had this processor last.
    IdleForIo,
    Idle,
}

/// The state of a governor.
#[derive(Debug)]
pub(super) struct Governed {
    rule: Rule,
    clocks_mips: Vec<f64>,
    is_per_processor: bool,
    tick_ns: u64,
    loads: Vec<Load>,
    disk_busy_ns: u64,
    sampled_ns: u64,
}

/// A governor's view of a processor.
#[derive(Clone, Debug)]
struct Load {
    mips: f64,
    changed_ns: u64,
    is: Use,
    noted_ns: u64,
    /// The scheduler's average of busy time, weighed by the clock: 0 to 1.
    share: f64,
    /// Busy time since the last sample, waits for the disk included, ns.
    loaded_ns: u64,
    boost: f64,
    is_boost_asked: bool,
    boost_noted_ns: u64,
}

impl Governed {
    pub(super) fn new(scaling: &Scaling, cpus: usize, tick_ns: u64) -> Self {
        let clocks_mips = scaling.clocks_mips.clone();
        let lowest = clocks_mips.first().copied().unwrap_or(1.0);
        let highest = clocks_mips.last().copied().unwrap_or(lowest);
        let load = Load {
            mips: match scaling.governor.rule {
                Rule::Highest | Rule::DiskUtilization => highest,
                _ => lowest,
            },
            changed_ns: 0,
            is: Use::Idle,
            noted_ns: 0,
            share: 0.0,
            loaded_ns: 0,
            boost: 0.0,
            is_boost_asked: false,
            boost_noted_ns: 0,
        };
        Self {
            rule: scaling.governor.rule,
            clocks_mips,
            is_per_processor: scaling.is_per_processor,
            tick_ns,
            loads: vec![load; cpus],
            disk_busy_ns: 0,
            sampled_ns: 0,
        }
    }

    /// Returns the speed at which processors start.
    pub(super) fn mips(&self) -> f64 {
        self.loads.first().map_or(1.0, |load| load.mips)
    }

    pub(super) fn sampling_ns(&self) -> Option<u64> {
        matches!(self.rule, Rule::Ondemand | Rule::DiskUtilization).then_some(SAMPLE_NS)
    }

    /// Notes how a processor is used from now on.
    pub(super) fn note(&mut self, at: usize, is: Use, now_ns: u64) {
        let highest = self.highest();
        self.loads[at].pass(now_ns, highest);
        self.loads[at].is = is;
    }

    /// Updates the boost of a processor on which a task becomes ready, `is_from_io` if it waited
    /// for the disk.
    pub(super) fn boost(&mut self, at: usize, now_ns: u64, is_from_io: bool) {
        let tick_ns = self.tick_ns;
        self.loads[at].boost(now_ns, is_from_io, tick_ns);
    }

    /// Chooses the speed of the processors that share a clock with this one; `None` to keep it.
    pub(super) fn choose(&mut self, at: usize, now_ns: u64) -> Option<(Range<usize>, f64)> {
        let domain = self.domain(at);
        let first = &self.loads[domain.start];
        if self.rule != Rule::Schedutil || now_ns < first.changed_ns + CHANGE_NS {
            return None;
        }
        let (highest, tick_ns) = (self.highest(), self.tick_ns);
        let mut most: f64 = 0.0;
        for load in &mut self.loads[domain] {
            load.pass(now_ns, highest);
            most = most.max(load.boosted(now_ns, tick_ns));
        }
        self.set(at, now_ns, self.at_least(HEADROOM * most * highest))
    }

    /// Chooses the speed of all processors from what happened since the last sample.
    pub(super) fn sample(&mut self, now_ns: u64, disk_busy_ns: u64) -> Vec<(Range<usize>, f64)> {
        let (lowest, highest) = (self.lowest(), self.highest());
        let passed_ns = now_ns.saturating_sub(self.sampled_ns).max(1);
        let disk_ns = disk_busy_ns.saturating_sub(self.disk_busy_ns);
        (self.sampled_ns, self.disk_busy_ns) = (now_ns, disk_busy_ns);
        let is_disk_full = disk_ns as f64 >= LOAD_HIGH * passed_ns as f64;
        let mut chosen = Vec::new();
        let mut at = 0;
        while at < self.loads.len() {
            let domain = self.domain(at);
            let mut load: f64 = 0.0;
            for one in &mut self.loads[domain.clone()] {
                one.pass(now_ns, highest);
                let loaded_ns = std::mem::take(&mut one.loaded_ns);
                load = load.max(loaded_ns as f64 / passed_ns as f64);
            }
            let mips = match self.rule {
                Rule::DiskUtilization if is_disk_full => lowest,
                Rule::DiskUtilization => highest,
                _ if load > LOAD_HIGH => highest,
                _ => self.nearest(lowest + load * (highest - lowest)),
            };
            at = domain.end;
            chosen.extend(self.set(domain.start, now_ns, mips));
        }
        chosen
    }

    fn set(&mut self, at: usize, now_ns: u64, mips: f64) -> Option<(Range<usize>, f64)> {
        let domain = self.domain(at);
        if self.loads[domain.start].mips.total_cmp(&mips).is_eq() {
            return None;
        }
        for load in &mut self.loads[domain.clone()] {
            load.mips = mips;
            load.changed_ns = now_ns;
        }
        Some((domain, mips))
    }

    /// Returns the processors that share a clock with this one.
    fn domain(&self, at: usize) -> Range<usize> {
        if self.is_per_processor {
            at..at + 1
        } else {
            0..self.loads.len()
        }
    }

    fn lowest(&self) -> f64 {
        self.clocks_mips.first().copied().unwrap_or(1.0)
    }

    fn highest(&self) -> f64 {
        self.clocks_mips.last().copied().unwrap_or(1.0)
    }

    fn at_least(&self, mips: f64) -> f64 {
        let enough = self.clocks_mips.iter().find(|clock| **clock >= mips);
        enough.copied().unwrap_or(self.highest())
    }

    fn nearest(&self, mips: f64) -> f64 {
        let off = |clock: &f64| (clock - mips).abs();
        let clocks = self.clocks_mips.iter().copied();
        clocks
            .min_by(|a, b| off(a).total_cmp(&off(b)))
            .unwrap_or(mips)
    }
}

impl Load {
    /// Counts the time since the last note.
    fn pass(&mut self, now_ns: u64, highest_mips: f64) {
        let ns = now_ns.saturating_sub(self.noted_ns);
        self.noted_ns = self.noted_ns.max(now_ns);
        let kept = (-(ns as f64) / HALF_LIFE_NS).exp2();
        let busy = if self.is == Use::Busy { 1.0 } else { 0.0 };
        self.share = self.share * kept + busy * (self.mips / highest_mips) * (1.0 - kept);
        if self.is != Use::Idle {
            self.loaded_ns += ns;
        }
    }

    /// `sugov_iowait_boost()`.
    fn boost(&mut self, now_ns: u64, is_from_io: bool, tick_ns: u64) {
        let is_old = now_ns.saturating_sub(self.boost_noted_ns) > tick_ns;
        self.boost_noted_ns = now_ns;
        if self.boost > 0.0 && is_old {
            self.boost = if is_from_io { BOOST_FIRST } else { 0.0 };
            self.is_boost_asked = is_from_io;
        } else if is_from_io && !self.is_boost_asked {
            self.is_boost_asked = true;
            self.boost = (self.boost * 2.0).clamp(BOOST_FIRST, 1.0);
        }
    }

    /// `sugov_iowait_apply()`: the share with its boost, which halves unless it was asked for.
    fn boosted(&mut self, now_ns: u64, tick_ns: u64) -> f64 {
        if self.boost == 0.0 {
            return self.share;
        }
        if now_ns.saturating_sub(self.boost_noted_ns) > tick_ns {
            (self.boost, self.is_boost_asked) = (0.0, false);
            return self.share;
        }
        if !std::mem::take(&mut self.is_boost_asked) {
            self.boost /= 2.0;
            if self.boost < BOOST_FIRST {
                self.boost = 0.0;
            }
        }
        self.share.max(self.boost)
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // Clocks are chosen, not computed.
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn governed(name: &str) -> Governed {
        let scaling = Scaling {
            governor: named(name).unwrap(),
            clocks_mips: vec![1000.0, 2000.0, 4000.0],
            is_per_processor: false,
        };
        Governed::new(&scaling, 2, 4 * MS)
    }

    fn mips(chosen: Option<(Range<usize>, f64)>) -> Option<f64> {
        chosen.map(|(domain, mips)| {
            assert_eq!(domain, 0..2);
            mips
        })
    }

    #[test]
    fn schedutil_follows_busy_time_up_and_down() {
        let mut it = governed("schedutil");
        it.note(1, Use::Busy, 0);
        // Busy for a half-life at a quarter of the highest speed: a share of an eighth.
        assert_eq!(mips(it.choose(0, 32 * MS)), None);
        assert!((it.loads[1].share - 0.125).abs() < 1e-9);
        // At a quarter of the speed the share approaches a quarter; it asks for a quarter more.
        assert_eq!(mips(it.choose(0, 100 * MS)), Some(2000.0));
        assert_eq!(mips(it.choose(0, 100 * MS + CHANGE_NS - 1)), None);
        assert_eq!(mips(it.choose(0, 200 * MS)), Some(4000.0));
        it.note(1, Use::Idle, 400 * MS);
        assert_eq!(mips(it.choose(0, 450 * MS)), Some(2000.0));
        assert_eq!(mips(it.choose(0, 900 * MS)), Some(1000.0));
    }

    #[test]
    fn frequent_waits_for_the_disk_boost_schedutil_and_rare_ones_hardly_do() {
        let mut it = governed("schedutil");
        let mut found = Vec::new();
        for wakeup in 1..=4 {
            let now_ns = wakeup * MS;
            it.boost(0, now_ns, true);
            found.extend(mips(it.choose(0, now_ns)));
        }
        // 1/8, 1/4, 1/2, 1, each with a quarter more.
        assert_eq!(found, [2000.0, 4000.0]);
        let mut it = governed("schedutil");
        for wakeup in 1..=20 {
            let now_ns = wakeup * 10 * MS;
            it.boost(0, now_ns, true);
            assert_eq!(mips(it.choose(0, now_ns)), None);
        }
        // Other wake-ups boost nothing.
        it.boost(0, 1000 * MS, false);
        assert_eq!(it.loads[0].boost, 0.0);
    }

    #[test]
    fn ondemand_counts_waits_for_the_disk() {
        let sampled = |is| {
            let mut it = governed("ondemand");
            it.note(0, is, 0);
            it.note(0, Use::Idle, 4 * MS);
            mips(it.sample(10 * MS, 0).pop())
        };
        assert_eq!(sampled(Use::Busy), Some(2000.0));
        assert_eq!(sampled(Use::IdleForIo), Some(2000.0));
        assert_eq!(sampled(Use::Idle), None);
        let mut it = governed("ondemand");
        it.note(0, Use::Busy, 0);
        assert_eq!(mips(it.sample(10 * MS, 0).pop()), Some(4000.0));
    }

    #[test]
    fn a_busy_disk_lowers_the_clock_of_du_dvfs() {
        let mut it = governed("du-dvfs");
        assert_eq!(it.mips(), 4000.0);
        assert_eq!(mips(it.sample(10 * MS, 5 * MS).pop()), None);
        assert_eq!(mips(it.sample(20 * MS, 15 * MS).pop()), Some(1000.0));
        assert_eq!(mips(it.sample(30 * MS, 16 * MS).pop()), Some(4000.0));
    }

    #[test]
    fn each_processor_may_have_its_own_clock() {
        let scaling = Scaling {
            governor: named("schedutil").unwrap(),
            clocks_mips: vec![1000.0, 4000.0],
            is_per_processor: true,
        };
        let mut it = Governed::new(&scaling, 2, 4 * MS);
        it.note(1, Use::Busy, 0);
        assert_eq!(it.choose(0, 200 * MS), None);
        assert_eq!(it.choose(1, 200 * MS), Some((1..2, 4000.0)));
    }

    #[test]
    fn an_unknown_governor_is_told_with_those_that_exist() {
        let error = named("turbo").unwrap_err().to_string();
        assert!(
            error.contains("turbo") && error.contains("schedutil"),
            "{error}"
        );
    }
}
