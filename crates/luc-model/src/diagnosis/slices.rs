//! Confidence intervals: a trace is cut into slices, and each is judged like a trace of its own.

use super::account::Account;
use super::facts::Facts;
use crate::observed::{Observed, ObservedTable};
use crate::sharing::Sharing;
use crate::stats::mean;
use luc_trace::Trace;
use serde::Serialize;

/// More slices cut more operations at their ends; fewer show less of the spread.
pub(super) const SLICES: u64 = 8;
/// Fewest values for an interval: with 4 it would be nearly twice as wide as with 8.
const VALUES_MIN: usize = 5;
/// Student's t for 95 % on both sides and 4 to 7 degrees of freedom.
const T_95: [f64; 4] = [2.776, 2.571, 2.447, 2.365];

/// A value and its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// The value for the whole trace.
    pub value: f64,
    /// Lower end; `None` if too few slices have the value.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Estimate {
    /// Makes a value that was counted, not sampled.
    pub(super) fn exact(value: f64) -> Self {
        Self {
            value,
            ..Self::default()
        }
    }

    /// Tells whether the value is more than chance: its interval, if known, does not include 0.
    pub(super) fn is_above_zero(&self) -> bool {
        self.low.is_none_or(|low| low > 0.0)
    }

    /// Estimates a value and its interval from its values in slices, and from a share by which it
    /// may be off in addition.
    pub(crate) fn new(value: f64, of_slices: &[f64], error_share: f64) -> Self {
        let count = of_slices.len();
        let Some(t) = count.checked_sub(VALUES_MIN).and_then(|at| T_95.get(at)) else {
            return Self::exact(value);
        };
        let middle = mean(of_slices.iter().copied());
        let squares: f64 = of_slices.iter().map(|v| (v - middle).powi(2)).sum();
        let error = (squares / (count - 1) as f64 / count as f64).sqrt();
        let half = (t * error).hypot(value * error_share);
        Self {
            value,
            low: Some((value - half).max(0.0)),
            high: Some(value + half),
        }
    }
}

pub(super) struct Slice {
    pub table: ObservedTable,
    pub account: Account,
    pub sharing: Sharing,
}

impl Slice {
    fn from_trace(trace: &Trace, observed: &Observed, duration_ns: u64, facts: &Facts) -> Self {
        let fast_commit = facts.fast_commit == Some(true);
        Self {
            table: observed.table(),
            account: Account::new(trace, observed, duration_ns, fast_commit),
            sharing: Sharing::from_trace(trace, observed.dev),
        }
    }
}

pub(super) struct Slices {
    pub whole: Slice,
    pub parts: Vec<Slice>,
}

impl Slices {
    pub fn from_trace(trace: &Trace, observed: &Observed, facts: &Facts) -> Self {
        let dev = observed.dev;
        let (first_ns, last_ns) = window(trace, observed, facts);
        let whole = Slice::from_trace(trace, observed, last_ns - first_ns, facts);
        let length_ns = (last_ns - first_ns) / SLICES;
        let part = |_| Trace {
            unseen: trace.unseen.clone(),
            blocks: trace.blocks.clone(),
            ..Trace::default()
        };
        let mut parts: Vec<Trace> = (0..SLICES).map(part).collect();
        for span in trace.on(dev) {
            // A span across an edge is in no slice, just as one across the ends is not in a trace.
            let slice = |ns: u64| (ns.saturating_sub(first_ns) / length_ns.max(1)).min(SLICES - 1);
            let at = slice(span.begin_ns);
            if at == slice(span.end_ns.max(span.begin_ns)) {
                // It is below SLICES.
                #[expect(clippy::cast_possible_truncation)]
                parts[at as usize].spans.push(*span);
            }
        }
        let part = |part: &Trace| {
            Slice::from_trace(part, &Observed::from_trace(part, dev), length_ns, facts)
        };
        Self {
            whole,
            parts: parts.iter().map(part).collect(),
        }
    }

    /// Estimates a value with its interval; `of` returns `None` for a slice without the value.
    pub fn estimate(&self, of: impl Fn(&Slice) -> Option<f64>) -> Estimate {
        let values: Vec<f64> = self.parts.iter().filter_map(&of).collect();
        Estimate::new(of(&self.whole).unwrap_or(0.0), &values, 0.0)
    }

    /// Estimates a share, with ends from 0 to 1.
    pub fn share(&self, of: impl Fn(&Slice) -> Option<f64>) -> Estimate {
        let mut share = self.estimate(of);
        share.high = share.high.map(|high| high.min(1.0));
        share
    }
}

/// Returns start and end of the watched time, ns; no event lies outside.
fn window(trace: &Trace, observed: &Observed, facts: &Facts) -> (u64, u64) {
    let watched = facts.watched_ns.or_else(|| trace.bounds_ns());
    let known = watched.into_iter().chain(observed.bounds_ns);
    let whole = known.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let (first_ns, last_ns) = whole.unwrap_or_default();
    (first_ns, last_ns.max(first_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values 1 to 5: variance 10 / 4, error of the mean sqrt(2.5 / 5), times 2.776.
    #[test]
    fn an_interval_by_hand() {
        let got = Estimate::new(3.0, &[1.0, 2.0, 3.0, 4.0, 5.0], 0.0);
        let half = 2.776 * 0.5_f64.sqrt();
        assert!((got.low.unwrap() - (3.0 - half)).abs() < 1e-12, "{got:?}");
        assert!((got.high.unwrap() - (3.0 + half)).abs() < 1e-12);
        assert_eq!(Estimate::new(3.0, &[1.0; 4], 0.0), Estimate::exact(3.0));
        // Nothing varies, but the whole may be off by a tenth.
        let off = Estimate::new(2.0, &[2.0; 8], 0.1);
        assert!((off.low.unwrap() - 1.8).abs() < 1e-12, "{off:?}");
    }
}
