//! Our answer to a claim, as types.

use serde::Serialize;

use crate::stats::Interval;

/// Our answer to a claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub interval: Option<Interval>,
    /// The point, or the two, that it is of.
    pub at: String,
    /// Points that the claim is about, and those of them that were measured.
    pub points: usize,
    pub measured: usize,
    /// Of a claim about causes.
    pub ranking: Option<Ranking>,
}

/// A quantity beside the rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranked {
    pub quantity: String,
    /// With the rate, by Pearson and by Spearman, -1 to 1.
    pub pearson: f64,
    pub spearman: f64,
    /// On the principal component that goes most with the rate, -1 to 1.
    pub loading: f64,
}

/// All quantities, the strongest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ranking {
    pub runs: usize,
    /// The strongest of as many random quantities is as strong in one of 20 such sets of runs.
    pub chance_strength: f64,
    /// The share of the quantities' variance that this component holds, 0 to 1.
    pub component_variance_share: Option<f64>,
    /// Its correlation with the rate, -1 to 1.
    pub component_pearson: Option<f64>,
    pub quantities: Vec<Ranked>,
}
