//! The processors' own counters, which chapter 3 of the dissertation looked at first.
//!
//! They count on all processors, for all tasks, in the kernel and in programs, because the
//! journal's thread works for the workload, too. Most virtual machines have no such counters, and
//! only root may read them for all tasks.

use std::fs;

use perf_event::events::{Event, Hardware};
use perf_event::{Builder, Counter, ReadFormat};
use serde::{Deserialize, Serialize};

/// Counts of all processors within a measurement; `None` for an event that the machine does not
/// count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HardwareCounts {
    pub cycles: Option<u64>,
    pub instructions: Option<u64>,
    /// References, mostly to the last level of cache.
    pub cache_references: Option<u64>,
    pub cache_misses: Option<u64>,
}

impl HardwareCounts {
    /// Adds the counts of two measurements.
    pub(crate) fn and(self, other: Self) -> Self {
        self.with(other, |a, b| a + b)
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        self.with(earlier, u64::saturating_sub)
    }

    /// Returns the counts, or `None` if none is known: the machine has no counters.
    pub(crate) fn known(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }

    /// Returns each count with its name for people.
    pub fn rows(self) -> [(&'static str, Option<u64>); 4] {
        [
            ("cycles", self.cycles),
            ("instructions", self.instructions),
            ("cache references", self.cache_references),
            ("cache misses", self.cache_misses),
        ]
    }

    fn with(self, other: Self, by: fn(u64, u64) -> u64) -> Self {
        let one = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| by(a, b));
        Self {
            cycles: one(self.cycles, other.cycles),
            instructions: one(self.instructions, other.instructions),
            cache_references: one(self.cache_references, other.cache_references),
            cache_misses: one(self.cache_misses, other.cache_misses),
        }
    }
}

/// Open counters, which count until they are dropped.
pub struct Counters {
    cycles: Sum,
    instructions: Sum,
    cache_references: Sum,
    cache_misses: Sum,
}

impl Counters {
    /// Opens the counters that this machine has and this user may read.
    pub fn open() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let processors: Vec<usize> = online(&stat).collect();
        Self {
            cycles: Sum::open(&Hardware::CPU_CYCLES, &processors),
            instructions: Sum::open(&Hardware::INSTRUCTIONS, &processors),
            cache_references: Sum::open(&Hardware::CACHE_REFERENCES, &processors),
            cache_misses: Sum::open(&Hardware::CACHE_MISSES, &processors),
        }
    }

    pub fn read(&mut self) -> HardwareCounts {
        HardwareCounts {
            cycles: self.cycles.read(),
            instructions: self.instructions.read(),
            cache_references: self.cache_references.read(),
            cache_misses: self.cache_misses.read(),
        }
    }
}

/// One event, counted on each processor.
struct Sum(Vec<Counter>);

impl Sum {
    /// Opens one counter per processor; the sum stays empty unless all processors count the event,
    /// as a part of it would look like the whole.
    fn open(event: &(impl Event + Clone), processors: &[usize]) -> Self {
        let open = |processor: &usize| {
            let mut builder = Builder::new(event.clone());
            builder
                .any_pid()
                .one_cpu(*processor)
                .include_kernel()
                .read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING)
                .enabled(true);
            builder.build().ok()
        };
        Self(
            processors
                .iter()
                .map(open)
                .collect::<Option<_>>()
                .unwrap_or_default(),
        )
    }

    fn read(&mut self) -> Option<u64> {
        if self.0.is_empty() {
            return None;
        }
        self.0.iter_mut().try_fold(0, |sum, counter| {
            let data = counter.read_full().ok()?;
            let enabled_ns = data.time_enabled()?.as_nanos();
            let running_ns = data.time_running()?.as_nanos();
            Some(sum + scaled(data.count(), enabled_ns, running_ns)?)
        })
    }
}

/// Extrapolates a count to the whole time if the event shared its processor's counter with others;
/// `None` if it never had the counter.
fn scaled(count: u64, enabled_ns: u128, running_ns: u128) -> Option<u64> {
    let whole = (u128::from(count) * enabled_ns).checked_div(running_ns)?;
    u64::try_from(whole).ok()
}

/// Returns the processors that have a line in `/proc/stat`: those that are online.
fn online(stat: &str) -> impl Iterator<Item = usize> {
    stat.lines().filter_map(|line| {
        let number = line.strip_prefix("cpu")?.split(' ').next()?;
        number.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use perf_event::events::Software;

    use super::{HardwareCounts, Sum, online, scaled};

    #[test]
    fn a_shared_counter_is_scaled() {
        assert_eq!(scaled(1000, 30, 10), Some(3000));
        assert_eq!(scaled(1000, 30, 30), Some(1000));
        assert_eq!(scaled(0, 30, 0), None);
        assert_eq!(scaled(u64::MAX, 30, 10), None);
    }

    #[test]
    fn only_processors_that_are_online_count() {
        let stat = "cpu  1 2\ncpu0 1 2\ncpu3 1 2\nintr 5\ncpufreq 1\n";
        assert_eq!(online(stat).collect::<Vec<_>>(), [0, 3]);
    }

    #[test]
    fn a_part_is_not_the_whole() {
        let known = HardwareCounts {
            cycles: Some(5),
            ..HardwareCounts::default()
        };
        let other = HardwareCounts {
            cycles: Some(2),
            instructions: Some(1),
            ..HardwareCounts::default()
        };
        assert_eq!(known.since(other).cycles, Some(3));
        assert_eq!(known.and(other).instructions, None);
        assert_eq!(HardwareCounts::default().known(), None);
        let nowhere = Sum::open(&Software::CPU_CLOCK, &[usize::from(u16::MAX)]).read();
        assert_eq!(nowhere, None);
    }

    // Makes the same calls with events that the kernel itself counts, which exist on machines
    // without hardware counters, too.
    #[test]
    fn the_sum_over_processors_grows() {
        let stat = std::fs::read_to_string("/proc/stat").unwrap();
        let processors: Vec<usize> = online(&stat).collect();
        let mut clock = Sum::open(&Software::CPU_CLOCK, &processors);
        let Some(before) = clock.read() else {
            luc_test::skip(
                "the_sum_over_processors_grows",
                "counting the events of all tasks needs root or CAP_PERFMON",
            );
            return;
        };
        let turns: u64 = (0..black_box(1_000_000)).map(black_box).sum();
        assert!(turns > 0 && clock.read() > Some(before));
    }
}
