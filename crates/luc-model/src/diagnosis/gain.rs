//! The gain of LUC, by the replay.

use super::facts::{Facts, Luc};
use super::slices::{Estimate, Slice, Slices};
use super::{unseen, words};
use crate::stats::share;
use crate::whatif::Rule;
use luc_trace::Trace;
use serde::Serialize;

/// A simulation of stock that is off by more than this is not trusted for other rules.
const STOCK_ERROR_SHARE_MAX: f64 = 0.15;
/// Syncs whose commit is unknown pass unchanged in the replay, which says little with more of them.
const UNSERVED_SHARE_MAX: f64 = 0.10;
/// A slice with fewer syncs and writes has no ratio.
const OPERATIONS_MIN: u64 = 10;
/// A chain of operations that lacks more of them is another chain.
const LOST_SHARE_MAX: f64 = 0.10;

/// Operations per second with LUC over those without.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// The rate that is compared.
    pub of: &'static str,
    /// Of the whole trace.
    pub ratio: f64,
    /// Lower end of the 95 % interval; the error of the simulation is part of it.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    pub trusted: bool,
    /// Why not, a sentence each.
    pub doubts: Vec<String>,
    /// Error of the simulated stock rule, as a share of the measured rate.
    pub stock_error_share: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gains {
    /// Of all that LUC would do.
    pub luc: Option<Gain>,
    /// Of batching commits alone; None also where LUC does not.
    pub(super) batching: Option<Estimate>,
    /// Of copying buffers out alone.
    pub(super) copy_out: Option<Estimate>,
}

impl Gains {
    pub(super) fn of(trace: &Trace, slices: &Slices, facts: &Facts, luc: Luc) -> Self {
        let Ok(what_if) = &slices.whole.what_if else {
            return Self::default();
        };
        // The trace has LUC's holds in it.
        if luc == Luc::Steering {
            return Self::default();
        }
        let error_share = what_if.stock_error_share;
        let estimate = |rule| {
            let whole = ratio(&slices.whole, rule)?;
            let parts: Vec<f64> = slices
                .parts
                .iter()
                .filter(|part| enough(part))
                .filter_map(|part| ratio(part, rule))
                .collect();
            Some(Estimate::of(whole, &parts, error_share))
        };
        let copy_out = estimate(Rule::NoBlockedWrites);
        // LUC does not hold commits of a journal with fast commits. Elsewhere it tries holding, and
        // stops where it does not pay.
        let fast = facts.fast_commit == Some(true);
        let batching = estimate(Rule::BestBatching).filter(|_| !fast);
        let both = estimate(Rule::Luc).filter(|_| !fast);
        let faster = |a: &Estimate, b: &Estimate| a.value.total_cmp(&b.value);
        let best = copy_out.into_iter().chain(both).max_by(faster);
        let doubts = doubts(trace, slices, facts, error_share);
        let luc = best.map(|best| Gain {
            of: "operations_per_s",
            ratio: best.value,
            low: best.low,
            high: best.high,
            trusted: doubts.is_empty() && best.low.is_some(),
            doubts: if best.low.is_none() && doubts.is_empty() {
                vec!["Too little happened for an interval; look for longer.".to_owned()]
            } else {
                doubts
            },
            stock_error_share: error_share,
        });
        Self {
            luc,
            batching,
            copy_out,
        }
    }
}

impl Gains {
    pub(super) fn doubt(&mut self, why: &str) {
        if let Some(gain) = &mut self.luc {
            gain.trusted = false;
            gain.doubts.push(why.to_owned());
        }
    }
}

fn enough(slice: &Slice) -> bool {
    slice.table.sync.count + slice.table.writes >= OPERATIONS_MIN
}

fn ratio(slice: &Slice, rule: Rule) -> Option<f64> {
    let answer = slice.what_if.as_ref().ok()?;
    let found = answer.predictions.iter().find(|p| p.rule == rule)?;
    (answer.stock.rates.operations_per_s > 0.0).then_some(found.gain)
}

fn doubts(trace: &Trace, slices: &Slices, facts: &Facts, error_share: f64) -> Vec<String> {
    let table = &slices.whole.table;
    let mut doubts = Vec::new();
    if error_share > STOCK_ERROR_SHARE_MAX {
        doubts.push(format!(
            "Simulated as it is, the load is off by {} of what was measured: the trace lacks something.",
            words::share(error_share)
        ));
    }
    let lost_share = share(trace.spans_lost as f64, trace.spans.len() as f64);
    if lost_share > LOST_SHARE_MAX {
        doubts.push(unseen::lost(trace));
    }
    let unserved_share = share(table.syncs_unserved as f64, table.sync.count as f64);
    // Syncs that a fast commit serves pass unchanged under LUC, too.
    if unserved_share > UNSERVED_SHARE_MAX && facts.fast_commit != Some(true) {
        doubts.push(unseen::unserved(unserved_share));
    }
    doubts.extend(unseen::doubts(&trace.unseen));
    doubts
}
