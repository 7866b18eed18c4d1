//! Algorithm 4.2 by hand, and against traces.

mod common;

use common::{DEV, Little, MS, commit, span};
use luc_model::algorithms::grouping::CommitTimes;
use luc_model::algorithms::write_model::{Set, Writer, classify};
use luc_model::{Observed, WriteModel, write_model};
use luc_trace::{Span, SpanKind, Trace};

fn writer(thread: u32, write_ns: (u64, u64), fsync_begin_ns: u64) -> Writer {
    Writer {
        thread,
        write_begin_ns: write_ns.0,
        write_end_ns: write_ns.1,
        fsync_begin_ns,
        ..Writer::default()
    }
}

/// The sets against a commit from 100 to 180, including calls that begin at the same moment.
#[test]
fn sets_by_hand() {
    let commit = CommitTimes {
        begin_ns: 100,
        end_ns: 180,
    };
    for (write_ns, fsync_begin_ns, set) in [
        ((10, 40), 50, Set::X),
        ((10, 45), 99, Set::X),
        ((10, 95), 100, Set::Y),
        ((20, 190), 192, Set::Y),
        ((99, 190), 200, Set::Y),
        // It was no longer writing.
        ((30, 60), 110, Set::Y),
        ((100, 190), 200, Set::Z),
        ((130, 200), 201, Set::Z),
    ] {
        let writer = writer(1, write_ns, fsync_begin_ns);
        assert_eq!(classify(&writer, &commit), set, "{writer:?}");
    }
}

/// Returns a writer's spans: its write in two pieces, the wait inside them, and its fsync.
fn spans_of(writer: &Writer, (wait_ns, waited_ns): (u64, u64)) -> Vec<Span> {
    let span = |kind, begin_ns, end_ns, amount| Span {
        object: 9,
        within: SpanKind::Write,
        amount,
        ..span(kind, writer.thread, begin_ns, end_ns)
    };
    let (begin_ns, end_ns) = (writer.write_begin_ns, writer.write_end_ns);
    let middle_ns = u64::midpoint(begin_ns, end_ns);
    let fsync_ns = writer.fsync_begin_ns;
    let mut spans = vec![
        span(SpanKind::Write, begin_ns, middle_ns, 1000),
        span(SpanKind::Write, middle_ns + 1, end_ns, 2000),
        span(SpanKind::Fsync, fsync_ns, fsync_ns + 130, 0),
    ];
    if waited_ns > 0 {
        spans.push(span(SpanKind::WaitBuffer, wait_ns, waited_ns, 0));
    }
    spans
}

/// Models each writer with its wait against a commit from 100 to 180.
fn modelled(writers: &[(Writer, (u64, u64))]) -> WriteModel {
    let spans = writers.iter().flat_map(|(it, wait)| spans_of(it, *wait));
    let trace = Trace::from_spans(spans.chain([commit(5, 100, 180)]));
    write_model(&trace, &Observed::from_trace(&trace, DEV))
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-6 * b.max(1.0), "{a} {b}");
}

/// X writes 3000 bytes from 10 to 40, so a writer on its own needs 30.
///
///   Y, from 90 to 190: at 90 + 30 = 120 it would have ended, after the commit's start:
///      30 + 80 = 110, measured 190 - 90 = 100
///   Z, from 130 to 200: 30 + (180 - 130) = 80, measured 70
#[test]
fn predicted_beside_measured_by_hand() {
    let model = modelled(&[
        (writer(1, (10, 40), 50), (0, 0)),
        (writer(3, (90, 190), 192), (100, 135)),
        (writer(4, (130, 200), 201), (170, 180)),
    ]);
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

/// The writer is formally in Y, but it finished writing before the commit begins: it was about to
/// call fsync, and nothing is added to its time.
#[test]
fn a_writer_that_was_done_is_not_blocked() {
    let model = modelled(&[
        (writer(1, (10, 40), 50), (0, 0)),
        (writer(5, (30, 60), 110), (0, 0)),
    ]);
    assert_eq!((model.x.writers, model.y.writers), (1, 1));
    near(model.y.predicted_mean_ns, 30.0);
}

#[test]
fn writers_of_a_loop_wait_as_long_as_they_did() {
    let little = Little {
        writes: 4,
        wait_ns: MS,
        ..Little::default()
    };
    let trace = little.trace();
    let model = write_model(&trace, &Observed::from_trace(&trace, DEV));
    let writers = model.x.writers + model.y.writers + model.z.writers;
    assert!(writers > 1000, "{model:?}");
    // The writes of a round wait a millisecond, nearly all of their time.
    assert!(
        model.unblocked_bytes_per_s > 20.0 * model.measured_bytes_per_s,
        "{model:?}"
    );
    assert!((model.z.blocked_mean_ns - 1e6).abs() < 1.0);
    // Without a sync after the writes there is no fsync time, and hence no writer.
    let mut spans = little.spans();
    spans.retain(|span| !span.kind.is_file_sync());
    let trace = Trace::from_spans(spans);
    let none = write_model(&trace, &Observed::from_trace(&trace, DEV));
    assert_eq!(none, WriteModel::default());
}
