//! Small traces whose answers were worked out by hand.

mod common;

use common::{DEV, Little, MS, commit, span};
use luc_model::observed::{Service, Waits};
use luc_model::{Observed, fsync_model};
use luc_trace::{CREATED, Header, Span, SpanKind, Trace};

fn sync(pid: u32, begin_ns: u64, end_ns: u64, tid: u32, done_tid: u32) -> Span {
    Span {
        tid,
        done_tid,
        ..span(SpanKind::Fsync, pid, begin_ns, end_ns)
    }
}

fn observed(spans: Vec<Span>) -> Observed {
    Observed::from_trace(&Trace::from_spans(spans), DEV)
}

/// Returns the service of this sync beside commits 7 (100 to 200), 8 (200 to 310) and 9 (400 to
/// 500).
fn served(span: Span) -> (Service, u32, u64) {
    let seen = observed(vec![
        commit(7, 100, 200),
        commit(8, 200, 310),
        commit(9, 400, 500),
        span,
    ]);
    let sync = seen.syncs[0];
    (sync.service, sync.commits_waited, sync.delay_ns)
}

#[test]
fn services_of_syncs() {
    // By number: one commit, or also the rest of another.
    assert_eq!(served(sync(5, 110, 320, 8, 6)), (Service::Commit(1), 2, 90));
    assert_eq!(served(sync(5, 330, 510, 9, 8)), (Service::Commit(2), 1, 70));
    // A commit that ended at the moment of asking is over.
    assert_eq!(
        served(sync(5, 200, 520, 9, 7)),
        (Service::Commit(2), 2, 200)
    );
    assert_eq!(served(sync(5, 310, 520, 9, 8)), (Service::Commit(2), 1, 90));
    // It joined before the lock and asked after: no delay, one commit.
    assert_eq!(served(sync(5, 150, 205, 7, 6)), (Service::Commit(0), 1, 0));
    // Its transaction was committed already.
    assert_eq!(served(sync(5, 150, 151, 6, 6)).0, Service::Unneeded);
    // The same, but while the sync was writing its data.
    let flushing = Span {
        marks_ns: [150, 205, 0],
        ..sync(5, 150, 206, 7, 7)
    };
    assert_eq!(served(flushing), (Service::Overtaken(0), 0, 0));
    // Its commit ended after the sync: by time, it is the last commit that ended while the sync
    // waited.
    assert_eq!(served(sync(5, 150, 330, 9, 7)), (Service::Commit(1), 2, 50));
    // Number unknown: by time, too.
    assert_eq!(served(sync(5, 150, 250, 0, 0)), (Service::Commit(0), 1, 0));
    // No commit ended while it ran, so it cannot have waited for one.
    assert_eq!(served(sync(5, 320, 330, 0, 0)).0, Service::Unneeded);
    // But this one must have waited: its commit is not in the trace.
    assert_eq!(served(sync(5, 320, 330, 30, 29)).0, Service::Unserved);
    // Before the first commit nothing is guessed, even if one ends in time.
    assert_eq!(served(sync(5, 90, 210, 6, 5)).0, Service::Unserved);
    assert_eq!(served(sync(5, 90, 210, 0, 0)).0, Service::Unserved);
    // By number it is known nevertheless.
    assert_eq!(served(sync(5, 90, 210, 7, 6)), (Service::Commit(0), 1, 10));
}

#[test]
fn a_commit_publishes_its_number_before_it_ends() {
    let seen = |log_ns| {
        let commit = Span {
            marks_ns: [100, 100, log_ns],
            ..commit(7, 100, 200)
        };
        // The sync asked at 90 and returned at 195.
        let seen = observed(vec![commit, sync(5, 90, 195, 7, 6)]);
        seen.syncs[0].service
    };
    assert_eq!(seen(150), Service::Commit(0));
    // The sync returned before the log was written, or that moment is unknown: the commit did not
    // serve it.
    assert_eq!(seen(196), Service::Unserved);
    assert_eq!(seen(0), Service::Unserved);
}

#[test]
fn transaction_numbers_wrap_around() {
    let seen = observed(vec![
        commit(u32::MAX, 100, 200),
        commit(0, 200, 300),
        commit(1, 300, 400),
        sync(5, 90, 205, u32::MAX, u32::MAX - 1),
        sync(6, 110, 405, 1, u32::MAX - 1),
        sync(7, 310, 320, u32::MAX, 0),
    ]);
    let syncs = seen.syncs.iter().map(|s| (s.service, s.commits_waited));
    let (one, three) = ((Service::Commit(0), 1), (Service::Commit(2), 3));
    assert_eq!(
        syncs.collect::<Vec<_>>(),
        [one, three, (Service::Unneeded, 0)]
    );
}

/// Thread 5 writes from 100 to 200 and waits from 110 to 130 (buffer), 140 to 145 (locked), 150 to
/// 151 (space) and 160 to 190 (buffer); it writes from 300 to 310 without a wait.
#[test]
fn waits_belong_to_the_write_around_them() {
    use SpanKind::{Open, WaitBuffer, WaitLocked, WaitSpace, Write};

    let wait = |kind, pid, begin, end, within| Span {
        within,
        ..span(kind, pid, begin, end)
    };
    let seen = observed(vec![
        span(Write, 5, 100, 200),
        span(Write, 5, 300, 310),
        span(Write, 6, 100, 400),
        wait(WaitBuffer, 5, 110, 130, Write),
        wait(WaitLocked, 5, 140, 145, Write),
        wait(WaitSpace, 5, 150, 151, Write),
        wait(WaitBuffer, 5, 160, 190, Write),
        // Waits in an open, in no operation, in a write that is not in the trace, and in a write
        // that ended first.
        wait(WaitBuffer, 5, 220, 229, Open),
        wait(WaitLocked, 5, 230, 234, SpanKind::Task),
        wait(WaitBuffer, 7, 120, 121, Write),
        wait(WaitBuffer, 5, 305, 315, Write),
        // Another file system.
        Span {
            dev: luc_control::Dev::default(),
            ..wait(WaitBuffer, 5, 120, 130, Write)
        },
    ]);
    let waits = seen.writes.iter().map(|w| (w.pid, w.begin_ns, w.waits));
    let waits: Vec<_> = waits.collect();
    let all = Waits {
        buffer_waits: 2,
        buffer_ns: 50,
        locked_ns: 5,
        space_ns: 1,
    };
    assert!(waits.contains(&(5, 100, all)), "{waits:?}");
    assert!(waits.contains(&(6, 100, Waits::default())));
    let buffer = |waits, ns| Waits {
        buffer_waits: waits,
        buffer_ns: ns,
        ..Waits::default()
    };
    assert_eq!(seen.other_waits[&Open], buffer(1, 9));
    assert_eq!(seen.other_waits[&Write], buffer(2, 11));
    assert_eq!(seen.other_waits[&SpanKind::Task].locked_ns, 4);
    let table = seen.table();
    assert_eq!(
        (table.writes, table.writes_delayed, table.threads_blocked),
        (3, 1, 1)
    );
    assert!((table.writes_delayed_share - 1.0 / 3.0).abs() < 1e-12);
    assert!((table.write_delay_mean_ns - 50.0).abs() < 1e-12);
}

/// Two groups, by hand. Commit 7 runs from 100 to 180, commit 8 from 180 to 270.
///
/// Threads 11 and 12 ask at 90 and 95 and end at 182 and 184; 13 begins at
/// 105, has its data written at 110, asks, and ends at 273.
///
///   predicted: 11: 10 + 80 = 90       measured  92, off by 2/92
///              12:  5 + 80 = 85       measured  89, off by 4/89
///              13: 5 + 70 + 90 = 165  measured 168, off by 3/168
///
/// Each opens for 10 and closes for 4, so equation 3 is 9 / the sum of
/// 14 + T: 9 / (106 + 103 + 182) measured, 9 / (104 + 99 + 179) predicted.
#[test]
fn predicted_beside_measured_by_hand() {
    let mut spans = vec![commit(7, 100, 180), commit(8, 180, 270)];
    spans.push(sync(11, 90, 182, 7, 6));
    spans.push(sync(12, 95, 184, 7, 6));
    spans.push(Span {
        marks_ns: [105, 110, 0],
        ..sync(13, 105, 273, 8, 6)
    });
    for (pid, end_ns) in [(11, 182), (12, 184), (13, 273)] {
        spans.push(Span {
            flags: CREATED,
            ..span(SpanKind::Open, pid, 70, 80)
        });
        spans.push(span(SpanKind::Close, pid, end_ns, end_ns + 4));
    }
    let trace = Trace::from_spans(spans);
    let seen = Observed::from_trace(&trace, DEV);
    let model = fsync_model(&trace, &seen);
    let times = model
        .syncs
        .iter()
        .map(|s| (s.pid, s.predicted_ns, s.measured_ns));
    let want = [(11, 90, 92), (12, 85, 89), (13, 165, 168)];
    assert_eq!(times.collect::<Vec<_>>(), want);
    let commits = model
        .syncs
        .iter()
        .map(|s| (s.commits_predicted, s.commits_measured));
    assert_eq!(commits.collect::<Vec<_>>(), [(1, 1), (1, 1), (2, 2)]);
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9 * b;
    assert!(
        near(model.accuracy.error_median_share, 2.0 / 92.0),
        "{model:?}"
    );
    assert!(near(model.accuracy.error_p90_share, 4.0 / 89.0));
    assert!(near(model.accuracy.right_commit_share, 1.0));
    let rate = |times: [f64; 3]| 9e9 / times.iter().sum::<f64>();
    let creation = model.creation;
    assert_eq!(creation.threads, 3);
    assert!(near(creation.measured_per_s, rate([106.0, 103.0, 182.0])));
    assert!(near(creation.predicted_per_s, rate([104.0, 99.0, 179.0])));
    assert!(near(
        creation.fsync_only_measured_per_s,
        rate([92.0, 89.0, 168.0])
    ));
    assert!(near(
        creation.fsync_only_predicted_per_s,
        rate([90.0, 85.0, 165.0])
    ));
    let table = seen.table();
    // Delays 10, 5 and 70; commits waited 1, 1 and 2; one flush of 5.
    assert!(near(table.sync_delay_mean_ns, 85.0 / 3.0));
    assert!(near(table.commits_waited_mean, 4.0 / 3.0));
    assert!(near(table.two_commits_share, 1.0 / 3.0));
    assert!(near(table.sync_events_per_commit, 1.5));
    assert!(near(table.flush_mean_ns, 5.0 / 3.0));
}

/// On the little jbd2 every rule of the algorithm holds, except that it does not know the way back
/// to the thread.
#[test]
fn algorithm_4_1_on_a_loop() {
    let little = Little::default();
    let trace = little.trace();
    let seen = Observed::from_trace(&trace, DEV);
    assert_eq!(seen.table().syncs_unserved, 0);
    let model = fsync_model(&trace, &seen);
    // A sync can still join in the 2 us between start and lock.
    assert!(
        model.accuracy.right_commit_share > 0.98,
        "{}",
        model.accuracy.right_commit_share
    );
    for sync in model.syncs.iter().filter(|sync| sync.right_commit) {
        assert_eq!(
            sync.measured_ns - sync.predicted_ns,
            little.wake_ns,
            "{sync:?}"
        );
        assert_eq!(sync.commits_predicted, sync.commits_measured, "{sync:?}");
    }
    assert!(model.accuracy.error_p90_share < 0.01);
    let creation = model.creation;
    assert_eq!(creation.threads, 8);
    let off = creation.predicted_per_s / creation.measured_per_s;
    assert!((1.0..1.01).contains(&off), "{off}");
    // Two convoys: nearly all wait for two commits, and half of them share one.
    let table = seen.table();
    assert!((1.9..2.0).contains(&table.commits_waited_mean), "{table:?}");
    assert!(
        (3.5..4.5).contains(&table.sync_events_per_commit),
        "{table:?}"
    );
}

/// A sync with data joins its transaction when it is called, before its flush, so the algorithm is
/// right about its commit even if the sync asks while that commit runs.
#[test]
fn algorithm_4_1_begins_with_the_call() {
    let little = Little {
        flush_ns: 2 * MS,
        jitter_ns: 6 * MS,
        ..Little::default()
    };
    let trace = little.trace();
    let model = fsync_model(&trace, &Observed::from_trace(&trace, DEV));
    assert!(
        model.accuracy.right_commit_share > 0.98,
        "{}",
        model.accuracy.right_commit_share
    );
}

/// Three threads ask at 100, 110 and 120 for the commit from 200 to 1000. On one processor they go
/// on one after the other: each works for 10 until its sync ends, and for 10 to close the file.
#[test]
fn threads_released_together_wait_for_a_processor() {
    let mut spans = vec![commit(7, 50, 60), commit(8, 200, 1000)];
    for (place, pid) in [(0, 31), (1, 32), (2, 33)] {
        let end_ns = 1010 + 20 * place;
        spans.push(sync(pid, 100 + 10 * place, end_ns, 8, 7));
        spans.push(span(SpanKind::Close, pid, end_ns, end_ns + 10));
    }
    let model = |header: Header| {
        let trace = Trace {
            header,
            ..Trace::from_spans(spans.clone())
        };
        fsync_model(&trace, &Observed::from_trace(&trace, DEV))
    };
    let got = model(Header::default().with("cpus", "1"));
    let line = got
        .syncs
        .iter()
        .map(|sync| sync.amended_ns - sync.predicted_ns);
    assert_eq!(line.collect::<Vec<u64>>(), [10, 30, 50]);
    let (got, error) = (got.accuracy, got.accuracy.error_p90_share);
    assert!(error > 0.05 && got.amended_error_p90_share < 1e-9);
    // If the number of processors is unknown, no run queue is assumed.
    let unknown = model(Header::default()).accuracy;
    assert!((unknown.amended_error_p90_share - error).abs() < 1e-9);
}

/// Two syncs with data join transaction 8 at 100 and 101. One asks at 150, while their commit runs
/// from 120 to 200; the other asks at 230, when nothing is left to wait for. The published
/// algorithm ignores flushes.
#[test]
fn a_flush_may_outlast_the_commit() {
    let flushed = |pid, begin_ns, asked_ns, end_ns| Span {
        marks_ns: [begin_ns, asked_ns, 0],
        ..sync(pid, begin_ns, end_ns, 8, 7)
    };
    let trace = Trace::from_spans([
        commit(7, 50, 60),
        commit(8, 120, 200),
        flushed(31, 100, 150, 200),
        flushed(32, 101, 230, 233),
        commit(9, 400, 500),
    ]);
    let got = fsync_model(&trace, &Observed::from_trace(&trace, DEV));
    let amended = got.syncs.iter().map(|sync| sync.amended_ns);
    assert_eq!(amended.collect::<Vec<u64>>(), [100, 129]);
    let published = got.syncs.iter().map(|sync| sync.predicted_ns);
    assert_eq!(published.collect::<Vec<u64>>(), [100, 99]);
    assert!(got.accuracy.amended_right_commit_share > 0.99);
    assert!(got.accuracy.right_commit_share > 0.99);
}
