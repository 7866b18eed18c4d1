//! Algorithm 4.2 by hand, and against traces.

mod common;

use common::{DEV, Little, MS};
use luc_model::grouping::Commit;
use luc_model::write_model::{Set, Writer, algorithm_4_2, classify, write_time_ns};
use luc_model::{Observed, WriteModel, write_model};
use luc_trace::{Span, SpanKind, Trace};
use proptest::prelude::*;

fn writer(thread: u32, write_ns: (u64, u64), fsync_begin_ns: u64, flush_end_ns: u64) -> Writer {
    Writer {
        thread,
        write_begin_ns: write_ns.0,
        write_end_ns: write_ns.1,
        fsync_begin_ns,
        flush_end_ns,
        bytes: 3000,
    }
}

const COMMIT: Commit = Commit {
    begin_ns: 100,
    end_ns: 180,
};

/// One round against the commit 100 to 180, `T_JC` 80.
///
///   K1: writes 10 to 40, fsync 50, flushed 95: triggers it.  X  40 - 10 = 30
///   K2: writes 10 to 45, fsync 99: begins just before it.    X  45 - 10 = 35
///   K3: writes 20 to 190, fsync 192.                         Y  (100 - 20) + 80 + (190 - 180) = 170
///   K4: writes 130 to 200, fsync 201.                        Z  (180 - 130) + (200 - 180) = 70
///   K5: writes 30 to 60, fsync 110: was not writing at all.  Y  (100 - 30) + 80 + (60 - 180) = 30
#[test]
fn one_round_by_hand() {
    let writers = [
        writer(1, (10, 40), 50, 95),
        writer(2, (10, 45), 99, 120),
        writer(3, (20, 190), 192, 230),
        writer(4, (130, 200), 201, 240),
        writer(5, (30, 60), 110, 150),
    ];
    assert_eq!(
        algorithm_4_2(&writers, &COMMIT),
        [
            (Set::X, 30),
            (Set::X, 35),
            (Set::Y, 170),
            (Set::Z, 70),
            (Set::Y, 30)
        ]
    );
}

#[test]
fn the_trigger_is_not_affected_whatever_its_times() {
    // Its clock says that it began after the commit, yet nobody flushed first.
    let writers = [
        writer(1, (120, 130), 131, 140),
        writer(2, (120, 130), 132, 141),
    ];
    let sets: Vec<Set> = algorithm_4_2(&writers, &COMMIT)
        .iter()
        .map(|(set, _)| *set)
        .collect();
    assert_eq!(sets, [Set::X, Set::Z]);
    assert!(algorithm_4_2(&[], &COMMIT).is_empty());
}

#[test]
fn begins_in_the_moment_of_the_commit() {
    let set = |write_ns, fsync_ns| classify(&writer(1, (write_ns, 300), fsync_ns, 400), &COMMIT);
    assert_eq!(set(10, 99), Set::X);
    assert_eq!(set(10, 100), Set::Y);
    assert_eq!(set(99, 200), Set::Y);
    assert_eq!(set(100, 200), Set::Z);
}

proptest! {
    /// With the measured end put in, equations 10 to 12 say the same.
    #[test]
    fn the_equations_are_identities(
        times in prop::array::uniform4(any::<u64>()),
        commit in any::<(u64, u64)>(),
    ) {
        let writer = writer(1, (times[0], times[1]), times[2], times[3]);
        let commit = Commit { begin_ns: commit.0, end_ns: commit.1 };
        let set = classify(&writer, &commit);
        let time_ns = i128::from(times[1]) - i128::from(times[0]);
        prop_assert_eq!(write_time_ns(&writer, &commit, set), time_ns);
        prop_assert_eq!(algorithm_4_2(&[writer], &commit), [(Set::X, time_ns)]);
    }
}

fn spans_of(writer: &Writer, waited_ns: (u64, u64)) -> Vec<Span> {
    let span = |kind, begin_ns, end_ns| Span {
        kind,
        begin_ns,
        end_ns,
        pid: writer.thread,
        object: 9,
        dev: DEV,
        ..Span::default()
    };
    // In two pieces: the phase goes from the first's begin to the last's end.
    let middle_ns = u64::midpoint(writer.write_begin_ns, writer.write_end_ns);
    let piece = |begin_ns, end_ns, amount| Span {
        amount,
        ..span(SpanKind::Write, begin_ns, end_ns)
    };
    let mut spans = vec![
        piece(writer.write_begin_ns, middle_ns, 1000),
        piece(middle_ns + 1, writer.write_end_ns, 2000),
        Span {
            marks_ns: [writer.fsync_begin_ns, writer.flush_end_ns, 0],
            ..span(
                SpanKind::Fsync,
                writer.fsync_begin_ns,
                writer.flush_end_ns + 99,
            )
        },
    ];
    if waited_ns.1 > 0 {
        spans.push(Span {
            within: SpanKind::Write,
            ..span(SpanKind::WaitBuffer, waited_ns.0, waited_ns.1)
        });
    }
    spans
}

/// K1 and K4 as above, and a K3 that writes from 90. X writes 3000 bytes in 30,
/// so a writer needs 30 for itself.
///
///   Y: at 90 + 30 = 120 it would have ended, after the commit's begin:
///      30 + 80 = 110, measured 190 - 90 = 100
///   Z: 30 + (180 - 130) = 80, measured 70
#[test]
fn predicted_beside_measured_by_hand() {
    let mut spans = vec![Span {
        kind: SpanKind::Commit,
        begin_ns: 100,
        end_ns: 180,
        tid: 5,
        dev: DEV,
        ..Span::default()
    }];
    spans.extend(spans_of(&writer(1, (10, 40), 50, 95), (0, 0)));
    spans.extend(spans_of(&writer(3, (90, 190), 192, 230), (100, 135)));
    spans.extend(spans_of(&writer(4, (130, 200), 201, 240), (170, 180)));
    let trace = Trace::of(spans);
    let model = write_model(&trace, &Observed::of(&trace, DEV));
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6 * b.max(1.0), "{a} {b}");
    let WriteModel { x, y, z, .. } = model;
    assert_eq!((x.writers, y.writers, z.writers), (1, 1, 1));
    near(x.predicted_mean_ns, 30.0);
    near(y.predicted_mean_ns, 110.0);
    near(y.measured_mean_ns, 100.0);
    // A wait from 100 to 135 lies inside the first half, 90 to 140.
    near(y.blocked_mean_ns, 35.0);
    near(z.predicted_mean_ns, 80.0);
    near(z.measured_mean_ns, 70.0);
    let sum = |times: [f64; 3]| times.iter().map(|t| 3000.0 * 1e9 / t).sum::<f64>();
    near(model.measured_bytes_per_s, sum([30.0, 100.0, 70.0]));
    near(model.predicted_bytes_per_s, sum([30.0, 110.0, 80.0]));
    near(model.best_bytes_per_s, sum([30.0, 30.0, 30.0]));
    near(model.unblocked_bytes_per_s, sum([30.0, 65.0, 60.0]));
}

/// In Y by the letter, but done with writing before the commit begins: it was
/// on its way to its fsync, and nothing is added to its time.
#[test]
fn a_writer_that_was_done_is_not_blocked() {
    let mut spans = vec![Span {
        kind: SpanKind::Commit,
        begin_ns: 100,
        end_ns: 180,
        dev: DEV,
        ..Span::default()
    }];
    spans.extend(spans_of(&writer(1, (10, 40), 50, 95), (0, 0)));
    spans.extend(spans_of(&writer(5, (30, 60), 110, 150), (0, 0)));
    let trace = Trace::of(spans);
    let model = write_model(&trace, &Observed::of(&trace, DEV));
    assert_eq!((model.x.writers, model.y.writers), (1, 1));
    assert!((model.y.predicted_mean_ns - 30.0).abs() < 1e-9, "{model:?}");
}

#[test]
fn writers_of_a_loop_wait_as_long_as_they_did() {
    let little = Little {
        writes: 4,
        wait_ns: MS,
        ..Little::default()
    };
    let trace = little.trace();
    let model = write_model(&trace, &Observed::of(&trace, DEV));
    let writers = model.x.writers + model.y.writers + model.z.writers;
    assert!(writers > 1000, "{model:?}");
    // Every round waits a millisecond, which is nearly all of its time.
    assert!(
        model.unblocked_bytes_per_s > 20.0 * model.measured_bytes_per_s,
        "{model:?}"
    );
    assert!((model.z.blocked_mean_ns - 1e6).abs() < 1.0);
    // Without a sync after them there is no fsync time, and no writer.
    let mut spans = little.spans();
    spans.retain(|span| !span.kind.is_file_sync());
    let trace = Trace::of(spans);
    let none = write_model(&trace, &Observed::of(&trace, DEV));
    assert_eq!(none, WriteModel::default());
}
