//! A thread's part of a trace as a chain of steps that can be walked again.
//!
//! Its time line runs from the begin to the end of the trace. What it spent
//! waiting for a commit inside a sync, or for a buffer that a commit was
//! writing, becomes a step of its own; all else is time that passes as it did:
//! thinking, computing, writing data, other waits, being woken. Idle time at
//! both ends of the trace is thinking too, so that a chain is as long as the
//! trace and can be walked again from its start.

use crate::observed::{Observed, ObservedSync, Service, end_of, is_sync};
use luc_trace::{SpanKind, Trace};
use std::collections::BTreeMap;

/// One step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Time passes, ns.
    Run(u64),
    /// A wait for a buffer that a commit is writing, ns.
    Stall(u64),
    /// It takes part in the transaction that is open now; its next sync wants
    /// that one.
    Join,
    /// It asks for its transaction and waits until that is committed. The
    /// rest of the sync took this many ns.
    Sync(u64),
    /// A sync ends that waited for no commit, or nobody knows for which; it
    /// took this many ns.
    Synced(u64),
    /// An operation ends; a write or not.
    Done { write: bool },
}

/// Where a step lies on the time line.
struct Piece {
    begin_ns: u64,
    end_ns: u64,
    step: Step,
}

/// The chain of every thread that did something, by thread. O(n log n).
pub(super) fn chains(trace: &Trace, observed: &Observed) -> Vec<Vec<Step>> {
    let Some(bounds_ns) = observed.bounds_ns else {
        return Vec::new();
    };
    let mut pieces: BTreeMap<u32, Vec<Piece>> = BTreeMap::new();
    for sync in &observed.syncs {
        let of_thread = pieces.entry(sync.pid).or_default();
        sync_pieces(sync, observed, of_thread);
    }
    for span in trace.spans.iter().filter(|span| span.dev == observed.dev) {
        let (begin_ns, end_ns) = (span.begin_ns, end_of(span));
        let step = match span.kind {
            SpanKind::WaitBuffer => Step::Stall(0),
            SpanKind::Open | SpanKind::Write | SpanKind::Close => Step::Done {
                write: span.kind == SpanKind::Write,
            },
            kind if is_sync(kind) => Step::Done { write: false },
            // The journal's own thread, and waits that pass as they did.
            _ => continue,
        };
        let begin_ns = if matches!(step, Step::Stall(_)) {
            begin_ns
        } else {
            end_ns
        };
        pieces.entry(span.pid).or_default().push(Piece {
            begin_ns,
            end_ns,
            step,
        });
    }
    pieces
        .into_values()
        .map(|pieces| chain(pieces, bounds_ns))
        .collect()
}

fn sync_pieces(sync: &ObservedSync, observed: &Observed, pieces: &mut Vec<Piece>) {
    let at = |begin_ns, end_ns, step| Piece {
        begin_ns,
        end_ns,
        step,
    };
    let (place, served) = match sync.service {
        Service::Commit(place) => (place, true),
        Service::Overtaken(place) => (place, false),
        Service::Unneeded | Service::Unserved => {
            let (end_ns, step) = (sync.end_ns, Step::Synced(sync.duration_ns()));
            pieces.push(at(end_ns, end_ns, step));
            return;
        }
    };
    let commit = &observed.commits[place];
    let until_ns = if served {
        commit.end_ns.clamp(sync.asked_ns, sync.end_ns)
    } else {
        sync.asked_ns
    };
    let rest_ns = sync.duration_ns() - (until_ns - sync.asked_ns);
    // Data is given its place, and the transaction its member, when the flush
    // begins. The transaction that it turned out to be bounds that moment: it
    // was open since the one before was locked, and until it was locked itself.
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
    pieces.push(at(sync.asked_ns, until_ns, Step::Sync(rest_ns)));
}

/// Steps in the order of time. Where pieces overlap, as no thread's can but
/// for a clock that went back, the later one has what the earlier left.
fn chain(mut pieces: Vec<Piece>, (first_ns, last_ns): (u64, u64)) -> Vec<Step> {
    // Of those that begin together the shorter first: what ends there happened before what begins.
    pieces.sort_by_key(|piece| (piece.begin_ns, piece.end_ns));
    let mut steps = Vec::with_capacity(2 * pieces.len() + 1);
    let mut now_ns = first_ns;
    let run = |steps: &mut Vec<Step>, from_ns: u64, to_ns: u64| {
        if to_ns > from_ns {
            steps.push(Step::Run(to_ns - from_ns));
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use luc_control::Dev;
    use luc_trace::Span;

    fn span(kind: SpanKind, begin_ns: u64, end_ns: u64) -> Span {
        Span {
            kind,
            begin_ns,
            end_ns,
            pid: 7,
            ..Span::default()
        }
    }

    fn of(spans: &[Span]) -> Vec<Vec<Step>> {
        let trace = Trace::of(spans.iter().copied());
        chains(&trace, &Observed::of(&trace, Dev::default()))
    }

    /// Open 100 to 110; fsync 115 to 190, served by the commit 120 to 180;
    /// a write 200 to 230 that waited from 205 to 225; the trace ends at 250.
    #[test]
    fn a_thread_by_hand() {
        let commit = |begin, end, tid| Span {
            pid: 1,
            tid,
            ..span(SpanKind::Commit, begin, end)
        };
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
            commit(90, 95, 4),
            span(SpanKind::Open, 100, 110),
            sync,
            commit(120, 180, 5),
            span(SpanKind::Write, 200, 230),
            wait,
            commit(240, 250, 6),
        ]);
        // The fsync but for its wait from 115 to 180: 75 - 65 = 10.
        let steps = [
            Step::Run(20),
            Step::Done { write: false },
            Step::Run(5),
            Step::Sync(10),
            Step::Run(10),
            Step::Done { write: false },
            Step::Run(15),
            Step::Stall(20),
            Step::Run(5),
            Step::Done { write: true },
            Step::Run(20),
        ];
        assert_eq!(got, [steps]);
    }

    /// Data is flushed from 100 to 130 while the transaction that took it in is
    /// locked at 120 already: the sync joined at 100, and asked at 130.
    #[test]
    fn a_sync_joins_when_its_data_does() {
        let commit = Span {
            pid: 1,
            tid: 5,
            ..span(SpanKind::Commit, 120, 180)
        };
        let sync = Span {
            tid: 5,
            done_tid: 4,
            marks_ns: [100, 130, 0],
            ..span(SpanKind::Fsync, 90, 181)
        };
        let before = Span {
            pid: 1,
            tid: 4,
            ..span(SpanKind::Commit, 50, 60)
        };
        let steps = [
            Step::Run(50),
            Step::Join,
            Step::Run(30),
            Step::Sync(41),
            Step::Run(1),
            Step::Done { write: false },
        ];
        assert_eq!(of(&[before, sync, commit]), [steps]);
    }

    /// The transaction that served it bounds when it can have joined: commit 4
    /// is locked at 50, commit 5 at 120 and ends at 180.
    #[test]
    fn a_sync_joins_while_its_transaction_is_open() {
        let commit = |tid, begin_ns, end_ns| Span {
            pid: 1,
            tid,
            ..span(SpanKind::Commit, begin_ns, end_ns)
        };
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
                Step::Run(ns) => *ns,
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
        let steps = [Step::Run(4), Step::Synced(4), Step::Done { write: false }];
        assert_eq!(of(&[sync]), [steps]);
        assert!(of(&[]).is_empty());
    }
}
