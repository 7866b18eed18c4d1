//! Divides the time of syncs and writes among its causes.
//!
//! A sync that a commit served consists, in order of time, of the data flush, the wait while other
//! commits run, the wait while none runs (the journal's thread wakes up, or LUC holds the commit),
//! its own commit, and the way back. A sync that needed no commit consists of its data flush and
//! the flush of the disk's cache, which is booked with commits: it is the same wait for the same
//! disk. A write consists of its waits and the rest.

use crate::observed::{Observed, ObservedSync, ObservedTable, Service, end_of, is_sync};
use crate::stats::share;
use crate::stretches::{Covered, Stretch, joined, total_ns};
use luc_trace::{SpanKind, Trace};
use serde::Serialize;
use std::collections::BTreeMap;

/// The time of all threads together, ns, and shares of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Account {
    /// Length of the watched time, ns.
    pub duration_ns: f64,
    /// Time in syncs and writes, and in waits for the journal in other operations, ns.
    pub operations_ns: f64,
    /// Time in syncs, ns.
    pub sync_ns: f64,
    /// Part of `sync_ns` in which data was written, ns.
    pub flush_ns: f64,
    /// Part of `sync_ns` in which other commits ran, after the sync asked and before its own began,
    /// ns.
    pub behind_ns: f64,
    /// Part of `sync_ns` in the serving commit, or in the flush of the disk's cache, ns.
    pub own_ns: f64,
    /// Part of `sync_ns` after the serving commit had ended, ns.
    pub back_ns: f64,
    /// Time in writes, without the syncs inside them, ns.
    pub write_ns: f64,
    /// Time in waits for the journal in other operations, ns.
    pub elsewhere_ns: f64,
    /// Waits for buffers that a commit was writing, in any operation, ns.
    pub buffer_ns: f64,
    /// Waits for a locked transaction, in any operation, ns.
    pub locked_ns: f64,
    /// Waits for space in the journal, in any operation, ns.
    pub space_ns: f64,
    /// Share of the trace's time in which a thread was in a sync or waited for the journal.
    pub busy_share: f64,
    /// Largest such share of a single thread.
    pub busiest_thread_share: f64,
    /// Share of the trace's time in which a commit ran.
    pub commit_busy_share: f64,
    /// Time in which a commit ran, or a sync waited for one, ns.
    pub awaited_ns: f64,
    /// Share of the commits' time in which they wrote the data of files (data=ordered).
    pub commit_data_share: f64,
    /// Share of the served syncs that waited only for their own commit: after they asked, at most a
    /// tenth of their time passed behind other commits. A thread that asks again shortly before a
    /// commit ends meets its tail; that does not count as a delay.
    pub own_only_share: f64,
}

impl Account {
    /// Books the time of a trace. A sync that a fast commit served has no commit among the spans:
    /// it counts as waiting for its own.
    pub(super) fn new(
        trace: &Trace,
        observed: &Observed,
        duration_ns: u64,
        fast_commit: bool,
    ) -> Self {
        let mut account = Self {
            duration_ns: duration_ns as f64,
            ..Self::default()
        };
        account.add_syncs(observed, fast_commit);
        account.add_waits(trace, observed);
        account.add_writes(observed);
        account.operations_ns = account.sync_ns + account.write_ns + account.elsewhere_ns;
        account.add_commits(trace, observed);
        account
    }

    fn add_syncs(&mut self, observed: &Observed, fast_commit: bool) {
        let commits = observed.commits.iter().map(|c| (c.begin_ns, c.end_ns));
        let running = joined(commits.collect(), 0);
        let covered = Covered::by(&running);
        let mut awaited = running.clone();
        let (mut served, mut own_only) = (0_u64, 0_u64);
        for sync in &observed.syncs {
            self.sync_ns += sync.duration_ns() as f64;
            self.flush_ns += sync.flush_ns() as f64;
            let (asked_ns, end_ns) = (sync.asked_ns, sync.end_ns);
            match sync.service {
                Service::Commit(place) => {
                    let commit = &observed.commits[place];
                    let begin_ns = commit.begin_ns.clamp(asked_ns, end_ns);
                    let done_ns = commit.end_ns.clamp(begin_ns, end_ns);
                    let behind_ns = covered.within_ns((asked_ns, begin_ns));
                    self.behind_ns += behind_ns as f64;
                    self.own_ns += (done_ns - begin_ns) as f64;
                    self.back_ns += (end_ns - done_ns) as f64;
                    awaited.push((asked_ns, end_ns));
                    served += 1;
                    own_only += u64::from(behind_ns <= (end_ns - asked_ns) / 10);
                }
                Service::Unneeded | Service::Overtaken(_) => {
                    self.own_ns += (end_ns - asked_ns) as f64;
                }
                Service::Unserved if fast_commit => self.own_ns += (end_ns - asked_ns) as f64,
                Service::Unserved => {}
            }
        }
        self.own_only_share = share(own_only as f64, served as f64);
        self.commit_busy_share = share(total_ns(&running) as f64, self.duration_ns);
        self.awaited_ns = total_ns(&joined(awaited, 0)) as f64;
    }

    fn add_waits(&mut self, trace: &Trace, observed: &Observed) {
        let mut busy: BTreeMap<u32, Vec<Stretch>> = BTreeMap::new();
        for sync in &observed.syncs {
            let of_thread = busy.entry(sync.pid).or_default();
            of_thread.push((sync.begin_ns, sync.end_ns));
        }
        for wait in trace.on(observed.dev).filter(|span| span.kind.is_wait()) {
            let of_thread = busy.entry(wait.pid).or_default();
            of_thread.push((wait.begin_ns, end_of(wait)));
            let time_ns = wait.duration_ns() as f64;
            match wait.kind {
                SpanKind::WaitBuffer => self.buffer_ns += time_ns,
                SpanKind::WaitLocked => self.locked_ns += time_ns,
                _ => self.space_ns += time_ns,
            }
        }
        for (within, waits) in &observed.other_waits {
            let time_ns = waits.buffer_ns as f64 + waits.locked_ns as f64 + waits.space_ns as f64;
            if is_sync(*within) {
                // These waits nearly always lie in the data flush, and are booked as waits.
                self.flush_ns = (self.flush_ns - time_ns).max(0.0);
            } else {
                self.elsewhere_ns += time_ns;
            }
        }
        let busy_ns = |stretches: Vec<Stretch>| total_ns(&joined(stretches, 0)) as f64;
        let busiest = busy.values().map(|of_thread| busy_ns(of_thread.clone()));
        self.busiest_thread_share = share(busiest.fold(0.0, f64::max), self.duration_ns);
        let all = busy.into_values().flatten().collect();
        self.busy_share = share(busy_ns(all), self.duration_ns);
    }

    /// Adds the writes. A write to a file opened with `O_SYNC` contains a sync, which counts once.
    fn add_writes(&mut self, observed: &Observed) {
        let mut syncs: BTreeMap<u32, Vec<&ObservedSync>> = BTreeMap::new();
        for sync in &observed.syncs {
            syncs.entry(sync.pid).or_default().push(sync);
        }
        for write in &observed.writes {
            let of_thread = syncs.get(&write.pid).map_or(&[][..], Vec::as_slice);
            let from = of_thread.partition_point(|sync| sync.begin_ns < write.begin_ns);
            // The write syncs once, at its end.
            let inside = of_thread
                .get(from)
                .filter(|sync| sync.end_ns <= write.end_ns);
            let sync_ns = inside.map_or(0, |sync| sync.duration_ns());
            self.write_ns += (write.duration_ns() - sync_ns) as f64;
        }
    }

    fn add_commits(&mut self, trace: &Trace, observed: &Observed) {
        let (mut data_ns, mut all_ns) = (0.0, 0.0);
        for commit in trace
            .on(observed.dev)
            .filter(|span| span.kind == SpanKind::Commit)
        {
            let [_, flush_ns, log_ns] = commit.marks_ns;
            let known = commit.begin_ns <= flush_ns && log_ns <= commit.end_ns;
            if known && flush_ns > 0 {
                data_ns += log_ns.saturating_sub(flush_ns) as f64;
                all_ns += commit.duration_ns() as f64;
            }
        }
        self.commit_data_share = share(data_ns, all_ns);
    }

    /// Returns a part as a share of the time of operations.
    pub(super) fn of_operations(&self, part_ns: f64) -> f64 {
        share(part_ns, self.operations_ns).min(1.0)
    }

    /// Returns how many times as fast threads would be that never wait for others' commits, which
    /// is the most that LUC can give.
    pub(super) fn gain_max(&self) -> f64 {
        let lost = self.of_operations(self.behind_ns + self.buffer_ns + self.locked_ns);
        1.0 / (1.0 - lost)
    }

    /// Returns a part as a share of the time of syncs.
    pub(super) fn of_syncs(&self, part_ns: f64) -> f64 {
        share(part_ns, self.sync_ns).min(1.0)
    }

    /// Returns an amount, summed over all threads, per second of the watched time.
    pub(super) fn per_s(&self, amount: f64) -> f64 {
        share(amount * 1e9, self.duration_ns)
    }
}

/// Returns the syncs per second of the watched time.
pub(super) fn syncs_per_s(account: &Account, table: &ObservedTable) -> f64 {
    account.per_s(table.sync.count as f64)
}

/// Returns the time that commits cost writers, ns. Writers wait for a locked transaction at every
/// commit. In a full journal the transaction stays locked until there is space, so the wait counts
/// as one for space.
pub(super) fn blocked_ns(account: &Account, journal_small: bool) -> f64 {
    account.buffer_ns
        + if journal_small {
            0.0
        } else {
            account.locked_ns
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_control::Dev;
    use luc_trace::Span;

    /// Commit 7 runs from 100 to 180, commit 8 from 190 to 270. A sync begins at 90, writes data
    /// from 95 to 120, asks, and is served by commit 8 until 275: 25 of data, 60 behind commit 7,
    /// 10 while none runs, 80 in its own, 5 back. A write from 300 to 400 waits 30 for a buffer and
    /// syncs from 350 to 390 without need of a commit; an open waits 7 for space.
    #[test]
    fn booked_by_hand() {
        let span = |kind, begin_ns, end_ns| Span {
            pid: 5,
            ..Span::new(kind, begin_ns, end_ns)
        };
        let commit = |tid, begin, end, data_ns| Span {
            tid,
            pid: 1,
            marks_ns: [begin, begin, begin + data_ns],
            ..span(SpanKind::Commit, begin, end)
        };
        let pause = |kind, begin, end, within| Span {
            within,
            ..span(kind, begin, end)
        };
        let sync = |begin, end, tid, done_tid, marks_ns| Span {
            tid,
            done_tid,
            marks_ns,
            ..span(SpanKind::Fsync, begin, end)
        };
        let trace = Trace::from_spans([
            commit(7, 100, 180, 8),
            commit(8, 190, 270, 16),
            sync(90, 275, 8, 6, [95, 120, 0]),
            span(SpanKind::Write, 300, 400),
            sync(350, 390, 8, 8, [0; 3]),
            pause(SpanKind::WaitBuffer, 310, 340, SpanKind::Write),
            pause(SpanKind::WaitSpace, 410, 417, SpanKind::Open),
        ]);
        let got = Account::new(
            &trace,
            &Observed::from_trace(&trace, Dev::default()),
            400,
            false,
        );
        let want = Account {
            duration_ns: 400.0,
            operations_ns: 185.0 + 40.0 + 60.0 + 7.0,
            sync_ns: 225.0,
            flush_ns: 25.0,
            behind_ns: 60.0,
            own_ns: 80.0 + 40.0,
            back_ns: 5.0,
            write_ns: 60.0,
            elsewhere_ns: 7.0,
            buffer_ns: 30.0,
            locked_ns: 0.0,
            space_ns: 7.0,
            busy_share: (185.0 + 30.0 + 40.0 + 7.0) / 400.0,
            busiest_thread_share: (185.0 + 30.0 + 40.0 + 7.0) / 400.0,
            commit_busy_share: 160.0 / 400.0,
            awaited_ns: 275.0 - 100.0,
            commit_data_share: 24.0 / 160.0,
            own_only_share: 0.0,
        };
        assert_eq!(got, want);
    }
}
