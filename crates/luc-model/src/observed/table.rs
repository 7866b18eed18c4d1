//! Derived quantities: section 3 and table 4.1 of the dissertation.

use super::{Observed, ObservedCommit, ObservedSync, ObservedWrite, Service};
use crate::stats::{self, mean, share};
use luc_base::Latency;
use serde::Serialize;
use std::collections::BTreeSet;

/// The derived quantities. Means over nothing are 0 here; [`ObservedTable::absent`] names them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ObservedTable {
    pub duration_ns: u64,
    pub commits: u64,
    /// `T_JC`.
    pub commit: Latency,
    /// Syncs that a commit of the trace served.
    pub sync_events: u64,
    /// Such syncs per commit, over all commits.
    pub sync_events_per_commit: f64,
    /// Syncs that found their transaction committed when they asked.
    pub syncs_unneeded: u64,
    /// Syncs whose commit the trace lacks.
    pub syncs_unserved: u64,
    /// `T_fsync` of all syncs.
    pub sync: Latency,
    /// From asking to the start of the serving commit, over served syncs, ns.
    pub sync_delay_mean_ns: f64,
    /// Mean number of commits that a served sync waited through.
    pub commits_waited_mean: f64,
    /// Share of served syncs that waited through two commits or more.
    pub two_commits_share: f64,
    /// `T_DFLUSH` of all syncs, ns.
    pub flush_mean_ns: f64,
    pub writes: u64,
    /// `T_write`.
    pub write: Latency,
    /// Writes that waited for a buffer that a commit was writing.
    pub writes_delayed: u64,
    /// Delayed writes as a share of all writes, 0 to 1.
    pub writes_delayed_share: f64,
    /// Mean wait of a delayed write for such buffers, ns.
    pub write_delay_mean_ns: f64,
    /// Threads that synced or wrote.
    pub threads: u64,
    /// Threads with at least one delayed write.
    pub threads_blocked: u64,
}

impl Observed {
    pub fn table(&self) -> ObservedTable {
        let syncs = |of: fn(Service) -> bool| self.syncs.iter().filter(move |s| of(s.service));
        let served = || syncs(|service| matches!(service, Service::Commit(_)));
        let unneeded = |it| matches!(it, Service::Unneeded | Service::Overtaken(_));
        let delayed = || self.writes.iter().filter(|w| w.waits.buffer_waits > 0);
        let sync_events = served().count() as u64;
        let writers = self.writes.iter().map(|write| write.pid);
        let threads: BTreeSet<u32> = self.syncs.iter().map(|s| s.pid).chain(writers).collect();
        let blocked: BTreeSet<u32> = delayed().map(|write| write.pid).collect();
        ObservedTable {
            duration_ns: self.duration_ns(),
            commits: self.commits.len() as u64,
            commit: stats::times(self.commits.iter().map(ObservedCommit::duration_ns)),
            sync_events,
            sync_events_per_commit: share(sync_events as f64, self.commits.len() as f64),
            syncs_unneeded: syncs(unneeded).count() as u64,
            syncs_unserved: syncs(|service| service == Service::Unserved).count() as u64,
            sync: stats::times(self.syncs.iter().map(ObservedSync::duration_ns)),
            sync_delay_mean_ns: mean(served().map(|sync| sync.delay_ns as f64)),
            commits_waited_mean: mean(served().map(|sync| f64::from(sync.commits_waited))),
            two_commits_share: share(
                served().filter(|sync| sync.commits_waited > 1).count() as f64,
                sync_events as f64,
            ),
            flush_mean_ns: mean(self.syncs.iter().map(|sync| sync.flush_ns() as f64)),
            writes: self.writes.len() as u64,
            write: stats::times(self.writes.iter().map(ObservedWrite::duration_ns)),
            writes_delayed: delayed().count() as u64,
            writes_delayed_share: share(delayed().count() as f64, self.writes.len() as f64),
            write_delay_mean_ns: mean(delayed().map(|write| write.waits.buffer_ns as f64)),
            threads: threads.len() as u64,
            threads_blocked: blocked.len() as u64,
        }
    }
}
