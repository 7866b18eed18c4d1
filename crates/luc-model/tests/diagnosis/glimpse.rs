//! Diagnoses from the module's data alone.

use crate::common::{DEV, MS};
use crate::{SECOND, facts};
use luc_control::{Decision, Dev, Input, Reason, Step};
use luc_model::diagnosis::{
    Facts, Glimpse, Luc, ModuleCounts, Relief, ThreadWait, VerdictKind, glimpse, render_glimpse,
};
use luc_trace::{Event, Record};

/// Returns the records of `number` successive commits of 4 ms. `events` syncs wait for each; the
/// latest asked `asked_before_ns` before the commit opened.
fn commits(number: i64, events: i64, asked_before_ns: i64) -> Vec<Record> {
    let commit_ns = 4 * i64::try_from(MS).expect("small");
    let mut lines = Vec::new();
    for at in 1..=number {
        let now_ns = at * commit_ns;
        let input = Input {
            now_ns,
            events,
            last_event_ns: now_ns - asked_before_ns,
            commit_avg_ns: commit_ns,
            ..Input::default()
        };
        for step in [Step::Open, Step::Close] {
            let decision = Box::new(Decision {
                step: step.value(),
                input,
                ..Decision::default()
            });
            let (dev, tid) = (DEV, 1);
            lines.push(line(now_ns, Event::Decision { dev, tid, decision }));
        }
        lines.push(line(
            now_ns,
            Event::Commit {
                dev: DEV,
                tid: 1,
                events,
                setpoint_events: 1,
                held_ns: 0,
                reason: Reason::Now,
                steer: false,
            },
        ));
    }
    lines
}

fn line(time_ns: i64, event: Event) -> Record {
    Record {
        task: "jbd2".into(),
        pid: 1,
        cpu: 0,
        time_ns: u64::try_from(time_ns).expect("after the boot"),
        event,
    }
}

fn judged(lines: &[Record]) -> Glimpse {
    judged_with(lines, &facts())
}

fn judged_with(lines: &[Record], facts: &Facts) -> Glimpse {
    glimpse(
        ModuleCounts::from_lines(lines, DEV),
        Some(lines),
        DEV,
        facts,
    )
}

/// The larger cost comes first.
#[test]
fn writers_delayed_beside_convoys() {
    let lines = commits(500, 2, 4_000_000 - 10_000);
    let of = |write_delay_ns: u64| {
        let counts = ModuleCounts {
            handles: Some(1000),
            writes_delayed: Some(300),
            write_delay_ns: Some(write_delay_ns),
            ..ModuleCounts::from_lines(&lines, DEV)
        };
        glimpse(counts, Some(&lines), DEV, &facts()).kinds
    };
    let both = [VerdictKind::SyncDelays, VerdictKind::WriteDelays];
    assert_eq!(of(SECOND), both);
    assert_eq!(of(100 * SECOND), [both[1], both[0]]);
}

/// A sync that asked 4 ms before its commit of 4 ms opened spends half of its time waiting for
/// others.
#[test]
fn convoys_are_bounded_from_both_sides() {
    let got = judged(&commits(500, 2, 4_000_000 - 10_000));
    let text = render_glimpse(&got);
    assert_eq!(got.kinds, [VerdictKind::SyncDelays], "{text}");
    let behind = got.behind.expect("there are records");
    assert_eq!((behind.commits, behind.events), (499, 998), "{text}");
    assert!(behind.low_ns <= behind.high_ns, "{behind:?}");
    let share = behind.low_ns / (behind.low_ns + behind.own_ns);
    assert!((0.49..0.50).contains(&share), "{text}");
    assert_eq!(got.luc, Luc::Observing, "{text}");
    assert_eq!(
        got.next_command.as_deref(),
        Some("luc set /srv/data mode steer")
    );
    for part in [
        "/srv/data: syncs wait for the commits of others, as far as LUC's module can tell\n",
        "to its end, 50% passes before the commit begins.",
        "not known without tracing:\n    how long syncs write their data",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

/// One sync at a time starts its commit at once: the moment is known exactly.
#[test]
fn a_lone_thread_waits_for_its_own_commit() {
    let got = judged(&commits(500, 1, 20_000));
    let text = render_glimpse(&got);
    assert_eq!(got.kinds, [VerdictKind::Device], "{text}");
    assert_eq!(got.next_command, None, "{text}");
}

#[test]
fn a_lone_thread_whose_journal_waits_for_a_processor() {
    let lines = commits(500, 1, 20_000);
    let judged = |waited_share| {
        let facts = Facts {
            journal_thread: Some(ThreadWait {
                pid: 20,
                waited_share,
                ran_share: 0.05,
            }),
            ..facts()
        };
        judged_with(&lines, &facts)
    };
    let got = judged(0.7);
    let text = render_glimpse(&got);
    assert_eq!(got.kinds, [VerdictKind::Processor], "{text}");
    assert_eq!(got.relief, Relief::Other);
    assert!(
        text.contains("waits for a processor for 70% of a commit"),
        "{text}"
    );
    let got = judged(0.3);
    assert_eq!(got.kinds, [VerdictKind::Device]);
    assert_eq!(got.relief, Relief::Device);
}

/// Among several syncs only the latest one's moment is known, so either verdict may be right.
#[test]
fn unknown_delays_are_not_guessed() {
    let lines = commits(500, 4, 20_000);
    let got = judged(&lines);
    let text = render_glimpse(&got);
    assert_eq!(got.kinds, [VerdictKind::Unclear], "{text}");
    assert!(text.contains("they may"), "{text}");
    let bounds = "between 0.5% and 43% pass before";
    assert!(text.contains(bounds), "{text}");
    assert_eq!(got.relief, Relief::None);
    // Without the records not even that is known.
    let got = glimpse(ModuleCounts::from_lines(&lines, DEV), None, DEV, &facts());
    assert_eq!(got.kinds, [VerdictKind::Unclear]);
    assert_eq!(got.behind, None);
}

#[test]
fn writes_that_are_delayed_and_quiet_journals() {
    let counts = ModuleCounts {
        duration_ns: 5 * SECOND,
        commits: Some(600),
        sync_events: Some(600),
        handles: Some(10_000),
        writes_delayed: Some(2000),
        write_delay_ns: Some(8 * SECOND),
        commit_avg_ns: Some(8 * MS),
    };
    let steering = Facts {
        luc: Some(Luc::Steering),
        ..facts()
    };
    let got = glimpse(counts, Some(&commits(600, 1, 10_000)), DEV, &steering);
    let text = render_glimpse(&got);
    assert_eq!(got.kinds[0], VerdictKind::WriteDelays, "{text}");
    assert!(
        text.contains("20% of the changes of metadata wait"),
        "{text}"
    );
    assert_eq!(got.next_command.as_deref(), Some("luc status /srv/data"));

    let quiet = ModuleCounts {
        commits: Some(3),
        sync_events: Some(2),
        writes_delayed: Some(0),
        write_delay_ns: Some(0),
        ..counts
    };
    let got = glimpse(quiet, Some(&[]), DEV, &facts());
    assert_eq!(got.kinds, [VerdictKind::NoPressure]);
    assert_eq!(got.relief, Relief::None);
    assert!(render_glimpse(&got).ends_with("from 5.00 s with 3 commits\n"));
}

/// The text gives no number for an event that did not happen, and the singular for one thing.
#[test]
fn small_counts_have_words() {
    let of = |counts: ModuleCounts| {
        let text = render_glimpse(&glimpse(counts, Some(&[]), DEV, &facts()));
        crate::text::check_words(&text);
        text
    };
    let nothing = ModuleCounts {
        duration_ns: SECOND,
        ..ModuleCounts::from_lines(&[], DEV)
    };
    let text = of(nothing);
    assert!(text.contains("\n  No sync waits for a commit.\n"), "{text}");
    let of_timer = ModuleCounts {
        commits: Some(1),
        commit_avg_ns: Some(MS),
        ..nothing
    };
    let text = of(of_timer);
    let said = "No sync waits for a commit; a commit takes 1.00 ms on average.";
    assert!(text.contains(said), "{text}");
    assert!(text.ends_with("from 1.00 s with 1 commit\n"), "{text}");
    // A recording in which nothing was copied out has these counts.
    let delayed = ModuleCounts {
        writes_delayed: Some(1),
        write_delay_ns: Some(30 * MS),
        ..of_timer
    };
    let text = of(delayed);
    let said = "1 change of metadata waits for a commit that is writing it, 30.0 ms each";
    assert!(text.contains(said), "{text}");
}

/// A missing counter is not a counter of 0.
#[test]
fn missing_counters_are_unknown() {
    let lines = commits(500, 2, 4_000_000 - 10_000);
    let counts = ModuleCounts {
        write_delay_ns: None,
        commit_avg_ns: None,
        ..ModuleCounts::from_lines(&lines, DEV)
    };
    let got = glimpse(counts, None, DEV, &facts());
    let text = render_glimpse(&got);
    // With a commit time of 0 no sync would wait.
    assert_eq!(got.kinds, [VerdictKind::Unclear], "{text}");
    assert!(text.contains("whether writes wait for commits"), "{text}");
    assert!(!text.contains("on average"), "{text}");
    let nothing = ModuleCounts {
        duration_ns: SECOND,
        ..ModuleCounts::default()
    };
    let nothing = glimpse(nothing, None, DEV, &facts());
    let text = render_glimpse(&nothing);
    assert_eq!(nothing.kinds, [VerdictKind::Unclear], "{text}");
    assert!(nothing.evidence.is_empty(), "{text}");
    assert!(
        text.starts_with("/srv/data: the cause of the syncs' waits is unknown, "),
        "{text}"
    );
    assert!(text.ends_with("from 1.00 s\n"), "{text}");
}

/// Lines of another file system, lost lines, and clocks that run backwards.
#[test]
fn nonsense_is_taken() {
    let other = Dev { major: 1, minor: 2 };
    let lines = commits(100, 1, 10_000);
    let got = glimpse(
        ModuleCounts::from_lines(&lines, other),
        Some(&lines),
        other,
        &facts(),
    );
    assert_eq!(got.kinds, [VerdictKind::NoPressure]);
    assert_eq!(got.counts.commits, Some(0));
    let mut lines = commits(100, 3, -10_000);
    lines.insert(150, Record::lost(0, None));
    lines.reverse();
    let got = judged(&lines);
    let behind = got.behind.expect("there are records");
    assert!(behind.low_ns >= 0.0 && behind.low_ns <= behind.high_ns);
    render_glimpse(&got);
}

/// The module counts syncs that full commits serve; others may wait for long.
#[test]
fn fast_commits_are_no_quiet() {
    let lines = commits(20, 0, 0);
    let judged = |fast_commit, fast_commits| {
        let facts = Facts {
            fast_commit,
            fast_commits,
            ..facts()
        };
        judged_with(&lines, &facts)
    };
    let quiet = judged(Some(false), Some(0));
    assert_eq!(quiet.kinds, [VerdictKind::NoPressure]);
    let fast = judged(Some(true), Some(180));
    assert_eq!(fast.kinds, [VerdictKind::Unclear]);
    let told = "how long syncs waited for 180 fast commits, 90% of all commits";
    assert!(fast.unknown.iter().any(|it| it == told), "{fast:?}");
    let unknown = judged(Some(true), None).unknown.join("; ");
    assert!(unknown.contains("how many fast commits"), "{unknown}");
}
