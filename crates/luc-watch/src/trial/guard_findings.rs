//! A guard's notes as `luc status` and `luc exporter` show them.

use std::time::Duration;

use luc_base::words::{count, counted, duration};
use luc_guard::slow::{CERTIFIED, REFUTED};
use luc_guard::{Evidence, Guard, Measure, Stance, TrialVerdict};
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
    /// The verdict about the 99th percentile of a sync; `None` if there is none in force.
    pub p99_verdict: Option<TrialVerdict>,
    /// The same growth of the bets on it; `None` if times are not seen.
    pub p99_evidence_for: Option<f64>,
    pub p99_evidence_against: Option<f64>,
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
        same.then(|| Self::from_guard(&saved.guard, saved.left_alone, runs, now()))
    }

    fn from_guard(guard: &Guard, left_alone: bool, runs: bool, now: Duration) -> Self {
        let evidence = guard.judge().evidence();
        let slow = guard.judge().slow();
        let slow = slow.is_seen().then(|| slow.evidence());
        let p99_verdict = match guard.stance() {
            _ if left_alone => None,
            Stance::Certified { p99: true, .. } => Some(TrialVerdict::Certified),
            Stance::Aside { by_p99: true, .. } => Some(TrialVerdict::Refuted),
            _ => None,
        };
        let (stance, pairs, ratio, aside_s) = match guard.stance() {
            _ if left_alone => ("left_alone", None, None, None),
            Stance::Trying => ("trying", None, None, None),
            Stance::Certified { pairs, ratio, .. } => ("certified", Some(pairs), Some(ratio), None),
            Stance::Aside { until, ratio, .. } => {
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
            p99_verdict,
            p99_evidence_for: slow.map(Evidence::for_luc),
            p99_evidence_against: slow.map(Evidence::against_luc),
            duty: if left_alone { 0.0 } else { guard.duty() },
        }
    }

    /// The findings as a line of text.
    pub fn told(&self) -> String {
        let since = counted(self.pairs_since, "pair", "pairs");
        let text = match (self.stance, self.pairs, self.ratio, self.aside_s) {
            ("certified", Some(pairs), Some(ratio), _) => {
                certified(pairs, ratio, self.p99_verdict.is_some())
            }
            ("aside", _, Some(ratio), Some(left_s)) => {
                let left = duration(i128::from(left_s) * 1_000_000_000);
                let why = match self.p99_verdict {
                    Some(_) => format!("by a 99th percentile over {REFUTED} times stock's"),
                    None => format!("at {ratio:.2} of stock"),
                };
                format!("stands aside: refuted {why}; tried again in {left}")
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

/// A certificate as a text.
pub(super) fn certified(pairs: u64, ratio: f64, p99: bool) -> String {
    let pairs = count(pairs);
    let (too, but) = if p99 {
        let too = format!(", 99th percentile at most {CERTIFIED} times stock's,");
        (too, "")
    } else {
        (String::new(), "; 99th percentile unknown")
    };
    format!(
        "certified after {pairs} pairs: at least 0.99 of stock{too} with 99% confidence; mean \
         {ratio:.2} of stock{but}"
    )
}

#[cfg(test)]
mod tests {
    use luc_guard::{Bucket, Pair, Times, Window};

    use super::*;

    /// A guard that has heard pairs with this ratio of LUC to stock, and the time of each sync with
    /// LUC if it is seen; with stock it is 10 ms.
    fn heard(ratio_percent: u64, on_ms: Option<u64>, pairs: u32) -> Guard {
        let mut guard = Guard::new(1, Duration::ZERO);
        let window = |calls: u64, ms: Option<u64>| Window {
            time_ns: 1_000_000_000,
            calls,
            commits: 500,
            waited_ns: None,
            times: ms.map(|ms| {
                let (from_ns, to_ns) = (ms * 1_000_000, (ms + 1) * 1_000_000);
                Times::new([Bucket {
                    from_ns,
                    to_ns,
                    syncs: calls,
                }])
            }),
        };
        for _ in 0..pairs {
            guard.begin_pair();
            let pair = Pair {
                on: window(ratio_percent * 100, on_ms),
                off: window(10_000, on_ms.map(|_| 10)),
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
            GuardFindings::from_guard(guard, left_alone, runs, Duration::from_secs(9)).told()
        };
        assert_eq!(
            told(&heard(130, None, 3), false, true),
            "no verdict yet: 3 pairs so far"
        );
        let certified = told(&heard(130, None, 20), false, true);
        assert!(certified.starts_with("certified after 1"), "{certified}");
        let unknown = "at least 0.99 of stock with 99% confidence; mean 1.30 of stock; 99th \
                       percentile unknown";
        assert!(certified.ends_with(unknown), "{certified}");
        let both = told(&heard(130, Some(8), 40), false, true);
        let known = "at least 0.99 of stock, 99th percentile at most 1.33 times stock's, with 99% \
                     confidence; mean 1.30 of stock";
        assert!(both.ends_with(known), "{both}");
        let slow = told(&heard(130, Some(30), 40), false, true);
        assert_eq!(
            slow,
            "stands aside: refuted by a 99th percentile over 1.2 times stock's; tried again in \
             600 s"
        );
        let aside = told(&heard(50, None, 16), false, false);
        assert!(aside.starts_with("stands aside: refuted at 0."), "{aside}");
        assert!(
            aside.ends_with("of stock; tried again in 600 s (no guard runs now)"),
            "{aside}"
        );
        assert_eq!(
            told(&heard(130, None, 3), true, true),
            "left alone: the mode was set by hand"
        );
    }

    #[test]
    fn the_99th_percentile_is_unknown_unless_its_syncs_are_seen() {
        let found = |on_ms, pairs| {
            let guard = heard(130, on_ms, pairs);
            GuardFindings::from_guard(&guard, false, true, Duration::from_secs(9))
        };
        let blind = found(None, 20);
        assert_eq!((blind.stance, blind.p99_verdict), ("certified", None));
        assert_eq!(blind.p99_evidence_for, None);
        let seen = found(Some(8), 5);
        assert!(seen.p99_evidence_for > Some(1.0), "{seen:?}");
        let certified = found(Some(8), 40).p99_verdict;
        assert_eq!(certified, Some(TrialVerdict::Certified));
        let refuted = found(Some(30), 40);
        assert_eq!(refuted.p99_verdict, Some(TrialVerdict::Refuted));
        assert_eq!(refuted.stance, "aside");
    }
}
