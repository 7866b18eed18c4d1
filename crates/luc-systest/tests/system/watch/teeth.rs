//! Checks that wrong figures would be found: each is falsified in what a run brought back, one at a
//! time, and then the same judgement must fail.

use serde_json::Value;

use super::{COUNTERS, Page, judge};
use luc_systest::{Answer, Outcome, check, fail};

/// A value to falsify, and its place.
enum Wrong {
    /// Adds one to the number at this place of a JSON file.
    Number(&'static str, String),
    /// Replaces the word at this place of a JSON file.
    Word(&'static str, String),
    /// Adds one to a metric's series with this label.
    Metric(&'static str, &'static str, &'static str),
    /// Replaces a text on the screen.
    Screen(&'static str, &'static str),
}

/// Falsifies every figure, one after the other.
pub fn bite(answer: &mut Answer) -> Outcome {
    for wrong in all() {
        let (file, what) = match &wrong {
            Wrong::Number(file, at) | Wrong::Word(file, at) => (*file, at.clone()),
            Wrong::Metric(file, metric, label) => (*file, format!("{metric} of {label}")),
            Wrong::Screen(from, to) => ("held-screen", format!("{to} for {from}")),
        };
        let path = match wrong {
            Wrong::Number(..) | Wrong::Word(..) => format!("watch/{file}.json"),
            Wrong::Metric(..) | Wrong::Screen(..) => format!("watch/{file}"),
        };
        let files = &mut answer.result.files;
        let Some(place) = files.iter().position(|(name, _)| *name == path) else {
            return fail(format!("no file {path} came back"));
        };
        let right = String::from_utf8_lossy(&files[place].1).into_owned();
        let Some(changed) = wrong.make(&right) else {
            return fail(format!("{path} has no {what} to make wrong"));
        };
        files[place].1 = changed.into_bytes();
        let found = judge(answer).is_err();
        answer.result.files[place].1 = right.into_bytes();
        check(found, format!("{path}: {what} may be wrong unseen"))?;
    }
    // The figures pass when they are right, so these changes were what failed.
    judge(answer)
}

impl Wrong {
    fn make(&self, right: &str) -> Option<String> {
        match self {
            Self::Number(_, at) | Self::Word(_, at) => {
                let mut json: Value = serde_json::from_str(right).ok()?;
                let value = json.pointer_mut(at)?;
                *value = match self {
                    Self::Number(..) => (value.as_f64()? + 1.0).into(),
                    _ => format!("not {}", value.as_str()?).into(),
                };
                serde_json::to_string(&json).ok()
            }
            Self::Metric(_, metric, label) => {
                let value = Page(right.to_owned()).value(metric, label).ok()?;
                let wrong = |line: &str| {
                    let whole = line.starts_with(&format!("{metric}{{"))
                        || line.starts_with(&format!("{metric} "));
                    match line.rsplit_once(' ') {
                        Some((series, _)) if whole && line.contains(label) => {
                            format!("{series} {}\n", value + 1.0)
                        }
                        _ => format!("{line}\n"),
                    }
                };
                Some(right.lines().map(wrong).collect())
            }
            Self::Screen(from, to) => right.contains(from).then(|| right.replace(from, to)),
        }
    }
}

fn all() -> Vec<Wrong> {
    let mut all = Vec::new();
    for file in ["plain-count", "held-count"] {
        all.extend(
            [
                "/events_lost",
                "/file_systems/0/syncs",
                "/file_systems/0/commits",
                "/file_systems/0/syncs_by_commits/1",
                "/file_systems/0/syncs_by_commits/2",
            ]
            .map(|at| Wrong::Number(file, at.to_owned())),
        );
    }
    // Processes are in the order of their process IDs; those of the load come last.
    for (file, at) in [("plain-once", ""), ("held-live", "/live")] {
        let numbers = [
            "/events_lost",
            "/interval_s",
            "/journals/0/traced/syncs_per_s",
            "/journals/0/traced/commits_per_s",
            "/journals/1/traced/syncs_per_s",
            "/journals/1/traced/commits_per_s",
            "/processes/0/syncs_per_s",
        ];
        all.extend(numbers.map(|number| Wrong::Number(file, format!("{at}{number}"))));
    }
    for name in ["alpha", "beta", "other", "commits", "commits_other"] {
        all.push(Wrong::Number("plain-facts", format!("/{name}")));
        all.push(Wrong::Number("held-facts", format!("/{name}")));
    }
    for rate in ["commits_per_s", "sync_events_per_s", "held_per_s"] {
        let at = format!("/live/journals/0/luc/rates/{rate}");
        all.push(Wrong::Number("held-live", at));
    }
    for name in COUNTERS {
        all.push(Wrong::Number(
            "held-live",
            format!("/file_systems/0/counters/{name}"),
        ));
        all.push(Wrong::Number("held-after", format!("/{name}")));
    }
    for file in ["held-live", "told-live"] {
        for name in ["policy", "mode"] {
            all.push(Wrong::Word(file, format!("/live/journals/0/luc/{name}")));
            all.push(Wrong::Word(file, format!("/file_systems/0/knobs/{name}")));
        }
    }
    for file in ["plain-http", "held-http", "held-file"] {
        for (metric, label) in [
            ("luc_syncs_total", "nullb0"),
            ("luc_syncs_total", "nullb1"),
            ("luc_sync_duration_seconds_count", "nullb0"),
            ("luc_syncs_served_total", "nullb0"),
            ("luc_syncs_late_total", "nullb0"),
            ("luc_journal_commits_total", "nullb0"),
            ("luc_journal_commits_total", "nullb1"),
            ("luc_tracer_lost_total", ""),
            ("luc_tracer_attached", "tracepoint"),
            ("luc_tracer_attached", "fentry"),
            ("luc_tracer_attached", "kprobe"),
        ] {
            all.push(Wrong::Metric(file, metric, label));
        }
    }
    for file in ["held-http", "held-file"] {
        for metric in [
            "luc_commits_total",
            "luc_sync_events_total",
            "luc_commits_held_total",
            "luc_closed_idle_total",
            "luc_handles_total",
            "luc_held_seconds_total",
            "luc_policy_info",
        ] {
            all.push(Wrong::Metric(file, metric, "nullb0"));
        }
    }
    all.push(Wrong::Metric("told-http", "luc_policy_info", "nullb0"));
    // Rates of alpha and beta that are wrong by one event in the interval; a name, a place, a mode.
    all.extend([
        Wrong::Screen("1.60", "1.64"),
        Wrong::Screen("1.40", "1.36"),
        Wrong::Screen("other", "nobody"),
        Wrong::Screen("/mnt/0", "/mnt/2"),
        Wrong::Screen("steering", "standing"),
    ]);
    all
}
