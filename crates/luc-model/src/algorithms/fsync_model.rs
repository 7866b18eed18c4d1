//! Fsync times predicted by Algorithm 4.1 beside the measured ones, and the file creation rate of
//! equations 3 and 8 from both.
//!
//! The algorithm's input is when each sync was called, and when each commit began and ended: a sync
//! waits for the first commit that begins after its call.
//!
//! An amended algorithm ([`SyncPrediction::amended_ns`]) adds two things:
//!
//! - A sync that flushes data asks for its transaction when the flush is done. By then the commit
//!   may be over; the sync has then waited for the flush alone.
//! - Threads that share a commit are released together. They run in the order in which they asked,
//!   as many at once as there are processors, each until it waits again. This applies only if the
//!   recording tells the number of processors.

use super::grouping::{CommitTimes, Served, group};
use super::line::released;
use crate::observed::{Observed, ObservedSync, Service};
use crate::stats::{mean, quantile, share, whole_ns};
use luc_trace::{CREATED, SpanKind, Trace};
use serde::Serialize;
use std::collections::BTreeMap;

/// One sync, predicted and measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SyncPrediction {
    /// Index in [`Observed::syncs`].
    pub sync: usize,
    pub pid: u32,
    /// Equation 4 or 5, ns.
    pub predicted_ns: u64,
    /// The prediction of the amended algorithm, ns.
    pub amended_ns: u64,
    /// `T_fsync`, ns.
    pub measured_ns: u64,
    /// Predicted number of commits waited for: 1 by equation 4, 2 by equation 5.
    pub commits_predicted: u32,
    /// Measured number of commits waited for.
    pub commits_measured: u32,
    /// Whether Algorithm 4.1 chose the commit that served the sync.
    pub right_commit: bool,
    /// Whether the amended algorithm chose it.
    pub amended_right_commit: bool,
}

/// File creations per second, all threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CreationRate {
    /// Threads that created and synced files.
    pub threads: u64,
    /// Equation 3 with measured times, per second.
    pub measured_per_s: f64,
    /// Equation 3 with the predicted fsync times, per second.
    pub predicted_per_s: f64,
    /// Equation 8, which counts only fsync, with measured times, per second.
    pub fsync_only_measured_per_s: f64,
    /// Equation 8 with the predicted fsync times, per second.
    pub fsync_only_predicted_per_s: f64,
}

/// How well the predictions agree with the measured times. The amended algorithm knows of flushes
/// that outlast a commit, and of the run queue if the recording tells the number of processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Accuracy {
    /// Median error, as a share of the measured time.
    pub error_median_share: f64,
    /// 90th percentile of the error, as a share of the measured time.
    pub error_p90_share: f64,
    /// Median error of the amended algorithm.
    pub amended_error_median_share: f64,
    /// 90th percentile of the error of the amended algorithm.
    pub amended_error_p90_share: f64,
    /// Share of syncs for which the algorithm chose the commit that served them.
    pub right_commit_share: f64,
    /// Share of syncs for which the amended algorithm chose that commit.
    pub amended_right_commit_share: f64,
}

/// The result of [`fsync_model`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FsyncModel {
    /// Syncs that waited for a commit and to which Algorithm 4.1 assigns one, sorted by start.
    pub syncs: Vec<SyncPrediction>,
    /// Syncs that waited but have no prediction, because no commit begins after they asked.
    pub unpredicted: u64,
    pub accuracy: Accuracy,
    /// Equations 3 and 8.
    pub creation: CreationRate,
}

/// Compares Algorithm 4.1 with a trace. O(n log n).
pub fn fsync_model(trace: &Trace, observed: &Observed) -> FsyncModel {
    let waited: Vec<usize> = (0..observed.syncs.len())
        .filter(|place| matches!(observed.syncs[*place].service, Service::Commit(_)))
        .collect();
    let begins = |begin_ns: fn(&ObservedSync) -> u64| -> Vec<u64> {
        let syncs = waited.iter().map(|place| &observed.syncs[*place]);
        syncs.map(begin_ns).collect()
    };
    let commits: Vec<CommitTimes> = observed.commits.iter().map(CommitTimes::from).collect();
    let served = group(&begins(|sync| sync.begin_ns), &commits);
    let joining = begins(|sync| sync.flush_begin_ns.min(sync.asked_ns));
    let joined = group(&joining, &commits);
    let in_line_ns = in_line_ns(trace, observed, &begins(|sync| sync.asked_ns), &joined);
    let amended = joined.into_iter().zip(in_line_ns);
    let predictions = waited.iter().zip(served).zip(amended).filter_map(
        |((&place, served), (joined, in_line_ns))| {
            let (sync, served, joined) = (&observed.syncs[place], served?, joined?);
            let before_ns = sync.asked_ns - sync.begin_ns;
            let commit_end_ns = commits[joined.commit].end_ns;
            // A sync whose commit is over when it asks waits for nothing.
            let waits_ns = if commit_end_ns > sync.asked_ns {
                commit_end_ns.saturating_add(in_line_ns) - sync.asked_ns
            } else {
                0
            };
            Some(SyncPrediction {
                sync: place,
                pid: sync.pid,
                predicted_ns: served.predicted_ns,
                amended_ns: before_ns.saturating_add(waits_ns),
                measured_ns: sync.duration_ns(),
                commits_predicted: served.commits,
                commits_measured: sync.commits_waited,
                right_commit: sync.service == Service::Commit(served.commit),
                amended_right_commit: sync.service == Service::Commit(joined.commit),
            })
        },
    );
    let syncs: Vec<SyncPrediction> = predictions.collect();

    let mut published = errors(&syncs, |sync| sync.predicted_ns);
    let mut amended = errors(&syncs, |sync| sync.amended_ns);
    let right = |it: fn(&SyncPrediction) -> bool| {
        let right = syncs.iter().filter(|sync| it(sync)).count();
        share(right as f64, syncs.len() as f64)
    };
    FsyncModel {
        unpredicted: (waited.len() - syncs.len()) as u64,
        accuracy: Accuracy {
            error_median_share: quantile(&mut published, 50),
            error_p90_share: quantile(&mut published, 90),
            amended_error_median_share: quantile(&mut amended, 50),
            amended_error_p90_share: quantile(&mut amended, 90),
            right_commit_share: right(|sync| sync.right_commit),
            amended_right_commit_share: right(|sync| sync.amended_right_commit),
        },
        creation: creation_rate(trace, observed, &syncs),
        syncs,
    }
}

/// Returns the errors as shares of the measured times. A sync that took no time has none.
fn errors(syncs: &[SyncPrediction], predicted_ns: impl Fn(&SyncPrediction) -> u64) -> Vec<f64> {
    let lasted = syncs.iter().filter(|sync| sync.measured_ns > 0);
    let error = |sync: &SyncPrediction| predicted_ns(sync).abs_diff(sync.measured_ns) as f64;
    lasted
        .map(|sync| error(sync) / sync.measured_ns as f64)
        .collect()
}

/// Returns, per sync, the predicted time from the end of its commit to the end of the sync, ns.
fn in_line_ns(
    trace: &Trace,
    observed: &Observed,
    asked_ns: &[u64],
    served: &[Option<Served>],
) -> Vec<u64> {
    let mut in_line_ns = vec![0; asked_ns.len()];
    let Some(released) = released(trace, observed) else {
        return in_line_ns;
    };
    let mut order: Vec<usize> = (0..asked_ns.len()).collect();
    order.sort_by_key(|place| asked_ns[*place]);
    let mut before: BTreeMap<usize, u64> = BTreeMap::new();
    for place in order {
        let Some(served) = served[place] else {
            continue;
        };
        let before = before.entry(served.commit).or_default();
        let turns = *before / u64::from(released.cpus);
        in_line_ns[place] = whole_ns(turns as f64 * released.turn_ns + released.sync_ns);
        *before += 1;
    }
    in_line_ns
}

/// A thread's times, ns.
#[derive(Default)]
struct ThreadTimes {
    open: Vec<f64>,
    close: Vec<f64>,
    measured: Vec<f64>,
    predicted: Vec<f64>,
}

/// Equation 3: N threads make N files in the mean of their times, so FCR = N * N / sum over threads
/// of (`T_open` + `T_fsync` + `T_close`), each the mean of its thread. Equation 8 is the same with
/// `T_fsync` alone. Threads that create no file, or whose syncs have no prediction, do not count.
fn creation_rate(trace: &Trace, observed: &Observed, syncs: &[SyncPrediction]) -> CreationRate {
    let mut threads: BTreeMap<u32, ThreadTimes> = BTreeMap::new();
    for span in trace.on(observed.dev) {
        let created = span.kind == SpanKind::Open && span.flags & CREATED != 0;
        if created {
            let times = threads.entry(span.pid).or_default();
            times.open.push(span.duration_ns() as f64);
        } else if span.kind == SpanKind::Close {
            let times = threads.entry(span.pid).or_default();
            times.close.push(span.duration_ns() as f64);
        }
    }
    for sync in syncs {
        let times = threads.entry(sync.pid).or_default();
        times.measured.push(sync.measured_ns as f64);
        times.predicted.push(sync.predicted_ns as f64);
    }
    let mut rows: Vec<[f64; 3]> = Vec::new();
    for times in threads.into_values() {
        if times.open.is_empty() || times.measured.is_empty() {
            continue;
        }
        let calls_ns = mean(times.open) + mean(times.close);
        rows.push([calls_ns, mean(times.measured), mean(times.predicted)]);
    }
    let threads = rows.len() as f64;
    let rate = |of: fn(&[f64; 3]) -> f64| share(threads * threads * 1e9, rows.iter().map(of).sum());
    CreationRate {
        threads: rows.len() as u64,
        measured_per_s: rate(|[calls, measured, _]| calls + measured),
        predicted_per_s: rate(|[calls, _, predicted]| calls + predicted),
        fsync_only_measured_per_s: rate(|[_, measured, _]| *measured),
        fsync_only_predicted_per_s: rate(|[_, _, predicted]| *predicted),
    }
}
