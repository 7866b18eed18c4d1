//! The kinds of verdicts: a file each, and a row of [`KINDS`]. A file has the rule with its
//! thresholds, the evidence, the sentences, and the advice.

mod data_flush;
mod device;
mod journal;
mod no_pressure;
mod sync_delays;
mod unclear;
mod write_delays;

use super::account::Account;
use super::evidence::{Case, Verdict, VerdictKind};
use super::facts::Facts;
use super::{Diagnosis, unseen, words};
use luc_trace::Unseen;

/// Syncs that spend this share of their time on data, or for the disk, are bound by it.
const BOUND_SHARE_MIN: f64 = 0.50;
/// Where no cause reaches its threshold, the largest is named from half of that share on.
const LARGEST_SHARE_MIN: f64 = 0.25;

/// A kind of verdict.
pub(super) struct Kind {
    pub of: VerdictKind,
    /// Heads its evidence.
    pub name: &'static str,
    /// Says it in a line.
    pub what: &'static str,
    /// The first line; None: `what` and its cost.
    pub answer: Option<fn(&Verdict, &Unseen) -> String>,
    /// Whether the module alone can tell it.
    pub by_module: bool,
    /// Whether it holds.
    pub holds: fn(&Case<'_>) -> bool,
    /// The verdict with its evidence.
    pub verdict: fn(&Case<'_>) -> Verdict,
    /// Adds what would help, besides LUC.
    pub advise: fn(&Diagnosis, &Facts, &mut Vec<String>),
    /// Whether it might be another verdict if these could be seen.
    pub undermined: fn(&Unseen) -> bool,
    /// Whether LUC acts on it.
    pub of_luc: bool,
    /// Whether the tasks that lose time by it are worth naming.
    pub has_sufferers: bool,
    pub standing: Standing,
    /// Its time, ns. Where no cause holds, the largest of these is named.
    pub largest: Option<fn(&Account) -> f64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Where it holds, no other does.
    Alone,
    Cause,
    /// It holds where no other does.
    Last,
}

/// In the order of their advice.
pub(super) const KINDS: &[Kind] = &[
    no_pressure::KIND,
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

    /// Whether it names something that costs time.
    pub fn costs(self) -> bool {
        self.row().standing == Standing::Cause
    }
}

/// The verdicts that hold, the most costly first; at least one.
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
    /// The answer in a line: what it is and what it costs.
    pub(super) fn answer(&self, unseen: &Unseen) -> String {
        let row = self.kind.row();
        if let Some(answer) = row.answer {
            return answer(self, unseen);
        }
        let cost = words::share(self.cost_share.value);
        format!("{}: {cost} of {}", row.what, unseen::operations(unseen))
    }
}
