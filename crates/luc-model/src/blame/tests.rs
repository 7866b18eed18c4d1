//! Blame checked by hand.

use super::*;
use luc_control::Dev;
use luc_trace::{EARLIER, Span, Task, UNTIMED};

fn span_by(pid: u32, kind: SpanKind, begin_ns: u64, end_ns: u64) -> Span {
    Span {
        pid,
        tgid: pid,
        ..Span::new(kind, begin_ns, end_ns)
    }
}

fn commit(tid: u32, begin_ns: u64, end_ns: u64, marks_ns: [u64; 3]) -> Span {
    Span {
        tid,
        marks_ns,
        ..span_by(1, SpanKind::Commit, begin_ns, end_ns)
    }
}

/// A sync that waits for this transaction, after number 6 was committed.
fn sync(pid: u32, begin_ns: u64, end_ns: u64, tid: u32) -> Span {
    Span {
        tid,
        done_tid: 6,
        ..span_by(pid, SpanKind::Fsync, begin_ns, end_ns)
    }
}

fn write(pid: u32, begin_ns: u64, end_ns: u64, amount: i64) -> Span {
    Span {
        amount,
        ..span_by(pid, SpanKind::Write, begin_ns, end_ns)
    }
}

/// The spans, of tasks that have names and, except for `mail`, control groups.
fn trace(spans: impl IntoIterator<Item = Span>) -> Trace {
    let mut trace = Trace::from_spans(spans);
    for (pid, name, cgroup) in [
        (20, "dpkg", 1),
        (21, "tar", 1),
        (30, "etcd", 2),
        (40, "mail", 3),
    ] {
        let task = Task {
            name: name.into(),
            tgid: pid,
            cgroup,
        };
        trace.tasks.insert(pid, task);
    }
    let groups = [(1, "/unpack"), (2, "/k8s \"etcd\"\n")];
    let groups = groups.map(|(id, path)| (id, path.to_owned()));
    trace.cgroups.extend(groups);
    trace
}

fn blamed(trace: &Trace, by: By) -> Blame {
    blame(trace, &Observed::from_trace(trace, Dev::default()), by)
}

fn find<'a>(blame: &'a Blame, name: &str) -> &'a Waiter {
    let mut waiters = blame.waiters.iter();
    waiters.find(|it| it.name == name).expect("known")
}

fn shared() -> Trace {
    trace([
        commit(7, 100, 180, [100, 110, 120]),
        commit(8, 180, 280, [180, 190, 250]),
        sync(20, 90, 185, 7),
        sync(30, 110, 290, 8),
        write(20, 105, 106, 300),
        write(30, 107, 108, 100),
        write(40, 140, 210, 8),
        Span {
            within: SpanKind::Write,
            ..span_by(40, SpanKind::WaitBuffer, 150, 200)
        },
    ])
}

/// Commit 7 (100 to 180) is asked for by `dpkg`; commit 8 (180 to 280), which writes data from
/// 190 to 250, by `etcd` at 110. Before commit 8 is locked, `dpkg` writes 300 bytes and `etcd`
/// 100. A write of `mail` sleeps from 150 to 200: 30 for dpkg's commit, 20 for etcd's.
#[test]
fn waits_are_divided_by_hand() {
    let blamed = blamed(&shared(), By::Process);
    let etcd = find(&blamed, "etcd");
    assert_eq!((etcd.syncs, etcd.commits_asked), (1, 1));
    let by = &etcd.waited_for[0];
    assert_eq!(by.name.as_deref(), Some("dpkg"));
    assert_eq!(
        (by.time.commits_ns, by.time.data_ns, by.data_bytes),
        (70.0, 45.0, 300)
    );
    let error = etcd.sync_share(by) - 115.0 / 180.0;
    assert!(error.abs() < 1e-12, "{etcd:?}");
    assert_eq!(
        etcd.told(),
        [
            "etcd waited 63.9% of its sync time for commits that dpkg asked for and 300 bytes of \
          its data."
        ]
    );
    let mail = find(&blamed, "mail");
    let delays: Vec<_> = mail
        .waited_for
        .iter()
        .map(|by| (by.name.as_deref(), by.time.write_delay_ns))
        .chain([(None, mail.write_delay_ns)])
        .collect();
    assert_eq!(
        delays,
        [(Some("dpkg"), 30.0), (Some("etcd"), 20.0), (None, 50.0)]
    );
    // Its own commit comes first; nobody wrote data for it before.
    assert!(find(&blamed, "dpkg").waited_for.is_empty());
}

/// Times that follow each other count each sync, commit and wait once, wherever they meet.
#[test]
fn parts_of_the_time_add_up() {
    let trace = shared();
    let observed = Observed::from_trace(&trace, Dev::default());
    let sums = |ended_ns: &[RangeInclusive<u64>]| {
        let mut sums: BTreeMap<String, (u64, u64, f64)> = BTreeMap::new();
        for ended_ns in ended_ns {
            for waiter in blame_within(&trace, &observed, By::Process, ended_ns).waiters {
                let sum = sums.entry(waiter.name).or_default();
                sum.0 += waiter.syncs;
                sum.1 += waiter.commits_asked;
                sum.2 += waiter
                    .waited_for
                    .iter()
                    .map(WaitedFor::total_ns)
                    .sum::<f64>();
            }
        }
        sums
    };
    let whole = sums(&[0..=u64::MAX]);
    assert_eq!(whole["etcd"], (1, 1, 115.0));
    for cut in [99, 180, 185, 200, 279, 280, 290] {
        assert_eq!(sums(&[0..=cut, cut + 1..=u64::MAX]), whole, "{cut}");
    }
}

/// A commit of the timer belongs to nobody.
#[test]
fn the_timers_commits_have_no_name() {
    let commit = |tid, begin_ns, end_ns| Span {
        tid,
        ..Span::new(SpanKind::Commit, begin_ns, end_ns)
    };
    let sync = Span {
        pid: 20,
        tgid: 20,
        tid: 8,
        done_tid: 6,
        ..Span::new(SpanKind::Fsync, 50, 190)
    };
    let trace = Trace::from_spans([commit(7, 10, 100), commit(8, 100, 180), sync]);
    let blamed = blame(
        &trace,
        &Observed::from_trace(&trace, Dev::default()),
        By::Process,
    );
    let waiters = blamed.waiters;
    let by = &waiters[0].waited_for[0];
    assert_eq!((by.name.as_deref(), by.time.commits_ns), (None, 50.0));
}

/// Groups wait for groups: nobody waits for the other processes of its own.
#[test]
fn control_groups_are_blamed_as_a_whole() {
    let mut spans = shared().spans;
    // It waits for dpkg's commit, and then for etcd's.
    spans.push(sync(21, 120, 285, 8));
    let trace = trace(spans);
    let blamed = blamed(&trace, By::ControlGroup);
    let unpack = find(&blamed, "/unpack");
    assert_eq!((unpack.syncs, unpack.commits_asked), (2, 1));
    let for_others: Vec<_> = unpack
        .waited_for
        .iter()
        .map(|by| (by.name.as_deref(), by.time.commits_ns, by.time.data_ns))
        .collect();
    assert_eq!(for_others, [(Some("/k8s \"etcd\"?"), 0.0, 15.0)]);
    let etcd = find(&blamed, "/k8s \"etcd\"?");
    assert_eq!(
        etcd.told(),
        [
            "/k8s \"etcd\"? waited 63.9% of its sync time for commits that /unpack asked for and \
          300 bytes of its data."
        ]
    );
    let unknown = find(&blamed, UNKNOWN_GROUP);
    assert_eq!((unknown.syncs, unknown.write_delay_ns), (0, 50.0));
    let all = Commits {
        all: 2,
        unasked: 0,
        unknown: 0,
    };
    assert_eq!(blamed.commits, all);
}

/// The commits of `etcd`, `mail` and all, where a sync of `etcd` joins commit 7 (100 to 180).
fn asked(joins_ns: u64, more: Option<Span>) -> (u64, u64, Commits) {
    let commits = [
        commit(7, 100, 180, [100, 0, 0]),
        commit(8, 200, 210, [200, 0, 0]),
    ];
    let syncs = [sync(30, joins_ns, 185, 7), sync(30, 195, 215, 8)];
    let spans = commits.into_iter().chain(syncs).chain(more);
    let blamed = blamed(&trace(spans), By::Process);
    let of = |name: &str| {
        let mut waiters = blamed.waiters.iter();
        let waiter = waiters.find(|it| it.name == name);
        waiter.map_or(0, |it| it.commits_asked)
    };
    (of("etcd"), of("mail"), blamed.commits.clone())
}

#[test]
fn a_commit_belongs_to_the_first_that_asked_for_it() {
    let commits = |unasked, unknown| Commits {
        all: 2,
        unasked,
        unknown,
    };
    assert_eq!(asked(90, None), (2, 0, commits(0, 0)));
    // The timer started it, and the sync joins.
    assert_eq!(asked(120, None), (1, 0, commits(1, 0)));
    // A synchronous directory asked before.
    let untimed = Span {
        flags: UNTIMED,
        ..span_by(40, SpanKind::Sync, 80, 80)
    };
    assert_eq!(asked(90, Some(untimed)), (1, 1, commits(0, 0)));
    // A sync that began before the watch may have asked.
    let earlier = Span {
        flags: EARLIER,
        ..span_by(40, SpanKind::Fsync, 10, 181)
    };
    assert_eq!(asked(120, Some(earlier)), (1, 0, commits(0, 1)));
    assert_eq!(asked(90, Some(earlier)), (2, 0, commits(0, 0)));
}

#[test]
fn nobody_is_blamed_for_what_is_unknown() {
    let earlier = Span {
        flags: EARLIER,
        ..span_by(40, SpanKind::Fsync, 10, 181)
    };
    let trace = trace([
        commit(7, 100, 180, [100, 0, 0]),
        commit(8, 180, 200, [180, 0, 0]),
        sync(30, 120, 220, 8),
        earlier,
    ]);
    assert_eq!(
        find(&blamed(&trace, By::Process), "etcd").told(),
        [
            "etcd waited 60.0% of its sync time for commits of which it is unknown who asked for them."
        ]
    );
}

#[test]
fn each_commit_has_a_name_for_exports() {
    let trace = trace([
        commit(7, 100, 180, [100, 0, 0]),
        commit(8, 200, 210, [200, 0, 0]),
        commit(9, 300, 310, [300, 0, 0]),
        sync(40, 90, 185, 7),
        sync(20, 195, 215, 8),
    ]);
    let mut all = askers_of(&trace).into_iter();
    let dev = Dev::default();
    assert_eq!(all.next(), Some(((dev, 100), "mail".into())));
    assert_eq!(all.next(), Some(((dev, 200), "dpkg in /unpack".into())));
    assert_eq!(all.next(), Some(((dev, 300), "no sync".into())));
    assert_eq!(all.next(), None);
    let blind = Trace {
        unseen: [Sight::Flushes].into(),
        ..trace
    };
    assert_eq!(askers_of(&blind), Askers::new());
}
