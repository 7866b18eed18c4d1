//! The contents of a recording: the answer of `luc trace summary`.

mod slow;

pub use slow::{Bucket, SLOWEST, Slow, Slowness};

use std::collections::{BTreeMap, BTreeSet};

use luc_control::Dev;
use luc_trace::{Process, Sight, SpanKind, Trace};
use serde::Serialize;

use crate::algorithms::{CreationRate, fsync_model};
use crate::blame::{By, Commits, Waiter, blame, waiting_groups};
use crate::lasting::LastingSyncs;
use crate::observed::{Observed, ObservedTable};
use crate::sharing::Sharing;
use crate::untimed::UntimedSyncs;
use crate::writeback::Names;

/// Operations that wait for the journal.
pub const SYNCS: [SpanKind; 3] = [SpanKind::Fsync, SpanKind::Fdatasync, SpanKind::Sync];

#[derive(Debug, Serialize)]
pub struct Summary {
    pub schema: u32,
    pub header: BTreeMap<String, String>,
    pub spans_lost: u64,
    pub lines_lost: u64,
    pub damage: Option<String>,
    pub unseen: Vec<&'static str>,
    pub file_systems: Vec<FileSystem>,
}

impl Summary {
    pub fn from_trace(trace: &Trace) -> Self {
        let devs: BTreeSet<Dev> = trace.each_span().map(|span| span.dev).collect();
        Self {
            schema: 1,
            header: trace.header.pairs.clone(),
            spans_lost: trace.spans_lost,
            lines_lost: trace.lines_lost.events,
            damage: trace.damage.clone(),
            unseen: trace.unseen.iter().map(|sight| sight.word()).collect(),
            file_systems: devs
                .iter()
                .map(|dev| FileSystem::from_trace(trace, *dev))
                .collect(),
        }
    }
}

#[derive(Debug, Serialize)]
pub struct FileSystem {
    pub device: String,
    /// Its mount point, if the recording tells it.
    pub mount_point: Option<String>,
    /// Spans by kind; `None` for a kind that could not be seen.
    pub counts: BTreeMap<&'static str, Option<u64>>,
    pub time_ns: BTreeMap<&'static str, Option<u64>>,
    pub bytes_written: Option<i64>,
    /// The derived quantities; see [`ObservedTable::absent`].
    pub table: ObservedTable,
    /// Syncs that were seen in part; they are in none of the other numbers.
    pub lasting: LastingSyncs,
    /// Whom the processes waited for, those that lost most first; `None` if that cannot be seen.
    pub waiters: Option<Vec<Waiter>>,
    /// The same by control group; `None` if no group is known, too.
    pub control_groups: Option<Vec<Waiter>>,
    /// The commits by their askers; `None` if that cannot be seen.
    pub commits_by: Option<Commits>,
    /// The blocks for which tasks waited while a commit wrote them; `None` if that cannot be seen.
    pub sharing: Option<Sharing>,
    /// Other operations that waited for a commit.
    pub untimed: UntimedSyncs,
    #[serde(flatten)]
    pub slow: Slowness,
    pub fsync_model: Model,
    /// Processes that synced, by name and control group; those with the most syncs first.
    pub processes: Vec<Syncing>,
}

/// Processes of the same name and control group that synced.
#[derive(Debug, Serialize)]
pub struct Syncing {
    pub name: String,
    pub cgroup: Option<String>,
    pub syncs: u64,
}

impl Syncing {
    fn all(trace: &Trace, dev: Dev) -> Vec<Self> {
        let names = Names::from_trace(trace, dev);
        let mut by_process: BTreeMap<Process, u64> = BTreeMap::new();
        for sync in trace.on(dev).filter(|span| SYNCS.contains(&span.kind)) {
            let process = names.process(sync.tgid, sync.pid);
            *by_process.entry(process).or_default() += 1;
        }
        let mut all: Vec<Self> = by_process
            .into_iter()
            .map(|(Process { name, cgroup }, syncs)| Self {
                name,
                cgroup,
                syncs,
            })
            .collect();
        all.sort_by_key(|process| std::cmp::Reverse(process.syncs));
        all
    }
}

/// The error of the published algorithm against the measured times.
#[derive(Debug, Serialize)]
pub struct Model {
    pub syncs_predicted: usize,
    pub unpredicted: u64,
    pub error_median_share: f64,
    pub error_p90_share: f64,
    pub right_commit_share: f64,
    pub creation: CreationRate,
}

impl Model {
    fn new(trace: &Trace, observed: &Observed) -> Self {
        let model = fsync_model(trace, observed);
        Self {
            syncs_predicted: model.syncs.len(),
            unpredicted: model.unpredicted,
            error_median_share: model.accuracy.error_median_share,
            error_p90_share: model.accuracy.error_p90_share,
            right_commit_share: model.accuracy.right_commit_share,
            creation: model.creation,
        }
    }
}

impl FileSystem {
    fn from_trace(trace: &Trace, dev: Dev) -> Self {
        let mut counts: BTreeMap<&str, Option<u64>> = BTreeMap::new();
        let mut time_ns: BTreeMap<&str, Option<u64>> = BTreeMap::new();
        let mut bytes_written = 0_i64;
        for kind in SpanKind::ALL
            .into_iter()
            .filter(|kind| *kind != SpanKind::Task)
        {
            let nothing = Sight::sees(&trace.unseen, kind).then_some(0);
            counts.insert(kind.text(), nothing);
            time_ns.insert(kind.text(), nothing);
        }
        for span in trace.on(dev) {
            if let Some(Some(count)) = counts.get_mut(span.kind.text()) {
                *count += 1;
            }
            if let Some(Some(time)) = time_ns.get_mut(span.kind.text()) {
                *time = time.saturating_add(span.duration_ns());
            }
            bytes_written = bytes_written.saturating_add(span.amount.max(0));
        }
        let observed = Observed::from_trace(trace, dev);
        let asking_seen = !trace.unseen.contains(&Sight::Flushes);
        let processes = asking_seen.then(|| blame(trace, &observed, By::Process));
        let groups = asking_seen.then(|| waiting_groups(trace, &observed));
        Self {
            device: dev.to_string(),
            mount_point: trace.header.mount_point(dev).map(str::to_owned),
            counts,
            time_ns,
            bytes_written: Sight::sees(&trace.unseen, SpanKind::Write).then_some(bytes_written),
            table: observed.table(),
            lasting: LastingSyncs::from_trace(trace, dev),
            commits_by: processes.as_ref().map(|blame| blame.commits.clone()),
            waiters: processes.map(|blame| blame.waiters),
            control_groups: groups.flatten(),
            sharing: Sight::sees(&trace.unseen, SpanKind::WaitBuffer)
                .then(|| Sharing::from_trace(trace, dev)),
            untimed: UntimedSyncs::from_trace(trace, dev),
            slow: Slowness::from_trace(trace, dev),
            fsync_model: Model::new(trace, &observed),
            processes: Syncing::all(trace, dev),
        }
    }
}
