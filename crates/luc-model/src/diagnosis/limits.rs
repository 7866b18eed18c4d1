//! Limits on the I/O of control groups that syncs wait for.

use super::account::Account;
use super::facts::{Facts, IoLimit};
use super::words;
use crate::observed::{Observed, is_sync};
use crate::stats::share;
use luc_trace::Trace;
use std::collections::BTreeMap;

/// The kernel delays I/O before all of a limit is used, and the use is measured over the watch.
const USED_SHARE_MIN: f64 = 0.80;
/// A group whose tasks take less of the sync time is not what syncs wait for.
const SYNC_TIME_SHARE_MIN: f64 = 0.10;
/// Commits that write data for this share of their time wait for whoever wrote the data.
const DATA_SHARE_MIN: f64 = 0.30;

/// Returns the limit that is used most, if syncs wait for one.
pub(super) fn reached(
    trace: &Trace,
    observed: &Observed,
    account: &Account,
    facts: &Facts,
) -> Option<IoLimit> {
    if facts.io_limits.is_empty() {
        return None;
    }
    let mut time_ns: BTreeMap<String, f64> = BTreeMap::new();
    let syncs = trace
        .each_span()
        .filter(|span| span.dev == observed.dev && is_sync(span.kind));
    for sync in syncs {
        let group = trace
            .process(sync.tgid, sync.pid)
            .cgroup
            .unwrap_or_default();
        *time_ns.entry(group).or_default() += sync.duration_ns() as f64;
    }
    let all_ns: f64 = time_ns.values().sum();
    let waits = |limit: &&IoLimit| {
        let inside = time_ns
            .iter()
            .filter(|(group, _)| is_in(group, &limit.cgroup));
        let inside_ns: f64 = inside.map(|(_, ns)| ns).sum();
        let syncs_wait = share(inside_ns, all_ns) >= SYNC_TIME_SHARE_MIN;
        let commits_wait = account.commit_data_share >= DATA_SHARE_MIN;
        limit.used_share >= USED_SHARE_MIN && (syncs_wait || commits_wait)
    };
    let reached = facts.io_limits.iter().filter(waits);
    reached
        .max_by(|a, b| a.used_share.total_cmp(&b.used_share))
        .cloned()
}

/// Tells whether a group is `outer` or lies below it.
fn is_in(group: &str, outer: &str) -> bool {
    let rest = group.strip_prefix(outer.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl IoLimit {
    pub(super) fn evidence(&self) -> String {
        format!(
            "Control group {} uses {} of its I/O limit, io.max {}.",
            self.cgroup,
            words::share(self.used_share),
            self.setting
        )
    }

    pub(super) fn advice(&self) -> String {
        let key = self.setting.split('=').next().unwrap_or("it");
        let does = if key.starts_with('r') {
            "read"
        } else {
            "write"
        };
        format!(
            "Raise {key} in io.max of {}, or let it {does} less.",
            self.cgroup
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_on_reads_is_not_about_writes() {
        let advice = |setting: &str| {
            let limit = IoLimit {
                cgroup: "/low".into(),
                setting: setting.into(),
                used_share: 1.0,
            };
            limit.advice()
        };
        let of_reads = "Raise riops in io.max of /low, or let it read less.";
        assert_eq!(advice("riops=50"), of_reads);
        let of_writes = "Raise wbps in io.max of /low, or let it write less.";
        assert_eq!(advice("wbps=2097152"), of_writes);
    }
}
