//! Syncs wait while others' commits run.

use super::device::shorter_commits;
use super::{Kind, Standing};
use crate::diagnosis::evidence::{Case, Verdict, VerdictKind};
use crate::diagnosis::facts::Facts;
use crate::diagnosis::{Diagnosis, words};
use luc_trace::{Sight, Unseen};

pub(super) const KIND: Kind = Kind {
    of: VerdictKind::SyncDelays,
    name: "synchronisation delays",
    what: "syncs wait for the commits of others",
    answer: Some(answer),
    by_module: true,
    holds: |case| case.lost(case.account().behind_ns, case.account().sync_ns),
    verdict,
    advise,
    undermined: |unseen| unseen.contains(&Sight::Flushes),
    of_luc: true,
    has_sufferers: true,
    standing: Standing::Cause,
    largest: None,
};

fn answer(verdict: &Verdict, unseen: &Unseen) -> String {
    let (or, at_most) = if unseen.contains(&Sight::Flushes) {
        (", or for their data to be written", "at most ")
    } else {
        ("", "")
    };
    let cost = words::share(verdict.cost_share.value);
    let whole = verdict.whole(unseen);
    format!("{}{or}: {at_most}{cost} of {whole}", KIND.what)
}

fn advise(diagnosis: &Diagnosis, facts: &Facts, advice: &mut Vec<String>) {
    // Shorter commits also shorten the waits for others' commits.
    if !diagnosis.has(VerdictKind::Device) && !diagnosis.luc_serves() {
        shorter_commits(diagnosis, facts, advice);
    }
    if facts.fast_commit == Some(true) {
        advice.push("LUC does not hold commits of a journal that makes fast commits.".into());
    }
}

fn verdict(case: &Case<'_>) -> Verdict {
    let waited = case.of_served(|table| table.commits_waited_mean);
    let delay = case.of_served(|table| table.sync_delay_mean_ns);
    let behind = case.of_sync_time(|account| account.behind_ns);
    let events = case.of_served(|table| table.sync_events_per_commit);
    let commit = case.commit_time();
    // The wait counts from a sync's start if its data flush is not seen.
    let bounds = case.unseen.contains(&Sight::Flushes);
    let most = if bounds { "at most " } else { "" };
    let name = |exact, bound| if bounds { bound } else { exact };
    case.verdict(VerdictKind::SyncDelays, |account| account.behind_ns)
        .with(
            &format!("A sync waits through {most}{{}} commits; 1 commit would do."),
            [(
                name("commits_waited_mean_commits", "most_waited_mean_commits"),
                waited,
            )],
        )
        .with(
            &format!("It waits {most}{{}} for its own commit to begin."),
            [(name("sync_delay_mean_ns", "most_sync_delay_mean_ns"), delay)],
        )
        .with(
            name(
                "{} of the sync time passes while others' commits run.",
                "At most {} of the sync time passes while others' commits run.",
            ),
            [(name("behind_sync_share", "most_behind_sync_share"), behind)],
        )
        .with(
            "A commit serves {} syncs and takes {}.",
            [
                ("sync_events_per_commit_events", events),
                ("commit_mean_ns", commit),
            ],
        )
        .with_gain(
            "Batching commits",
            "batching_gain_ratio",
            case.believed(case.gains.batching),
        )
}
