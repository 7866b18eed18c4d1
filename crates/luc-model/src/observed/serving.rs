//! Finds the commit that served a sync, by number if that is known.

use super::{ObservedCommit, ObservedSync, Service};

/// The commits of a trace, with indices into `all`.
pub(super) struct Commits<'a> {
    /// Sorted by start.
    all: &'a [ObservedCommit],
    /// (transaction, start, place), sorted.
    by_tid: Vec<(u32, u64, usize)>,
    /// (end, place), sorted.
    by_end: Vec<(u64, usize)>,
    /// The latest end up to each index: non-decreasing even if the clock is not.
    latest_end_ns: Vec<u64>,
}

impl<'a> Commits<'a> {
    pub(super) fn new(commits: &'a [ObservedCommit]) -> Self {
        let mut by_tid: Vec<_> = (0..)
            .zip(commits)
            .map(|(place, c)| (c.tid, c.begin_ns, place))
            .collect();
        by_tid.sort_unstable();
        let mut by_end: Vec<_> = (0..).zip(commits).map(|(at, c)| (c.end_ns, at)).collect();
        by_end.sort_unstable();
        let latest_end_ns = commits
            .iter()
            .scan(0, |latest, commit| {
                *latest = commit.end_ns.max(*latest);
                Some(*latest)
            })
            .collect();
        Self {
            all: commits,
            by_tid,
            by_end,
            latest_end_ns,
        }
    }

    /// Returns the service of a sync that by its numbers had `ahead` commits to wait for: the
    /// commit of its transaction, if that can have served it, or else, by time, the last commit
    /// that ended after the sync asked and before it ended.
    pub(super) fn serve(&self, sync: &ObservedSync, ahead: u32) -> Service {
        let (asked_ns, end_ns) = (sync.asked_ns, sync.end_ns);
        let known = sync.tid != 0;
        let wanted = self.of_tid(sync.tid, end_ns).filter(|_| known);
        if known && ahead == 0 {
            let inside = |place: &usize| self.all[*place].end_ns > sync.begin_ns;
            return wanted
                .filter(inside)
                .map_or(Service::Unneeded, Service::Overtaken);
        }
        if let Some(place) = wanted {
            return Service::Commit(place);
        }
        // Its commit may have ended before the recording began.
        let traced = self.all.first().is_some_and(|c| c.begin_ns <= asked_ns);
        if !traced {
            return Service::Unserved;
        }
        let ended = self.by_end.partition_point(|(end, _)| *end <= end_ns);
        let last = ended.checked_sub(1).map(|at| self.by_end[at]);
        match last {
            Some((end, place)) if end > asked_ns => Service::Commit(place),
            // The sync waited for no commit, unless its number says otherwise.
            _ if !known => Service::Unneeded,
            _ => Service::Unserved,
        }
    }

    /// Returns the commit of this transaction, if it can have released a sync at `end_ns`.
    fn of_tid(&self, tid: u32, end_ns: u64) -> Option<usize> {
        // Numbers repeat after 2^32 commits or after another mount; the latest counts.
        let after = self
            .by_tid
            .partition_point(|(number, begin, _)| (*number, *begin) <= (tid, end_ns));
        let (number, _, place) = *self.by_tid.get(after.checked_sub(1)?)?;
        let commit = self.all[place];
        (number == tid && commit.released_by_ns() <= end_ns).then_some(place)
    }

    /// Counts the commits from `asked_ns` to the end of the commit at `place`, that one included.
    /// It counts indices, not numbers, because numbers wrap around.
    pub(super) fn waited(&self, asked_ns: u64, place: usize) -> u32 {
        let over = self.latest_end_ns.partition_point(|end| *end <= asked_ns);
        u32::try_from((place + 1).saturating_sub(over).max(1)).unwrap_or(u32::MAX)
    }
}
