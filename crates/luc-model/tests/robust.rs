//! Traces that no kernel writes, and traces that are large.

mod common;

use common::{DEV, Little, MS, US, any_span, span};
use luc_control::Dev;
use luc_model::observed::Service;
use luc_model::{Foretold, Observed, Quantities, Rule, fsync_model, write_model};
use luc_sim::replayed::Calibration;
use luc_trace::{SpanKind, Trace};
use proptest::prelude::*;
use std::time::{Duration, Instant};

const RULES: [Rule; 5] = [
    Rule::Stock,
    Rule::BestBatching,
    Rule::Delay { idle_ns: 1000 },
    Rule::NoBlockedWrites,
    Rule::Luc,
];

/// Calls everything that takes a trace, and checks what must hold for any trace.
fn everything(trace: &Trace) {
    for dev in [DEV, Dev::default()] {
        let seen = Observed::from_trace(trace, dev);
        let served = seen.syncs.iter().filter_map(|sync| match sync.service {
            Service::Commit(place) => Some((sync, place)),
            _ => None,
        });
        let mut events = vec![0; seen.commits.len()];
        for (sync, place) in served {
            events[place] += 1;
            assert!(sync.commits_waited >= 1);
            assert!(seen.commits[place].begin_ns <= sync.end_ns);
        }
        assert!(
            events
                .iter()
                .zip(&seen.commits)
                .all(|(n, c)| *n == c.sync_events)
        );
        let table = seen.table();
        assert!((0.0..=1.0).contains(&table.writes_delayed_share));
        assert_eq!(
            table.sync_events + table.syncs_unneeded + table.syncs_unserved,
            seen.syncs.len() as u64
        );
        let model = fsync_model(trace, &seen);
        assert_eq!(
            model.syncs.len() as u64 + model.unpredicted,
            table.sync_events
        );
        let sets = write_model(trace, &seen);
        let classified = sets.x.writers + sets.y.writers + sets.z.writers;
        assert!(classified <= seen.writes.len() as u64);
        let row = Quantities::from_observed(&seen, 1.0);
        assert!(
            row.values.values().all(|value| value.is_finite()),
            "{row:?}"
        );
    }
}

/// Replays the threads.
fn foretold(trace: &Trace) {
    if let Ok(machine) = Calibration::measure(trace, DEV) {
        let answer = Foretold::new(&machine, &RULES);
        for prediction in answer.predictions {
            assert!(prediction.gain.is_finite() && prediction.gain >= 0.0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_spans(spans in prop::collection::vec(any_span(1), 0..60)) {
        everything(&Trace::from_spans(spans.clone()));
        foretold(&Trace::from_spans(spans.clone()));
        // Built by hand, unsorted.
        let trace = Trace { spans, ..Trace::default() };
        everything(&trace);
        foretold(&trace);
    }

    /// A recording that lost any part of its spans.
    #[test]
    fn losses(lost in prop::collection::vec(any::<bool>(), 600), seed in any::<u64>()) {
        let little = Little { rounds: 20, writes: 2, wait_ns: 300 * US, flush_ns: MS, seed, ..Little::default() };
        let kept = little.spans().into_iter().zip(lost.iter().chain(std::iter::repeat(&false)));
        let trace = Trace::from_spans(kept.filter(|(_, lost)| !**lost).map(|(span, _)| span));
        everything(&trace);
        foretold(&trace);
    }
}

#[test]
fn small_and_odd_traces() {
    everything(&Trace::default());
    let each = Trace::from_spans(SpanKind::ALL.map(|kind| span(kind, 0, 5, 5)));
    everything(&each);
    foretold(&each);
    let thousand = Little {
        threads: 1000,
        rounds: 4,
        ..Little::default()
    };
    everything(&thousand.trace());
    foretold(&thousand.trace());
}

/// A loop over all spans for each span would take hours. The bound allows for a debug build on a
/// busy machine.
#[test]
fn a_million_spans_do_not_take_minutes() {
    let little = Little {
        threads: 64,
        writes: 4,
        wait_ns: 100 * US,
        rounds: 4_200,
        ..Little::default()
    };
    let trace = little.trace();
    assert!(trace.spans.len() > 1_000_000, "{}", trace.spans.len());
    let begun = Instant::now();
    everything(&trace);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(180), "{took:?}");
}
