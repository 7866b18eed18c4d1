//! Sums and histograms of the tracer.

use std::ops::AddAssign;

const STEPS_LOG2: u32 = 4;
const STEPS: usize = 1 << STEPS_LOG2;
const OCTAVES: usize = 40;
const BUCKETS: usize = OCTAVES * STEPS;
const AHEAD_MAX: usize = 3;
/// Numbers in `struct luc_counts` of `abi/luc_tracer.h`.
const COUNTS: usize = 2 + (AHEAD_MAX + 1) + 2 + 3 + 3 + 2 * BUCKETS;
/// Its size, bytes.
pub(crate) const COUNTS_BYTES: usize = COUNTS * 8;

/// Durations, counted in buckets of a sixteenth of a power of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: vec![0; BUCKETS],
        }
    }
}

impl Histogram {
    /// Counts a duration, as `count_duration()` of `bpf/spans.h` does.
    pub fn record(&mut self, ns: u64) {
        self.buckets[bucket(ns)] += 1;
    }

    /// Number of durations.
    pub fn total(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The duration that a share (0 to 1) of all durations does not exceed, ns. It is the middle of
    /// a bucket, so it is off by at most 1/32.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let total = self.total();
        if total == 0 {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank among counts"
        )]
        let rank = ((total as f64 * share.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        bucket.map(|number| u64::midpoint(bound_ns(number), bound_ns(number + 1)))
    }

    /// Upper bounds and counts of the buckets up to the last that holds anything.
    pub fn buckets_ns(&self) -> impl Iterator<Item = (u64, u64)> {
        let last = self.buckets.iter().rposition(|count| *count > 0);
        let used = last.map_or(0, |last| last + 1);
        let bounds = (1..=used).map(bound_ns);
        bounds.zip(self.buckets.iter().copied())
    }
}

/// The bucket that a duration belongs to.
fn bucket(ns: u64) -> usize {
    let steps = STEPS as u64;
    let number = if ns < steps {
        ns
    } else {
        let octave = u64::from(ns.ilog2());
        octave * steps + (ns >> (octave - u64::from(STEPS_LOG2)) & (steps - 1))
    };
    usize::try_from(number).map_or(BUCKETS - 1, |number| number.min(BUCKETS - 1))
}

/// Where a bucket begins, ns.
fn bound_ns(bucket: usize) -> u64 {
    let (octave, step) = (bucket / STEPS, (bucket % STEPS) as u64);
    match u32::try_from(octave) {
        // Durations below the number of steps have buckets of their own.
        Ok(octave) if octave >= STEPS_LOG2 => (1 << octave) + (step << (octave - STEPS_LOG2)),
        _ => bucket.min(STEPS) as u64,
    }
}

/// Sums over one file system since the tracer was attached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// fsync and fdatasync calls.
    pub syncs: u64,
    pub sync_ns: u64,
    /// The same calls by the number of commits that they waited for; the last counts three or more.
    pub syncs_by_commits: [u64; AHEAD_MAX + 1],
    pub commits: u64,
    pub commit_ns: u64,
    /// Waits, as [`luc_trace::SpanKind::WAITS`] orders them.
    pub waits: [u64; 3],
    pub wait_ns: [u64; 3],
    /// Durations of syncs.
    pub sync_hist: Histogram,
    /// Durations of waits for a buffer.
    pub wait_hist: Histogram,
}

impl Counts {
    /// All numbers, in the order of `struct luc_counts`.
    fn numbers(&mut self) -> impl Iterator<Item = &mut u64> {
        let syncs = [&mut self.syncs, &mut self.sync_ns].into_iter();
        let syncs = syncs.chain(&mut self.syncs_by_commits);
        let commits = [&mut self.commits, &mut self.commit_ns];
        let waits = self.waits.iter_mut().chain(&mut self.wait_ns);
        let histograms = [&mut self.sync_hist, &mut self.wait_hist];
        let buckets = histograms.into_iter().flat_map(|hist| &mut hist.buckets);
        syncs.chain(commits).chain(waits).chain(buckets)
    }

    /// Adds one processor's record; false if its size is wrong.
    pub(crate) fn add_bytes(&mut self, bytes: &[u8]) -> bool {
        let (words, rest) = bytes.as_chunks::<8>();
        if words.len() != COUNTS || !rest.is_empty() {
            return false;
        }
        for (count, word) in self.numbers().zip(words) {
            *count += u64::from_ne_bytes(*word);
        }
        true
    }

    /// The growth since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let (mut now, mut then) = (self.clone(), earlier.clone());
        for (now, then) in now.numbers().zip(then.numbers()) {
            *now = now.saturating_sub(*then);
        }
        now
    }

    /// Adds the sums of another interval.
    pub fn add(&mut self, other: &Self) {
        let mut other = other.clone();
        for (count, more) in self.numbers().zip(other.numbers()) {
            *count += *more;
        }
    }

    /// Syncs that waited for a commit, per commit.
    pub fn syncs_per_commit(&self) -> Option<f64> {
        let served = self.syncs - self.syncs_by_commits[0].min(self.syncs);
        (self.commits > 0).then(|| served as f64 / self.commits as f64)
    }

    /// Share of the syncs that waited for two commits or more, among those that waited for any.
    pub fn late_share(&self) -> Option<f64> {
        let [_, once, late @ ..] = self.syncs_by_commits;
        let late: u64 = late.iter().sum();
        let all = once + late;
        (all > 0).then(|| late as f64 / all as f64)
    }
}

/// Sums over one process, or one control group, since the tracer was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskCounts {
    /// fsync and fdatasync calls.
    pub syncs: u64,
    pub sync_ns: u64,
    /// Syncs that waited for two commits or more.
    pub syncs_late: u64,
    /// Time in waits of all kinds, ns.
    pub wait_ns: u64,
}

impl TaskCounts {
    /// The sums since an earlier time; a sum never falls.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            syncs: self.syncs.saturating_sub(before.syncs),
            sync_ns: self.sync_ns.saturating_sub(before.sync_ns),
            syncs_late: self.syncs_late.saturating_sub(before.syncs_late),
            wait_ns: self.wait_ns.saturating_sub(before.wait_ns),
        }
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let words: &[[u8; 8]; 4] = bytes.as_chunks().0.try_into().ok()?;
        let [syncs, sync_ns, syncs_late, wait_ns] = words.map(u64::from_ne_bytes);
        Some(Self {
            syncs,
            sync_ns,
            syncs_late,
            wait_ns,
        })
    }
}

/// The id of all control groups together for which the tracer has no room: `LUC_COUNTS_OTHERS`.
pub const OTHER_CGROUPS: u64 = 0;

impl AddAssign for TaskCounts {
    fn add_assign(&mut self, more: Self) {
        self.syncs += more.syncs;
        self.sync_ns += more.sync_ns;
        self.syncs_late += more.syncs_late;
        self.wait_ns += more.wait_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABI: &str = include_str!("../../../abi/luc_tracer.h");

    #[test]
    fn the_contracts_numbers() {
        for (name, value) in [
            ("LUC_HIST_STEPS_LOG2", STEPS_LOG2 as usize),
            ("LUC_HIST_OCTAVES", OCTAVES),
            ("LUC_WAITS", luc_trace::SpanKind::WAITS.len()),
            ("LUC_AHEAD_MAX", AHEAD_MAX),
            ("LUC_COUNTS_OTHERS", 0),
        ] {
            let row = format!("#define {name} {value}");
            assert!(
                ABI.lines()
                    .any(|line| line.split('\t').next() == Some(&row)),
                "{row}"
            );
        }
    }

    #[test]
    fn a_bucket_holds_what_lies_between_its_bounds() {
        for ns in (0..5_000).chain([1 << 20, (1 << 20) + 1, 123_456_789, (1 << 39) + 5]) {
            let number = bucket(ns);
            assert!(bound_ns(number) <= ns, "{ns}");
            assert!(ns < bound_ns(number + 1), "{ns}");
        }
    }

    #[test]
    fn quantiles_are_little_off() {
        let mut hist = Histogram::default();
        assert_eq!(hist.quantile_ns(0.5), None);
        for us in 1..=1000 {
            hist.record(us * 1000);
        }
        for (share, ns) in [
            (0.5, 500_000),
            (0.99, 990_000),
            (0.0, 1_000),
            (1.0, 1_000_000),
        ] {
            let got = hist.quantile_ns(share).unwrap();
            assert!(got.abs_diff(ns) * 32 <= ns, "{share}: {got}");
        }
        assert!(hist.buckets_ns().last().is_some_and(|(_, count)| count > 0));
    }

    #[test]
    fn processors_are_summed() {
        let record: Vec<u8> = (1..=COUNTS as u64).flat_map(u64::to_ne_bytes).collect();
        let mut counts = Counts::default();
        assert!(counts.add_bytes(&record));
        assert!(counts.add_bytes(&record));
        assert!(!counts.add_bytes(&record[8..]));
        assert_eq!((counts.syncs, counts.sync_ns), (2, 4));
        assert_eq!(counts.syncs_by_commits, [6, 8, 10, 12]);
        assert_eq!((counts.commits, counts.commit_ns), (14, 16));
        assert_eq!(counts.waits, [18, 20, 22]);
        assert_eq!(counts.wait_ns, [24, 26, 28]);
        assert_eq!(counts.sync_hist.buckets[0], 30);
        assert_eq!(counts.since(&counts), Counts::default());
        let earlier = counts.clone();
        counts.sync_hist.record(7);
        assert_eq!(counts.since(&earlier).sync_hist.total(), 1);
        assert_eq!(counts.late_share(), Some(22.0 / 30.0));
        assert_eq!(Counts::default().syncs_per_commit(), None);
    }
}
