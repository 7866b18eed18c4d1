//! Cases that are easily overlooked: syncs that were seen in part or not at all, limits on I/O, and
//! processes whose time is a small part of all.

use crate::common::{DEV, Little, MS, span};
use crate::text::check_text;
use crate::{SECOND, facts};
use luc_model::diagnosis::{
    BusyArray, Diagnosis, DiskWork, Facts, HinderingDevice, IoLimit, Level, Limiter, Relief,
    VerdictKind, Work, diagnose, render,
};
use luc_trace::{EARLIER, Span, SpanKind, Task, Trace, UNFINISHED, UNTIMED};

fn watched() -> Facts {
    Facts {
        watched_ns: Some((10 * SECOND, 18 * SECOND)),
        ..facts()
    }
}

fn partial(begin_ns: u64, end_ns: u64, flags: u32) -> Span {
    Span {
        flags,
        ..span(SpanKind::Fsync, 100, begin_ns, end_ns)
    }
}

fn first_line(got: &Diagnosis) -> String {
    check_text(got);
    render(got).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_sync_that_does_not_end_is_told() {
    let whole_watch = partial(6 * SECOND, 18 * SECOND, EARLIER | UNFINISHED);
    let mut waits = watched();
    waits
        .sync_waits
        .insert(100, "its data to be written".into());
    let got = diagnose(&Trace::from_spans([whole_watch]), DEV, &waits);
    assert_eq!(got.verdicts[0].kind, VerdictKind::LastingSyncs);
    assert_eq!(got.relief, Relief::Device);
    let line = "/srv/data: 1 sync has been waiting for at least 12.0 s";
    assert_eq!(first_line(&got), line);
    let text = render(&got)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        text.contains("waiting for its data to be written."),
        "{text}"
    );
    // One that began before the watch and ended in it.
    let ended = partial(SECOND, 12 * SECOND, EARLIER);
    let got = diagnose(&Trace::from_spans([ended]), DEV, &watched());
    assert_eq!(first_line(&got), "/srv/data: a sync took at least 11.0 s");
}

#[test]
fn syncs_that_happen_to_go_on_change_nothing() {
    let short = partial(18 * SECOND - 900 * MS, 18 * SECOND, UNFINISHED);
    let got = diagnose(&Trace::from_spans([short]), DEV, &watched());
    assert_eq!(got.verdicts[0].kind, VerdictKind::NoPressure, "{got:?}");
    // As long as the others on a disk that takes long.
    let slow = |begin_ns, end_ns| span(SpanKind::Fsync, 100, begin_ns, end_ns);
    let usual = [
        slow(10 * SECOND, 13 * SECOND),
        slow(13 * SECOND, 16 * SECOND),
    ];
    let last = partial(16 * SECOND, 18 * SECOND, UNFINISHED);
    let got = diagnose(
        &Trace::from_spans(usual.into_iter().chain([last])),
        DEV,
        &watched(),
    );
    assert!(!got.has(VerdictKind::LastingSyncs), "{got:?}");
    // A busy load has the same numbers with and without them.
    let busy = Little::default().spans();
    let end_ns = busy.iter().map(|span| span.end_ns).max().unwrap_or(0);
    let without = diagnose(&Trace::from_spans(busy.clone()), DEV, &facts());
    let last = partial(end_ns - MS, end_ns, UNFINISHED);
    let with = diagnose(
        &Trace::from_spans(busy.into_iter().chain([last])),
        DEV,
        &facts(),
    );
    assert_eq!(with.account, without.account);
    assert_eq!(with.verdicts, without.verdicts);
}

/// 20 syncs, which write data all the time, by a process in `/low/app`.
fn data_bound() -> Trace {
    let syncs = (0..20).map(|number| {
        let begin_ns = 10 * SECOND + number * 400 * MS;
        let end_ns = begin_ns + 390 * MS;
        Span {
            marks_ns: [begin_ns, end_ns - MS, 0],
            tgid: 100,
            ..span(SpanKind::Fsync, 100, begin_ns, end_ns)
        }
    });
    let mut trace = Trace::from_spans(syncs);
    let task = Task {
        name: "app".into(),
        tgid: 100,
        cgroup: 7,
    };
    trace.tasks.insert(100, task);
    trace.cgroups.insert(7, "/low/app".into());
    trace
}

/// The diagnosis of syncs that wait for data, with a limit on I/O.
fn limited(limit: IoLimit) -> Diagnosis {
    let facts = Facts {
        io_limits: vec![limit],
        ..watched()
    };
    let got = diagnose(&data_bound(), DEV, &facts);
    check_text(&got);
    assert_eq!(got.verdicts[0].kind, VerdictKind::DataFlush, "{got:?}");
    got
}

#[test]
fn a_limit_that_is_reached_is_the_remedy() {
    let advice = |cgroup: &str, used_share| {
        let limit = IoLimit {
            by: Limiter::Max,
            of: cgroup.into(),
            setting: "wbps=2097152".into(),
            used_share,
        };
        let got = limited(limit);
        assert_eq!(got.relief, Relief::Other);
        got.advice.join(" ")
    };
    assert_eq!(
        advice("/low", 0.97),
        "Raise wbps in io.max of /low, or let it write less."
    );
    let faster = "take a faster disk";
    for (cgroup, used_share) in [("/low", 0.5), ("/lower", 0.97), ("/low/app/other", 0.97)] {
        let free = advice(cgroup, used_share);
        assert!(free.contains(faster), "{cgroup} {used_share}: {free}");
    }
}

/// As a limit of its own, a group's stalls in favour of others are the remedy; a stall that is
/// short is not.
#[test]
fn stalls_in_favour_of_others_are_named() {
    let judged = |by: &Limiter, setting: &str, used_share| {
        let limit = IoLimit {
            by: by.clone(),
            of: "/low".into(),
            setting: setting.into(),
            used_share,
        };
        let got = limited(limit);
        let evidence = got.verdicts[0].evidence.last().map(|it| it.text.clone());
        (evidence.unwrap_or_default(), got.advice.join(" "))
    };
    let latency = Limiter::Latency {
        favoured: "/db".into(),
    };
    let stalls = "Control group /low stalls on I/O for 93% of the time, while ";
    assert_eq!(
        judged(&latency, "target=10000", 0.93),
        (
            format!("{stalls}/db has io.latency target=10000 and is served first."),
            "Raise the target in io.latency of /db.".into()
        )
    );
    assert_eq!(
        judged(&Limiter::Weight, "10", 0.93),
        (
            format!("{stalls}io.cost gives it io.weight 10, less than others."),
            "Raise io.weight of /low.".into()
        )
    );
    for by in [latency, Limiter::Weight] {
        let (_, advice) = judged(&by, "10", 0.4);
        assert!(advice.contains("take a faster disk"), "{advice}");
    }
}

#[test]
fn a_device_that_hinders_requests_is_named() {
    let judged = |by, delay_ns| {
        let device = HinderingDevice {
            node: "/dev/mapper/slow".into(),
            by,
            delay_ns,
        };
        let facts = Facts {
            hindering_devices: vec![device],
            ..watched()
        };
        let got = diagnose(&data_bound(), DEV, &facts);
        check_text(&got);
        (render(&got), got.advice.join(" "))
    };
    // Each sync takes 390 ms.
    let (text, advice) = judged(Limiter::Delay, Some(195 * MS));
    let words: Vec<&str> = text.split_whitespace().collect();
    let told = "Device /dev/mapper/slow delays requests by 195 ms (dm-delay), at least 50% of the";
    assert!(words.join(" ").contains(told), "{text}");
    assert!(!advice.contains("faster disk"), "{advice}");
    assert!(advice.contains("the table of /dev/mapper/slow"), "{advice}");
    let (_, advice) = judged(Limiter::Delay, Some(20 * MS));
    assert!(advice.contains("take a faster disk"), "{advice}");
    for (by, told) in [
        (Limiter::NoPath, "Bring back a path of /dev/mapper/slow; "),
        (Limiter::NoSpace, "Extend the thin pool /dev/mapper/slow, "),
    ] {
        let (_, advice) = judged(by, None);
        assert!(advice.contains(told), "{advice}");
        assert!(!advice.contains("faster disk"), "{advice}");
    }
    let device = |by| Facts {
        hindering_devices: vec![HinderingDevice {
            node: "/dev/mapper/slow".into(),
            by,
            delay_ns: None,
        }],
        ..watched()
    };
    // All tasks hang in reads: none syncs.
    let got = diagnose(&Trace::default(), DEV, &device(Limiter::NoPath));
    assert_eq!(got.verdicts[0].kind, VerdictKind::NoPressure);
    assert_eq!((got.relief, got.advice.len()), (Relief::Other, 1));
    check_text(&got);
}

#[test]
fn an_array_that_is_checked_is_named() {
    let judged = |action: &str| {
        let array = BusyArray {
            node: "/dev/md0".into(),
            action: action.into(),
        };
        let facts = Facts {
            busy_arrays: vec![array],
            ..watched()
        };
        let got = diagnose(&data_bound(), DEV, &facts);
        check_text(&got);
        assert_eq!(got.relief, Relief::Other);
        got.advice.join(" ")
    };
    let advice = judged("check");
    assert!(
        advice.contains("Array /dev/md0 is being checked, "),
        "{advice}"
    );
    assert!(advice.contains("/sys/block/md0/md/"), "{advice}");
    assert!(judged("reshape").contains("is being changed, "));
}

#[test]
fn requests_that_keep_the_disk_busy_are_named() {
    let judged = |work, in_progress_mean: f64, by: Option<&str>, options: &str| {
        let work = DiskWork {
            work,
            node: "/dev/vdb".into(),
            in_progress_mean,
            requests_per_s: 1234.0,
            bytes_per_s: 1_048_576.0,
            by: by.map(Into::into),
        };
        let facts = Facts {
            disk_work: vec![work],
            mount_options: Some(options.into()),
            ..watched()
        };
        let got = diagnose(&data_bound(), DEV, &facts);
        check_text(&got);
        (got.disk_work.len(), got.advice.join(" "), got.relief)
    };
    let syncer = diagnose(&data_bound(), DEV, &watched()).processes.causes[0]
        .name
        .clone();
    for (work, by, options, told) in [
        (
            Work::Reads,
            Some("tar"),
            "rw",
            "Let tar read at another time",
        ),
        (
            Work::Reads,
            None,
            "rw",
            "Something reads from /dev/vdb, 1 MiB per second in 1,234 requests",
        ),
        (
            Work::Reads,
            Some(&*syncer),
            "rw",
            "More memory for its cache saves reads.",
        ),
        (Work::Discards, None, "rw,discard", "Mount without discard"),
        (Work::Discards, None, "rw", "let fstrim run at a quiet time"),
        (
            Work::Others,
            Some("/dev/vdc2"),
            "rw",
            "this file system, mostly /dev/vdc2, 1 MiB",
        ),
        (
            Work::Others,
            None,
            "rw",
            "others than this file system, 1 MiB",
        ),
    ] {
        let (busy, advice, relief) = judged(work, 0.5, by, options);
        assert!(advice.contains(told), "{advice}");
        assert_eq!((busy, relief), (1, Relief::Other));
        let (busy, advice, _) = judged(work, 0.1, by, options);
        assert!(!advice.contains("/dev/vdb"), "{advice}");
        assert_eq!(busy, 0);
    }
}

#[test]
fn waits_without_syncs_are_told() {
    let waits = |count: u64| {
        let times = (0..count).map(|number| 10 * SECOND + number * 8 * SECOND / count);
        Trace::from_spans(times.map(|ns| Span {
            flags: UNTIMED,
            ..span(SpanKind::Sync, 100, ns, ns)
        }))
    };
    let got = diagnose(&waits(800), DEV, &watched());
    assert_eq!(got.verdicts[0].kind, VerdictKind::Unclear, "{got:?}");
    assert_eq!(got.confidence.level, Level::Low);
    assert_eq!(got.untimed.count, 800);
    let told = got.confidence.reasons.join(" ");
    assert!(
        told.contains("800 operations that wait for a commit"),
        "{told}"
    );
    check_text(&got);
    let rare = diagnose(&waits(8), DEV, &watched());
    assert_eq!(rare.verdicts[0].kind, VerdictKind::NoPressure);
    assert_eq!(rare.confidence.level, Level::Low);
}

#[test]
fn bulk_copying_hides_no_process() {
    let load = Little {
        rounds: 1500,
        ..Little::default()
    };
    let alone = diagnose(&load.trace(), DEV, &facts());
    assert_eq!(alone.verdicts[0].kind, VerdictKind::SyncDelays);
    // Beside it, another process syncs large files, whose data takes nearly all the time.
    let mut spans = load.spans();
    let first_ns = spans.iter().map(|span| span.begin_ns).min().unwrap_or(0);
    let last_ns = spans.iter().map(|span| span.end_ns).max().unwrap_or(0);
    for thread in 0..100 {
        let begin_ns = first_ns + thread * MS;
        spans.push(Span {
            marks_ns: [begin_ns, last_ns - MS, 0],
            tgid: 9000,
            ..span(
                SpanKind::Fsync,
                9000 + u32::try_from(thread).unwrap(),
                begin_ns,
                last_ns,
            )
        });
    }
    let got = diagnose(&Trace::from_spans(spans), DEV, &facts());
    check_text(&got);
    assert_eq!(
        got.verdicts[0].kind,
        VerdictKind::DataFlush,
        "{}",
        render(&got)
    );
    let process = got
        .verdicts
        .iter()
        .find(|it| it.kind == VerdictKind::SyncDelays);
    let process = process.unwrap_or_else(|| panic!("{}", render(&got)));
    assert!(process.process.is_some());
    let share = process.cost_share.value - alone.verdicts[0].cost_share.value;
    assert!(share.abs() < 0.02, "{}", render(&got));
}
