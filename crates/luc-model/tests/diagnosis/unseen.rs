//! Unseen events are never taken for absent ones.

use crate::common::{DEV, Little, MS};
use crate::help::half_committed;
use crate::text::check_text;
use crate::{SECOND, facts};
use luc_model::diagnosis::{Diagnosis, Facts, Help, Level, Relief, VerdictKind, diagnose, render};
use luc_model::{Observed, Quantities};
use luc_trace::{Sight, Span, SpanKind, Trace, Unseen};

/// Returns the trace as recorded by a tracer that cannot see these events.
fn blind(trace: &Trace, unseen: &[Sight]) -> Trace {
    let unseen: Unseen = unseen.iter().copied().collect();
    let mut blind = trace.clone();
    blind.spans.retain(|span| Sight::sees(&unseen, span.kind));
    if unseen.contains(&Sight::Flushes) {
        let syncs = blind.spans.iter_mut();
        for sync in syncs.filter(|span| span.kind.is_file_sync()) {
            sync.marks_ns = [0; 3];
        }
    }
    Trace { unseen, ..blind }
}

fn convoys() -> Trace {
    let little = Little {
        rounds: 1500,
        writes: 2,
        flush_ns: 2 * MS,
        ..Little::default()
    };
    little.trace()
}

fn judged(trace: &Trace, facts: &Facts) -> (Diagnosis, String) {
    let got = diagnose(trace, DEV, facts);
    check_text(&got);
    let text = render(&got);
    (got, text)
}

#[test]
fn with_tracepoints_alone_sync_delays_are_a_bound() {
    let trace = blind(&convoys(), &Sight::ALL);
    let (got, text) = judged(&trace, &facts());
    assert_eq!(got.verdicts[0].kind, VerdictKind::SyncDelays, "{text}");
    assert_eq!(got.confidence.level, Level::Low, "{text}");
    assert_eq!(got.luc_help, Help::Unknown, "{text}");
    // No less than if all events are seen.
    let all = diagnose(&convoys(), DEV, &facts());
    assert!(got.account.behind_ns >= all.account.behind_ns, "{text}");
    assert!(
        text.contains("for their data to be written: at most"),
        "{text}"
    );
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = words.join(" ");
    assert!(words.contains("% of the time in syncs LUC might"), "{text}");
    assert!(!text.contains("processes that lose time"), "{text}");
    assert!(!text.contains("alone would give"), "{text}");
    assert_eq!(text.matches("Not seen").count(), 1, "{text}");
    assert_eq!(got.next_command, None, "another look sees no more: {text}");
    assert!(got.processes.sufferers.is_none(), "{text}");
    assert_eq!(got.processes.causes[0].commits_asked, None, "{text}");
}

#[test]
fn quiet_is_not_sure_where_waits_are_unseen() {
    let watched = Facts {
        watched_ns: Some((SECOND, 16 * SECOND)),
        ..facts()
    };
    let trace = blind(&Trace::default(), &[Sight::WaitBuffer]);
    let (got, text) = judged(&trace, &watched);
    assert_eq!(got.verdicts[0].kind, VerdictKind::NoPressure, "{text}");
    assert_eq!(got.confidence.level, Level::Low, "{text}");
    assert!(text.contains("not all waits could be seen"), "{text}");
    assert!(!text.contains("No task waits"), "{text}");
}

#[test]
fn unseen_opens_cost_no_confidence() {
    let trace = blind(&convoys(), &[Sight::Opens, Sight::Closes]);
    let (got, text) = judged(&trace, &facts());
    assert_eq!(got.confidence.level, Level::High, "{text}");
    assert!(text.contains("Not seen: opens, closes."), "{text}");
    let trace = blind(&convoys(), &[Sight::WaitSpace]);
    let (got, text) = judged(&trace, &facts());
    assert_eq!(got.confidence.level, Level::Medium, "{text}");
}

/// The reasons are the same as when the load was recorded.
#[test]
fn reasons_are_those_of_the_tracer() {
    let why = "Not seen here: opens: this kernel has no kprobes.";
    let known = Facts {
        unseen_why: vec![why.into()],
        ..facts()
    };
    let trace = blind(&convoys(), &[Sight::Opens]);
    let (_, text) = judged(&trace, &known);
    assert!(text.contains(why) && !text.contains("Not seen: "), "{text}");
}

#[test]
fn luc_is_not_advised_where_it_cannot_run() {
    let why = "this kernel loads no modules";
    let barred = Facts {
        luc_obstacle: Some(why.into()),
        ..facts()
    };
    let (got, text) = judged(&Little::default().trace(), &barred);
    assert_eq!(got.luc_help, Help::Would, "{text}");
    assert_eq!(got.next_command, None, "{text}");
    let line = format!("LUC cannot run on this machine: {why}.");
    assert!(text.contains(&line), "{text}");
    assert_eq!(got.relief, Relief::Device, "{text}");
}

/// A caveat about the gain is not repeated under the confidence.
#[test]
fn caveats_stand_once() {
    let spans = half_committed();
    let trace = Trace {
        spans_lost: spans.len() as u64,
        ..Trace::from_spans(spans)
    };
    let (_, text) = judged(&trace, &facts());
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    for caveat in [
        "of the events were lost",
        "of the syncs is not in the trace",
    ] {
        assert_eq!(text.matches(caveat).count(), 1, "{caveat}: {text}");
    }
}

#[test]
fn quantities_of_a_ranking_are_missing() {
    let of = |unseen: &[Sight]| {
        let trace = blind(&convoys(), unseen);
        Quantities::from_observed(&Observed::from_trace(&trace, DEV), 1.0).values
    };
    let all = of(&[]);
    let blind = of(&Sight::ALL);
    for name in ["flush_mean_ns", "write_mean_ns", "writes_delayed_share"] {
        assert!(
            all.contains_key(name) && !blind.contains_key(name),
            "{name}"
        );
    }
    assert!(blind.contains_key("commit_mean_ns"));
}

/// A process gets the name of its main thread, and its control group.
#[test]
fn processes_have_one_name() {
    let task = |pid, name: &str, cgroup| Span {
        pid,
        tgid: 40,
        object: cgroup,
        ..Span::default().with_name(name)
    };
    let mut spans = convoys().spans;
    for span in spans
        .iter_mut()
        .filter(|span| span.kind != SpanKind::Commit)
    {
        span.tgid = 40;
    }
    let threads: Vec<u32> = spans.iter().map(|span| span.pid).collect();
    spans.extend(threads.iter().map(|pid| task(*pid, "worker", 8)));
    spans.push(task(40, "mailer", 7));
    let mut trace = Trace::from_spans(spans);
    trace
        .cgroups
        .insert(7, "/system.slice/mailer.service".into());
    let (got, text) = judged(&trace, &facts());
    let [cause] = &got.processes.causes[..] else {
        panic!("{text}");
    };
    assert_eq!(cause.name, "mailer");
    assert!(
        text.contains(", in /system.slice/mailer.service\n"),
        "{text}"
    );
}
