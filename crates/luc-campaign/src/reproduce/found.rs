//! Our answer to a claim, as types.

use serde::Serialize;

use luc_stats::Interval;

/// Our answer to a claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub interval: Option<Interval>,
    /// The point, or the two points, that the interval belongs to.
    pub at: String,
    /// Points that the claim covers, and how many were measured.
    pub points: usize,
    pub measured: usize,
    /// The ranking, for a claim about causes.
    pub ranking: Option<Ranking>,
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
