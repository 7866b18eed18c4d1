//! The batching controller and the estimator together, against a journal on
//! virtual time.

mod common;

use common::{Sim, Workload, values::settings};
use luc_control::{Batching, Input, Params, Reason, State, Step, control_step, policy, replay};
use proptest::prelude::*;

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

fn with_policy(name: &str) -> Params {
    let mut params = Params::default();
    for (knob, value) in &policy(name).unwrap().settings {
        params.set(knob.name, *value);
    }
    params
}

fn mean_sync_ns(sim: &Sim) -> i64 {
    sim.sync_ns / sim.syncs
}

#[test]
fn stock_makes_two_convoys_and_luc_merges_them() {
    for threads in [2, 4, 16, 64] {
        let all = i64::try_from(threads).unwrap();
        let mut workload = Workload::new(threads, 50 * US, 4 * MS);
        workload.jitter_ns = 100 * US;
        workload.stagger_ns = 3 * MS / all;

        let mut stock = Sim::new(workload.clone(), with_policy("stock"));
        stock.run(200);
        let largest = stock.last_events(100).into_iter().max().unwrap();
        assert!(largest < all, "{threads} threads: no convoys to merge");

        let mut luc = Sim::new(workload, Params::default());
        luc.run(200);
        assert_eq!(luc.last_events(150), vec![all; 150], "{threads} threads");
        assert!(
            mean_sync_ns(&luc) * 10 < mean_sync_ns(&stock) * 7,
            "{threads} threads: {} {}",
            mean_sync_ns(&luc),
            mean_sync_ns(&stock)
        );
    }
}

/// Attached right after a mount: the journal has no average yet.
#[test]
fn a_journal_that_knows_no_commit_time_learns_to_hold() {
    let mut workload = Workload::new(8, 50 * US, 4 * MS);
    workload.commit_avg_ns = 0;
    let mut sim = Sim::new(workload, Params::default());
    // Its first trial included.
    sim.run(100);
    assert_eq!(sim.last_events(20), vec![8; 20], "{:?}", sim.state);
}

/// A limit of 0 for a while must not be remembered.
#[test]
fn a_limit_of_nothing_is_forgotten_once_raised() {
    let workload = Workload::new(8, 50 * US, 4 * MS);
    let mut sim = Sim::new(
        workload,
        Params {
            delay_limit_us: 0,
            ..Params::default()
        },
    );
    sim.run(30);
    assert_eq!(sim.held_ns(), 0);
    sim.params = Params::default();
    sim.run(100);
    assert_eq!(sim.last_events(20), vec![8; 20], "{:?}", sim.state);
}

#[test]
fn a_fixed_set_point_is_reached_and_not_exceeded_by_waiting() {
    for setpoint_events in [4, 8, 12] {
        let params = Params {
            setpoint_events,
            ..Params::default()
        };
        let mut workload = Workload::new(16, 50 * US, 4 * MS);
        workload.jitter_ns = 400 * US;
        let mut sim = Sim::new(workload, params);
        sim.run(300);
        let last = &sim.commits[200..];
        for commit in last {
            assert!(
                commit.events >= setpoint_events,
                "{setpoint_events}: {commit:?}"
            );
            // Held commits stop exactly there.
            if commit.reason == Reason::Setpoint {
                assert_eq!(commit.events, setpoint_events);
            }
        }
    }
}

#[test]
fn policies_that_do_not_batch_never_hold() {
    for policy in ["stock", "copyout"] {
        let workload = Workload::new(16, 50 * US, 4 * MS);
        let mut sim = Sim::new(workload, with_policy(policy));
        sim.run(100);
        assert_eq!(sim.held_ns(), 0, "{policy}");
    }
}

#[test]
fn static_holds_until_syncs_pause() {
    let mut workload = Workload::new(8, 50 * US, 4 * MS);
    workload.stagger_ns = 900 * US;
    let mut sim = Sim::new(workload, with_policy("static"));
    sim.run(1);
    // Eight arrivals 0.9 ms apart, then 1 ms of silence.
    assert_eq!(sim.commits[0].events, 8);
    assert_eq!(sim.commits[0].held_ns, 7 * 900 * US + MS);
    assert_eq!(sim.commits[0].reason, Reason::Idle);
}

/// Feeds policy static an arrival each `gap_ns` for ever, looking only when it
/// asks to be woken; returns when it let go.
fn static_hold_ns(params: &Params, gap_ns: i64) -> (i64, i64) {
    let mut state = State::default();
    let mut now_ns = 1_000;
    let arrived = |now_ns: i64| {
        let arrivals = (now_ns - 1_000) / gap_ns;
        Input {
            now_ns,
            events: 1 + arrivals,
            last_event_ns: 1_000 + arrivals * gap_ns,
            ..Input::default()
        }
    };
    let mut out = control_step(Step::Open, params, &mut state, &arrived(now_ns));
    while out.reason == Reason::Hold.value() {
        assert!(out.wake_ns > now_ns, "no progress: {out:?} {state:?}");
        now_ns = out.wake_ns;
        out = control_step(Step::Poll, params, &mut state, &arrived(now_ns));
    }
    (now_ns - 1_000, out.reason)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn static_resets_are_bounded(
        idle_us in 1_i64..5_000,
        resets in 0_i64..2_000,
        limit_us in 0_i64..1_000_000,
        gap_ns in 1_i64..6_000_000,
    ) {
        let params = Params {
            batching: Batching::Static.value(),
            static_idle_us: idle_us,
            static_resets_max: resets,
            delay_limit_us: limit_us,
            ..Params::default()
        };
        let (held_ns, reason) = static_hold_ns(&params, gap_ns);
        prop_assert!(held_ns <= limit_us * US);
        // The timer is looked at when it runs out, so the arrivals of one idle
        // time may count together beyond the last reset allowed.
        let idle_ns = idle_us * US;
        let most = (resets + 1).saturating_mul(idle_ns.min(gap_ns)).saturating_add(2 * idle_ns);
        prop_assert!(held_ns <= most, "{held_ns} {most}");
        if gap_ns > idle_ns && limit_us * US > idle_ns {
            prop_assert_eq!((held_ns, reason), (idle_ns, Reason::Idle.value()));
        }
    }

    /// Whatever the knobs: one thread never waits for another one. Batching static waits for
    /// silence by definition, batching age for time to pass before the first sync.
    #[test]
    fn a_lone_sync_stream_is_never_held(
        params in settings(),
        think_ns in 1_i64..50_000_000,
        jitter_ns in 0_i64..50_000_000,
        commit_ns in 1_i64..50_000_000,
        seed in any::<u64>(),
    ) {
        let by_time = [Batching::Static, Batching::Age].map(Batching::value);
        prop_assume!(!by_time.contains(&params.batching));
        let params = Params { setpoint_events: 0, ..params };
        let mut workload = Workload::new(1, think_ns, commit_ns);
        workload.jitter_ns = jitter_ns;
        workload.seed = seed;
        let mut sim = Sim::new(workload, params);
        sim.run(60);
        prop_assert_eq!(sim.held_ns(), 0);
        prop_assert!(sim.commits.iter().all(|commit| commit.reason == Reason::Now));
    }

    /// Whatever the knobs and the load: recorded decisions equal those that replay computes.
    #[test]
    fn recorded_decisions_repeat(
        params in settings(),
        threads in 1_usize..24,
        think_ns in 1_i64..20_000_000,
        jitter_ns in 0_i64..20_000_000,
        commit_ns in 1_i64..20_000_000,
        urgent_every in 0_i64..5,
        seed in any::<u64>(),
    ) {
        let mut workload = Workload::new(threads, think_ns, commit_ns);
        workload.jitter_ns = jitter_ns;
        workload.urgent_every = urgent_every;
        workload.seed = seed;
        workload.writes = 100;
        workload.delayed = 10;
        let mut sim = Sim::new(workload, params);
        sim.run(60);
        let summary = replay::replay(sim.items);
        prop_assert!(summary.passed(), "{summary:?}");
        prop_assert_eq!(summary.chain_checked, summary.records - 1);
    }

    /// All threads come back within a tenth of a commit: all are served by
    /// each commit before long, however they started.
    #[test]
    fn returning_threads_end_up_in_one_commit(
        threads in 2_usize..48,
        commit_us in 100_i64..20_000,
        think_percent in 0_i64..5,
        jitter_percent in 0_i64..5,
        stagger_percent in 0_i64..100,
        seed in any::<u64>(),
    ) {
        let commit_ns = commit_us * US;
        // The idle timeout ends a wait; gaps must be shorter to be bridged.
        prop_assume!(commit_ns * (think_percent + jitter_percent) / 100 < 900 * US);
        let all = i64::try_from(threads).unwrap();
        let mut workload = Workload::new(threads, 1 + commit_ns * think_percent / 100, commit_ns);
        workload.jitter_ns = commit_ns * jitter_percent / 100;
        workload.stagger_ns = commit_ns * stagger_percent / 100 / all;
        workload.seed = seed;
        let mut sim = Sim::new(workload, Params::default());
        sim.run(200);
        prop_assert_eq!(sim.last_events(60), vec![all; 60]);
    }
}

/// Threads that do not come back in time: waiting for them is given up before
/// it costs much.
#[test]
fn waiting_in_vain_stays_cheap() {
    let mut worst = (i64::MAX, String::new());
    for threads in [2, 3, 4, 16, 64] {
        for think_percent in [0, 10, 60, 300] {
            for jitter_percent in [0, 100, 400] {
                let commit_ns = MS;
                let mut workload =
                    Workload::new(threads, 1_000 + commit_ns * think_percent / 100, commit_ns);
                workload.jitter_ns = commit_ns * jitter_percent / 100;
                workload.stagger_ns = commit_ns / i64::try_from(threads).unwrap();
                let rate = |policy| {
                    let mut sim = Sim::new(workload.clone(), with_policy(policy));
                    sim.run(500);
                    sim.syncs * 1_000_000_000 / (sim.now_ns / 1_000)
                };
                let permille = rate("luc") * 1_000 / rate("stock");
                let what =
                    format!("{threads} threads, think {think_percent}%, jitter {jitter_percent}%");
                worst = worst.min((permille, what));
            }
        }
    }
    assert!(worst.0 >= 900, "{} permille of stock: {}", worst.0, worst.1);
}
