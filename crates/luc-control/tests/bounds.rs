//! Relations between the controllers' answers, for every input, and single cases. `fuzz/control.c`
//! checks the bounds of single steps and of histories.

mod common;

use common::values::{settings, wild, wild_input, wild_state};
use luc_control::{
    Batching, Gains, Input, Params, PidState, Reason, Saturated, State, Step, control_pass,
    control_step, pid_step,
};
use proptest::prelude::*;

const US: i64 = 1_000;

/// Feeds policy static an arrival every `gap_ns`, and polls only when it asks to be woken. Returns
/// how long it held, and its reason to stop.
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
        // The timer is checked when it expires, so the arrivals of one idle time may count together
        // beyond the last allowed reset.
        let idle_ns = idle_us * US;
        let most = (resets + 1).saturating_mul(idle_ns.min(gap_ns)).saturating_add(2 * idle_ns);
        prop_assert!(held_ns <= most, "{held_ns} {most}");
        if gap_ns > idle_ns && limit_us * US > idle_ns {
            prop_assert_eq!((held_ns, reason), (idle_ns, Reason::Idle.value()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// A commit that passes leaves the state of OPEN and CLOSE; a lone stream's commit always
    /// passes.
    #[test]
    fn a_commit_that_passes_is_one_that_was_opened_and_closed(
        settings in settings(),
        state in wild_state(),
        input in wild_input(),
        lone in any::<bool>(),
    ) {
        let (mut params, mut before, mut input) = (settings, state, input);
        if lone {
            params.batching = Batching::Returns.value();
            (before.trial_phase, input.urgent) = (0, 0);
            (input.expected_events, input.same_task) = (0, 1);
        }
        let mut passed = before;
        if control_pass(&params, &mut passed, &input) {
            let mut long = before;
            let out = control_step(Step::Open, &params, &mut long, &input);
            prop_assert_eq!(out.reason, Reason::Now.value());
            control_step(Step::Close, &params, &mut long, &input);
            prop_assert_eq!(passed, long);
        } else {
            prop_assert!(!lone, "a lone stream's commit takes the long way");
            prop_assert_eq!(passed, before);
        }
    }

    #[test]
    fn pid_law(
        gains in [wild(), wild(), wild()],
        state in [wild(), wild(), wild()],
        e_milli in wild(),
        dt_milli in wild(),
    ) {
        let gains = Gains { kp_milli: gains[0], ki_milli: gains[1], kd_milli: gains[2] };
        let [integral_milli, error_milli, error_known] = state;
        for saturated in [Saturated::Low, Saturated::No, Saturated::High] {
            let mut state = PidState { integral_milli, error_milli, error_known };
            pid_step(&gains, &mut state, e_milli, dt_milli, saturated);
            prop_assert!(state.error_milli.abs() <= 1_000_000_000);
            prop_assert_eq!(state.error_known, 1);
        }
    }

    /// A larger error gives a larger proportional term, and more expected tasks give a larger
    /// target.
    #[test]
    fn answers_are_monotonic(
        params in settings(),
        state in wild_state(),
        input in wild_input(),
        low in wild(),
        high in wild(),
    ) {
        let (low, high) = (low.min(high), low.max(high));
        let gains = Gains {
            kp_milli: params.kp_milli,
            ki_milli: params.ki_milli,
            kd_milli: params.kd_milli,
        };
        let memory = PidState::default();
        let terms = [low, high].map(|e| pid_step(&gains, &mut memory.clone(), e, 1_000, Saturated::No));
        prop_assert!(terms[0].p_milli <= terms[1].p_milli);
        prop_assert!(terms[0].u_milli <= terms[1].u_milli);

        let targets = [low, high].map(|expected_events| {
            let mut state = state;
            control_step(Step::Open, &params, &mut state, &Input { expected_events, ..input });
            state.setpoint_now_events
        });
        prop_assert!(targets[0] <= targets[1]);
    }
}

#[test]
fn products_saturate_at_the_end_of_their_sign() {
    let huge = Gains {
        kp_milli: i64::MAX,
        ki_milli: i64::MAX,
        kd_milli: i64::MAX,
    };
    for (e_milli, end) in [(-5_000, i64::MIN), (5_000, i64::MAX)] {
        let mut memory = PidState {
            error_known: 1,
            ..PidState::default()
        };
        let terms = pid_step(&huge, &mut memory, e_milli, 1_000, Saturated::No);
        assert_eq!(terms.p_milli, end / 1_000);
        assert_eq!(terms.i_milli, end / 1_000);
        assert_eq!(terms.d_milli, end / 1_000);
    }
}

#[test]
fn a_negative_number_of_expected_tasks_counts_as_none() {
    let input = Input {
        events: 3,
        expected_events: -2,
        same_task: 1,
        commit_avg_ns: 1_000_000,
        ..Input::default()
    };
    let mut state = State::default();
    let out = control_step(Step::Open, &Params::default(), &mut state, &input);
    assert_eq!(state.setpoint_now_events, 3);
    assert_eq!(out.reason, Reason::Now.value());
}

/// 33 of 64 threads come at once, `crowd_ns` after a commit of 17 ms has started, except one, which
/// comes `straggler_ns` after that start. Returns how many commits pass before one is held for
/// the others.
fn commits_until_held(crowd_ns: i64, straggler_ns: i64) -> Option<usize> {
    let commit_ns = 17_000 * US;
    let mut state = State {
        gap_ns: 1_000 * US,
        ..State::default()
    };
    (0_i64..32).position(|turn| {
        let now_ns = (turn + 1) * commit_ns;
        let input = Input {
            now_ns,
            events: 33,
            events_wait_ns: 32 * (commit_ns - crowd_ns) + (commit_ns - straggler_ns),
            last_event_ns: now_ns - commit_ns + crowd_ns.max(straggler_ns),
            expected_events: 31,
            commit_avg_ns: commit_ns,
            ..Input::default()
        };
        let out = control_step(Step::Open, &Params::default(), &mut state, &input);
        control_step(Step::Close, &Params::default(), &mut state, &input);
        out.reason == Reason::Hold.value()
    })
}

#[test]
fn one_task_of_its_own_time_does_not_make_a_crowd_late() {
    for (crowd_us, straggler_us) in [(200, 16_800), (200, 15_000), (16_500, 100)] {
        let held = commits_until_held(crowd_us * US, straggler_us * US);
        assert!(
            held.is_some_and(|turn| turn < 12),
            "{crowd_us} {straggler_us} {held:?}"
        );
    }
}

/// Three of four tasks wait for a commit of 4 ms. Is it held for the fourth, if the journal was
/// idle for `unused_ns` and processors were busy for this share of the time?
fn is_held(unused_ns: i64, busy_permille: i64) -> bool {
    let commit_ns = 4_000 * US;
    let mut state = State {
        closed_ns: 1,
        ..State::default()
    };
    let input = Input {
        now_ns: 1 + commit_ns + unused_ns,
        events: 3,
        expected_events: 1,
        commit_avg_ns: commit_ns,
        busy_permille,
        ..Input::default()
    };
    let out = control_step(Step::Open, &Params::default(), &mut state, &input);
    out.reason == Reason::Hold.value()
}

#[test]
fn beside_busy_processors_an_idle_journal_is_left_alone() {
    let commit_ns = 4_000 * US;
    for (unused_ns, busy_permille, held) in [
        (0, 1000, true),
        (commit_ns / 2, 1000, true),
        (commit_ns, 0, true),
        (commit_ns, 740, true),
        (commit_ns, 750, false),
        (20 * commit_ns, 1000, false),
        (20 * commit_ns, 740, true),
    ] {
        assert_eq!(
            is_held(unused_ns, busy_permille),
            held,
            "{unused_ns} {busy_permille}"
        );
    }
}
