//! Collects the times of operations.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longer latencies are recorded as this: 2^37 ns, more than two minutes.
pub const HIGHEST_NS: u64 = 1 << 37;

/// How long operations of one kind took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub count: u64,
    /// Mean, nanoseconds; exact.
    pub mean_ns: f64,
    /// Half of the operations took at most this, nanoseconds; within 0.1%.
    pub p50_ns: u64,
    /// 99 of 100 operations took at most this, nanoseconds; within 0.1%.
    pub p99_ns: u64,
    /// The slowest, nanoseconds; exact.
    pub max_ns: u64,
}

/// A collection of times. It takes about 100 KiB of address space, but touches only the pages of
/// latencies that occur.
pub struct Recorder {
    histogram: Histogram<u32>,
    sum_ns: u64,
    max_ns: u64,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// # Panics
    /// Never: the bounds are constant.
    pub fn new() -> Self {
        Self {
            histogram: Histogram::new_with_bounds(1, HIGHEST_NS, 3)
                .expect("constant bounds are valid"),
            sum_ns: 0,
            max_ns: 0,
        }
    }

    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Summarises the collections of several threads.
    ///
    /// # Panics
    /// Never: the bounds are constant.
    pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Recorder>) -> Latency {
        let mut all =
            Histogram::<u64>::new_with_bounds(1, HIGHEST_NS, 3).expect("constant bounds are valid");
        let (mut sum_ns, mut max_ns) = (0, 0);
        for part in parts {
            for bucket in part.histogram.iter_recorded() {
                all.saturating_record_n(bucket.value_iterated_to(), bucket.count_at_value().into());
            }
            sum_ns += part.sum_ns;
            max_ns = max_ns.max(part.max_ns);
        }
        let count = all.len();
        if count == 0 {
            return Latency::default();
        }
        Latency {
            count,
            mean_ns: sum_ns as f64 / count as f64,
            // A bucket's upper edge may lie above the slowest operation.
            p50_ns: all.value_at_quantile(0.5).min(max_ns),
            p99_ns: all.value_at_quantile(0.99).min(max_ns),
            max_ns,
        }
    }
}

/// A sum and a count, for operations whose mean is enough.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mean {
    sum_ns: u64,
    count: u64,
}

impl Mean {
    pub fn record(&mut self, ns: u64) {
        self.sum_ns += ns;
        self.count += 1;
    }

    /// Returns the mean over all parts, nanoseconds; 0 without operations.
    pub fn merged(parts: impl IntoIterator<Item = Mean>) -> f64 {
        let all = parts.into_iter().fold(Mean::default(), |a, b| Mean {
            sum_ns: a.sum_ns + b.sum_ns,
            count: a.count + b.count,
        });
        all.sum_ns as f64 / all.count.max(1) as f64
    }
}

/// Summarises a list of exact times; sorts it.
pub fn summary(times_ns: &mut [u64]) -> Latency {
    times_ns.sort_unstable();
    let Some(&max_ns) = times_ns.last() else {
        return Latency::default();
    };
    let count = times_ns.len();
    // Nearest rank: the smallest value that at least this share of the values does not exceed.
    let rank = |percent: usize| times_ns[(count * percent).div_ceil(100).max(1) - 1];
    Latency {
        count: count as u64,
        mean_ns: times_ns.iter().map(|ns| u128::from(*ns)).sum::<u128>() as f64 / count as f64,
        p50_ns: rank(50),
        p99_ns: rank(99),
        max_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::{Latency, Recorder, summary};

    #[test]
    fn recorder_agrees_with_exact_list() {
        let mut times: Vec<u64> = (1..=1000).map(|i| i * 12_345).collect();
        let mut halves = [Recorder::new(), Recorder::new()];
        for (i, &t) in times.iter().enumerate() {
            halves[i % 2].record(t);
        }
        let estimate = Recorder::merged(&halves);
        let exact = summary(&mut times);
        assert_eq!(estimate.count, exact.count);
        assert!((estimate.mean_ns - exact.mean_ns).abs() < 1e-6);
        assert_eq!(estimate.max_ns, exact.max_ns);
        assert!(estimate.p50_ns.abs_diff(exact.p50_ns) <= exact.p50_ns / 1000);
        assert!(estimate.p99_ns.abs_diff(exact.p99_ns) <= exact.p99_ns / 1000);
    }

    #[test]
    fn nearest_ranks() {
        let latency = summary(&mut [4, 1, 3, 2]);
        assert_eq!((latency.p50_ns, latency.p99_ns, latency.max_ns), (2, 4, 4));
        assert_eq!(summary(&mut [u64::MAX, u64::MAX]).p50_ns, u64::MAX);
        assert_eq!(summary(&mut []), Latency::default());
        assert_eq!(Recorder::merged([]), Latency::default());
    }

    #[test]
    fn longest_latencies_saturate() {
        let mut recorder = Recorder::new();
        recorder.record(u64::MAX / 2);
        let latency = Recorder::merged([&recorder]);
        assert_eq!((latency.count, latency.max_ns), (1, u64::MAX / 2));
    }
}
