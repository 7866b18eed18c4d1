//! A guard's notes as `luc status` and `luc exporter` show them.

use std::time::Duration;

use luc_base::words::{count, counted, duration};
use luc_guard::{Guard, Measure, Stance};
use luc_host::System;
use luc_host::sysfs::{self, Attached};
use serde::Serialize;

use super::trial_files;
use crate::time::now;

/// The state of LUC under a guard.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GuardFindings {
    /// `trying`, `certified`, `aside`, `retrying`, or `left_alone`.
    pub stance: &'static str,
    /// Whether a guard runs now.
    pub runs: bool,
    /// Pairs that the certificate took; `None` without one.
    pub pairs: Option<u64>,
    /// Ratio of LUC to stock in the verdict's pairs.
    pub ratio: Option<f64>,
    /// Time until LUC is tried again; `None` unless it stands aside.
    pub aside_s: Option<u64>,
    /// `rate` or `latency`.
    pub measure: Measure,
    /// Pairs since the last verdict.
    pub pairs_since: u64,
    /// Pairs since the guard began.
    pub pairs_all: u64,
    /// Growth of the bets for and against LUC; a factor of 100 is a verdict.
    pub evidence_for: f64,
    pub evidence_against: f64,
    /// Share of the time that trying takes.
    pub duty: f64,
}

impl GuardFindings {
    /// Reads them; `None` if no guard has watched the file system since LUC was switched on.
    pub fn read(system: &dyn System, attached: &Attached) -> Option<Self> {
        let (saved, runs) = trial_files::guarded(system, attached)?;
        let commits = sysfs::counter_value(system, attached, luc_control::counter("commits")?)?;
        // Fewer commits than noted: LUC was switched off and on again.
        let same = u64::try_from(commits).is_ok_and(|commits| saved.commits <= commits);
        same.then(|| Self::of(&saved.guard, saved.left_alone, runs, now()))
    }

    fn of(guard: &Guard, left_alone: bool, runs: bool, now: Duration) -> Self {
        let evidence = guard.judge().evidence();
        let (stance, pairs, ratio, aside_s) = match guard.stance() {
            _ if left_alone => ("left_alone", None, None, None),
            Stance::Trying => ("trying", None, None, None),
            Stance::Certified { pairs, ratio } => ("certified", Some(pairs), Some(ratio), None),
            Stance::Aside { until, ratio } => {
                let left = until.saturating_sub(now).as_secs();
                ("aside", None, Some(ratio), Some(left))
            }
            Stance::Retrying => ("retrying", None, None, None),
        };
        Self {
            stance,
            runs,
            pairs,
            ratio,
            aside_s,
            measure: guard.judge().measure(),
            pairs_since: evidence.pairs(),
            pairs_all: guard.pairs(),
            evidence_for: evidence.for_luc(),
            evidence_against: evidence.against_luc(),
            duty: if left_alone { 0.0 } else { guard.duty() },
        }
    }

    /// The findings as a line of text.
    pub fn told(&self) -> String {
        let since = counted(self.pairs_since, "pair", "pairs");
        let text = match (self.stance, self.pairs, self.ratio, self.aside_s) {
            ("certified", Some(pairs), Some(ratio), _) => format!(
                "certified after {} pairs: at least 0.99 of stock with 99% confidence; mean \
                 {ratio:.2} of stock",
                count(pairs)
            ),
            ("aside", _, Some(ratio), Some(left_s)) => {
                let left = duration(i128::from(left_s) * 1_000_000_000);
                format!("stands aside: refuted at {ratio:.2} of stock; tried again in {left}")
            }
            ("retrying", ..) => format!("stands aside while it is retried: {since} so far"),
            ("left_alone", ..) => "left alone: the mode was set by hand".into(),
            _ => format!("no verdict yet: {since} so far"),
        };
        let runs = if self.runs {
            ""
        } else {
            " (no guard runs now)"
        };
        text + runs
    }
}

#[cfg(test)]
mod tests {
    use luc_guard::{Pair, Window};

    use super::*;

    /// A guard that has heard pairs with this ratio of LUC to stock.
    fn heard(ratio_percent: u64, pairs: u32) -> Guard {
        let mut guard = Guard::new(1, Duration::ZERO);
        let window = |calls: u64| Window {
            time_ns: 1_000_000_000,
            calls,
            commits: 500,
            waited_ns: None,
        };
        for _ in 0..pairs {
            guard.begin_pair();
            let pair = Pair {
                on: window(ratio_percent * 100),
                off: window(10_000),
            };
            guard.end_pair(&pair, Duration::from_secs(9), Duration::from_secs(1));
            if let Stance::Aside { .. } = guard.stance() {
                break;
            }
        }
        guard
    }

    #[test]
    fn lines() {
        let told = |guard: &Guard, left_alone, runs| {
            GuardFindings::of(guard, left_alone, runs, Duration::from_secs(9)).told()
        };
        assert_eq!(
            told(&heard(130, 3), false, true),
            "no verdict yet: 3 pairs so far"
        );
        let certified = told(&heard(130, 20), false, true);
        assert!(certified.starts_with("certified after 1"), "{certified}");
        let aside = told(&heard(50, 16), false, false);
        assert!(aside.starts_with("stands aside: refuted at 0."), "{aside}");
        assert!(
            aside.ends_with("of stock; tried again in 600 s (no guard runs now)"),
            "{aside}"
        );
        assert_eq!(
            told(&heard(130, 3), true, true),
            "left alone: the mode was set by hand"
        );
    }
}
