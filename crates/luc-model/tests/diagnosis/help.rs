//! Remedies, and the next command.

use crate::common::{DEV, Little, MS, span};
use crate::{facts, judge};
use luc_control::{Dev, Reason};
use luc_model::diagnosis::{Facts, Help, Level, Luc, Relief, VerdictKind, diagnose, render};
use luc_trace::{Event, Record, Span, SpanKind, Trace};

/// With batching, the two convoys of the default load share one commit, which is almost twice as
/// fast.
#[test]
fn batching_is_advised_where_it_pays() {
    let got = judge(&Little::default());
    let text = render(&got);
    let gain = got.gain.as_ref().expect("it has commits");
    assert!(gain.trusted, "{text}");
    assert!((1.8..2.0).contains(&gain.ratio), "{text}");
    let (low, high) = (gain.low.unwrap(), gain.high.unwrap());
    assert!(low <= gain.ratio && gain.ratio <= high, "{text}");
    assert!(low > 1.5 && high < 2.3, "{text}");
    assert_eq!(got.next_command.as_deref(), Some("luc on /srv/data"));
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("/srv/data: syncs wait for the commits of others: "),
        "{first}"
    );
    // Half of the time of each sync passes behind another commit.
    let cost = got.verdicts[0].cost_share;
    assert!((0.4..0.55).contains(&cost.value), "{text}");
    assert!(cost.low.unwrap() < cost.value && cost.value < cost.high.unwrap());

    // If LUC already observes, the command is `luc set`.
    let observing = Facts {
        luc: Some(Luc::Observing),
        ..facts()
    };
    let got = diagnose(&Little::default().trace(), DEV, &observing);
    assert_eq!(
        got.next_command.as_deref(),
        Some("luc set /srv/data mode steer")
    );
}

#[test]
fn fast_commits_are_not_held() {
    let fast = Facts {
        fast_commit: Some(true),
        ..facts()
    };
    let got = diagnose(&Little::default().trace(), DEV, &fast);
    assert_eq!(got.verdicts[0].kind, VerdictKind::SyncDelays);
    let gain = got.gain.as_ref().expect("it has commits");
    assert!((0.99..1.01).contains(&gain.ratio), "{gain:?}");
    assert_eq!(got.next_command, None);
    assert!(got.advice.iter().any(|line| line.contains("fast commits")));

    // One thread, whose syncs need a full commit once in a hundred times.
    let mut spans = Little {
        threads: 1,
        rounds: 1500,
        ..Little::default()
    }
    .spans();
    let mut last_tid = 0;
    for span in &mut spans {
        // The open transaction stays open; numbers have no gaps.
        let tid = span.tid / 100;
        match span.kind {
            SpanKind::Commit if tid == last_tid => span.dev = Dev::default(),
            SpanKind::Commit => (span.tid, last_tid) = (tid, tid),
            SpanKind::Fsync => (span.tid, span.done_tid) = (tid + 1, tid),
            _ => {}
        }
    }
    let trace = Trace::from_spans(spans);
    let judged = |fast_commits| {
        let facts = Facts {
            fast_commits,
            ..fast.clone()
        };
        let got = diagnose(&trace, DEV, &facts);
        let text = render(&got);
        assert_eq!(got.verdicts[0].kind, VerdictKind::Device, "{text}");
        assert!(got.table.syncs_unserved > 1000, "{text}");
        assert_eq!(got.confidence.level, Level::Low, "{text}");
        assert_eq!(got.fast_commits, fast_commits);
        text
    };
    let (counted, unknown) = (judged(Some(1485)), judged(None));
    assert!(
        counted.contains("1,485 fast commits, 99% of all commits, cannot be traced."),
        "{counted}"
    );
    assert!(unknown.contains("The number of fast commits"), "{unknown}");
    assert!(!unknown.contains("0 fast commits"), "{unknown}");
}

/// The share of fast commits alone sets the level; none of them raises no doubt.
#[test]
fn fast_commits_lower_the_confidence() {
    let load = Little {
        threads: 1,
        rounds: 1500,
        ..Little::default()
    };
    let trace = load.trace();
    let commits = diagnose(&trace, DEV, &facts()).table.commits;
    let level = |fast_commits| {
        let facts = Facts {
            fast_commits: Some(fast_commits),
            ..facts()
        };
        diagnose(&trace, DEV, &facts).confidence.level
    };
    let levels = [0, commits / 20, commits].map(level);
    assert_eq!(levels, [Level::High, Level::Medium, Level::Low]);
}

#[test]
fn a_small_journal_is_made_larger() {
    let small = Little {
        writes: 3,
        wait_ns: 12 * MS,
        wait_kind: SpanKind::WaitSpace,
        ..Little::default()
    };
    let known = Facts {
        journal_bytes: Some(16 << 20),
        block_bytes: Some(4096),
        mount_options: Some("rw,relatime,data=journal,commit=1".into()),
        ..facts()
    };
    let got = diagnose(&small.trace(), DEV, &known);
    let text = render(&got);
    // LUC would stand aside: the journal comes first.
    assert!(!got.gain.as_ref().unwrap().trusted, "{text}");
    assert_eq!(got.next_command, None, "{text}");
    for part in [
        "The journal has 16 MiB, 4,096 blocks.",
        "tune2fs -O ^has_journal /dev/vdb",
        "tune2fs -J size=256 /dev/vdb",
        "data=journal",
        "commit=1",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let large = Facts {
        journal_bytes: Some(2 << 30),
        ..facts()
    };
    let text = render(&diagnose(&small.trace(), DEV, &large));
    assert!(!text.contains("tune2fs"), "{text}");
    // A journal on a device of its own stays on one.
    let apart = Facts {
        journal_device: Some("/dev/nvme0n1p2".into()),
        device_bytes: Some(100 << 20),
        ..known.clone()
    };
    let text = render(&diagnose(&small.trace(), DEV, &apart));
    for part in [
        "It has /dev/nvme0n1p2 for itself.",
        "mke2fs -b 4096 -O journal_dev LARGER",
        "tune2fs -O ^has_journal /dev/vdb",
        "tune2fs -J device=LARGER /dev/vdb",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(!text.contains("-J size="), "{text}");
    assert!(!text.contains("dioread_lock"), "{text}");
    let cached = Facts {
        leaves_data_cached: true,
        ..apart
    };
    let text = render(&diagnose(&small.trace(), DEV, &cached));
    assert!(text.contains("Mount it with dioread_lock."), "{text}");
    // A remedy fits the device.
    for (device_mib, wanted) in [(100, "larger device"), (1024, "tune2fs -J size=128 ")] {
        let little = Facts {
            device_bytes: Some(device_mib << 20),
            ..known.clone()
        };
        let text = render(&diagnose(&small.trace(), DEV, &little));
        assert!(text.contains(wanted), "{wanted}:\n{text}");
        assert_eq!(
            text.contains("tune2fs"),
            wanted.contains("tune2fs"),
            "{text}"
        );
    }
}

/// Convoys in one slice of the time, long writes in four, then nothing: the loss may be chance.
#[test]
fn a_loss_that_may_be_chance_is_no_reason_to_act() {
    let convoys = Little::default().spans();
    let end_ns = convoys.iter().map(|span| span.end_ns).max().expect("spans");
    let quiet = (0..80).map(|n| {
        let at_ns = end_ns + n * end_ns / 20;
        span(SpanKind::Write, 7, at_ns, at_ns + 165 * MS)
    });
    let trace = Trace::from_spans(convoys.into_iter().chain(quiet));
    let watched = Facts {
        watched_ns: Some((0, 8 * end_ns)),
        ..facts()
    };
    let got = diagnose(&trace, DEV, &watched);
    let text = render(&got);
    assert_eq!(got.verdicts[0].kind, VerdictKind::SyncDelays, "{text}");
    assert_eq!(got.verdicts[0].cost_share.low, Some(0.0), "{text}");
    assert!(
        got.advice.is_empty() && got.relief == Relief::None,
        "{text}"
    );
    let next = "luc doctor --seconds 60 /srv/data";
    assert_eq!(got.next_command.as_deref(), Some(next), "{text}");
    assert!(
        text.contains("may be chance") && got.confidence.level == Level::Low,
        "{text}"
    );
}

/// When LUC steers, its holds are in the trace: there is no gain, and the recording itself shows
/// it.
#[test]
fn luc_at_work_is_seen() {
    let line = |steer| Record {
        task: "jbd2".into(),
        pid: 1,
        cpu: 0,
        time_ns: 0,
        event: Event::Commit {
            dev: DEV,
            tid: 1,
            events: 1,
            setpoint_events: 1,
            held_ns: 0,
            reason: Reason::Now,
            steer,
        },
    };
    for (steer, want) in [(true, Luc::Steering), (false, Luc::Observing)] {
        let trace = Trace {
            lines: vec![line(steer)],
            ..Little::default().trace()
        };
        let got = diagnose(&trace, DEV, &facts());
        assert_eq!(got.luc, want);
        assert_eq!(got.gain.is_none(), steer);
        assert_eq!(render(&got).contains("LUC already steers it."), steer);
    }
}

/// Returns spans in which half of the syncs have no commit, and pass unchanged in the replay.
pub(crate) fn half_committed() -> Vec<Span> {
    let mut spans = Little {
        threads: 1,
        rounds: 1500,
        ..Little::default()
    }
    .spans();
    spans.retain(|span| span.kind != SpanKind::Commit || span.tid % 2 == 0);
    spans
}

#[test]
fn a_gain_without_the_commits_is_doubted() {
    let spans = half_committed();
    let got = diagnose(&Trace::from_spans(spans), DEV, &facts());
    let gain = got.gain.as_ref().expect("it has commits");
    assert!(!gain.trusted && !gain.doubts.is_empty(), "{gain:?}");
    assert!(render(&got).contains("Do not trust it: "));
    assert_ne!(got.next_command.as_deref(), Some("luc on /srv/data"));
}

/// One program after the other, on a disk that is now fast, now slow: the predicted gain has a wide
/// interval, but nothing waits for another's commit.
#[test]
fn luc_is_not_tried_where_nobody_waits_for_others() {
    let slow = |tid: u64| tid.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
    let mut at_ns = 10_000 * MS;
    let mut spans = Vec::new();
    for tid in 1..400 {
        let begin_ns = at_ns + MS * (1 + slow(tid * 7) / 8);
        let end_ns = begin_ns + MS * (20 + slow(tid) / 4);
        let tid = u32::try_from(tid).expect("a small number");
        spans.push(Span {
            tid,
            ..span(SpanKind::Commit, 0, begin_ns, end_ns)
        });
        spans.push(Span {
            tid,
            done_tid: tid - 1,
            ..span(SpanKind::Fsync, 100 + tid, begin_ns, end_ns)
        });
        at_ns = end_ns;
    }
    let got = diagnose(&Trace::from_spans(spans), DEV, &facts());
    let text = render(&got);
    assert_eq!(got.verdicts[0].kind, VerdictKind::Device, "{text}");
    assert_eq!(got.luc_help, Help::WouldNot, "{text}");
    assert_eq!(got.relief, Relief::Device, "{text}");
    let high = got.gain.and_then(|gain| gain.high).expect("an interval");
    assert!(high >= 1.05, "{text}");
    let told = "LUC would not help: 1.00 times the operations per second at most";
    assert!(text.contains(told), "{text}");
}
