//! No task waits long enough to notice.

use super::{Kind, Standing, lasting};
use crate::diagnosis::account::{Account, syncs_per_s};
use crate::diagnosis::evidence::{Case, LOST_PER_S_MIN_NS, RARE_SYNCS_PER_S, Verdict, VerdictKind};
use crate::diagnosis::slices::Estimate;
use crate::diagnosis::{unseen, words};
use luc_trace::Unseen;

/// If threads are in syncs or wait for the journal for less than this share of the time, no thread
/// can gain more than a factor of 1 / (1 - 0.05) = 1.053: its waits lie within that share.
const BUSY_SHARE_MIN: f64 = 0.05;
/// Rare syncs count as no pressure if they take less than this share of the time.
const RARE_BUSY_SHARE_MAX: f64 = 0.20;
/// Users do not notice syncs shorter than this in threads that spend less than a tenth of their
/// time in syncs.
const CHEAP_SYNC_NS: f64 = 1e6;
const CHEAP_THREAD_SHARE_MAX: f64 = 0.10;
/// Writes are slow if they take longer than this, and threads together spend more of each second
/// in them than a fifth of one thread's.
const SLOW_WRITE_NS: f64 = 1e6;
const SLOW_WRITES_PER_S_NS: f64 = 2e8;
/// The number that describes them: the time in them per second, ns.
const SLOW_WRITES: &str = "write_per_s_ns";

pub(super) const KIND: Kind = Kind {
    of: VerdictKind::NoPressure,
    name: "no fsync pressure",
    what: "no fsync pressure on the journal",
    answer: Some(answer),
    by_module: true,
    holds,
    verdict,
    advise: |_, _, _| (),
    undermined: unseen::any_wait,
    of_luc: false,
    has_sufferers: false,
    standing: Standing::Alone,
    largest: None,
};

fn verdict(case: &Case<'_>) -> Verdict {
    let busy = case.of_time(|account| account.busy_share);
    let (table, account) = (&case.slices.whole.table, &case.slices.whole.account);
    let rate = case
        .slices
        .estimate(|slice| Some(syncs_per_s(&slice.account, &slice.table)));
    let verdict = case.verdict(VerdictKind::NoPressure, |_| 0.0).with(
        match (busy.value > 0.0, unseen::any_wait(case.unseen)) {
            (true, false) => "Tasks sync or wait for the journal for {} of the time.",
            (true, true) => "Tasks sync, or are seen to wait for the journal, for {} of the time.",
            (false, false) => "No task waits for the journal.",
            (false, true) => "No task is seen to wait for the journal.",
        },
        [("busy_share", busy)],
    );
    let verdict = slow_writes(case, verdict);
    if table.sync.count == 0 {
        return verdict.with("No task syncs.", [("syncs_per_s", rate)]);
    }
    let verdict = verdict.with("There are {} syncs per second.", [("syncs_per_s", rate)]);
    let mean = Estimate::exact(table.sync.mean_ns);
    let thread = Estimate::exact(account.busiest_thread_share);
    verdict.with(
        "A sync takes {}; no thread spends more than {} of its time in syncs.",
        [("sync_mean_ns", mean), ("busiest_thread_share", thread)],
    )
}

/// Adds what writes wait for if it is not the journal.
fn slow_writes(case: &Case<'_>, verdict: Verdict) -> Verdict {
    let per_s_ns = |account: &Account| {
        let waits_ns = account.buffer_ns + account.locked_ns + account.space_ns;
        account.per_s((account.write_ns - waits_ns).max(0.0))
    };
    let mean_ns = case.slices.whole.table.write.mean_ns;
    if mean_ns < SLOW_WRITE_NS || per_s_ns(case.account()) < SLOW_WRITES_PER_S_NS {
        return verdict;
    }
    let each = Estimate::exact(mean_ns);
    let all = case.slices.estimate(|slice| Some(per_s_ns(&slice.account)));
    verdict.with(
        "A write takes {}, and all together take {} per second, not for the journal: with direct \
         I/O they wait for the disk, else for room in memory.",
        [("write_mean_ns", each), (SLOW_WRITES, all)],
    )
}

fn answer(verdict: &Verdict, unseen: &Unseen) -> String {
    let busy = verdict.number("busy_share").unwrap_or(0.0);
    if unseen::any_wait(unseen) {
        return format!(
            "no fsync pressure; tasks sync for {} of the time, and not all waits could be seen",
            words::share(busy)
        );
    }
    if verdict.number(SLOW_WRITES).is_some() {
        return "no fsync pressure; tasks wait in writes, but not for the journal".into();
    }
    if busy == 0.0 {
        return "no fsync pressure; no task syncs or waits for commits".into();
    }
    format!(
        "no fsync pressure; tasks wait for {} of the time",
        words::share(busy)
    )
}

fn holds(case: &Case<'_>) -> bool {
    let untimed_per_s = case.account().per_s(case.untimed.count as f64);
    if lasting::holds(case) || untimed_per_s >= RARE_SYNCS_PER_S {
        return false;
    }
    let (account, table) = (case.account(), &case.slices.whole.table);
    let waits_ns = account.buffer_ns + account.locked_ns + account.space_ns;
    let few_waits = account.per_s(waits_ns) < LOST_PER_S_MIN_NS;
    let rare =
        syncs_per_s(account, table) < RARE_SYNCS_PER_S && account.busy_share < RARE_BUSY_SHARE_MAX;
    let cheap =
        table.sync.mean_ns < CHEAP_SYNC_NS && account.busiest_thread_share < CHEAP_THREAD_SHARE_MAX;
    account.busy_share < BUSY_SHARE_MIN || (few_waits && (rare || cheap))
}
