//! The replay against traces whose other rule can be run for real.

mod common;

use common::{DEV, Little, MS, Start, US, commit, operations_per_s, span};
use luc_model::{Observed, Rule, WhatIf, WhatIfError, what_if};
use luc_trace::{Header, Span, SpanKind, Trace};

fn ask(trace: &Trace, rules: &[Rule]) -> WhatIf {
    what_if(trace, &Observed::of(trace, DEV), rules).unwrap()
}

fn off(got: f64, want: f64) -> f64 {
    (got - want).abs() / want
}

/// Workloads that differ in what decides the grouping.
fn workloads() -> Vec<(&'static str, Little)> {
    let threads = |threads| Little {
        threads,
        ..Little::default()
    };
    let flushing = |number, flush_ns, jitter_ns| Little {
        jitter_ns,
        flush_ns,
        ..threads(number)
    };
    let slower = Little {
        commit_per_sync_ns: 10 * US,
        ..threads(48)
    };
    let thinking = Little {
        think_ns: 3 * MS,
        jitter_ns: 4 * MS,
        ..threads(6)
    };
    let waiting = Little {
        writes: 5,
        wait_ns: 700 * US,
        ..threads(8)
    };
    let wrapping = Little {
        first_tid: u32::MAX - 100,
        ..threads(8)
    };
    let mut workloads = vec![
        ("two convoys", threads(8)),
        ("many threads, larger commits are slower", slower),
        ("thinking takes as long as a commit", thinking),
        ("data joins early", flushing(16, 1500 * US, 60 * US)),
        (
            "many ask while their commit runs",
            flushing(16, 2 * MS, 9 * MS),
        ),
        (
            "data takes longer than a commit",
            flushing(5, 6 * MS, 4 * MS),
        ),
        ("writes that wait", waiting),
        ("one thread", threads(1)),
        ("transaction numbers wrap around", wrapping),
    ];
    for (seed, (_, little)) in (1..).zip(&mut workloads) {
        little.seed = seed;
    }
    workloads
}

#[test]
fn stock_reproduces_its_trace() {
    for (name, little) in workloads() {
        let trace = little.trace();
        let got = ask(&trace, &[Rule::Stock]);
        let want = operations_per_s(&trace);
        assert!(off(got.measured.operations_per_s, want) < 1e-9, "{name}");
        let stock = got.stock.rates;
        assert!(got.stock_error_share < 0.02, "{name}: {got:?}");
        assert!(off(stock.operations_per_s, want) < 0.02, "{name}: {got:?}");
        let measured = got.measured.sync;
        assert!(
            off(stock.sync.mean_ns, measured.mean_ns) < 0.04,
            "{name}: {got:?}"
        );
        assert!(
            off(stock.commits_per_s, got.measured.commits_per_s) < 0.04,
            "{name}: {got:?}"
        );
        assert_eq!(got.predictions[0], got.stock, "{name}");
        assert_eq!(got.stock.threads_cut, 0);
    }
}

/// The watching begins before the load and ends after it.
#[test]
fn idle_ends_change_no_gain() {
    let trace = Little::default().trace();
    let (first, last) = trace.bounds_ns().expect("spans");
    let length_ns = last - first;
    let shifted = trace.spans.iter().map(|span| {
        let mut span = *span;
        span.begin_ns += length_ns;
        span.end_ns += length_ns;
        for mark_ns in &mut span.marks_ns {
            *mark_ns += if *mark_ns > 0 { length_ns } else { 0 };
        }
        span
    });
    // The journal's timer, long before and long behind.
    let late_ns = last + 2 * length_ns;
    let alone = [
        commit(0, first, first + MS),
        commit(u32::MAX / 2, late_ns, late_ns + MS),
    ];
    let idle = Trace::of(shifted.chain(alone));
    let gain = |trace: &Trace| ask(trace, &[Rule::BestBatching]).predictions[0].gain;
    let (with, without) = (gain(&idle), gain(&trace));
    assert!(
        without > 1.3 && off(with, without) < 0.05,
        "{with}, {without} without"
    );
}

#[test]
fn batching_is_predicted_from_a_stock_trace() {
    for (name, little) in workloads() {
        let stock = little.trace();
        let batching = Little {
            start: Start::WhenBack(little.commit_ns),
            ..little.clone()
        };
        let want = operations_per_s(&batching.trace());
        let got = ask(&stock, &[Rule::BestBatching]).predictions[0];
        assert!(
            off(got.rates.operations_per_s, want) < 0.05,
            "{name}: {want} {got:?}"
        );
    }
    // Two convoys of threads that take turns become one: almost twice as fast.
    let convoys = ask(&Little::default().trace(), &[Rule::BestBatching]);
    let gain = convoys.predictions[0].gain;
    assert!((1.8..2.0).contains(&gain), "{gain}");
    // One thread expects no other: nothing changes.
    let lone = Little {
        threads: 1,
        ..Little::default()
    };
    let lone = ask(&lone.trace(), &[Rule::BestBatching]).predictions[0];
    assert!((lone.gain - 1.0).abs() < 1e-9, "{lone:?}");
}

#[test]
fn a_static_delay_is_predicted_from_a_stock_trace() {
    for (threads, quiet_ns) in [(8, 200 * US), (4, 50 * US), (8, 10 * MS)] {
        let little = Little {
            threads,
            ..Little::default()
        };
        let delayed = Little {
            start: Start::WhenQuiet(quiet_ns),
            ..little.clone()
        };
        let want = operations_per_s(&delayed.trace());
        let got = ask(&little.trace(), &[Rule::Delay { idle_ns: quiet_ns }]).predictions[0];
        assert!(
            off(got.rates.operations_per_s, want) < 0.05,
            "{threads} {quiet_ns}: {want} {got:?}"
        );
    }
}

#[test]
fn writes_that_do_not_wait_are_predicted() {
    let little = Little {
        writes: 5,
        // Half as long as a commit: other threads share one.
        wait_ns: 2 * MS,
        ..Little::default()
    };
    let free = Little {
        wait_ns: 0,
        ..little.clone()
    };
    let both = Little {
        start: Start::WhenBack(little.commit_ns),
        ..free.clone()
    };
    let got = ask(&little.trace(), &[Rule::NoBlockedWrites, Rule::Luc]);
    for (prediction, want) in got.predictions.iter().zip([free, both]) {
        let want = operations_per_s(&want.trace());
        let error = off(prediction.rates.operations_per_s, want);
        assert!(error < 0.05, "{error}: {want} {prediction:?}");
    }
    assert!(got.predictions[1].gain > 1.5, "{got:?}");
    let writes_per_s = got.predictions[1].rates.writes_per_s;
    assert!(writes_per_s > 1.5 * got.stock.rates.writes_per_s);
}

/// Three threads in step, by hand. Each asks 100 after it was released; a
/// commit takes 1000 and locks 10 after it can start; nothing varies.
#[test]
fn a_lockstep_by_hand() {
    let little = Little {
        threads: 3,
        think_ns: 50,
        jitter_ns: 0,
        open_ns: 40,
        close_ns: 10,
        commit_ns: 1000,
        commit_jitter_ns: 0,
        lag_ns: 10,
        wake_ns: 0,
        rounds: 300,
        start: Start::WhenBack(1000),
        ..Little::default()
    };
    // Recorded while batching, so all three are in each commit: a round is
    // 100 + 10 + 1000, and gives 9 operations.
    let got = ask(&little.trace(), &[Rule::BestBatching]);
    let want = 9.0 * 1e9 / 1110.0;
    assert!(off(got.measured.operations_per_s, want) < 0.02, "{got:?}");
    let batching = got.predictions[0].rates;
    assert!(off(batching.operations_per_s, want) < 0.02, "{got:?}");
    assert_eq!((batching.sync.p50_ns, batching.sync.p99_ns), (1010, 1010));
}

/// Two threads write in turns: while one works for 50 us, the other sleeps for a buffer.
fn turns(header: Header) -> Trace {
    let mut spans = Vec::new();
    for turn in 0..200 {
        let begin_ns = turn * 100 * US;
        for (pid, work_ns) in [(10, 0), (11, 50 * US)] {
            let span = |kind, begin_ns, end_ns| Span {
                within: SpanKind::Write,
                ..span(kind, pid, begin_ns, end_ns)
            };
            let sleep_ns = begin_ns + 50 * US - work_ns;
            spans.push(span(SpanKind::Write, begin_ns, begin_ns + 100 * US));
            spans.push(span(SpanKind::WaitBuffer, sleep_ns, sleep_ns + 50 * US));
        }
    }
    spans.push(commit(0, 10 * US, 90 * US));
    Trace {
        header,
        ..Trace::of(spans)
    }
}

/// Without sleeps only a second processor makes it twice as fast; the first is busy already.
#[test]
fn a_thread_that_does_not_sleep_needs_a_processor() {
    let gain = |header| {
        let got = ask(&turns(header), &[Rule::NoBlockedWrites]);
        assert!(got.stock_error_share < 0.01, "{got:?}");
        got.predictions[0].gain
    };
    let cpus = |count| Header::default().with("cpus", count);
    assert!(off(gain(cpus("1")), 1.0) < 0.02);
    assert!(off(gain(cpus("2")), 2.0) < 0.02);
    // As many as needed, where the recording does not say.
    for unknown in [Header::default(), cpus("0"), cpus("some")] {
        assert!(off(gain(unknown), 2.0) < 0.02);
    }
}

#[test]
fn traces_that_cannot_be_walked() {
    let refused = |trace: &Trace| what_if(trace, &Observed::of(trace, DEV), &[]).unwrap_err();
    assert_eq!(
        refused(&Trace::default()),
        WhatIfError::Nothing { dev: DEV }
    );
    let little = Little {
        rounds: 20,
        ..Little::default()
    };
    let mut spans = little.spans();
    spans.retain(|span| span.kind != SpanKind::Commit);
    let error = refused(&Trace::of(spans));
    assert_eq!(error, WhatIfError::NoCommits { dev: DEV });
    assert_eq!(
        error.to_string(),
        "the trace has no journal commit of 254:0; record while something syncs"
    );
}
