//! Syncs wait for their own commit, which waits for the disk.

use super::{Kind, Standing, processor};
use crate::diagnosis::evidence::{BOUND_SHARE_MIN, Case, Verdict, VerdictKind};
use crate::diagnosis::facts::Facts;
use crate::diagnosis::{Diagnosis, words};
use luc_trace::Sight;

/// At most one sync in five waits behind other commits.
const OWN_ONLY_SHARE_MIN: f64 = 0.80;
/// Smallest share of the commits' time that is worth a sentence.
const DATA_SHARE_MIN: f64 = 0.30;

pub(super) const KIND: Kind = Kind {
    of: VerdictKind::Device,
    name: "device",
    what: "syncs wait for the disk, each for its own commit",
    answer: None,
    by_module: true,
    holds,
    verdict,
    advise,
    undermined: |_| false,
    of_luc: false,
    has_sufferers: false,
    standing: Standing::Cause,
    largest: Some(|account| account.own_ns),
};

fn verdict(case: &Case<'_>) -> Verdict {
    let commit = case.commit_time();
    let busy = case.of_time(|account| account.commit_busy_share);
    let bounds = case.unseen.contains(&Sight::Flushes);
    let mut verdict = case.verdict(VerdictKind::Device, |account| account.own_ns);
    if case.slices.whole.table.sync_events > 0 {
        let own_only = case
            .slices
            .share(|slice| (slice.table.sync_events > 0).then_some(slice.account.own_only_share));
        verdict = if bounds {
            verdict.with(
                "At least {} of the syncs wait for their own commit alone.",
                [("least_own_only_share", own_only)],
            )
        } else {
            verdict.with(
                "{} of the syncs wait for their own commit alone.",
                [("own_only_share", own_only)],
            )
        };
    }
    verdict.with(
        "A commit takes {}, and one runs for {} of the time.",
        [("commit_mean_ns", commit), ("commit_busy_share", busy)],
    )
}

fn holds(case: &Case<'_>) -> bool {
    let (account, table) = (case.account(), &case.slices.whole.table);
    let own_only = table.sync_events == 0 || account.own_only_share >= OWN_ONLY_SHARE_MIN;
    let bound = account.of_operations(account.own_ns) >= BOUND_SHARE_MIN;
    own_only && bound && !processor::delays_commits(case)
}

fn advise(diagnosis: &Diagnosis, facts: &Facts, advice: &mut Vec<String>) {
    let bulk = diagnosis.processes.bulk.as_ref();
    if let Some(bulk) = bulk.filter(|bulk| bulk.fills_disk() && diagnosis.io_limit.is_none()) {
        advice.push(format!(
            "{} writes {} of the data, {} per second, to the disk for which {} waits.",
            bulk.writer,
            words::share(bulk.bytes_share),
            luc_base::words::bytes(bulk.bytes_per_s),
            bulk.waiter
        ));
        advice.push(bulk.remedy());
    }
    shorter_commits(diagnosis, facts, advice);
}

/// Adds advice that shortens every commit. Two kinds of verdicts use it.
pub(super) fn shorter_commits(diagnosis: &Diagnosis, facts: &Facts, advice: &mut Vec<String>) {
    if diagnosis.io_limit.is_none() && !diagnosis.has(VerdictKind::Processor) {
        advice.push(match facts.rotational {
            Some(true) => {
                "The disk is rotational; an SSD, or a journal on one, shortens every commit.".into()
            }
            _ => "A disk with power-loss protection flushes at once; using one for the journal \
                  alone also helps."
                .into(),
        });
    }
    if diagnosis.account.commit_data_share >= DATA_SHARE_MIN {
        advice.push(format!(
            "Commits spend {} of their time writing files' data first (data=ordered).",
            words::share(diagnosis.account.commit_data_share)
        ));
    }
}
