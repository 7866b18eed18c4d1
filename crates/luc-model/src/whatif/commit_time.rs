//! How long a commit takes, learnt from the commits of a trace.
//!
//! The journal's thread needs a processor as well: where all are taken, a commit takes longer. Under
//! another rule other threads work at other times, so the two are learnt apart: the time of a commit
//! with a free processor, by its sync events, and how much of the time in which all processors are
//! taken is added to that.

use crate::observed::{Observed, Service};
use crate::stats::{mean, whole_ns};
use crate::stretches::{Covered, Stretch};
use serde::Serialize;

/// Fewer commits than this show no slope.
const COMMITS_MIN: usize = 8;

/// Time from the locking of a transaction to the end of its commit, as a
/// function of the sync events it serves and of the time in which all processors were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CommitTime {
    /// Commits that it was learnt from.
    pub commits: u64,
    /// The mean, ns.
    pub mean_ns: f64,
    /// The line's value at no sync event and with a free processor, ns; the mean if there is no line.
    pub base_ns: f64,
    /// By how much one more sync event lengthens a commit, ns.
    pub per_sync_event_ns: f64,
    /// How much of the time in which all processors are taken lengthens a commit, 0 to 1.
    pub per_taken: f64,
    /// The shortest seen with a free processor, ns: no prediction is shorter.
    pub min_ns: u64,
    /// The longest seen with a free processor, ns: no prediction is longer.
    pub max_ns: u64,
    /// Median time from the moment a commit could start to its lock, ns. Syncs join until the lock.
    pub lag_ns: u64,
}

impl CommitTime {
    /// Least squares over the commits that served a sync; over all if none did. All processors
    /// were `taken` then, stretches in order and apart. None without commits.
    pub(super) fn of(observed: &Observed, taken: &[Stretch]) -> Option<Self> {
        let serving = |all: bool| {
            let served = observed.commits.iter();
            served.filter(move |commit| all || commit.sync_events > 0)
        };
        let all = serving(false).next().is_none();
        let taken = Covered::by(taken);
        let points: Vec<Point> = serving(all)
            .map(|commit| Point {
                events: f64::from(commit.sync_events),
                taken_ns: taken.within_ns((commit.locked_ns, commit.end_ns)) as f64,
                ns: (commit.end_ns - commit.locked_ns) as f64,
            })
            .collect();
        let slopes = Slopes::of(&points);
        let free_ns = |point: &Point| point.ns - slopes.per_taken * point.taken_ns;
        let mean_events = mean(points.iter().map(|point| point.events));
        let mean_free_ns = mean(points.iter().map(free_ns));
        let frees = || points.iter().map(|point| whole_ns(free_ns(point)));
        Some(Self {
            commits: points.len() as u64,
            mean_ns: mean(points.iter().map(|point| point.ns)),
            base_ns: mean_free_ns - slopes.per_event_ns * mean_events,
            per_sync_event_ns: slopes.per_event_ns,
            per_taken: slopes.per_taken,
            min_ns: frees().min()?,
            max_ns: frees().max()?,
            lag_ns: lag_ns(observed),
        })
    }

    /// Predicted with a free processor, ns.
    pub fn at(&self, sync_events: usize) -> u64 {
        let line_ns = self.base_ns + self.per_sync_event_ns * sync_events as f64;
        whole_ns(line_ns).clamp(self.min_ns, self.max_ns)
    }
}

/// A commit.
struct Point {
    events: f64,
    taken_ns: f64,
    ns: f64,
}

/// The causes of longer commits; 0 where the trace shows no such thing, or noise.
#[derive(Clone, Copy, Default)]
struct Slopes {
    per_event_ns: f64,
    per_taken: f64,
}

impl Slopes {
    /// Of at least [`COMMITS_MIN`] commits.
    fn of(points: &[Point]) -> Self {
        if points.len() < COMMITS_MIN {
            return Self::default();
        }
        let (events, taken) = (|it: &Point| it.events, |it: &Point| it.taken_ns);
        let together = |a: fn(&Point) -> f64, b: fn(&Point) -> f64| {
            let (mean_a, mean_b) = (mean(points.iter().map(a)), mean(points.iter().map(b)));
            let products = points.iter().map(|it| (a(it) - mean_a) * (b(it) - mean_b));
            products.sum::<f64>()
        };
        let (ee, tt, et) = (
            together(events, events),
            together(taken, taken),
            together(events, taken),
        );
        let (en, tn) = (together(events, |it| it.ns), together(taken, |it| it.ns));
        let apart = ee * tt - et * et;
        // Where the two go together they cannot be told apart.
        if apart > ee * tt / 1e6 {
            let both = Self {
                per_event_ns: (en * tt - tn * et) / apart,
                per_taken: (tn * ee - en * et) / apart,
            };
            if both.per_event_ns >= 0.0 && (0.0..=1.0).contains(&both.per_taken) {
                return both;
            }
        }
        // The one that explains more of the spread.
        let by_events = Self {
            per_event_ns: en / ee,
            per_taken: 0.0,
        };
        let by_taken = Self {
            per_event_ns: 0.0,
            per_taken: (tn / tt).min(1.0),
        };
        let alone = [(tn, tt, by_taken), (en, ee, by_events)].into_iter();
        alone
            .filter(|(with, spread, _)| *with > 0.0 && *spread > 0.0)
            .map(|(with, spread, slopes)| (with * with / spread, slopes))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map_or_else(Self::default, |(_, slopes)| slopes)
    }
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
        beside(commits, &[])
    }

    fn beside(commits: Vec<ObservedCommit>, taken: &[Stretch]) -> Option<CommitTime> {
        let observed = Observed {
            commits,
            ..Observed::default()
        };
        CommitTime::of(&observed, taken)
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
    fn commits_without_syncs_do_not_count() {
        let mut commits: Vec<_> = (0..9).map(|at| commit(at * 100, 40, 2)).collect();
        commits.push(commit(2_000, 7, 0));
        assert_eq!(learnt(commits).unwrap().min_ns, 40);
        assert_eq!(learnt(vec![commit(0, 7, 0)]).unwrap().at(1), 7);
        assert_eq!(learnt(Vec::new()), None);
    }

    /// 1000, 50 for each of 1 to 4 events and 0.8 of the time that the processor was taken in it.
    #[test]
    fn the_time_that_processors_are_taken_is_told_apart() {
        let taken_ns = |n: u64| n * n % 7 * 40;
        let begin_ns = |n: u64| n * 10_000;
        let events = |n: u64| 1 + u32::try_from(n % 4).unwrap();
        let commits = (1..=40).map(|n| {
            let length_ns = 1000 + 50 * u64::from(events(n)) + taken_ns(n) * 4 / 5;
            commit(begin_ns(n), length_ns, events(n))
        });
        // From before it began.
        let taken = (1..=40).map(|n| (begin_ns(n) - 500, begin_ns(n) + taken_ns(n)));
        let taken: Vec<Stretch> = taken.collect();
        let time = beside(commits.collect(), &taken).unwrap();
        assert!((time.per_taken - 0.8).abs() < 1e-3, "{time:?}");
        assert!((time.per_sync_event_ns - 50.0).abs() < 1.0, "{time:?}");
        assert_eq!((time.at(2), time.at(9)), (1100, 1200));
    }

    /// Two convoys: the larger the batch, the fewer others work beside its commit.
    #[test]
    fn large_batches_are_not_what_makes_commits_short() {
        let events = |n: u64| if n.is_multiple_of(2) { 15 } else { 1 };
        let taken_ns = |n: u64| if events(n) == 1 { 600 } else { 50 };
        let commits = (1..=20).map(|n| commit(n * 10_000, 2000 + taken_ns(n), events(n)));
        let taken = (1..=20).map(|n| (n * 10_000, n * 10_000 + taken_ns(n)));
        let taken: Vec<Stretch> = taken.collect();
        let time = beside(commits.collect(), &taken).unwrap();
        assert!((time.per_taken - 1.0).abs() < 1e-6, "{time:?}");
        assert_eq!((time.at(1), time.at(16)), (2000, 2000));
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
