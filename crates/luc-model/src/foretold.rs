//! Predicts the gain from LUC: the simulator runs the threads of a trace again.
//!
//! The simulator has the kernel's paths, the scheduler, the journal and the same controllers as the
//! module; [`luc_sim::replayed`] lists what it assumes about a trace, and which part of it runs
//! again. The result is measured in the same way as the recorded part.
//!
//! LUC's first trial starts after 512 holds. So gains come from the second half, or from the whole
//! if little of the load is left by then. That time is cut into slices, for the spread of the
//! gains.
//!
//! [`Foretold::stock_error_share`] is the error of all that: simulated stock against the measured
//! rates. No prediction is better.

use luc_base::Latency;
use luc_control::{Params, policy};
use luc_sim::replayed::Calibration;
use luc_trace::{Span, SpanKind};
use serde::Serialize;

use crate::stats::{self, mean, per_s, share};

/// The second half is compared if at least this share of stock's operations ended there.
const LATE_SHARE_MIN: f64 = 0.25;
/// More slices cut more operations at their ends; fewer show less of the spread.
pub(crate) const SLICES: usize = 8;
/// With fewer operations per slice on average, no spread is given.
const OPERATIONS_MIN: f64 = 10.0;

/// A rule for the journal's commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Commits as without LUC.
    Stock,
    /// LUC holds commits and copies nothing out.
    BestBatching,
    /// Each commit is held until no sync has arrived for this long.
    Delay { idle_ns: u64 },
    /// LUC copies buffers out and holds no commit.
    NoBlockedWrites,
    /// LUC as `luc on` sets it up.
    Luc,
}

impl Rule {
    pub(crate) fn params(self) -> Option<Params> {
        match self {
            Self::Stock => None,
            Self::BestBatching => Some(under("batching")),
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

/// Returns the knobs of a policy of `abi/luc_controllers.h`.
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
    /// Operations that ended: open, write, fsync, close.
    pub operations_per_s: f64,
    /// Syncs of files, without sync and syncfs.
    pub syncs_per_s: f64,
    pub writes_per_s: f64,
    pub commits_per_s: f64,
    pub sync: Latency,
}

impl Rates {
    /// Counts the part of a recording that is run again.
    pub(crate) fn measured(machine: &Calibration) -> Self {
        let recorded = machine.recorded();
        let first_ns = recorded.first().map_or(0, |span| span.begin_ns);
        Self::from_spans(recorded, (first_ns, first_ns + machine.length_ns()))
    }

    /// Counts the spans that ended in a part of a trace.
    pub(crate) fn from_spans(spans: &[Span], (from_ns, to_ns): (u64, u64)) -> Self {
        let ended = |span: &&Span| (from_ns..=to_ns).contains(&span.end_ns);
        let count = |of: fn(&Span) -> bool| {
            let found = spans.iter().filter(ended).filter(|span| of(span)).count();
            per_s(found as f64, to_ns - from_ns)
        };
        let syncs = spans.iter().filter(ended);
        let syncs = syncs.filter(|span| span.kind.is_file_sync());
        Self {
            operations_per_s: count(|span| span.kind.is_operation()),
            syncs_per_s: count(|span| span.kind.is_file_sync()),
            writes_per_s: count(|span| span.kind == SpanKind::Write),
            commits_per_s: count(|span| span.kind == SpanKind::Commit),
            sync: stats::times(syncs.map(Span::duration_ns)),
        }
    }
}

/// Returns the part of a run that is compared with other runs: its second half, if enough of the
/// load is left by then.
pub(crate) fn settled(spans: &[Span], duration_ns: u64) -> (u64, u64) {
    let (whole, half) = ((0, duration_ns), (duration_ns / 2, duration_ns));
    let rate = |part| Rates::from_spans(spans, part).operations_per_s;
    let enough = rate(half) >= 2.0 * LATE_SHARE_MIN * rate(whole);
    if enough { half } else { whole }
}

/// Counts the operations that ended in each slice of a time.
fn slices(spans: &[Span], (from_ns, to_ns): (u64, u64)) -> [u64; SLICES] {
    let mut counts = [0; SLICES];
    let length_ns = (to_ns - from_ns).div_ceil(SLICES as u64).max(1);
    for span in spans.iter().filter(|span| span.kind.is_operation()) {
        let at = span.end_ns.checked_sub(from_ns).map(|ns| ns / length_ns);
        let count = at.and_then(|at| counts.get_mut(usize::try_from(at).ok()?));
        if let Some(count) = count {
            *count += 1;
        }
    }
    counts
}

/// The simulation of a rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    pub rule: Rule,
    pub rates: Rates,
    /// Ratio of the operations per second to those of simulated stock, once LUC has settled; 0 if
    /// stock has none.
    pub gain: f64,
    /// The same ratio for syncs.
    pub syncs_gain: f64,
    /// The same ratio for writes.
    pub writes_gain: f64,
    /// The gain in each slice, for its spread; empty with too few operations.
    #[serde(skip)]
    pub gains: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Foretold {
    /// Rates of the part of the recording that was run again.
    pub measured: Rates,
    /// Simulated stock: gains are relative to this.
    pub stock: Prediction,
    /// Error of its operations per second, as a share of the measured ones.
    pub stock_error_share: f64,
    /// One per rule, in the order of the rules.
    pub predictions: Vec<Prediction>,
}

impl Foretold {
    /// Runs a trace's threads again under each rule, on the machine of the trace.
    pub fn new(machine: &Calibration, rules: &[Rule]) -> Self {
        let duration_ns = machine.length_ns();
        let whole = (0, duration_ns);
        let spans = machine.replay(None);
        let base = Rates::from_spans(&spans, whole);
        let part = settled(&spans, duration_ns);
        let late = Rates::from_spans(&spans, part);
        let counts = slices(&spans, part);
        let each = mean(counts.iter().map(|count| *count as f64));
        let predict = |rule: Rule, spans: &[Span]| {
            let found = Rates::from_spans(spans, part);
            let gain = share(found.operations_per_s, late.operations_per_s);
            let pairs = slices(spans, part).into_iter().zip(counts);
            // A slice counts by its operations: a few of them say little about a gain.
            let off = pairs.map(|(found, stock)| found as f64 - gain * stock as f64);
            Prediction {
                rule,
                rates: Rates::from_spans(spans, whole),
                gain,
                syncs_gain: share(found.syncs_per_s, late.syncs_per_s),
                writes_gain: share(found.writes_per_s, late.writes_per_s),
                gains: off
                    .filter(|_| each >= OPERATIONS_MIN)
                    .map(|off| gain + off / each)
                    .collect(),
            }
        };
        let measured = Rates::measured(machine);
        let off = (base.operations_per_s - measured.operations_per_s).abs();
        Self {
            measured,
            stock: predict(Rule::Stock, &spans),
            stock_error_share: share(off, measured.operations_per_s),
            predictions: rules
                .iter()
                .map(|rule| predict(*rule, &machine.replay(rule.params())))
                .collect(),
        }
    }

    pub fn find(&self, is: impl Fn(Rule) -> bool) -> Option<&Prediction> {
        self.predictions.iter().find(|it| is(it.rule))
    }
}
