//! The gain from LUC, by the replay.

use super::facts::{Facts, Luc};
use super::slices::{Estimate, Slices};
use super::{unseen, words};
use crate::foretold::{Foretold, Rule};
use crate::stats::share;
use luc_control::Dev;
use luc_sim::replayed::Calibration;
use luc_trace::Trace;
use serde::Serialize;

/// If the simulation of stock is off by more than this, it is not trusted for other rules.
pub(crate) const STOCK_ERROR_SHARE_MAX: f64 = 0.15;
/// Syncs whose commit is unknown pass unchanged in the replay, so with more of them it says little.
const UNSERVED_SHARE_MAX: f64 = 0.10;
/// If a trace lacks more operations than this, its threads' chains of operations are not those
/// that ran.
const LOST_SHARE_MAX: f64 = 0.10;

const RULES: [Rule; 3] = [Rule::BestBatching, Rule::NoBlockedWrites, Rule::Luc];

/// Ratio of the operations per second with LUC to those without.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// The rate that is compared.
    pub of: &'static str,
    /// The ratio, for the part of the trace that was replayed.
    pub ratio: f64,
    /// Lower end of the 95 % interval; the error of the simulation is part of it.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    pub trusted: bool,
    /// The reasons not to trust it, one sentence each.
    pub doubts: Vec<String>,
    /// Error of the simulated stock rule, as a share of the measured rate.
    pub stock_error_share: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gains {
    /// The gain from all that LUC would do.
    pub luc: Option<Gain>,
    /// The gain from batching commits alone; `None`, too, if LUC would not batch.
    pub(super) batching: Option<Estimate>,
    /// The gain from copying buffers out alone.
    pub(super) copy_out: Option<Estimate>,
}

impl Gains {
    pub(super) fn from_trace(
        trace: &Trace,
        dev: Dev,
        slices: &Slices,
        facts: &Facts,
        luc: Luc,
    ) -> Self {
        // If LUC steered, its holds are in the trace.
        let machine = (luc != Luc::Steering).then(|| Calibration::measure(trace, dev).ok());
        let Some(machine) = machine.flatten() else {
            return Self::default();
        };
        let foretold = Foretold::new(&machine, &RULES);
        let error_share = foretold.stock_error_share;
        let estimate = |rule| {
            let found = foretold.find(|its_rule| its_rule == rule)?;
            let has_base = foretold.stock.rates.operations_per_s > 0.0;
            has_base.then(|| estimate(found.gain, &found.gains, error_share))
        };
        let copy_out = estimate(Rule::NoBlockedWrites);
        // LUC does not hold commits of a journal with fast commits. Elsewhere it tries holding, and
        // stops if that does not pay.
        let fast = facts.fast_commit == Some(true);
        let batching = estimate(Rule::BestBatching).filter(|_| !fast);
        let luc = if fast { copy_out } else { estimate(Rule::Luc) };
        let doubts = doubts(trace, slices, facts, error_share);
        let luc = luc.map(|luc| Gain {
            of: "operations_per_s",
            ratio: luc.value,
            low: luc.low,
            high: luc.high,
            trusted: doubts.is_empty() && luc.low.is_some(),
            doubts: if luc.low.is_none() && doubts.is_empty() {
                vec!["Too little happened for a confidence interval; watch for longer.".to_owned()]
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

/// Estimates a gain from the simulation, which is off by a share for stock.
fn estimate(gain: f64, of_slices: &[f64], error_share: f64) -> Estimate {
    // If a rule never acts, its simulation is stock's, errors included.
    let changes = |gain: &f64| (gain - 1.0).abs() > f64::EPSILON;
    let acts = changes(&gain) || of_slices.iter().any(changes);
    Estimate::new(gain, of_slices, if acts { error_share } else { 0.0 })
}

fn doubts(trace: &Trace, slices: &Slices, facts: &Facts, error_share: f64) -> Vec<String> {
    let table = &slices.whole.table;
    let mut doubts = Vec::new();
    if error_share > STOCK_ERROR_SHARE_MAX {
        doubts.push(format!(
            "The simulation of stock differs by {} from the measurement: the trace lacks \
             something.",
            words::share(error_share)
        ));
    }
    let lost_share = share(trace.spans_lost as f64, trace.spans.len() as f64);
    if lost_share > LOST_SHARE_MAX {
        doubts.push(unseen::lost(trace));
    }
    let unserved_share = share(table.syncs_unserved as f64, table.sync.count as f64);
    // Syncs that a fast commit serves pass unchanged under LUC as well.
    if unserved_share > UNSERVED_SHARE_MAX && facts.fast_commit != Some(true) {
        doubts.push(unseen::unserved(unserved_share));
    }
    doubts.extend(unseen::doubts(&trace.unseen));
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_never_acts_gains_nothing_for_sure() {
        let ends = |gain, of_slices: &[f64]| {
            let estimate = estimate(gain, of_slices, 0.1);
            (estimate.low, estimate.high)
        };
        assert_eq!(ends(1.0, &[1.0; 8]), (Some(1.0), Some(1.0)));
        // A rule that always acts, and one that acts in turns for better and for worse.
        for (gain, of_slices) in [(1.2, [1.2; 6]), (1.0, [0.9, 1.1, 1.0, 1.0, 1.0, 1.0])] {
            let (low, high) = ends(gain, &of_slices);
            assert!(low < Some(0.95 * gain) && high > Some(1.05 * gain));
        }
        // Too few slices for an interval.
        assert_eq!(ends(1.0, &[1.0]), (None, None));
    }
}
