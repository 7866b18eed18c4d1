//! The times that the syncs of a window took, as counts in buckets.

use serde::{Deserialize, Serialize};

/// Fewest syncs for a 99th percentile: ten are above it. Chosen.
pub const TAIL_CALLS_MIN: u64 = 1000;

/// Syncs that took `from_ns` or longer, and less than `to_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    pub from_ns: u64,
    pub to_ns: u64,
    pub syncs: u64,
}

/// Buckets that hold a sync, ascending. All times of a load have the same bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Times(Vec<Bucket>);

impl Times {
    /// Takes ascending buckets.
    pub fn new(buckets: impl IntoIterator<Item = Bucket>) -> Self {
        Self(buckets.into_iter().filter(|one| one.syncs > 0).collect())
    }

    pub fn buckets(&self) -> &[Bucket] {
        &self.0
    }

    pub fn total(&self) -> u64 {
        self.0.iter().map(|one| one.syncs).sum()
    }

    /// The growth since `before`; `None` if a count shrank.
    pub fn since(&self, before: &Self) -> Option<Self> {
        let mut earlier = before.0.iter().peekable();
        let grown = self.0.iter().map(|now| {
            let then = earlier.next_if(|then| then.from_ns == now.from_ns);
            let syncs = now.syncs.checked_sub(then.map_or(0, |then| then.syncs))?;
            Some(Bucket { syncs, ..*now })
        });
        let grown = grown.collect::<Option<Vec<_>>>()?;
        earlier.next().is_none().then(|| Self::new(grown))
    }

    pub fn add(&mut self, more: &Self) {
        self.0.extend(&more.0);
        self.0.sort_by_key(|one| one.from_ns);
        self.0.dedup_by(|next, kept| {
            let same = next.from_ns == kept.from_ns;
            if same {
                kept.syncs += next.syncs;
            }
            same
        });
    }

    pub fn halve(&mut self) {
        *self = Self::new(self.0.iter().map(|one| Bucket {
            syncs: one.syncs / 2,
            ..*one
        }));
    }

    /// The share of syncs whose whole bucket is above this time. A window without a sync has a
    /// share of 1: its calls wait beyond its end.
    pub fn share_above(&self, ns: f64) -> f64 {
        let above = self.0.iter().filter(|one| one.from_ns as f64 >= ns);
        match self.total() {
            0 => 1.0,
            total => above.map(|one| one.syncs).sum::<u64>() as f64 / total as f64,
        }
    }

    /// The upper bound of the bucket that holds the 99th percentile; `None` with too few syncs.
    pub fn tail_bound_ns(&self) -> Option<f64> {
        let enough = self.total() >= TAIL_CALLS_MIN;
        self.tail()
            .filter(|_| enough)
            .map(|(one, _)| one.to_ns as f64)
    }

    /// The 99th percentile, interpolated within its bucket; `None` without a sync.
    pub fn tail_ns(&self) -> Option<f64> {
        let (one, share) = self.tail()?;
        Some(one.from_ns as f64 + (one.to_ns - one.from_ns) as f64 * share)
    }

    /// The bucket of the 99th percentile, and the share of its syncs that are not slower.
    fn tail(&self) -> Option<(&Bucket, f64)> {
        let rank = self.total() as f64 * 0.99;
        let mut below = 0.0;
        self.0.iter().find_map(|one| {
            let share = (rank - below) / one.syncs as f64;
            below += one.syncs as f64;
            (share <= 1.0).then_some((one, share))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Times with these numbers of syncs in buckets of a millisecond each.
    fn times(syncs: &[u64]) -> Times {
        Times::new((0..).zip(syncs).map(|(ms, syncs)| Bucket {
            from_ns: ms * MS,
            to_ns: (ms + 1) * MS,
            syncs: *syncs,
        }))
    }

    #[test]
    fn a_tail_moves_within_its_bucket() {
        assert_eq!(Times::default().tail_ns(), None);
        let tail_ms = |slow| times(&[0, 1000 - slow, 0, slow]).tail_ns().unwrap() / 1e6;
        assert!((tail_ms(20) - 3.5).abs() < 1e-9);
        assert!((tail_ms(40) - 3.75).abs() < 1e-9);
        assert!(tail_ms(5) < 2.0);
    }

    #[test]
    fn a_tail_needs_a_thousand_syncs() {
        assert_eq!(times(&[0, 980, 19]).tail_bound_ns(), None);
        assert_eq!(times(&[0, 980, 20]).tail_bound_ns(), Some(3e6));
        assert_eq!(times(&[0, 990, 10]).tail_bound_ns(), Some(2e6));
    }

    #[test]
    fn shares_count_whole_buckets() {
        let times = times(&[0, 60, 30, 10]);
        for (ms, share) in [(1.0, 1.0), (2.0, 0.4), (2.1, 0.1), (3.0, 0.1), (4.0, 0.0)] {
            assert!((times.share_above(ms * 1e6) - share).abs() < 1e-9, "{ms}");
        }
        assert!((Times::default().share_above(0.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_grew_adds_up() {
        let (before, now) = (times(&[1, 0, 3]), times(&[4, 2, 3, 5]));
        let grown = now.since(&before).unwrap();
        assert_eq!(grown, times(&[3, 2, 0, 5]));
        let mut sum = before.clone();
        sum.add(&grown);
        assert_eq!(sum, now);
        sum.halve();
        assert_eq!(sum, times(&[2, 1, 1, 2]));
        // Counts that began again.
        assert_eq!(before.since(&now), None);
        assert_eq!(times(&[4]).since(&before), None);
    }
}
