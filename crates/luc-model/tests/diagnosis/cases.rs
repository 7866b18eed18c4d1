//! Simulated loads with a known verdict.

use crate::common::{DEV, Little, MS, Start, US, span};
use crate::{SECOND, facts, judge};
use luc_model::diagnosis::{Diagnosis, Level, VerdictKind, diagnose, render};
use luc_trace::{Span, SpanKind, Trace};
use std::sync::LazyLock;

/// Returns simulated loads, each with the verdict that it must get.
pub fn cases() -> Vec<(&'static str, Little, VerdictKind)> {
    use SpanKind::{WaitBuffer, WaitLocked, WaitSpace};
    use VerdictKind::{DataFlush, Device, JournalTooSmall, NoPressure, SyncDelays, WriteDelays};

    let threads = |threads| Little {
        threads,
        rounds: 500,
        ..Little::default()
    };
    let thinking = |number, think_ns, jitter_ns| Little {
        think_ns,
        jitter_ns,
        ..threads(number)
    };
    let flushing = |number, flush_ns, jitter_ns| Little {
        jitter_ns,
        flush_ns,
        ..threads(number)
    };
    let waiting = |wait_kind| Little {
        writes: 3,
        wait_ns: 12 * MS,
        wait_kind,
        ..threads(4)
    };
    let sharing = Little {
        start: Start::WhenBack(4 * MS),
        ..threads(8)
    };
    let protected = Little {
        commit_ns: 60 * US,
        commit_jitter_ns: 20 * US,
        rounds: 2000,
        ..thinking(4, 5 * MS, 2 * MS)
    };
    let idle = Little {
        rounds: 20,
        ..thinking(2, 3 * SECOND, SECOND)
    };
    let mut cases = vec![
        ("two convoys", threads(8), SyncDelays),
        ("many that think", thinking(32, 5 * MS, 10 * MS), SyncDelays),
        ("two threads", threads(2), SyncDelays),
        ("one thread", threads(1), Device),
        ("threads that share every commit", sharing, Device),
        (
            "one with much data",
            flushing(1, 20 * MS, 60 * US),
            DataFlush,
        ),
        (
            "several with much data",
            flushing(4, 30 * MS, 20 * MS),
            DataFlush,
        ),
        (
            "writers that commits block",
            waiting(WaitBuffer),
            WriteDelays,
        ),
        ("a small journal", waiting(WaitSpace), JournalTooSmall),
        ("locked transactions", waiting(WaitLocked), WriteDelays),
        ("a disk with power-loss protection", protected, NoPressure),
        ("idle", idle, NoPressure),
    ];
    for (seed, (_, little, _)) in (1..).zip(&mut cases) {
        little.seed = seed;
    }
    cases
}

/// The cases with their diagnoses. Each is judged only once, because that runs its threads again.
static JUDGED: LazyLock<Vec<(&str, VerdictKind, Diagnosis)>> = LazyLock::new(|| {
    let judged = |(name, little, want)| (name, want, judge(&little));
    cases().into_iter().map(judged).collect()
});

#[test]
fn each_case_gets_its_answer_first() {
    for (name, want, got) in &*JUDGED {
        let (want, text) = (*want, render(got));
        assert_eq!(got.verdicts[0].kind, want, "{name}:\n{text}");
        assert_eq!(
            got.found_cost(),
            want != VerdictKind::NoPressure,
            "{name}:\n{text}"
        );
        let shares = got.verdicts.iter().map(|v| v.cost_share.value);
        assert!(shares.is_sorted_by(|a, b| a >= b), "{name}:\n{text}");
        assert!(got.confidence.level > Level::Low, "{name}:\n{text}");
        let blamed = |kind| got.has(kind) && kind != want;
        assert!(!blamed(VerdictKind::JournalTooSmall), "{name}:\n{text}");
        assert!(!blamed(VerdictKind::WriteDelays), "{name}:\n{text}");
    }
}

#[test]
fn luc_is_not_advised_where_it_does_not_pay() {
    for (name, kind, got) in &*JUDGED {
        let luc_is_for = [VerdictKind::SyncDelays, VerdictKind::WriteDelays].contains(kind);
        if got.next_command.as_deref() == Some("luc on /srv/data") {
            assert!(luc_is_for || got.has(VerdictKind::SyncDelays), "{name}");
        }
        if matches!(kind, VerdictKind::Device | VerdictKind::NoPressure) {
            assert_eq!(got.next_command, None, "{name}:\n{}", render(got));
        }
    }
}

/// With both delays at once, both are named, and the larger comes first.
#[test]
fn mixed_causes_are_ranked() {
    let mixed = |wait_ns| Little {
        writes: 2,
        wait_ns,
        rounds: 1000,
        ..Little::default()
    };
    let kinds = |little| -> Vec<VerdictKind> {
        let got = judge(&little);
        got.verdicts.iter().map(|verdict| verdict.kind).collect()
    };
    assert_eq!(
        kinds(mixed(300 * US)),
        [VerdictKind::SyncDelays, VerdictKind::WriteDelays]
    );
    assert_eq!(kinds(mixed(40 * MS))[0], VerdictKind::WriteDelays);
    let data = Little {
        threads: 6,
        flush_ns: 9 * MS,
        jitter_ns: 4 * MS,
        ..Little::default()
    };
    assert_eq!(kinds(data)[0], VerdictKind::DataFlush);
}

/// A thread syncs all the time; three threads of another process write, and wait for metadata that
/// its commits are writing, the last part of each write.
fn neighbours(waited_ns: u64) -> Trace {
    let little = Little {
        threads: 1,
        rounds: 1500,
        ..Little::default()
    };
    let mut spans = little.spans();
    for span in &mut spans {
        span.tgid = 300;
    }
    let end_ns = spans.iter().map(|span| span.end_ns).max().unwrap();
    for pid in 200..203 {
        for round in 0..(end_ns - 2 * MS) / (4 * MS) {
            let begin_ns = MS + u64::from(pid) * US + round * 4 * MS;
            let write = Span {
                tgid: 200,
                ..span(SpanKind::Write, pid, begin_ns, begin_ns + 3 * MS)
            };
            spans.push(write);
            spans.push(Span {
                kind: SpanKind::WaitBuffer,
                within: SpanKind::Write,
                begin_ns: write.end_ns - waited_ns,
                ..write
            });
        }
    }
    for (pid, name) in [(200, "victim"), (300, "syncer")] {
        let task = Span {
            pid,
            tgid: pid,
            ..Span::default()
        };
        spans.push(task.with_name(name));
    }
    Trace::from_spans(spans)
}

#[test]
fn a_neighbour_is_named() {
    let got = diagnose(&neighbours(2 * MS + 990 * US), DEV, &facts());
    let text = render(&got);
    let causes = &got.processes.causes;
    assert_eq!(causes[0].name, "syncer", "{text}");
    assert!(causes[0].syncs_share > 0.99, "{text}");
    assert_eq!(got.verdicts[0].kind, VerdictKind::WriteDelays, "{text}");
    let commits: u64 = causes.iter().filter_map(|cause| cause.commits_asked).sum();
    assert!(commits <= got.table.commits, "{text}");
    let advised = got.advice.iter().any(|line| line.contains("Give syncer"));
    let most = &got.processes.sufferers.as_ref().unwrap()[0];
    assert!(most.name == "victim" && most.lost_share > 0.5, "{text}");
    assert!(advised, "{text}");
    assert!(text.contains("processes that sync:\n    syncer"), "{text}");
}

/// It is the syncer that waits: 200 us of each 3 ms are not worth telling it to sync less.
#[test]
fn who_loses_little_is_no_victim() {
    let got = diagnose(&neighbours(200 * US), DEV, &facts());
    let text = render(&got);
    let most = &got.processes.sufferers.as_ref().unwrap()[0];
    assert!(most.name == "victim" && most.lost_share > 0.5, "{text}");
    assert!(!got.advice.join(" ").contains("syncer"), "{text}");
}

/// Processes that sync are listed by the time that it takes, and with all of their syncs.
#[test]
fn syncs_without_a_commit_count() {
    let sync = |pid, begin_ns, took_ns| Span {
        pid,
        tgid: pid,
        dev: DEV,
        tid: 6,
        done_tid: 6,
        marks_ns: [begin_ns, begin_ns + took_ns - US, 0],
        ..Span::new(SpanKind::Fdatasync, begin_ns, begin_ns + took_ns)
    };
    let mut spans: Vec<Span> = (60..600)
        .map(|at| sync(200, at * 16 * MS, 16 * MS))
        .collect();
    spans.extend((0..2000).map(|at| sync(300, SECOND + at * 4 * MS, 2 * US)));
    for (pid, name) in [(200, "writer"), (300, "spinner")] {
        let task = Span {
            pid,
            tgid: pid,
            ..Span::default()
        };
        spans.push(task.with_name(name));
    }
    let got = diagnose(&Trace::from_spans(spans), DEV, &facts());
    let text = render(&got);
    assert_eq!(got.verdicts[0].kind, VerdictKind::DataFlush, "{text}");
    let causes: Vec<_> = got
        .processes
        .causes
        .iter()
        .map(|it| (&*it.name, it.syncs))
        .collect();
    assert_eq!(causes, [("writer", 540), ("spinner", 2000)], "{text}");
}
