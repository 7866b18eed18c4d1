//! The verdicts: which of the causes take enough time to be named.

use super::account::{Account, blocked_ns, syncs_per_s};
use super::evidence::{Judge, Verdict};
use super::facts::Facts;
use super::gain::Gains;
use super::slices::Slices;
use crate::observed::Table;
use crate::stats::share;
use luc_trace::Unseen;

/// If somebody is in a sync or waits for the journal for less than this share
/// of the time, nobody can become faster by more than 1 / (1 - 0.05) = 1.053,
/// whatever is done about it: every thread's waits lie within that share.
const BUSY_SHARE_MIN: f64 = 0.05;
/// Fewer syncs than this and a lower share than that of the time: an editor
/// that saves, a logger that flushes. They hardly ever meet.
pub(super) const RARE_SYNCS_PER_S: f64 = 2.0;
const RARE_BUSY_SHARE_MAX: f64 = 0.20;
/// Syncs that take less than a millisecond, in threads that spend less than a
/// tenth of their time in them, are noticed by nobody.
const CHEAP_SYNC_NS: f64 = 1e6;
const CHEAP_THREAD_SHARE_MAX: f64 = 0.10;

/// A cause is named if it takes a tenth of the time of the operations that it
/// hits, for with less of it they vary by more than it costs,
pub(super) const PART_MIN: f64 = 0.10;
/// and 20 ms of all threads' time per second: less is nothing to a machine.
pub(super) const LOST_PER_S_MIN_NS: f64 = 20e6;
/// Bound by data or by the disk is what spends most of its time there.
const BOUND_SHARE_MIN: f64 = 0.50;
/// Bound by the disk are syncs of which at most one in five waits behind others.
const OWN_ONLY_SHARE_MIN: f64 = 0.80;
/// Where nothing reaches its threshold, half of what would make "most" is named.
const LARGEST_SHARE_MIN: f64 = 0.25;

/// The verdicts that hold, the most costly first; at least one.
pub(super) fn verdicts(
    slices: &Slices,
    gains: &Gains,
    unseen: &Unseen,
    facts: &Facts,
) -> Vec<Verdict> {
    let judge = Judge {
        slices,
        gains,
        unseen,
    };
    let (account, table) = (&slices.whole.account, &slices.whole.table);
    if no_pressure(account, table) {
        return vec![judge.no_pressure()];
    }
    let lost = |part_ns: f64, whole_ns: f64| {
        share(part_ns, whole_ns) >= PART_MIN && account.per_s(part_ns) >= LOST_PER_S_MIN_NS
    };
    let mut found = Vec::new();
    if lost(account.behind_ns, account.sync_ns) {
        found.push(judge.sync_delays());
    }
    let writing_ns = account.write_ns + account.elsewhere_ns;
    // Space may be waited for in syncs as well, where data is given its place.
    let small = lost(account.space_ns, account.operations_ns) || lost(account.space_ns, writing_ns);
    if lost(blocked_ns(account, small), writing_ns) {
        found.push(judge.write_delays(small));
    }
    if small {
        found.push(judge.journal(facts));
    }
    if account.of_syncs(account.flush_ns) >= BOUND_SHARE_MIN {
        found.push(judge.data_flush());
    }
    let own_only = table.sync_events == 0 || account.own_only_share >= OWN_ONLY_SHARE_MIN;
    if own_only && account.of_operations(account.own_ns) >= BOUND_SHARE_MIN {
        found.push(judge.device());
    }
    if found.is_empty() {
        let largest_ns = account.flush_ns.max(account.own_ns);
        found.push(if account.of_operations(largest_ns) < LARGEST_SHARE_MIN {
            judge.unclear()
        } else if account.flush_ns > account.own_ns {
            judge.data_flush()
        } else {
            judge.device()
        });
    }
    found.sort_by(|a, b| b.cost_share.value.total_cmp(&a.cost_share.value));
    found
}

fn no_pressure(account: &Account, table: &Table) -> bool {
    let waits_ns = account.buffer_ns + account.locked_ns + account.space_ns;
    let few_waits = account.per_s(waits_ns) < LOST_PER_S_MIN_NS;
    let rare =
        syncs_per_s(account, table) < RARE_SYNCS_PER_S && account.busy_share < RARE_BUSY_SHARE_MAX;
    let cheap =
        table.sync.mean_ns < CHEAP_SYNC_NS && account.busiest_thread_share < CHEAP_THREAD_SHARE_MAX;
    account.busy_share < BUSY_SHARE_MIN || (few_waits && (rare || cheap))
}
