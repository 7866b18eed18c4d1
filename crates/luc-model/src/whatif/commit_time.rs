//! How long a commit takes, learnt from the commits of a trace.

use crate::observed::{Observed, Service};
use crate::stats::{mean, whole_ns};
use serde::Serialize;
use std::ops::RangeInclusive;

/// Fewer commits than this show no slope.
const COMMITS_MIN: usize = 8;

/// Time from the locking of a transaction to the end of its commit, as a
/// function of the sync events it serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CommitTime {
    /// Commits that it was learnt from.
    pub commits: u64,
    /// The mean, ns.
    pub mean_ns: f64,
    /// The line's value at no sync event, ns; the mean if there is no line.
    pub base_ns: f64,
    /// By how much one more sync event lengthens a commit, ns; 0 if the trace
    /// shows no such thing.
    pub per_sync_event_ns: f64,
    /// The shortest seen, ns.
    pub min_ns: u64,
    /// The longest seen, ns: nothing beyond is ever predicted.
    pub max_ns: u64,
    /// Median time from the moment a commit could start to its lock, ns: until
    /// then a sync can still join.
    pub lag_ns: u64,
}

impl CommitTime {
    /// Least squares over the commits that served a sync; over all if none did.
    /// None without commits.
    pub(super) fn of(observed: &Observed) -> Option<Self> {
        let serving = |all: bool| {
            let served = observed.commits.iter();
            served.filter(move |commit| all || commit.sync_events > 0)
        };
        let all = serving(false).next().is_none();
        let points: Vec<(f64, u64)> = serving(all)
            .map(|commit| {
                let events = f64::from(commit.sync_events);
                (events, commit.end_ns - commit.locked_ns)
            })
            .collect();
        let mean_ns = mean(points.iter().map(|(_, ns)| *ns as f64));
        let slope_ns = slope(&points).unwrap_or(0.0);
        let mean_events = mean(points.iter().map(|(events, _)| *events));
        Some(Self {
            commits: points.len() as u64,
            mean_ns,
            base_ns: mean_ns - slope_ns * mean_events,
            per_sync_event_ns: slope_ns,
            min_ns: points.iter().map(|(_, ns)| *ns).min()?,
            max_ns: points.iter().map(|(_, ns)| *ns).max()?,
            lag_ns: lag_ns(observed),
        })
    }

    /// Predicted, ns.
    pub fn at(&self, sync_events: usize) -> u64 {
        let line_ns = self.base_ns + self.per_sync_event_ns * sync_events as f64;
        let seen: RangeInclusive<u64> = self.min_ns..=self.max_ns;
        whole_ns(line_ns).clamp(*seen.start(), *seen.end())
    }
}

/// None: too few commits, all of one size, or larger ones are no slower, which
/// is noise and not worth a line.
fn slope(points: &[(f64, u64)]) -> Option<f64> {
    if points.len() < COMMITS_MIN {
        return None;
    }
    let mean_events = mean(points.iter().map(|(events, _)| *events));
    let mean_ns = mean(points.iter().map(|(_, ns)| *ns as f64));
    let (mut along, mut spread) = (0.0, 0.0);
    for (events, ns) in points {
        along += (events - mean_events) * (*ns as f64 - mean_ns);
        spread += (events - mean_events).powi(2);
    }
    (spread > 0.0 && along > 0.0).then(|| along / spread)
}

/// A commit can start once a sync asked and the one before has ended.
fn lag_ns(observed: &Observed) -> u64 {
    let mut first_asked_ns = vec![u64::MAX; observed.commits.len()];
    for sync in &observed.syncs {
        if let Service::Commit(place) = sync.service {
            first_asked_ns[place] = first_asked_ns[place].min(sync.asked_ns);
        }
    }
    let mut lags: Vec<u64> = Vec::new();
    let mut before_end_ns = 0;
    for (commit, asked_ns) in observed.commits.iter().zip(first_asked_ns) {
        if asked_ns <= commit.locked_ns {
            let ready_ns = asked_ns.max(before_end_ns);
            lags.push(commit.locked_ns.saturating_sub(ready_ns));
        }
        before_end_ns = before_end_ns.max(commit.end_ns);
    }
    lags.sort_unstable();
    lags.get(lags.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::{ObservedCommit, ObservedSync};
    use luc_trace::SpanKind;

    fn commit(begin_ns: u64, length_ns: u64, sync_events: u32) -> ObservedCommit {
        ObservedCommit {
            tid: 1,
            begin_ns,
            locked_ns: begin_ns,
            log_ns: 0,
            end_ns: begin_ns + length_ns,
            sync_events,
        }
    }

    fn learnt(commits: Vec<ObservedCommit>) -> Option<CommitTime> {
        CommitTime::of(&Observed {
            commits,
            ..Observed::default()
        })
    }

    #[test]
    fn a_line_is_found_and_ends_at_what_was_seen() {
        // 1000 + 50 per event, for 1 to 10 events.
        let commits = (1..=10).map(|n| commit(u64::from(n) * 10_000, 1000 + u64::from(n) * 50, n));
        let time = learnt(commits.collect()).unwrap();
        assert!((time.per_sync_event_ns - 50.0).abs() < 1e-6, "{time:?}");
        assert!((time.base_ns - 1000.0).abs() < 1e-6);
        assert_eq!((time.at(4), time.at(0), time.at(99)), (1200, 1050, 1500));
    }

    #[test]
    fn without_spread_the_mean() {
        let same = learnt((0..20).map(|at| commit(at * 100, 10 + at % 2, 3)).collect()).unwrap();
        assert!((same.mean_ns - 10.5).abs() < 1e-9 && same.per_sync_event_ns.abs() < 1e-9);
        // Larger and faster: no line either, the mean of 90 and 10.
        let commits = (0..20_u32)
            .map(|at| commit(u64::from(at) * 100, 90 - u64::from(at % 2) * 80, 1 + at % 2));
        assert_eq!(learnt(commits.collect()).unwrap().at(40), 50);
        assert_eq!(
            learnt(vec![commit(5, 70, 2), commit(90, 80, 9)])
                .unwrap()
                .at(2),
            75
        );
    }

    #[test]
    fn commits_that_serve_nobody_do_not_count() {
        let mut commits: Vec<_> = (0..9).map(|at| commit(at * 100, 40, 2)).collect();
        commits.push(commit(2_000, 7, 0));
        assert_eq!(learnt(commits).unwrap().min_ns, 40);
        assert_eq!(learnt(vec![commit(0, 7, 0)]).unwrap().at(1), 7);
        assert_eq!(learnt(Vec::new()), None);
    }

    #[test]
    fn lag_counts_from_when_it_could_start() {
        let sync = |asked_ns, place| ObservedSync {
            kind: SpanKind::Fsync,
            pid: 1,
            begin_ns: asked_ns,
            flush_begin_ns: asked_ns,
            asked_ns,
            end_ns: 1000,
            tid: 1,
            service: Service::Commit(place),
            commits_waited: 1,
            delay_ns: 0,
        };
        let observed = Observed {
            // The first asked at 95: 5 ns. The second at 120, but the first
            // ran until 150: 7 ns. The third at 300: 9 ns.
            commits: vec![commit(100, 50, 1), commit(157, 50, 1), commit(309, 50, 1)],
            syncs: vec![sync(95, 0), sync(97, 0), sync(120, 1), sync(300, 2)],
            ..Observed::default()
        };
        assert_eq!(lag_ns(&observed), 7);
        assert_eq!(lag_ns(&Observed::default()), 0);
    }
}
