//! Unseen and lost events: the numbers that are unknown without them, and the doubts about the
//! replay.

use super::account::Account;
use super::words;
use crate::observed::ObservedTable;
use crate::stats::share;
use luc_trace::{Sight, Trace, Unseen};
use serde::Serializer;

/// Fields of [`ObservedTable`] that need the sight of some events, separated by spaces.
const OF_TABLE: [(Sight, &str); 3] = [
    (
        Sight::Flushes,
        "flush_mean_ns sync_delay_mean_ns commits_waited_mean two_commits_share syncs_unneeded",
    ),
    (
        Sight::Writes,
        "writes write writes_delayed writes_delayed_share write_delay_mean_ns threads threads_blocked",
    ),
    (
        Sight::WaitBuffer,
        "writes_delayed writes_delayed_share write_delay_mean_ns threads_blocked",
    ),
];

/// Sums over all kinds of waits: unknown if one kind is.
const OF_WAITS: &str = "elsewhere_ns operations_ns busy_share busiest_thread_share";

/// Fields of [`Account`] that need the sight of some events.
const OF_ACCOUNT: [(Sight, &str); 8] = [
    (Sight::Flushes, "flush_ns behind_ns own_ns own_only_share"),
    (Sight::Writes, "write_ns elsewhere_ns operations_ns"),
    (Sight::WaitBuffer, "buffer_ns"),
    (Sight::WaitBuffer, OF_WAITS),
    (Sight::WaitLocked, "locked_ns"),
    (Sight::WaitLocked, OF_WAITS),
    (Sight::WaitSpace, "space_ns"),
    (Sight::WaitSpace, OF_WAITS),
];

fn needing(rows: &[(Sight, &'static str)], unseen: &Unseen) -> Vec<&'static str> {
    let rows = rows.iter().filter(|(sight, _)| unseen.contains(sight));
    rows.flat_map(|(_, fields)| fields.split(' ')).collect()
}

impl ObservedTable {
    /// Returns the names of the fields that are unknown without these events.
    pub fn unknown(unseen: &Unseen) -> Vec<&'static str> {
        needing(&OF_TABLE, unseen)
    }

    /// Returns the names of the fields that have no value: those of [`ObservedTable::unknown`], and
    /// statistics over nothing.
    pub fn absent(&self, unseen: &Unseen) -> Vec<&'static str> {
        let served = "sync_delay_mean_ns commits_waited_mean two_commits_share";
        let over = [
            (self.commits, "commit sync_events_per_commit"),
            (self.sync.count, "sync flush_mean_ns"),
            (self.sync_events, served),
            (self.writes, "write writes_delayed_share"),
            (self.writes_delayed, "write_delay_mean_ns"),
        ];
        let nothing = over.into_iter().filter(|(count, _)| *count == 0);
        let mut absent = Self::unknown(unseen);
        absent.extend(nothing.flat_map(|(_, fields)| fields.split(' ')));
        absent
    }
}

impl Account {
    /// Returns the names of the fields that are unknown without these events.
    pub fn unknown(unseen: &Unseen) -> Vec<&'static str> {
        needing(&OF_ACCOUNT, unseen)
    }
}

pub(super) fn any_wait(unseen: &Unseen) -> bool {
    unseen.iter().any(|sight| sight.is_wait())
}

/// Names the whole of which the shares of operations are parts.
pub(super) fn operations(unseen: &Unseen) -> &'static str {
    let waits = Sight::ALL.into_iter().filter(|sight| sight.is_wait());
    let no_wait = waits.clone().all(|sight| unseen.contains(&sight));
    match (unseen.contains(&Sight::Writes), no_wait) {
        (false, _) => "the time in syncs and writes",
        (true, false) => "the time in syncs and in waits for the journal",
        (true, true) => "the time in syncs",
    }
}

/// Returns why the replay cannot be trusted, one sentence each.
pub fn doubts(unseen: &Unseen) -> Vec<String> {
    let mut doubts = Vec::new();
    if unseen.contains(&Sight::Flushes) {
        doubts.push("Syncs may wait for their data rather than for commits.".to_owned());
    }
    if any_wait(unseen) {
        doubts.push("It is not known what writers wait for.".to_owned());
    }
    doubts
}

pub(super) fn lost_share(trace: &Trace) -> f64 {
    let lost = trace.spans_lost as f64;
    share(lost, trace.spans.len() as f64 + lost)
}

pub(super) fn lost(trace: &Trace) -> String {
    let shown = words::share(lost_share(trace));
    format!("{shown} of the events were lost while it was recorded.")
}

pub(super) fn unserved(share: f64) -> String {
    let shown = words::share(share);
    format!("The commit of {shown} of the syncs is not in the trace.")
}

pub(super) fn fast_commits(count: u64, share: f64) -> String {
    let commits = words::counted(count, "fast commit", "fast commits");
    format!("{commits}, {} of all commits", words::share(share))
}

pub(super) fn as_words<S: Serializer>(unseen: &Unseen, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(unseen.iter().map(|sight| sight.word()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_there() {
        let all: Unseen = Sight::ALL.into_iter().collect();
        let table = format!("{:?}", ObservedTable::default());
        let account = format!("{:?}", Account::default());
        for field in ObservedTable::default().absent(&all) {
            assert!(table.contains(&format!("{field}: ")), "{field}");
        }
        for field in Account::unknown(&all) {
            assert!(account.contains(&format!("{field}: ")), "{field}");
        }
        assert!(ObservedTable::unknown(&Unseen::new()).is_empty());
        assert!(Account::unknown(&Unseen::from([Sight::Opens])).is_empty());
    }

    #[test]
    fn shares_say_of_what() {
        let waits = [Sight::WaitBuffer, Sight::WaitLocked, Sight::WaitSpace];
        let mut unseen = Unseen::from([Sight::Writes]);
        assert!(operations(&Unseen::new()).ends_with("writes"));
        assert!(operations(&unseen).ends_with("journal"));
        unseen.extend(waits);
        assert!(operations(&unseen).ends_with("syncs"));
    }
}
