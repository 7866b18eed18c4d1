//! Whom control groups wait for, as metrics.

use luc_watch::blame::{BlameTotals, Party};
use luc_watch::sample::JournalReading;

use super::families::{OTHERS, labels};
use super::text::{Family, Kind, Value};

/// The totals of a journal's watch.
pub struct Blamed<'a> {
    pub totals: &'a BlameTotals,
    /// Spans that are not in the totals; `None` if unknown.
    pub lost: Option<u64>,
}

/// The label of a party. Only a control group's label begins with a slash.
fn label(party: &Party) -> String {
    match party {
        Party::Group(path) => path.clone(),
        Party::Others => OTHERS.into(),
        Party::Nobody => "nobody".into(),
        Party::Unknown => "unknown".into(),
    }
}

/// Metrics of the journals that are watched for blame.
pub fn families(blamed: &[(&JournalReading, Blamed<'_>)]) -> [Family; 3] {
    let asked = blamed.iter().flat_map(|(journal, blamed)| {
        let asked = blamed.totals.commits_asked.iter();
        asked.map(|(party, commits)| {
            let mut labels = labels(journal);
            labels.push(("cgroup", label(party)));
            (labels, Value::Number(*commits as f64))
        })
    });
    let waited = blamed.iter().flat_map(|(journal, blamed)| {
        let pairs = blamed.totals.waited.iter();
        pairs.flat_map(|((waiter, other), time)| {
            let parts = [
                ("commits", time.commits_ns),
                ("data", time.data_ns),
                ("writes", time.write_delay_ns),
            ];
            let waited = parts.into_iter().filter(|(_, ns)| *ns > 0.0);
            waited.map(|(kind, ns)| {
                let mut labels = labels(journal);
                labels.extend([
                    ("cgroup", label(waiter)),
                    ("blamed", label(other)),
                    ("kind", kind.to_owned()),
                ]);
                (labels, Value::Number(ns / 1e9))
            })
        })
    });
    let lost = blamed.iter().filter_map(|(journal, blamed)| {
        let lost = blamed.lost? as f64;
        Some((labels(journal), Value::Number(lost)))
    });
    [
        Family::new(
            "luc_cgroup_commits_asked_total",
            Kind::Counter,
            "commits by the control group that asked for them first",
            asked,
        ),
        Family::new(
            "luc_cgroup_blamed_seconds_total",
            Kind::Counter,
            "time that tasks of a control group waited for another: in syncs for commits that it \
             asked for or for its data, and in writes blocked by its commits",
            waited,
        ),
        Family::new(
            "luc_blame_lost_total",
            Kind::Counter,
            "events that are not in the two totals before, which are then lower bounds",
            lost,
        ),
    ]
}
