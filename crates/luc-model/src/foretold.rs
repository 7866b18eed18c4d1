//! What LUC would give: the threads of a trace, run again by the simulator.
//!
//! The simulator has the kernel's paths, the scheduler, the journal and the very controllers that the
//! module runs; [`luc_sim::replayed`] lists what it assumes of a trace. What it makes of the threads
//! is a trace again, and is measured as the recorded one is.
//!
//! LUC finds out by trials what pays. So gains are those of the second half, when the first trials are
//! over; or of the whole, where little of the load is left by then.
//!
//! [`Foretold::stock_error_share`] is the error of all that: stock, simulated, against the measured
//! rates. No prediction is better.

use luc_control::{Dev, Params, policy};
use luc_sim::recorder;
use luc_sim::replayed::{Calibration, Unreplayable};
use luc_trace::{Span, SpanKind, Trace};
use serde::Serialize;

use crate::stats::{Times, per_s, share};

/// The second half is compared if this share of stock's operations ended there.
const LATE_SHARE_MIN: f64 = 0.25;

/// What acts on the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Nothing.
    Stock,
    /// LUC, which holds commits and copies nothing out.
    BestBatching,
    /// Each commit is held until no sync came for this long.
    Delay { idle_ns: u64 },
    /// LUC, which copies buffers out and holds no commit.
    NoBlockedWrites,
    /// LUC as `luc on` leaves it.
    Luc,
}

impl Rule {
    fn params(self) -> Option<Params> {
        match self {
            Self::Stock => None,
            Self::BestBatching => Some(under("pid")),
            Self::Delay { idle_ns } => {
                let mut params = under("static");
                let idle_us = i64::try_from(idle_ns / 1000).unwrap_or(i64::MAX);
                params.set("static_idle_us", idle_us);
                Some(params)
            }
            Self::NoBlockedWrites => Some(under("copyout")),
            Self::Luc => Some(under("luc")),
        }
    }
}

/// The knobs of a policy of `abi/luc_controllers.h`.
fn under(name: &str) -> Params {
    let mut params = Params::default();
    let settings = policy(name).map(|policy| policy.settings.clone());
    for (knob, value) in settings.unwrap_or_default() {
        params.set(knob.name, value);
    }
    params
}

/// The throughput of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Ended operations: open, write, fsync, close.
    pub operations_per_s: f64,
    /// Without sync and syncfs.
    pub syncs_per_s: f64,
    pub writes_per_s: f64,
    pub commits_per_s: f64,
    pub sync: Times,
}

impl Rates {
    fn of(trace: &Trace, dev: Dev, duration_ns: u64) -> Self {
        Self::late(trace, dev, (0, duration_ns))
    }

    /// Of what ended in a part of a replay.
    fn late(trace: &Trace, dev: Dev, (from_ns, to_ns): (u64, u64)) -> Self {
        let spans = || trace.on(dev).filter(|span| span.end_ns >= from_ns);
        let count = |of: fn(&Span) -> bool| {
            let found = spans().filter(|span| of(span)).count();
            per_s(found as f64, to_ns - from_ns)
        };
        let syncs = spans().filter(|span| span.kind.is_file_sync());
        Self {
            operations_per_s: count(|span| {
                let on_file = matches!(
                    span.kind,
                    SpanKind::Open | SpanKind::Write | SpanKind::Close
                );
                on_file || span.kind.is_file_sync()
            }),
            syncs_per_s: count(|span| span.kind.is_file_sync()),
            writes_per_s: count(|span| span.kind == SpanKind::Write),
            commits_per_s: count(|span| span.kind == SpanKind::Commit),
            sync: Times::of(syncs.map(Span::duration_ns)),
        }
    }
}

/// The simulation of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    pub rule: Rule,
    pub rates: Rates,
    /// Operations per second over those of simulated stock, when LUC has settled; 0 if that has none.
    pub gain: f64,
    /// The same of syncs.
    pub syncs_gain: f64,
    /// The same of writes.
    pub writes_gain: f64,
}

impl Prediction {
    fn of(rule: Rule, rates: Rates, late: &Rates, stock: &Rates) -> Self {
        Self {
            rule,
            rates,
            gain: share(late.operations_per_s, stock.operations_per_s),
            syncs_gain: share(late.syncs_per_s, stock.syncs_per_s),
            writes_gain: share(late.writes_per_s, stock.writes_per_s),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Foretold {
    pub measured: Rates,
    /// Stock, simulated: what the gains are relative to.
    pub stock: Prediction,
    /// Error of its operations per second, as a share of the measured.
    pub stock_error_share: f64,
    /// In the order of the rules.
    pub predictions: Vec<Prediction>,
}

impl Foretold {
    /// Of a trace, or of a part of one, whose machine is known.
    pub fn of(
        trace: &Trace,
        dev: Dev,
        machine: &Calibration,
        rules: &[Rule],
    ) -> Result<Self, Unreplayable> {
        let threads = machine.threads(trace)?;
        let duration_ns = threads.length_ns();
        let whole = |replayed: &Trace| Rates::of(replayed, recorder::DEV, duration_ns);
        let stock = threads.replay(None);
        let base = whole(&stock);
        let halves = [(duration_ns / 2, duration_ns), (0, duration_ns)];
        let part = halves.map(|part| (part, Rates::late(&stock, recorder::DEV, part)));
        let enough = part[0].1.operations_per_s >= 2.0 * LATE_SHARE_MIN * base.operations_per_s;
        let (part, late_base) = part[usize::from(!enough)];
        let predict = |rule: &Rule| {
            let replayed = threads.replay(rule.params());
            let late = Rates::late(&replayed, recorder::DEV, part);
            Prediction::of(*rule, whole(&replayed), &late, &late_base)
        };
        let measured = Rates::of(trace, dev, duration_ns);
        let off = (base.operations_per_s - measured.operations_per_s).abs();
        Ok(Self {
            measured,
            stock: Prediction::of(Rule::Stock, base, &late_base, &late_base),
            stock_error_share: share(off, measured.operations_per_s),
            predictions: rules.iter().map(predict).collect(),
        })
    }

    pub fn find(&self, is: impl Fn(Rule) -> bool) -> Option<&Prediction> {
        self.predictions.iter().find(|it| is(it.rule))
    }
}
