//! The controllers in the loop: threads, each on its own processor, think, change and sync; a
//! commit takes about twice the disk's time.

#[allow(dead_code)]
#[path = "../../luc-control/tests/common/values.rs"]
mod values;

mod common;

use common::{Load, MS, S, US, with_policy};
use luc_control::{Batching, Params, Reason, replay};
use luc_sim::Node;
use luc_trace::{Event, Header, Record, SpanKind, Trace};
use proptest::prelude::*;
use values::settings;

/// Creates the node of a load, which records everything.
fn node(load: &Load, params: Params) -> Node {
    let mut node = load.node(Some(params));
    node.record(Header::default(), "loop");
    node
}

/// Runs a load for this long.
fn run(load: &Load, params: Params, ns: u64) -> Found {
    let mut node = node(load, params);
    node.run(ns);
    Found::from_node(node)
}

#[derive(Clone, Copy, Debug)]
struct Commit {
    events: i64,
    held_ns: i64,
    reason: Reason,
}

struct Found {
    commits: Vec<Commit>,
    syncs: usize,
    trace: Trace,
}

impl Found {
    fn from_node(node: Node) -> Self {
        let trace = node.recording().into_trace();
        let commit = |event: &Event| match *event {
            Event::Commit {
                events,
                held_ns,
                reason,
                ..
            } => Some(Commit {
                events,
                held_ns,
                reason,
            }),
            _ => None,
        };
        let commits: Vec<Commit> = trace
            .lines
            .iter()
            .filter_map(|it| commit(&it.event))
            .collect();
        assert!(commits.len() > 20, "{} commits tell little", commits.len());
        let syncs = trace
            .spans
            .iter()
            .filter(|span| span.kind == SpanKind::Fsync);
        Self {
            syncs: syncs.count(),
            commits,
            trace,
        }
    }

    /// Returns the sync events of the later half of the commits; the last two may be incomplete.
    fn later(&self) -> Vec<i64> {
        let half = &self.commits[self.commits.len() / 2..self.commits.len() - 2];
        half.iter().map(|one| one.events).collect()
    }

    /// Returns the syncs for each commit. Some join between the decision and the lock, so the
    /// commit's events do not include them all.
    fn later_syncs_per_commit(&self) -> f64 {
        let (from_ns, until_ns) = self.trace.bounds_ns().expect("spans");
        let middle_ns = u64::midpoint(from_ns, until_ns);
        let later = |kind| {
            let spans = self.trace.spans.iter();
            spans
                .filter(|it| it.kind == kind && it.end_ns > middle_ns)
                .count() as f64
        };
        later(SpanKind::Fsync) / later(SpanKind::Commit)
    }

    fn held_ns(&self) -> i64 {
        self.commits.iter().map(|one| one.held_ns).sum()
    }
}

/// Each commit must serve all threads, except in an unheld window of LUC's trial: 18 commits, and
/// some until the convoys have merged again.
fn assert_served_together(found: &Found, all: i64) {
    let later = found.later();
    let apart = later.iter().filter(|events| **events != all).count();
    assert!(
        apart <= 2 * 18 && 4 * apart <= later.len(),
        "{all}: {later:?}"
    );
}

#[test]
fn stock_makes_two_convoys_and_luc_merges_them() {
    for threads in [2, 4, 16, 64] {
        let load = Load {
            jitter_ns: 100 * US,
            stagger_ns: 3 * MS / u64::from(threads),
            ..Load::new(threads, 50 * US, 2000)
        };
        let (stock, luc) = (
            run(&load, with_policy("stock"), 2 * S),
            run(&load, Params::default(), 2 * S),
        );
        let all = i64::from(threads);
        assert!(
            stock.later().into_iter().all(|events| events < all),
            "{threads}: no convoys"
        );
        assert_served_together(&luc, all);
        assert!(
            luc.syncs * 10 > stock.syncs * 14,
            "{threads}: {} {}",
            luc.syncs,
            stock.syncs
        );
    }
}

/// LUC must not remember that the limit was 0 for a while.
#[test]
fn a_limit_of_nothing_is_forgotten_once_raised() {
    let params = Params {
        delay_limit_us: 0,
        ..Params::default()
    };
    let mut node = node(&Load::new(8, 50 * US, 2000), params);
    node.run(S / 4);
    node.set(Params::default());
    node.run(S);
    let found = Found::from_node(node);
    assert!(found.commits[..40].iter().all(|one| one.held_ns == 0));
    assert_served_together(&found, 8);
}

#[test]
fn policies_that_do_not_batch_never_hold() {
    for policy in ["stock", "copyout"] {
        let found = run(&Load::new(16, 50 * US, 2000), with_policy(policy), S);
        assert_eq!(found.held_ns(), 0, "{policy}");
    }
}

#[test]
fn static_holds_until_syncs_pause() {
    let load = Load {
        stagger_ns: 900 * US,
        ..Load::new(8, 20 * MS, 2000)
    };
    let found = run(&load, with_policy("static"), S);
    // Eight arrivals 0.9 ms apart, then 1 ms of silence.
    let first = found.commits[0];
    assert_eq!((first.events, first.reason), (8, Reason::Idle));
    let expected_ns = i64::try_from(7 * 900 * US + MS).expect("small");
    assert!((first.held_ns - expected_ns).abs() < 50_000, "{first:?}");
}

/// Threads do not come back in time: LUC stops waiting for them before that costs much.
#[test]
fn waiting_in_vain_stays_cheap() {
    let mut worst = (f64::INFINITY, String::new());
    for threads in [2, 3, 16, 64] {
        for think_us in [0, 600, 3000] {
            for jitter_us in [0, 4000] {
                let load = Load {
                    jitter_ns: jitter_us * US,
                    stagger_ns: MS / u64::from(threads),
                    ..Load::new(threads, think_us * US + 1000, 500)
                };
                let syncs = |name| run(&load, with_policy(name), S / 2).syncs as f64;
                let ratio = syncs("luc") / syncs("stock");
                let what = format!("{threads} threads, think {think_us}, jitter {jitter_us}");
                if ratio < worst.0 {
                    worst = (ratio, what);
                }
            }
        }
    }
    assert!(worst.0 >= 0.9, "{} of stock: {}", worst.0, worst.1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the knobs, a lone thread never waits for another one. Batching static waits for
    /// silence by definition, batching age for time to pass before the first sync.
    #[test]
    fn a_lone_sync_stream_is_never_held(
        params in settings(),
        think_ns in 1_u64..50_000_000,
        jitter_ns in 0_u64..50_000_000,
        disk_us in 1_u64..25_000,
        seed in any::<u32>(),
    ) {
        let by_time = [Batching::Static, Batching::Age].map(Batching::value);
        prop_assume!(!by_time.contains(&params.batching));
        let params = Params { setpoint_events: 0, ..params };
        let load = Load { jitter_ns, seed: u64::from(seed), ..Load::new(1, think_ns, disk_us) };
        let found = run(&load, params, 60 * (think_ns + jitter_ns + 2 * disk_us * US));
        prop_assert_eq!(found.held_ns(), 0);
        prop_assert!(found.commits.iter().all(|commit| commit.reason == Reason::Now));
    }

    /// Whatever the knobs and the load, recorded decisions equal those that replay computes.
    #[test]
    fn recorded_decisions_repeat(
        params in settings(),
        threads in 1_u32..24,
        think_ns in 1_u64..20_000_000,
        jitter_ns in 0_u64..20_000_000,
        disk_us in 1_u64..10_000,
        seed in any::<u32>(),
    ) {
        // A set point that is never reached costs the limit each time.
        let params = Params { delay_limit_us: params.delay_limit_us.min(20_000), ..params };
        let load = Load { jitter_ns, seed: u64::from(seed), ..Load::new(threads, think_ns, disk_us) };
        let found = run(&load, params, 40 * (think_ns + jitter_ns + 2 * disk_us * US) + S);
        let lines = found.trace.lines.iter();
        let summary = replay::replay(lines.filter_map(Record::to_replay));
        prop_assert!(summary.passed(), "{summary:?}");
        prop_assert_eq!(summary.chain_checked, summary.records - 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// All threads come back within a tenth of a commit: once the first holds' debt is paid off,
    /// after 256 commits at most, each commit serves all of them, however they started.
    #[test]
    fn returning_threads_end_up_in_one_commit(
        threads in 2_u32..48,
        disk_us in 500_u64..10_000,
        think_percent in 0_u64..5,
        jitter_percent in 0_u64..5,
        stagger_percent in 0_u64..100,
        seed in any::<u32>(),
    ) {
        let commit_ns = 2 * disk_us * US;
        // The idle timeout ends a wait; only shorter gaps are bridged.
        prop_assume!(commit_ns * (think_percent + jitter_percent) / 100 < 900 * US);
        let load = Load {
            jitter_ns: commit_ns * jitter_percent / 100,
            stagger_ns: commit_ns * stagger_percent / 100 / u64::from(threads),
            seed: u64::from(seed),
            ..Load::new(threads, 1 + commit_ns * think_percent / 100, disk_us)
        };
        let found = run(&load, Params::default(), 480 * commit_ns);
        let per_commit = found.later_syncs_per_commit();
        // Two convoys have half of them, and commits of n - 1, 1 and n tasks two thirds.
        prop_assert!(per_commit > 0.9 * f64::from(threads), "{per_commit}");
    }
}
