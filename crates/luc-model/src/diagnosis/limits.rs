//! Limits that syncs wait for: on the I/O of control groups, on that of devices that hinder
//! requests, and on the processor time of control groups.

use super::account::Account;
use super::evidence::PART_MIN;
use super::facts::{CpuLimit, Facts, IoLimit, Limiter};
use super::words;
use crate::observed::{Observed, is_sync};
use crate::stats::share;
use luc_trace::Trace;
use std::collections::BTreeMap;

/// The kernel delays I/O before all of a limit is used, and the use is measured over the watch.
const USED_SHARE_MIN: f64 = 0.80;
/// A group that stalls for less of the time spends most of it otherwise.
const STALLED_SHARE_MIN: f64 = 0.50;
/// A group whose tasks take less of the sync time is not what syncs wait for.
const SYNC_TIME_SHARE_MIN: f64 = 0.10;
/// Commits that write data for this share of their time wait for whoever wrote the data.
const DATA_SHARE_MIN: f64 = 0.30;

/// Returns the limit with the largest share, if syncs wait for one.
pub(super) fn reached(
    trace: &Trace,
    observed: &Observed,
    account: &Account,
    facts: &Facts,
) -> Option<IoLimit> {
    let of_groups = of_groups(trace, observed, account, facts);
    let limits = of_groups.into_iter().chain(of_devices(observed, facts));
    limits.max_by(|a, b| a.used_share.total_cmp(&b.used_share))
}

fn of_groups(trace: &Trace, observed: &Observed, account: &Account, facts: &Facts) -> Vec<IoLimit> {
    if facts.io_limits.is_empty() {
        return Vec::new();
    }
    let sync_time = SyncTime::new(trace, observed);
    let waits = |limit: &&IoLimit| {
        let syncs_wait = sync_time.share_in(&limit.of) >= SYNC_TIME_SHARE_MIN;
        let commits_wait = account.commit_data_share >= DATA_SHARE_MIN;
        limit.used_share >= limit.by.share_min() && (syncs_wait || commits_wait)
    };
    facts.io_limits.iter().filter(waits).cloned().collect()
}

/// Returns the limit on processor time that holds up the tasks that sync most, if there is one.
pub(super) fn throttling(trace: &Trace, observed: &Observed, facts: &Facts) -> Option<CpuLimit> {
    let throttles = |limit: &&CpuLimit| limit.throttled_share >= STALLED_SHARE_MIN;
    let mut limits = facts.cpu_limits.iter().filter(throttles).peekable();
    limits.peek()?;
    let sync_time = SyncTime::new(trace, observed);
    let limits = limits.map(|limit| (sync_time.share_in(&limit.of), limit));
    let waited_for = limits.filter(|(inside, _)| *inside >= SYNC_TIME_SHARE_MIN);
    let most = waited_for.max_by(|a, b| a.0.total_cmp(&b.0));
    most.map(|(_, limit)| limit.clone())
}

/// Time in syncs by control group, ns.
struct SyncTime(BTreeMap<String, f64>);

impl SyncTime {
    fn new(trace: &Trace, observed: &Observed) -> Self {
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
        Self(time_ns)
    }

    /// Returns the share of a group and of those below it.
    fn share_in(&self, outer: &str) -> f64 {
        let inside = self.0.iter().filter(|(group, _)| is_in(group, outer));
        let inside_ns: f64 = inside.map(|(_, ns)| ns).sum();
        share(inside_ns, self.0.values().sum())
    }
}

/// Returns the devices that keep requests, and those whose delay is a part of a sync's time that is
/// worth naming.
fn of_devices(observed: &Observed, facts: &Facts) -> Vec<IoLimit> {
    let sync_ns: f64 = observed
        .syncs
        .iter()
        .map(|it| it.duration_ns() as f64)
        .sum();
    let mean_ns = share(sync_ns, observed.syncs.len() as f64);
    let limits = facts.hindering_devices.iter().map(|device| {
        let delay_ns = device.delay_ns.map(|ns| ns as f64);
        IoLimit {
            by: device.by.clone(),
            of: device.node.clone(),
            setting: delay_ns.map_or_else(String::new, words::time),
            // A sync needs several requests, one after the other: this is the least part.
            used_share: delay_ns.map_or(1.0, |ns| share(ns, mean_ns).min(1.0)),
        }
    });
    limits
        .filter(|limit| limit.used_share >= limit.by.share_min())
        .collect()
}

impl Limiter {
    /// Tells whether no request ends before somebody acts.
    pub(super) fn keeps_requests(&self) -> bool {
        matches!(self, Self::NoPath | Self::NoSpace)
    }

    /// Returns the share from which the limit matters.
    fn share_min(&self) -> f64 {
        match self {
            Self::Max => USED_SHARE_MIN,
            Self::Latency { .. } | Self::Weight => STALLED_SHARE_MIN,
            Self::Delay | Self::NoPath | Self::NoSpace => PART_MIN,
        }
    }
}

/// Tells whether a group is `outer` or lies below it.
pub(super) fn is_in(group: &str, outer: &str) -> bool {
    let rest = group.strip_prefix(outer.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl IoLimit {
    pub(super) fn evidence(&self) -> String {
        let (of, setting) = (&self.of, &self.setting);
        let shown = words::share(self.used_share);
        let stalls = || format!("Control group {of} stalls on I/O for {shown} of the time");
        match &self.by {
            Limiter::Max => {
                format!("Control group {of} uses {shown} of its I/O limit, io.max {setting}.")
            }
            Limiter::Latency { favoured } => format!(
                "{}, while {favoured} has io.latency {setting} and is served first.",
                stalls()
            ),
            Limiter::Weight => format!(
                "{}, while io.cost gives it io.weight {setting}, less than others.",
                stalls()
            ),
            Limiter::Delay => format!(
                "Device {of} delays requests by {setting} (dm-delay), at least {shown} of the mean \
                 sync."
            ),
            Limiter::NoPath => {
                format!("All paths of {of} have failed: it keeps {shown} of the requests.")
            }
            Limiter::NoSpace => {
                format!("Thin pool {of} is full: it keeps {shown} of the writes that need space.")
            }
        }
    }

    pub(super) fn advice(&self) -> String {
        let of = &self.of;
        match &self.by {
            Limiter::Max => {
                let key = self.setting.split('=').next().unwrap_or("it");
                let does = if key.starts_with('r') {
                    "read"
                } else {
                    "write"
                };
                format!("Raise {key} in io.max of {of}, or let it {does} less.")
            }
            Limiter::Latency { favoured } => {
                format!("Raise the target in io.latency of {favoured}.")
            }
            Limiter::Weight => format!("Raise io.weight of {of}."),
            Limiter::Delay => format!("Take the delay out of the table of {of} (dmsetup reload)."),
            Limiter::NoPath => format!("Bring back a path of {of}; `multipath -ll` lists them."),
            Limiter::NoSpace => format!("Extend the thin pool {of}, or remove what fills it."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_on_reads_is_not_about_writes() {
        let advice = |setting: &str| {
            let limit = IoLimit {
                by: Limiter::Max,
                of: "/low".into(),
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
