//! A thread's counts for each of its flowops.

use hdrhistogram::Histogram;

use luc_base::HIGHEST_NS;

/// Two digits keep a histogram at some 15 KiB; a thousand threads have a dozen each.
const DIGITS: u8 = 2;

/// The counts of one flowop in one thread.
pub struct Stats {
    pub count: u64,
    pub bytes: u64,
    /// Sum of the times of measured operations, nanoseconds.
    pub total_ns: u64,
    min_ns: u64,
    pub max_ns: u64,
    /// Operations since the thread began, measured or not.
    pub ever_count: u64,
    pub ever_bytes: u64,
    histogram: Histogram<u32>,
}

impl Default for Stats {
    fn default() -> Self {
        Self::new()
    }
}

impl Stats {
    /// # Panics
    /// Never: the bounds are constant.
    pub fn new() -> Self {
        Self {
            count: 0,
            bytes: 0,
            total_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            ever_count: 0,
            ever_bytes: 0,
            histogram: Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS)
                .expect("constant bounds are valid"),
        }
    }

    pub fn record(&mut self, ns: u64, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
        self.total_ns += ns;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.histogram.saturating_record(ns);
    }

    pub fn add(&mut self, other: &Self) {
        self.min_ns = self.min_ns.min(other.min_ns);
        self.count += other.count;
        self.bytes += other.bytes;
        self.total_ns += other.total_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        // The bounds are the same.
        let _ = self.histogram.add(&other.histogram);
    }

    /// Returns the shortest time, nanoseconds; 0 without operations.
    pub fn min_ns(&self) -> u64 {
        if self.count > 0 { self.min_ns } else { 0 }
    }

    /// Returns the time that this share of the operations did not exceed, nanoseconds; within 1%.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        if self.count == 0 {
            return 0;
        }
        self.histogram
            .value_at_quantile(share)
            .clamp(self.min_ns, self.max_ns)
    }
}
