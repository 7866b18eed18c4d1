//! Governors: the kernel's rules that choose the processors' clock from their load.
//!
//! `schedutil` (`kernel/sched/cpufreq_schedutil.c` of 6.12) follows the scheduler's averages: a
//! quarter more than a processor's share of busy time, or than the number of tasks on it, if that
//! is more. It counts tasks since 6.5 (kernel commit 7d0583cf9ec7): many tasks that wake together
//! raise the clock, however little each of them does. The averages have a half-life of 32 ms on a
//! clock that passes slower while a slow processor works, and catches up when it idles (5.1, kernel
//! commit 23127296889f). A task that wakes from `io_schedule()` raises the share to an eighth, and
//! doubles it at each further such wake-up within a tick. Waits for a shadowed buffer, for the
//! log's writes and for data are of this kind, as are LUC's holds; the wait of an fsync for its
//! commit is not, so that tasks in fsync get no boost. The governor looks at a processor after such
//! a wake-up, when a task comes from another processor, and otherwise once in a period of the
//! averages, 1024 us.
//!
//! `ondemand` (`drivers/cpufreq/cpufreq_ondemand.c`) samples every 10 ms: it chooses the highest
//! clock above a load of 95%, else a clock in proportion to the load. On Intel's processors it
//! counts idle time as load while a task waits in `io_schedule()`.
//!
//! `du-dvfs` chooses by the disk: the lowest clock while the disk is busy all the time, else the
//! highest (Imamura, Yoshida and Oe: Reducing CPU Power Consumption with Device Utilization-Aware
//! DVFS for Low-Latency SSDs, IEICE Transactions on Information and Systems E102-D 9, 2019). The
//! abstract states neither period nor threshold; here they are those of `ondemand`.
//!
//! A change takes effect after [`Scaling::latency_ns`]. Until then processors run at the old clock,
//! and no other change is chosen.
//!
//! Simplifications: a task takes no share with it to another processor, the scheduler's estimate of
//! a task that sleeps (`util_est`) is left out, and a processor with a clock of its own keeps it no
//! longer because it was busy (`sugov_hold_freq()`).

use std::ops::Range;

use crate::kernel::Kernel;
use crate::named::{self, NotSimulated};

/// Half-life of the scheduler's averages, ns; those of an idle processor are at most this old.
const HALF_LIFE_NS: u64 = 32_000_000;
/// Period of the averages, ns: 1024 times 1024.
const PERIOD_NS: f64 = 1_048_576.0;
/// From this share on, a processor counts as always busy.
const SHARE_FULL: f64 = 0.98;
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
    /// The clock at or above the speed that somebody asks for, as one who writes
    /// `scaling_setspeed`.
    Asked,
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

pub const GOVERNORS: [Governor; 6] = [
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
        name: "userspace",
        help: "the lowest clock at or above the speed that is asked for",
        rule: Rule::Asked,
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

impl Governor {
    /// Tells whether somebody asks this governor for a speed.
    pub fn asks(&self) -> bool {
        self.rule == Rule::Asked
    }
}

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
    /// Time from the choice of a clock until processors run at it, ns.
    pub latency_ns: u64,
}

/// How a processor is used at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Busy,
    /// Idle while a task waits for the disk that had this processor last.
    IdleForIo,
    Idle,
}

/// The reason why a governor looks at a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A task that waited for the disk became ready.
    WakeFromIo,
    /// A task came from another processor.
    Arrival,
    /// A tick came, or a task became ready or went to sleep.
    Other,
}

/// The state of a governor.
#[derive(Debug)]
pub(super) struct Governed {
    rule: Rule,
    clocks_mips: Vec<f64>,
    is_per_processor: bool,
    latency_ns: u64,
    tick_ns: u64,
    counts_tasks: bool,
    loads: Vec<Load>,
    disk_busy_ns: u64,
    sampled_ns: u64,
}

/// A governor's view of a processor.
#[derive(Clone, Debug)]
struct Load {
    /// The speed that was chosen last, the one before it, and when the choice was made and takes
    /// effect.
    mips: f64,
    before_mips: f64,
    changed_ns: u64,
    effect_ns: u64,
    is: Use,
    /// Tasks that are ready or running.
    tasks: u32,
    noted_ns: u64,
    /// The scheduler's averages of busy time, 0 to 1, and of the number of tasks.
    share: f64,
    tasks_average: f64,
    /// The clock of the averages, how far it is behind, and the period last looked at.
    averages_ns: f64,
    behind_ns: f64,
    period: f64,
    /// Busy time since the last sample, waits for the disk included, ns.
    loaded_ns: u64,
    boost: f64,
    is_boost_asked: bool,
    boost_noted_ns: u64,
}

impl Governed {
    /// `asked_mips` are the speeds that somebody asks of each processor.
    pub(super) fn new(scaling: &Scaling, asked_mips: &[f64], kernel: &Kernel) -> Self {
        let load = Load {
            mips: 0.0,
            before_mips: 0.0,
            changed_ns: 0,
            effect_ns: 0,
            is: Use::Idle,
            tasks: 0,
            noted_ns: 0,
            share: 0.0,
            tasks_average: 0.0,
            averages_ns: 0.0,
            behind_ns: 0.0,
            period: 0.0,
            loaded_ns: 0,
            boost: 0.0,
            is_boost_asked: false,
            boost_noted_ns: 0,
        };
        let mut it = Self {
            rule: scaling.governor.rule,
            clocks_mips: scaling.clocks_mips.clone(),
            is_per_processor: scaling.is_per_processor,
            latency_ns: scaling.latency_ns,
            tick_ns: kernel.tick_ns,
            counts_tasks: kernel.schedutil_counts_tasks,
            loads: vec![load; asked_mips.len()],
            disk_busy_ns: 0,
            sampled_ns: 0,
        };
        for at in 0..asked_mips.len() {
            it.loads[at].mips = match it.rule {
                Rule::Highest | Rule::DiskUtilization => it.highest(),
                Rule::Asked => it.asked(it.domain(at), asked_mips),
                Rule::Lowest | Rule::Schedutil | Rule::Ondemand => it.lowest(),
            };
        }
        it
    }

    /// Returns the speed at which a processor runs now.
    pub(super) fn mips(&self, at: usize, now_ns: u64) -> f64 {
        self.loads[at].speed(now_ns)
    }

    /// Somebody asks for these speeds, one for each processor; other governors choose themselves.
    pub(super) fn ask(&mut self, asked_mips: &[f64], now_ns: u64) {
        let takes = self.rule == Rule::Asked;
        for at in (0..self.loads.len()).filter(|_| takes) {
            let mips = self.asked(self.domain(at), asked_mips);
            self.set(at, now_ns, mips);
        }
    }

    /// The clock of processors that share one is the highest that is asked of any.
    fn asked(&self, domain: Range<usize>, asked_mips: &[f64]) -> f64 {
        self.at_least(asked_mips[domain].iter().copied().fold(0.0, f64::max))
    }

    pub(super) fn sampling_ns(&self) -> Option<u64> {
        matches!(self.rule, Rule::Ondemand | Rule::DiskUtilization).then_some(SAMPLE_NS)
    }

    /// Notes how a processor is used from now on, and by how many tasks.
    pub(super) fn note(&mut self, at: usize, is: Use, tasks: u32, now_ns: u64) {
        let highest = self.highest();
        let load = &mut self.loads[at];
        load.pass(now_ns, highest);
        if is != Use::Busy && load.share >= SHARE_FULL {
            load.behind_ns = 0.0;
        }
        (load.is, load.tasks) = (is, tasks);
    }

    /// Looks at a processor. True if those that share a clock with it get another one.
    pub(super) fn look(&mut self, at: usize, cause: Cause, now_ns: u64) -> bool {
        if self.rule != Rule::Schedutil || !self.loads[at].is_due(cause) {
            return false;
        }
        let (highest, tick_ns) = (self.highest(), self.tick_ns);
        self.loads[at].boost(now_ns, cause == Cause::WakeFromIo, tick_ns);
        let domain = self.domain(at);
        let settled_ns = CHANGE_NS.max(self.latency_ns);
        if now_ns < self.loads[domain.start].changed_ns + settled_ns {
            return false;
        }
        let mut most: f64 = 0.0;
        for load in &mut self.loads[domain] {
            if now_ns >= load.noted_ns + HALF_LIFE_NS {
                load.pass(now_ns, highest);
            }
            most = most.max(load.wanted(self.counts_tasks));
            most = most.max(load.boosted(now_ns, tick_ns));
        }
        self.set(at, now_ns, self.at_least(HEADROOM * most * highest))
    }

    /// Chooses the speed of all processors from what happened since the last sample.
    pub(super) fn sample(&mut self, now_ns: u64, disk_busy_ns: u64) {
        let (lowest, highest) = (self.lowest(), self.highest());
        let passed_ns = now_ns.saturating_sub(self.sampled_ns).max(1);
        let disk_ns = disk_busy_ns.saturating_sub(self.disk_busy_ns);
        (self.sampled_ns, self.disk_busy_ns) = (now_ns, disk_busy_ns);
        let is_disk_full = disk_ns as f64 >= LOAD_HIGH * passed_ns as f64;
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
            self.set(domain.start, now_ns, mips);
        }
    }

    /// Chooses a clock. True if it is another one.
    fn set(&mut self, at: usize, now_ns: u64, mips: f64) -> bool {
        let domain = self.domain(at);
        if self.loads[domain.start].mips.total_cmp(&mips).is_eq() {
            return false;
        }
        let highest = self.highest();
        for load in &mut self.loads[domain] {
            if load.is == Use::Busy {
                load.pass(now_ns, highest);
            }
            load.before_mips = load.speed(now_ns);
            load.mips = mips;
            load.changed_ns = now_ns;
            load.effect_ns = now_ns + self.latency_ns;
        }
        true
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
    fn speed(&self, now_ns: u64) -> f64 {
        if now_ns < self.effect_ns {
            self.before_mips
        } else {
            self.mips
        }
    }

    /// Counts the time since the last note, at the speed that the processor had then.
    fn pass(&mut self, now_ns: u64, highest_mips: f64) {
        let mips = self.speed(self.noted_ns);
        let ns = now_ns.saturating_sub(self.noted_ns);
        self.noted_ns = self.noted_ns.max(now_ns);
        if self.is != Use::Idle {
            self.loaded_ns += ns;
        }
        let ns = ns as f64;
        let (busy, passed_ns) = if self.is == Use::Busy {
            (1.0, ns * mips / highest_mips)
        } else {
            (0.0, ns + self.behind_ns)
        };
        self.behind_ns += ns - passed_ns;
        self.averages_ns += passed_ns;
        let kept = (-passed_ns / HALF_LIFE_NS as f64).exp2();
        self.share = self.share * kept + busy * (1.0 - kept);
        self.tasks_average = self.tasks_average * kept + f64::from(self.tasks) * (1.0 - kept);
    }

    /// Tells whether the scheduler calls the governor: without a cause of its own only once in a
    /// period.
    fn is_due(&mut self, cause: Cause) -> bool {
        let period = (self.averages_ns / PERIOD_NS).floor();
        let is_new = std::mem::replace(&mut self.period, period) < period;
        is_new || cause != Cause::Other
    }

    /// The share of the highest speed that the averages ask for.
    fn wanted(&self, counts_tasks: bool) -> f64 {
        let tasks = if counts_tasks {
            self.tasks_average
        } else {
            0.0
        };
        self.share.max(tasks).min(1.0)
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

    /// `sugov_iowait_apply()`: the boost, which halves unless it was asked for.
    fn boosted(&mut self, now_ns: u64, tick_ns: u64) -> f64 {
        if now_ns.saturating_sub(self.boost_noted_ns) > tick_ns {
            (self.boost, self.is_boost_asked) = (0.0, false);
        }
        if !std::mem::take(&mut self.is_boost_asked) {
            self.boost /= 2.0;
            if self.boost < BOOST_FIRST {
                self.boost = 0.0;
            }
        }
        self.boost
    }
}

#[cfg(test)]
mod tests;
