//! Tells whether runs fall into two groups, and how often each occurs.
//!
//! Runs of one point may have one of two results and nothing between. Their mean is then a result
//! that no run has, and few runs tell little about it. The share of each group is what a repeated
//! experiment finds again.

use statrs::distribution::{ContinuousCDF as _, Normal};

/// Fewer runs show gaps by chance.
const RUNS_MIN: usize = 20;

/// Two groups of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Modes {
    /// Means of the lower and of the upper group.
    pub means: [f64; 2],
    /// The share of runs in the upper group, and its interval.
    pub upper_share: f64,
    pub ends: (f64, f64),
    pub runs: usize,
}

impl Modes {
    /// Splits the runs at their widest gap. They have two groups if that gap is wider than either
    /// group; `None` if they have one, or are too few to tell.
    pub fn from_values(values: &[f64], confidence: f64) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        if sorted.len() < RUNS_MIN {
            return None;
        }
        let gap = |at: &usize| sorted[*at] - sorted[at - 1];
        let at = (1..sorted.len()).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
        let (lower, upper) = sorted.split_at(at);
        let width = |group: &[f64]| group[group.len() - 1] - group[0];
        if gap(&at) <= width(lower).max(width(upper)) {
            return None;
        }
        let mean = |group: &[f64]| group.iter().sum::<f64>() / group.len() as f64;
        let (hits, runs) = (upper.len(), sorted.len());
        Some(Self {
            means: [mean(lower), mean(upper)],
            upper_share: hits as f64 / runs as f64,
            ends: share_interval(hits, runs, confidence),
            runs,
        })
    }
}

/// The interval of a share (Wilson 1927). It is within 0 to 1 and has a width even if no run or
/// every run hits.
pub fn share_interval(hits: usize, runs: usize, confidence: f64) -> (f64, f64) {
    let (n, share) = (runs as f64, hits as f64 / runs as f64);
    // The arguments are valid; without a distribution nothing may look certain.
    let z = Normal::new(0.0, 1.0).map_or(f64::INFINITY, |normal| {
        normal.inverse_cdf(0.5 + confidence / 2.0)
    });
    let z2 = z.powi(2);
    let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let spread = share * (1.0 - share) / n + z2 / (4.0 * n * n);
    let half = (z2 * spread).sqrt() / (1.0 + z2 / n);
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worked_interval_of_a_share() {
        // Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I.
        for (hits, runs, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let ends = share_interval(hits, runs, 0.95);
            let off = (ends.0 - low).abs().max((ends.1 - high).abs());
            assert!(off < 1e-4, "{hits} of {runs}: {ends:?}");
        }
    }

    #[test]
    fn two_rates_and_nothing_between() {
        let runs = |upper: usize| -> Vec<f64> {
            let lower = (0..40 - upper).map(|run| 101.0 + (run % 7) as f64);
            lower.chain((0..upper).map(|_| 169.0)).collect()
        };
        let modes = Modes::from_values(&runs(10), 0.95).unwrap();
        assert!((modes.upper_share - 0.25).abs() < 1e-9 && modes.runs == 40);
        assert!((modes.means[1] - 169.0).abs() < 1e-9 && modes.means[0] < 108.0);
        assert!(modes.ends.0 < 0.25 && 0.25 < modes.ends.1);
        assert_eq!(Modes::from_values(&runs(0), 0.95), None, "one rate");
        assert_eq!(Modes::from_values(&runs(40), 0.95), None, "always the same");
        assert_eq!(
            Modes::from_values(&runs(10)[25..], 0.95),
            None,
            "too few runs"
        );
    }

    /// Runs that are spread evenly are one group. One in 450 such samples of the least size shows a
    /// gap by chance.
    #[test]
    fn one_group_is_seldom_split() {
        let samples: u16 = 4_000;
        let split = (0..samples).filter(|seed| {
            let mut random = fastrand::Rng::with_seed((*seed).into());
            let values: Vec<f64> = (0..RUNS_MIN).map(|_| random.f64()).collect();
            Modes::from_values(&values, 0.95).is_some()
        });
        let split = split.count();
        assert!(split * 200 < samples.into(), "{split} of {samples}");
    }
}
