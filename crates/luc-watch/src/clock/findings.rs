//! The findings about each clock, as text and JSON show them.

use luc_guard::{ClockTrial, ClockVerdict, Undecided};
use luc_power::meter::{Energy, Reading, Spent};
use serde::Serialize;

use super::{Clocks, Search};
use crate::trial::{Ratio, Sums, Windows};

/// Hours of a year.
pub const YEAR_H: f64 = 365.25 * 24.0;

/// Syncs and energy of the windows of one side.
#[derive(Clone, Debug, Default)]
pub struct AtClock {
    calls: u64,
    spent: Option<Spent>,
}

impl AtClock {
    fn add(&mut self, calls: u64, (begin, end): &(Sums, Sums)) {
        self.calls += calls;
        let more = begin.energy.as_ref().zip(end.energy.as_ref());
        let more = more.map(|(begin, end)| begin.until(end));
        self.spent = Spent::sum(self.spent.take(), more);
    }

    /// Adds the windows of another side.
    fn and(mut self, other: &Self) -> Self {
        self.calls += other.calls;
        self.spent = Spent::sum(self.spent.take(), other.spent.clone());
        self
    }

    /// The energy; `None` without a meter or a window.
    pub fn energy(&self) -> Option<Energy> {
        self.spent.clone().map(Spent::energy)
    }
}

/// Energy and syncs of both sides of a clock's pairs.
#[derive(Clone, Debug, Default)]
pub struct Spending {
    pub lower: AtClock,
    pub highest: AtClock,
}

impl Spending {
    pub(super) fn add(&mut self, windows: &Windows<Sums>) {
        self.lower.add(windows.pair.on.calls, &windows.on);
        self.highest.add(windows.pair.off.calls, &windows.off);
    }

    /// Energy that the lower clock saves in a year, kWh; `None` if it is not measured.
    pub fn saved_kwh(&self) -> Option<f64> {
        let watts = |side: &AtClock| Some(side.energy()?.reading()?.watts);
        Some((watts(&self.highest)? - watts(&self.lower)?) * YEAR_H / 1000.0)
    }
}

/// A clock and what was found about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClockFindings {
    pub clock: String,
    /// Pairs of windows that compared it with the highest clock.
    pub pairs: Option<u64>,
    /// Ratio of syncs per second to those at the highest clock.
    pub rate_ratio: Option<Ratio>,
    /// Ratio of the 99th percentiles of the time of a sync: above 1 is slower.
    pub p99_ratio: Option<Ratio>,
    pub watts: Option<f64>,
    pub joules_per_sync: Option<f64>,
    /// `highest`, `within`, `slower` or `undecided`.
    pub verdict: &'static str,
    /// Why it is undecided.
    pub reason: Option<&'static str>,
}

impl ClockFindings {
    fn new(clock: String, side: &AtClock) -> Self {
        let energy = side.energy();
        let reading = energy.as_ref().and_then(Energy::reading);
        let per_sync = |reading: &Reading| reading.joules / side.calls as f64;
        Self {
            clock,
            pairs: None,
            rate_ratio: None,
            p99_ratio: None,
            watts: reading.map(|reading| reading.watts),
            joules_per_sync: reading.filter(|_| side.calls > 0).map(per_sync),
            verdict: "highest",
            reason: None,
        }
    }

    /// The highest clock, over the pairs of all others.
    pub fn highest(clocks: &Clocks, search: &Search) -> Self {
        let all = search.spent.iter().map(|spent| &spent.highest);
        let all = all.fold(AtClock::default(), AtClock::and);
        Self::new(clocks.shown(&clocks.highest), &all)
    }

    /// A lower clock; `None` if it was not tried to the end.
    pub fn lower(clocks: &Clocks, search: &Search, at: usize) -> Option<Self> {
        let trial: &ClockTrial = search.descent.trials().get(at)?;
        let (verdict, reason) = match trial.verdict()? {
            ClockVerdict::Within => ("within", None),
            ClockVerdict::Slower => ("slower", None),
            ClockVerdict::Undecided(why) => ("undecided", Some(told(why))),
        };
        Some(Self {
            pairs: Some(trial.pairs()),
            rate_ratio: Ratio::from_ratios(trial.rates()),
            p99_ratio: Ratio::from_ratios(trial.tails()),
            verdict,
            reason,
            ..Self::new(clocks.shown(&clocks.lower[at]), &search.spent[at].lower)
        })
    }
}

fn told(why: Undecided) -> &'static str {
    match why {
        Undecided::NoLoad => "no sync in a window: the load has ended or pauses",
        Undecided::FewSyncs => "too few syncs in a window for a 99th percentile",
        Undecided::Time => "its time was over; give more --seconds or a wider --tolerance",
    }
}
