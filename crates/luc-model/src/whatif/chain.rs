//! A thread's part of a trace as a chain of steps that can be walked again.
//!
//! Its time line runs from the begin to the end of the trace. A wait for a commit inside a sync, or
//! for a buffer that a commit was writing, is a step of its own. The rest of an operation is work for
//! a processor, or waiting for one. All other time passes as it did: thinking, writing data, other
//! waits, and idle time at both ends of the trace.

use super::processor::work_ns;
use crate::observed::{Observed, ObservedSync, Service, end_of, is_sync};
use crate::stats::{share, whole_ns};
use crate::stretches::{Stretch, cut, joined, without};
use luc_trace::{SpanKind, Trace};
use std::collections::BTreeMap;

/// One step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Time passes, ns.
    Pass(u64),
    /// It works, ns of a processor.
    Work(u64),
    /// A wait for a buffer that a commit is writing, ns.
    Stall(u64),
    /// It joins the open transaction; its next sync wants that one.
    Join,
    /// A sync begins.
    Begin,
    /// It asks for its transaction and waits until that is committed.
    Ask,
    /// A sync ends.
    Synced,
    /// An operation ends.
    Done { write: bool },
}

/// Where a step lies on the time line.
struct Piece {
    begin_ns: u64,
    end_ns: u64,
    step: Step,
}

/// The chain of every thread with an operation or wait, by thread. With `ready`, work is told from
/// time that passes. O(n log n).
pub(super) fn chains(trace: &Trace, observed: &Observed, ready: &ReadyTimes) -> Vec<Vec<Step>> {
    let Some(bounds_ns) = observed.bounds_ns else {
        return Vec::new();
    };
    let mut pieces: BTreeMap<u32, Vec<Piece>> = BTreeMap::new();
    for sync in &observed.syncs {
        let of_thread = pieces.entry(sync.pid).or_default();
        sync_pieces(sync, observed, of_thread);
    }
    for span in trace.on(observed.dev) {
        let (begin_ns, end_ns) = (span.begin_ns, end_of(span));
        let step = match span.kind {
            SpanKind::WaitBuffer => Step::Stall(0),
            SpanKind::Open | SpanKind::Write | SpanKind::Close => Step::Done {
                write: span.kind == SpanKind::Write,
            },
            kind if is_sync(kind) => Step::Done { write: false },
            // The journal's own thread, and other waits.
            _ => continue,
        };
        pieces.entry(span.pid).or_default().push(Piece {
            begin_ns: if matches!(step, Step::Stall(_)) {
                begin_ns
            } else {
                end_ns
            },
            end_ns,
            step,
        });
    }
    let chain = |(pid, pieces)| {
        let ready = ready.get(&pid).map_or(&[][..], Vec::as_slice);
        chain(pieces, bounds_ns, ready)
    };
    pieces.into_iter().map(chain).collect()
}

/// The work of threads between their release by a commit and their next wait: means over all releases.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Released {
    /// Processors.
    pub cpus: u32,
    /// Work until the end of the sync, ns.
    pub sync_ns: f64,
    /// Work until the thread waits again, ns.
    pub turn_ns: f64,
}

/// None if the number of processors is not known, or no thread was released.
pub(crate) fn released(trace: &Trace, observed: &Observed) -> Option<Released> {
    let cpus = cpus(trace)?;
    let (mut releases, mut sync_ns, mut turn_ns) = (0_u64, 0.0, 0.0);
    for chain in chains(trace, observed, &ready(trace, observed, cpus)) {
        for released in chain.split(|step| *step == Step::Ask).skip(1) {
            releases += 1;
            let mut in_sync = true;
            for step in released {
                match step {
                    Step::Work(ns) => {
                        turn_ns += *ns as f64;
                        sync_ns += if in_sync { *ns as f64 } else { 0.0 };
                    }
                    Step::Synced => in_sync = false,
                    Step::Begin | Step::Done { .. } => {}
                    Step::Pass(_) | Step::Stall(_) | Step::Join | Step::Ask => break,
                }
            }
        }
    }
    let releases = (releases > 0).then_some(releases as f64)?;
    Some(Released {
        cpus,
        sync_ns: sync_ns / releases,
        turn_ns: turn_ns / releases,
    })
}

/// Number of processors, if the recording has it.
pub(super) fn cpus(trace: &Trace) -> Option<u32> {
    let cpus = trace.header.pairs.get("cpus")?;
    cpus.parse().ok().filter(|cpus| *cpus > 0)
}

/// A thread that is no longer than this between two operations computes there, ns. One that sleeps for
/// a set time sleeps longer: the kernel lets timers be late by this much.
const COMPUTES_NS: u64 = 50_000;

/// A stretch in which a thread was ready to work.
#[derive(Clone, Copy)]
pub(super) struct Ready {
    stretch: Stretch,
    /// Its time on a processor, ns.
    work_ns: u64,
}

/// By thread; empty where the number of processors is not known.
pub(super) type ReadyTimes = BTreeMap<u32, Vec<Ready>>;

impl Ready {
    /// The part of the work that falls into a part of the stretch, ns.
    fn work_within_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let (begin_ns, end_ns) = self.stretch;
        let part = to_ns.saturating_sub(from_ns) as f64;
        whole_ns(self.work_ns as f64 * share(part, (end_ns - begin_ns) as f64))
    }
}

/// When each thread was ready: inside of operations less their waits, and between operations that
/// follow each other at once. In order and apart.
pub(super) fn ready(trace: &Trace, observed: &Observed, cpus: u32) -> ReadyTimes {
    let mut inside: BTreeMap<u32, Vec<Stretch>> = BTreeMap::new();
    let mut waiting: BTreeMap<u32, Vec<Stretch>> = BTreeMap::new();
    for span in trace.on(observed.dev) {
        let stretch = (span.begin_ns, end_of(span));
        if span.kind.is_wait() {
            waiting.entry(span.pid).or_default().push(stretch);
        } else if span.kind != SpanKind::Commit {
            inside.entry(span.pid).or_default().push(stretch);
        }
    }
    for sync in &observed.syncs {
        let of_thread = waiting.entry(sync.pid).or_default();
        of_thread.push((sync.flush_begin_ns, sync.asked_ns));
        let until_ns = match sync.service {
            Service::Commit(place) => released_ns(sync, observed.commits[place].end_ns),
            Service::Unneeded | Service::Overtaken(_) => sync.asked_ns,
            // All of it may have been a wait.
            Service::Unserved => sync.end_ns,
        };
        of_thread.push((sync.asked_ns, until_ns));
    }
    let (mut stretches, mut pids) = (Vec::new(), Vec::new());
    for (pid, inside) in inside {
        let mut cuts_ns: Vec<u64> = inside.iter().flat_map(|(a, b)| [*a, *b]).collect();
        cuts_ns.sort_unstable();
        let waits = waiting.remove(&pid).unwrap_or_default();
        let left = without(joined(inside, COMPUTES_NS), &joined(waits, 0));
        stretches.extend(cut(left, &cuts_ns));
        pids.resize(stretches.len(), pid);
    }
    let mut ready = ReadyTimes::new();
    let all = stretches.iter().zip(work_ns(&stretches, cpus));
    for (pid, (&stretch, work_ns)) in pids.into_iter().zip(all) {
        let of_thread = ready.entry(pid).or_default();
        of_thread.push(Ready { stretch, work_ns });
    }
    ready
}

/// When all processors were taken by threads at work; in order and apart.
pub(super) fn taken(ready: &ReadyTimes, cpus: u32) -> Vec<Stretch> {
    let mut edges: Vec<(u64, i64)> = Vec::new();
    for it in ready.values().flatten() {
        if it.work_ns > 0 {
            // Its wait for a processor comes first.
            edges.push((it.stretch.1 - it.work_ns, 1));
            edges.push((it.stretch.1, -1));
        }
    }
    edges.sort_unstable();
    let (mut stretches, mut at_work, mut since_ns) = (Vec::new(), 0, 0);
    for (at_ns, change) in edges {
        let before = at_work >= i64::from(cpus);
        at_work += change;
        let now = at_work >= i64::from(cpus);
        if now && !before {
            since_ns = at_ns;
        } else if before && !now {
            stretches.push((since_ns, at_ns));
        }
    }
    joined(stretches, 0)
}

/// When a commit released a sync, ns.
fn released_ns(sync: &ObservedSync, commit_end_ns: u64) -> u64 {
    commit_end_ns.clamp(sync.asked_ns, sync.end_ns)
}

fn sync_pieces(sync: &ObservedSync, observed: &Observed, pieces: &mut Vec<Piece>) {
    let at = |begin_ns, end_ns, step| Piece {
        begin_ns,
        end_ns,
        step,
    };
    pieces.push(at(sync.begin_ns, sync.begin_ns, Step::Begin));
    let (place, served) = match sync.service {
        Service::Commit(place) => (place, true),
        Service::Overtaken(place) => (place, false),
        Service::Unneeded | Service::Unserved => {
            pieces.push(at(sync.end_ns, sync.end_ns, Step::Synced));
            return;
        }
    };
    let commit = &observed.commits[place];
    let until_ns = if served {
        released_ns(sync, commit.end_ns)
    } else {
        sync.asked_ns
    };
    // A sync joins its transaction when its flush allocates the data's blocks. That transaction was
    // open from the lock of the one before to its own lock, which bounds the moment.
    let opened_ns = place
        .checked_sub(1)
        .map_or(0, |before| observed.commits[before].locked_ns);
    let joined_ns = sync
        .flush_begin_ns
        .max(opened_ns)
        .min(commit.locked_ns.saturating_sub(1));
    if joined_ns < sync.asked_ns {
        pieces.push(at(joined_ns, joined_ns, Step::Join));
    }
    pieces.push(at(sync.asked_ns, until_ns, Step::Ask));
    pieces.push(at(sync.end_ns, sync.end_ns, Step::Synced));
}

/// Steps in the order of time. Pieces overlap only if the clock went back; then the earlier counts.
fn chain(mut pieces: Vec<Piece>, (first_ns, last_ns): Stretch, ready: &[Ready]) -> Vec<Step> {
    // Of those that begin together the shorter first: ends before begins.
    pieces.sort_by_key(|piece| (piece.begin_ns, piece.end_ns));
    let mut steps = Vec::with_capacity(2 * pieces.len() + 1);
    let mut now_ns = first_ns;
    let run = |steps: &mut Vec<Step>, mut from_ns: u64, to_ns: u64| {
        let first = ready.partition_point(|it| it.stretch.1 <= from_ns);
        for it in ready[first..].iter().take_while(|it| it.stretch.0 < to_ns) {
            let (begin_ns, end_ns) = (it.stretch.0.max(from_ns), it.stretch.1.min(to_ns));
            pass(steps, from_ns, begin_ns);
            steps.push(Step::Work(it.work_within_ns(begin_ns, end_ns)));
            from_ns = end_ns;
        }
        pass(steps, from_ns, to_ns);
    };
    for piece in pieces {
        run(&mut steps, now_ns, piece.begin_ns);
        now_ns = now_ns.max(piece.begin_ns);
        let left_ns = piece.end_ns.saturating_sub(now_ns);
        steps.push(match piece.step {
            Step::Stall(_) => Step::Stall(left_ns),
            step => step,
        });
        now_ns = now_ns.max(piece.end_ns);
    }
    run(&mut steps, now_ns, last_ns);
    steps
}

fn pass(steps: &mut Vec<Step>, from_ns: u64, to_ns: u64) {
    if to_ns > from_ns {
        steps.push(Step::Pass(to_ns - from_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_control::Dev;
    use luc_trace::Span;

    fn span(kind: SpanKind, begin_ns: u64, end_ns: u64) -> Span {
        Span {
            pid: 7,
            ..Span::of(kind, begin_ns, end_ns)
        }
    }

    fn commit(tid: u32, begin_ns: u64, end_ns: u64) -> Span {
        Span {
            tid,
            pid: 1,
            ..span(SpanKind::Commit, begin_ns, end_ns)
        }
    }

    fn of(spans: &[Span]) -> Vec<Vec<Step>> {
        let trace = Trace::of(spans.iter().copied());
        chains(
            &trace,
            &Observed::of(&trace, Dev::default()),
            &ReadyTimes::new(),
        )
    }

    fn told(chain: &[Step]) -> String {
        let steps: Vec<String> = chain.iter().map(|step| format!("{step:?}")).collect();
        steps.join(" ")
    }

    /// Open 100 to 110; fsync 115 to 190, served by the commit 120 to 180;
    /// a write 200 to 230 that waited from 205 to 225; the trace ends at 250.
    #[test]
    fn a_thread_by_hand() {
        let sync = Span {
            tid: 5,
            done_tid: 4,
            ..span(SpanKind::Fsync, 115, 190)
        };
        let wait = Span {
            within: SpanKind::Write,
            ..span(SpanKind::WaitBuffer, 205, 225)
        };
        let got = of(&[
            commit(4, 90, 95),
            span(SpanKind::Open, 100, 110),
            sync,
            commit(5, 120, 180),
            span(SpanKind::Write, 200, 230),
            wait,
            commit(6, 240, 250),
        ]);
        let steps = "Pass(20) Done { write: false } Pass(5) Begin Ask Pass(10) Synced \
                     Done { write: false } Pass(15) Stall(20) Pass(5) Done { write: true } Pass(20)";
        assert_eq!(told(&got[0]), steps);
    }

    /// Data is flushed from 100 to 130 while the transaction that took it in is
    /// locked at 120 already: the sync joined at 100, and asked at 130.
    #[test]
    fn a_sync_joins_when_its_data_does() {
        let sync = Span {
            tid: 5,
            done_tid: 4,
            marks_ns: [100, 130, 0],
            ..span(SpanKind::Fsync, 90, 181)
        };
        let got = of(&[commit(4, 50, 60), sync, commit(5, 120, 180)]);
        let steps =
            "Pass(40) Begin Pass(10) Join Pass(30) Ask Pass(1) Synced Done { write: false }";
        assert_eq!(told(&got[0]), steps);
    }

    /// The transaction that served it bounds when it can have joined: commit 4
    /// is locked at 50, commit 5 at 120 and ends at 180.
    #[test]
    fn a_sync_joins_while_its_transaction_is_open() {
        let joined_ns = |begin_ns, marks_ns, done_tid| {
            let sync = Span {
                tid: 5,
                done_tid,
                marks_ns,
                ..span(SpanKind::Fsync, begin_ns, 300)
            };
            let steps = of(&[commit(4, 50, 60), commit(5, 120, 180), sync]).remove(0);
            let before = steps.iter().take_while(|step| **step != Step::Join);
            let run_ns = before.map(|step| match step {
                Step::Pass(ns) => *ns,
                _ => 0,
            });
            let joins = steps.contains(&Step::Join);
            joins.then(|| begin_ns.min(50) + run_ns.sum::<u64>())
        };
        // It asks in time: it joins when it asks.
        assert_eq!(joined_ns(110, [0; 3], 4), None);
        // It flushes from 40, when transaction 4 was still open.
        assert_eq!(joined_ns(40, [40, 110, 0], 4), Some(50));
        // It flushes from 70, then from 130, when 5 was locked already.
        assert_eq!(joined_ns(70, [70, 110, 0], 4), Some(70));
        assert_eq!(joined_ns(70, [130, 140, 0], 4), Some(119));
        // It asks without a flush once 5 is locked.
        assert_eq!(joined_ns(150, [0; 3], 4), Some(119));
        // Its data took longer than its commit.
        assert_eq!(joined_ns(100, [100, 290, 0], 5), Some(100));
    }

    #[test]
    fn syncs_without_a_commit_pass_as_they_did() {
        let sync = Span {
            tid: 5,
            done_tid: 5,
            ..span(SpanKind::Fsync, 10, 14)
        };
        let steps = "Begin Pass(4) Synced Done { write: false }";
        assert_eq!(told(&of(&[sync])[0]), steps);
        assert!(of(&[]).is_empty());
    }

    /// One processor. Thread 7 writes from 100 to 200 and waits for a buffer from 120 to 160;
    /// thread 8 opens from 150 to 180 and has the processor until then. The writer has it from then on,
    /// and closes another file at once.
    #[test]
    fn work_is_what_is_neither_waited_nor_in_line() {
        let wait = Span {
            within: SpanKind::Write,
            ..span(SpanKind::WaitBuffer, 120, 160)
        };
        let open = Span {
            pid: 8,
            ..span(SpanKind::Open, 150, 180)
        };
        let last = span(SpanKind::Close, 230, 240);
        let trace = Trace::of([span(SpanKind::Write, 100, 200), wait, open, last]);
        let observed = Observed::of(&trace, Dev::default());
        let of = |cpus| chains(&trace, &observed, &ready(&trace, &observed, cpus));
        let opener = "Pass(50) Work(30) Done { write: false } Pass(60)";
        for (cpus, work) in [(1, "Work(20)"), (2, "Work(40)")] {
            let writer = format!(
                "Work(20) Stall(40) {work} Done {{ write: true }} Work(30) Work(10) \
                 Done {{ write: false }}"
            );
            let got: Vec<String> = of(cpus).iter().map(|chain| told(chain)).collect();
            assert_eq!(got, [writer.as_str(), opener]);
        }
    }
}
