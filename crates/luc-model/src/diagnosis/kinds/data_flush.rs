//! Syncs spend most of their time writing data.

use super::{Kind, Standing};
use crate::diagnosis::evidence::{BOUND_SHARE_MIN, Case, Verdict, VerdictKind};
use crate::diagnosis::{Diagnosis, words};

pub(super) const KIND: Kind = Kind {
    of: VerdictKind::DataFlush,
    name: "data flush",
    what: "syncs wait for their data to be written",
    answer: None,
    by_module: false,
    holds: |case| case.account().of_syncs(case.account().flush_ns) >= BOUND_SHARE_MIN,
    verdict,
    advise: |diagnosis, _, advice| {
        if diagnosis.io_limit.is_none() {
            advise(diagnosis, advice);
        }
    },
    undermined: |_| false,
    of_luc: false,
    has_sufferers: false,
    standing: Standing::Cause,
    largest: Some(|account| account.flush_ns),
};

fn verdict(case: &Case<'_>) -> Verdict {
    let flush = case.of_sync_time(|account| account.flush_ns);
    let own = case.of_sync_time(|account| account.own_ns);
    let each = case.slices.estimate(|slice| {
        let count = slice.table.sync.count;
        (count > 0).then(|| slice.account.flush_ns / count as f64)
    });
    case.verdict(VerdictKind::DataFlush, |account| account.flush_ns)
        .with(
            "{} of the sync time goes into writing data, {} per sync.",
            [("flush_sync_share", flush), ("flush_mean_ns", each)],
        )
        .with(
            if own.value > 0.0 {
                "The commit is {} of the sync time."
            } else {
                "Almost none of the sync time is spent in commits."
            },
            [("own_sync_share", own)],
        )
}

fn advise(diagnosis: &Diagnosis, advice: &mut Vec<String>) {
    let bulk = diagnosis.processes.bulk.as_ref();
    let Some(bulk) = bulk.filter(|bulk| bulk.delays_data()) else {
        advice.push("Write less data before each sync, or take a faster disk.".into());
        return;
    };
    advice.push(format!(
        "{} writes {} of the data, while {} waits for its own to be written for {} of its sync time.",
        bulk.writer,
        words::share(bulk.bytes_share),
        bulk.waiter,
        words::share(bulk.flush_share)
    ));
    advice.push(bulk.remedy());
}
