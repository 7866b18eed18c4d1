//! The confidence of a diagnosis.

use crate::common::{DEV, Little, MS, commit};
use crate::text::check_text;
use crate::{SECOND, facts};
use luc_control::Dev;
use luc_model::diagnosis::{Facts, Level, Relief, VerdictKind, diagnose, render};
use luc_trace::{Sight, Span, SpanKind, Trace, Unseen};

/// 15 s in which one file or none is synced are no pressure, with high confidence.
#[test]
fn quiet_time_counts() {
    let watched = Facts {
        watched_ns: Some((SECOND, 16 * SECOND)),
        ..facts()
    };
    let commit = commit(7, 5 * SECOND, 5 * SECOND + 40 * MS);
    let sync = Span {
        kind: SpanKind::Fsync,
        begin_ns: commit.begin_ns - MS,
        end_ns: commit.end_ns + MS,
        done_tid: 6,
        pid: 100,
        ..commit
    };
    for spans in [vec![], vec![commit, sync]] {
        let got = diagnose(&Trace::from_spans(spans), DEV, &watched);
        let text = render(&got);
        assert_eq!(got.verdicts[0].kind, VerdictKind::NoPressure, "{text}");
        assert_eq!(got.confidence.level, Level::High, "{text}");
        assert_eq!(got.relief, Relief::None, "{text}");
        check_text(&got);
    }
    // Another file system was busy all the time, but this one is still quiet.
    let mut spans = Little {
        rounds: 2000,
        ..Little::default()
    }
    .spans();
    for span in &mut spans {
        span.dev = Dev::default();
    }
    spans.extend([commit, sync]);
    let got = diagnose(&Trace::from_spans(spans), DEV, &facts());
    assert_eq!(got.verdicts[0].kind, VerdictKind::NoPressure);
}

/// Tasks that wait for the disk in direct I/O are no pressure on the journal, and are not idle.
#[test]
fn writes_that_wait_for_the_disk_are_told() {
    let write = |at: u64| Span {
        pid: 100,
        ..Span::new(SpanKind::Write, at * 16 * MS, (at + 1) * 16 * MS)
    };
    let mut spans: Vec<Span> = (60..900).map(write).collect();
    for span in &mut spans {
        span.dev = DEV;
    }
    let got = diagnose(&Trace::from_spans(spans), DEV, &facts());
    let text = render(&got);
    let [verdict] = &got.verdicts[..] else {
        panic!("{text}");
    };
    assert_eq!(verdict.kind, VerdictKind::NoPressure, "{text}");
    assert!(
        text.contains("no fsync pressure; tasks wait in writes, but not for the journal"),
        "{text}"
    );
    assert!(text.contains("A write takes 16.0 ms"), "{text}");
    check_text(&got);
}

#[test]
fn missing_events_lower_the_confidence() {
    let little = Little {
        rounds: 1500,
        ..Little::default()
    };
    let level = |trace: &Trace, facts: &Facts| {
        let got = diagnose(trace, DEV, facts).confidence;
        assert_eq!(got.level == Level::High, got.reasons.is_empty(), "{got:?}");
        got.level
    };
    let trace = little.trace();
    assert_eq!(level(&trace, &facts()), Level::High);

    let lost = Trace {
        spans_lost: trace.spans.len() as u64,
        ..trace.clone()
    };
    assert_eq!(level(&lost, &facts()), Level::Low);
    let damaged = Trace {
        damage: Some("cut off".into()),
        ..trace.clone()
    };
    assert_eq!(level(&damaged, &facts()), Level::Medium);
    let blind = Trace {
        unseen: Unseen::from([Sight::WaitBuffer]),
        ..trace.clone()
    };
    assert_eq!(level(&blind, &facts()), Level::Medium);
    let short = Little {
        rounds: 100,
        ..little.clone()
    };
    assert_eq!(level(&short.trace(), &facts()), Level::Low);
    // Half of the commits are not in the trace. With several threads a sync is assigned the commit
    // before, but the gaps in the numbers show.
    for threads in [1, 8] {
        let mut spans = Little {
            threads,
            ..little.clone()
        }
        .spans();
        spans.retain(|span| span.kind != SpanKind::Commit || span.tid % 2 == 0);
        assert_eq!(level(&Trace::from_spans(spans), &facts()), Level::Low);
    }
}
