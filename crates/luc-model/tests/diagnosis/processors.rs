//! Syncs that wait for a processor.

use crate::common::{DEV, Little, MS};
use crate::facts;
use crate::text::check_text;
use luc_model::diagnosis::{
    Busiest, CpuLimit, Diagnosis, Facts, Relief, ThreadWait, VerdictKind, diagnose, render,
};
use luc_trace::{Task, Trace};

/// One thread of `app` in `/low/app` that syncs, and where it waits, for its own commits only.
fn judge(wake_ns: u64, facts: &Facts) -> Diagnosis {
    let little = Little {
        threads: 1,
        rounds: 500,
        wake_ns,
        ..Little::default()
    };
    let mut trace = Trace::from_spans(little.spans());
    let threads: Vec<(u32, u32)> = trace.on(DEV).map(|span| (span.pid, span.tgid)).collect();
    for (pid, tgid) in threads {
        let task = Task {
            name: "app".into(),
            tgid,
            cgroup: 7,
        };
        trace.tasks.insert(pid, task);
    }
    trace.cgroups.insert(7, "/low/app".into());
    let got = diagnose(&trace, DEV, facts);
    check_text(&got);
    got
}

fn busiest(name: &str, cgroup: &str, used_share: f64) -> Busiest {
    Busiest {
        name: name.into(),
        cgroup: Some(cgroup.into()),
        used_share,
    }
}

/// The facts of a machine where the journal's thread waits for this share of the time.
fn waiting(waited_share: f64) -> Facts {
    let thread = ThreadWait {
        pid: 20,
        waited_share,
        ran_share: 0.05,
    };
    Facts {
        journal_thread: Some(thread),
        processors_busy_share: Some(1.0),
        busiest: Some(busiest("cc1", "/build", 0.9)),
        ..facts()
    }
}

#[test]
fn a_journal_without_a_processor_needs_no_faster_disk() {
    let got = judge(0, &waiting(0.9));
    let text = render(&got);
    let shown = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(got.verdicts[0].kind, VerdictKind::Processor, "{text}");
    assert!(!got.has(VerdictKind::Device), "{text}");
    assert_eq!(got.relief, Relief::Other, "{text}");
    for told in [
        "cc1 in /build uses 90% of the processors' busy time: lower its weight",
        "`renice -n -20 -p 20`",
        "The journal's thread waits for a processor for 9",
    ] {
        assert!(shown.contains(told), "{told}: {text}");
    }
    assert!(!text.contains("power-loss"), "{text}");
    // The disk is what most of a commit waits for, or nothing is known about the processors.
    for facts in [waiting(0.3), facts()] {
        let got = judge(0, &facts);
        assert_eq!(got.verdicts[0].kind, VerdictKind::Device, "{got:?}");
        assert!(!render(&got).contains("processor"), "{}", render(&got));
        assert_eq!(got.relief, Relief::Device);
    }
}

#[test]
fn who_syncs_is_not_told_to_make_room_for_itself() {
    let advice = |busiest| {
        let facts = Facts {
            busiest,
            ..waiting(0.9)
        };
        judge(0, &facts).advice.join(" ")
    };
    let own = advice(Some(busiest("app", "/low/app", 0.6)));
    assert!(own.contains("and syncs, too: it needs more"), "{own}");
    let other = advice(Some(busiest("app", "/other", 0.6)));
    assert!(other.contains("app in /other uses 60%"), "{other}");
    assert!(other.contains("lower its weight"), "{other}");
    for nobody in [None, Some(busiest("cc1", "/build", 0.1))] {
        let advice = advice(nobody);
        assert!(advice.contains("take load off them"), "{advice}");
    }
}

#[test]
fn tasks_that_come_back_late_wait_for_a_processor_if_none_is_free() {
    let limit = |of: &str, throttled_share| CpuLimit {
        of: of.into(),
        setting: "5000 100000".into(),
        throttled_share,
    };
    let late = |cpu_limits, busy_share| {
        let facts = Facts {
            cpu_limits,
            processors_busy_share: busy_share,
            busiest: Some(busiest("cc1", "/build", 0.9)),
            ..facts()
        };
        judge(100 * MS, &facts)
    };
    let got = late(vec![limit("/low", 0.9)], Some(0.1));
    let text = render(&got);
    assert_eq!(got.verdicts[0].kind, VerdictKind::Processor, "{text}");
    assert_eq!(got.relief, Relief::Other, "{text}");
    let raise = "Control group /low used all of its cpu.max (5000 100000) in 90% of the periods";
    assert_eq!(got.advice.len(), 1, "{text}");
    assert!(got.advice[0].starts_with(raise), "{text}");
    // It is unknown how long the journal's thread waited.
    assert!(!text.contains("journal's thread"), "{text}");
    // The journal's thread has no processor either.
    let both = Facts {
        cpu_limits: vec![limit("/low", 0.9)],
        ..waiting(0.9)
    };
    let advice = judge(100 * MS, &both).advice.join(" ");
    assert!(advice.contains(raise), "{advice}");
    assert!(advice.contains("cc1 in /build"), "{advice}");
    let got = late(Vec::new(), Some(0.95));
    assert_eq!(got.verdicts[0].kind, VerdictKind::Processor, "{got:?}");
    assert!(got.advice[0].starts_with("cc1 in /build"), "{got:?}");
    // A group without these tasks, one that is seldom held up, free processors, nothing known.
    for (limits, busy_share) in [
        (vec![limit("/lower", 0.9)], Some(0.1)),
        (vec![limit("/low", 0.2)], Some(0.1)),
        (Vec::new(), Some(0.3)),
        (Vec::new(), None),
    ] {
        let got = late(limits, busy_share);
        assert!(!got.has(VerdictKind::Processor), "{got:?}");
    }
}
