//! The kinds of verdicts: each has a file, and a row in [`KINDS`]. The file holds the rule with its
//! thresholds, the evidence, the sentences, and the advice.

mod data_flush;
mod device;
mod journal;
mod lasting;
mod no_pressure;
pub(super) mod processor;
mod sync_delays;
mod unclear;
mod write_delays;

use super::account::Account;
use super::evidence::{Case, Verdict, VerdictKind};
use super::facts::Facts;
use super::{Diagnosis, words};
use luc_trace::Unseen;

/// If no cause reaches its threshold, the largest is named if it takes at least this share.
const LARGEST_SHARE_MIN: f64 = 0.25;

pub(super) struct Kind {
    pub of: VerdictKind,
    /// The heading of its evidence.
    pub name: &'static str,
    /// One line that says what it is.
    pub what: &'static str,
    /// The first line; `None` for `what` and its cost.
    pub answer: Option<fn(&Verdict, &Unseen) -> String>,
    /// Whether the module alone can tell that it holds.
    pub by_module: bool,
    pub holds: fn(&Case<'_>) -> bool,
    /// Returns the verdict with its evidence.
    pub verdict: fn(&Case<'_>) -> Verdict,
    /// Adds the remedies besides LUC.
    pub advise: fn(&Diagnosis, &Facts, &mut Vec<String>),
    /// Tells whether the verdict might be another one if these events could be seen.
    pub undermined: fn(&Unseen) -> bool,
    /// Whether LUC acts on it.
    pub of_luc: bool,
    /// Whether the tasks that lose time because of it are worth naming.
    pub has_sufferers: bool,
    pub standing: Standing,
    /// Its time, ns. If no cause holds, the one with the largest time is named.
    pub largest: Option<fn(&Account) -> f64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// If it holds, no other does.
    Alone,
    Cause,
    /// It holds if no other does.
    Last,
}

/// All kinds, in the order of their advice.
pub(super) const KINDS: &[Kind] = &[
    no_pressure::KIND,
    lasting::KIND,
    processor::KIND,
    journal::KIND,
    data_flush::KIND,
    device::KIND,
    sync_delays::KIND,
    write_delays::KIND,
    unclear::KIND,
];

impl VerdictKind {
    pub(super) fn row(self) -> &'static Kind {
        let row = KINDS.iter().find(|row| row.of == self);
        row.expect("every kind has a row")
    }

    /// Tells whether it names something that costs time.
    pub fn costs(self) -> bool {
        self.row().standing == Standing::Cause
    }
}

/// Returns the verdicts that hold, the most costly first; at least one.
pub(super) fn verdicts(case: &Case<'_>) -> Vec<Verdict> {
    let of = |standing| KINDS.iter().filter(move |row| row.standing == standing);
    if let Some(row) = of(Standing::Alone).find(|row| (row.holds)(case)) {
        return vec![(row.verdict)(case)];
    }
    let causes = of(Standing::Cause).filter(|row| (row.holds)(case));
    let mut found: Vec<_> = causes.map(|row| (row.verdict)(case)).collect();
    if found.is_empty() {
        let account = case.account();
        let parts = KINDS
            .iter()
            .filter_map(|row| Some((row, row.largest?(account))));
        let largest = parts.max_by(|a, b| a.1.total_cmp(&b.1));
        let largest = largest.filter(|(_, ns)| account.of_operations(*ns) >= LARGEST_SHARE_MIN);
        let row = largest
            .map(|(row, _)| row)
            .or_else(|| of(Standing::Last).next());
        found.extend(row.map(|row| (row.verdict)(case)));
    }
    found.sort_by(|a, b| b.cost_share.value.total_cmp(&a.cost_share.value));
    found
}

impl Verdict {
    /// Tells whether it names something that costs time, beyond chance.
    pub fn costs(&self) -> bool {
        self.kind.costs() && self.cost_share.is_above_zero()
    }

    /// Returns the answer in one line: what it is and what it costs.
    pub(super) fn answer(&self, unseen: &Unseen) -> String {
        let row = self.kind.row();
        if let Some(answer) = row.answer {
            return answer(self, unseen);
        }
        let cost = words::share(self.cost_share.value);
        format!("{}: {cost} of {}", row.what, self.whole(unseen))
    }
}
