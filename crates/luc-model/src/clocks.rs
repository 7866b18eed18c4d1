//! Predicts how fast the load of a trace runs at lower clocks, and its energy: the answer of
//! `luc power --from`.
//!
//! The simulator runs the threads of a trace again at each clock ([`luc_sim::replayed`]), and each
//! run is compared with the same run at the recorded clock. A trace does not tell whether a thread
//! computes in the gaps between its operations. So everything is run twice, once for each end of
//! the range: see [`Gaps`].

use std::collections::BTreeSet;

use luc_control::Dev;
use luc_power::machine::PowerModel;
use luc_sim::replayed::Calibration;
pub use luc_sim::replayed::Gaps;
use luc_trace::{Span, Trace};
use serde::Serialize;

use crate::diagnosis::{Estimate, STOCK_ERROR_SHARE_MAX, doubts};
use crate::foretold::{self, Rates, Rule, SLICES};
use crate::stats::{mean, share};

/// The clocks as shares of the recorded one, which comes first.
const CLOCKS: [f64; 8] = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3];
/// If gaps are a smaller share of the threads' time, all of them are taken for waits.
const GAPS_SHARE_MIN: f64 = 0.001;
/// With fewer syncs per slice on average, no interval is given.
const SYNCS_MIN: f64 = 10.0;

/// A clock compared with the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockComparison {
    Recorded,
    /// Both ratios are within the tolerance, each with its whole interval.
    Within,
    /// The whole interval of one of them is not.
    Slower,
    Undecided,
}

/// The load at one clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AtClock {
    pub clock_share: f64,
    /// Ratio of syncs per second to those at the recorded clock.
    pub rate_ratio: Estimate,
    /// Ratio of the 99th percentiles of the time of a sync; `None` without a sync.
    pub p99_ratio: Option<Estimate>,
    /// Energy of the whole machine; `None` without a sync, without a machine that has this clock,
    /// or if [`Clocks::energy_unknown`] says why.
    pub joules_per_sync: Option<f64>,
    pub verdict: ClockComparison,
}

/// A rule and an end of the range, at all clocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Descent {
    pub rule: Rule,
    pub gaps: Gaps,
    /// Rates at the recorded clock.
    pub rates: Rates,
    /// Error of simulated stock at the recorded clock, as a share of the measured rate: of the
    /// operations or of the syncs, whichever is larger.
    pub error_share: f64,
    /// Whether that error is small enough.
    pub trusted: bool,
    pub clocks: Vec<AtClock>,
    /// The lowest clock that is within the tolerance, as all above it are; `None` if not trusted.
    pub lowest: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Clocks {
    /// Rates of the part of the recording that was run again.
    pub measured: Rates,
    /// Mean share of the threads' time in gaps between their operations.
    pub gaps_share: f64,
    /// The simulated disk, in the syntax of `luc-lab sim run --disk`.
    pub disk: String,
    /// Why no energy is known although a machine was given.
    pub energy_unknown: Option<&'static str>,
    /// Stock and LUC; each twice if there are gaps, with the lower bound of the speed first.
    pub descents: Vec<Descent>,
}

#[derive(Debug, Serialize)]
pub struct FileSystem {
    pub device: String,
    /// Its mount point, if the recording tells it.
    pub mount_point: Option<String>,
    pub duration_ns: u64,
    /// `None` if `refused` says why.
    pub clocks: Option<Clocks>,
    pub refused: Option<String>,
}

/// Runs the load of each file system of a trace again at lower clocks. `machine` gives the energy.
pub fn at_lower_clocks(
    trace: &Trace,
    tolerance: f64,
    machine: Option<&PowerModel>,
) -> Vec<FileSystem> {
    let devs: BTreeSet<Dev> = trace.spans.iter().map(|span| span.dev).collect();
    let of = |dev: Dev| {
        let mut duration_ns = 0;
        let clocks = calibrated(trace, dev).and_then(|calibration| {
            duration_ns = calibration.length_ns();
            Clocks::new(&calibration, tolerance, machine)
        });
        let (clocks, refused) = match clocks {
            Ok(clocks) => (Some(clocks), None),
            Err(why) => (None, Some(why)),
        };
        FileSystem {
            device: dev.to_string(),
            mount_point: trace.header.mount_point(dev).map(str::to_owned),
            duration_ns,
            clocks,
            refused,
        }
    };
    devs.into_iter().map(of).collect()
}

fn calibrated(trace: &Trace, dev: Dev) -> Result<Calibration, String> {
    let doubts = doubts(&trace.unseen);
    if !doubts.is_empty() {
        return Err(doubts.join(" "));
    }
    Calibration::measure(trace, dev).map_err(|why| why.to_string())
}

impl Clocks {
    fn new(
        calibration: &Calibration,
        tolerance: f64,
        machine: Option<&PowerModel>,
    ) -> Result<Self, String> {
        let measured = Rates::measured(calibration);
        let gaps_share = calibration.gaps_share();
        let gaps: &[Gaps] = if gaps_share < GAPS_SHARE_MIN {
            &[Gaps::Wait]
        } else {
            &[Gaps::Compute, Gaps::Wait]
        };
        let machine = machine.map(|machine| with_speed_of(machine, calibration));
        let (machine, energy_unknown) = match machine {
            Some(Err(why)) => (None, Some(why)),
            Some(Ok(machine)) => (Some(machine), None),
            None => (None, None),
        };
        let mut descents: Vec<Descent> = Vec::new();
        for rule in [Rule::Stock, Rule::Luc] {
            for gaps in gaps {
                let runs = Runs {
                    calibration,
                    rule,
                    gaps: *gaps,
                    machine: machine.as_ref(),
                };
                let stock = descents.iter().find(|it| it.gaps == *gaps);
                let error_share = stock.map(|it| it.error_share);
                let descent = runs.descent(tolerance, &measured, error_share);
                descents.push(descent.ok_or("no sync of a file ended; record for longer")?);
            }
        }
        Ok(Self {
            measured,
            gaps_share,
            disk: calibration.disk().to_owned(),
            energy_unknown,
            descents,
        })
    }

    /// Returns a rule at both ends of the range, the lower speed first.
    pub fn of_rule(&self, rule: Rule) -> Vec<&Descent> {
        self.descents.iter().filter(|it| it.rule == rule).collect()
    }
}

/// Returns a machine that has the recorded speed at its highest clock.
fn with_speed_of(
    machine: &PowerModel,
    calibration: &Calibration,
) -> Result<PowerModel, &'static str> {
    if calibration.cpus().is_none() {
        return Err("the recording does not tell how many processors its machine has");
    }
    let mips = calibration.mips();
    let mips =
        mips.ok_or("no open, write or close of the recording tells the processors' speed")?;
    let top = machine.points.last().ok_or("the machine has no clock")?;
    Ok(PowerModel {
        instructions_per_cycle: mips / top.mhz,
        ..machine.clone()
    })
}

/// The runs of a rule at one end of the range.
struct Runs<'a> {
    calibration: &'a Calibration,
    rule: Rule,
    gaps: Gaps,
    machine: Option<&'a PowerModel>,
}

impl Runs<'_> {
    fn run(&self, clock_share: f64) -> (Vec<Span>, Option<f64>) {
        let params = self.rule.params();
        let run = self.calibration.replay_at(params, clock_share, self.gaps);
        let syncs = run.spans.iter().filter(|span| span.kind.is_file_sync());
        let syncs = syncs.count();
        let machine = self.machine.filter(|machine| {
            let ends = machine.points.first().zip(machine.points.last());
            ends.is_some_and(|(low, high)| clock_share >= low.mhz / high.mhz)
        });
        let joules = machine.filter(|_| syncs > 0).map(|machine| {
            let energy = machine.energy(&run.activity);
            energy.total_j() / syncs as f64
        });
        (run.spans, joules)
    }

    /// Compares the clocks; `None` without a sync at the recorded clock. This is stock if no error
    /// of stock is given.
    fn descent(
        &self,
        tolerance: f64,
        measured: &Rates,
        stock_error_share: Option<f64>,
    ) -> Option<Descent> {
        let (spans, joules) = self.run(1.0);
        let length_ns = self.calibration.length_ns();
        let part = match self.rule {
            Rule::Stock => (0, length_ns),
            _ => foretold::settled(&spans, length_ns),
        };
        let recorded = Sliced::from_spans(&spans, part);
        if recorded.whole.sync.count == 0 {
            return None;
        }
        let clocks = CLOCKS.map(|clock_share| {
            if clock_share >= 1.0 {
                let exact = Estimate {
                    value: 1.0,
                    ..Estimate::default()
                };
                return AtClock {
                    clock_share,
                    rate_ratio: exact,
                    p99_ratio: Some(exact),
                    joules_per_sync: joules,
                    verdict: ClockComparison::Recorded,
                };
            }
            let (spans, joules_per_sync) = self.run(clock_share);
            let found = Sliced::from_spans(&spans, part);
            let rate_ratio = found.ratio(&recorded, |rates| rates.syncs_per_s);
            let p99 = |rates: &Rates| rates.sync.p99_ns as f64;
            let has_syncs = found.whole.sync.count > 0;
            let p99_ratio = has_syncs.then(|| found.ratio(&recorded, p99));
            AtClock {
                clock_share,
                rate_ratio,
                p99_ratio,
                joules_per_sync,
                verdict: verdict(&rate_ratio, p99_ratio.as_ref(), tolerance),
            }
        });
        let lower = clocks[1..].iter();
        let within = lower.take_while(|at| at.verdict == ClockComparison::Within);
        let rates = Rates::from_spans(&spans, (0, length_ns));
        let off = |of: fn(&Rates) -> f64| share((of(&rates) - of(measured)).abs(), of(measured));
        let own = off(|it| it.operations_per_s).max(off(|it| it.syncs_per_s));
        let error_share = stock_error_share.unwrap_or(own);
        let trusted = error_share <= STOCK_ERROR_SHARE_MAX;
        let lowest = within.last().filter(|_| trusted);
        Some(Descent {
            rule: self.rule,
            gaps: self.gaps,
            rates,
            error_share,
            trusted,
            lowest: lowest.map(|at| at.clock_share),
            clocks: clocks.to_vec(),
        })
    }
}

/// The rates of a part of a run, and of its slices.
struct Sliced {
    whole: Rates,
    slices: Vec<Rates>,
}

impl Sliced {
    fn from_spans(spans: &[Span], part: (u64, u64)) -> Self {
        Self {
            whole: Rates::from_spans(spans, part),
            slices: (0..SLICES)
                .map(|at| Rates::from_spans(spans, slice(part, at as u64)))
                .collect(),
        }
    }

    /// Estimates the ratio of a figure to that of another run. Without enough syncs for that, it
    /// has no interval.
    fn ratio(&self, base: &Self, of: impl Fn(&Rates) -> f64) -> Estimate {
        let ratio = share(of(&self.whole), of(&base.whole));
        let syncs = |sliced: &Self| mean(sliced.slices.iter().map(|it| it.sync.count as f64));
        let each = mean(base.slices.iter().map(&of));
        let pairs = self.slices.iter().zip(&base.slices);
        let off = pairs.map(|(found, base)| of(found) - ratio * of(base));
        let values: Vec<f64> = off.map(|off| ratio + off / each).collect();
        let is_enough = syncs(self).min(syncs(base)) >= SYNCS_MIN;
        Estimate::new(ratio, if is_enough { &values } else { &[] }, 0.0)
    }
}

/// Returns one of the slices of a time.
fn slice((from_ns, to_ns): (u64, u64), at: u64) -> (u64, u64) {
    let length_ns = (to_ns - from_ns).div_ceil(SLICES as u64).max(1);
    let begin_ns = from_ns + at * length_ns;
    (begin_ns, begin_ns + length_ns - 1)
}

fn verdict(rate: &Estimate, p99: Option<&Estimate>, tolerance: f64) -> ClockComparison {
    let (least, most) = (1.0 - tolerance, 1.0 + tolerance);
    let low = |it: &Estimate, bound: f64| it.low.is_some_and(|low| low >= bound);
    let high = |it: &Estimate, bound: f64| it.high.is_some_and(|high| high <= bound);
    let Some(p99) = p99 else {
        return ClockComparison::Slower;
    };
    if low(rate, least) && high(p99, most) {
        ClockComparison::Within
    } else if rate.high.is_some_and(|high| high < least) || p99.low.is_some_and(|low| low > most) {
        ClockComparison::Slower
    } else {
        ClockComparison::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_needs_the_whole_interval() {
        let estimate = |low, high| Estimate {
            value: f64::midpoint(low, high),
            low: Some(low),
            high: Some(high),
        };
        let same = estimate(0.995, 1.005);
        for (rate, p99, found) in [
            (same, Some(same), ClockComparison::Within),
            (same, Some(estimate(0.5, 0.6)), ClockComparison::Within),
            (estimate(0.98, 1.0), Some(same), ClockComparison::Undecided),
            (estimate(0.97, 0.98), Some(same), ClockComparison::Slower),
            (same, Some(estimate(1.02, 1.03)), ClockComparison::Slower),
            (Estimate::default(), Some(same), ClockComparison::Undecided),
            (estimate(0.0, 0.0), None, ClockComparison::Slower),
        ] {
            assert_eq!(
                verdict(&rate, p99.as_ref(), 0.01),
                found,
                "{rate:?} {p99:?}"
            );
        }
    }
}
