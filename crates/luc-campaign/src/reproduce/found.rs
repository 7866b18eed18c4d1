//! Our answer to a claim, as types.

use serde::Serialize;

use luc_stats::Interval;

/// Our answer to a claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The figure at each measured point, or pair of points.
    pub candidates: Vec<Candidate>,
    /// Points that the claim covers, and how many were measured.
    pub points: usize,
    pub measured: usize,
    /// The ranking, for a claim about causes.
    pub ranking: Option<Ranking>,
}

/// The figure at a point, or along two points.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub at: String,
    /// At the campaign's confidence.
    pub alone: Interval,
    /// At the confidence with which the intervals of all candidates hold at once (Bonferroni).
    pub jointly: Interval,
}

/// The largest or the smallest of a figure over all candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    Largest,
    Smallest,
}

impl Found {
    /// The interval of an extreme, and the candidate with the most extreme mean; `None` if nothing
    /// was measured.
    ///
    /// Which candidate is truly the largest is unknown. The true largest is at most the highest
    /// upper end, as its own interval ends there or below; and at least the highest of the lower
    /// ends that hold at once. An end is missing if a candidate has no interval.
    pub fn extreme(&self, extreme: Extreme) -> Option<(Interval, &str)> {
        // The smallest is the largest of the numbers with their signs changed.
        let sign = match extreme {
            Extreme::Largest => 1.0,
            Extreme::Smallest => -1.0,
        };
        let by_mean = |it: &&Candidate| sign * it.alone.mean;
        let most = self
            .candidates
            .iter()
            .max_by(|a, b| by_mean(a).total_cmp(&by_mean(b)))?;
        let highest = |end: &dyn Fn(&Candidate) -> Option<f64>| {
            let ends: Option<Vec<f64>> = self.candidates.iter().map(end).collect();
            ends?.into_iter().max_by(f64::total_cmp)
        };
        let low = highest(&|it| Some(signed(sign, it.jointly.ends?).0));
        let high = highest(&|it| Some(signed(sign, it.alone.ends?).1));
        let interval = Interval {
            ends: low.zip(high).map(|ends| signed(sign, ends)),
            ..most.alone
        };
        Some((interval, &most.at))
    }
}

/// The interval of the numbers with their sign changed, if `sign` is negative.
pub(super) fn signed(sign: f64, (low, high): (f64, f64)) -> (f64, f64) {
    if sign > 0.0 {
        (low, high)
    } else {
        (-high, -low)
    }
}

/// A quantity and its relation to the rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranked {
    pub quantity: String,
    /// Correlation with the rate, Pearson's and Spearman's, -1 to 1.
    pub pearson: f64,
    pub spearman: f64,
    /// Loading on the principal component that correlates most with the rate, -1 to 1.
    pub loading: f64,
}

/// All quantities, the strongest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ranking {
    pub runs: usize,
    /// Strength that the strongest of as many random quantities reaches in one of 20 such sets of
    /// runs.
    pub chance_strength: f64,
    /// The share of the quantities' variance that this component explains, 0 to 1.
    pub component_variance_share: Option<f64>,
    /// Its correlation with the rate, -1 to 1.
    pub component_pearson: Option<f64>,
    pub quantities: Vec<Ranked>,
}
