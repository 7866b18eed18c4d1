//! What holds for every input whatever: debug builds trap on undefined
//! behaviour in C, so merely returning proves something here.

mod common;

use common::values::{settings, wild, wild_input, wild_params, wild_state};
use luc_control::{
    Batching, Gains, Input, Output, Params, PidState, Reason, Returns, Saturated, State, Step,
    complete_events, control_pass, control_step, copyout_is_idle, pid_step,
};
use proptest::prelude::*;

/// As the C code bounds a hold, with Rust's own saturating arithmetic.
fn delay_limit_ns(params: &Params) -> i64 {
    params.delay_limit_us.max(0).saturating_mul(1_000)
}

fn batches_by_pid(params: &Params) -> bool {
    params.batching == Batching::Pid.value()
}

/// What no answer may be, whatever the question.
fn check(step: Step, params: &Params, before: &State, after: &State, input: &Input, out: &Output) {
    let context = format!("{step} {params:?} {before:?} {input:?} {out:?}");
    assert!(Reason::from_value(out.reason).is_some(), "{context}");
    assert!([0, 1].contains(&out.copy), "{context}");
    let held = out.reason == Reason::Hold.value();
    match step {
        Step::Open => {
            assert!(!held || input.urgent == 0, "{context}");
            assert!(
                (0..=delay_limit_ns(params)).contains(&after.wait_ns),
                "{context}"
            );
            if held {
                let end_ns = input.now_ns.saturating_add(delay_limit_ns(params));
                assert!(out.wake_ns <= end_ns, "{context}");
            }
            let known = Batching::from_value(params.batching);
            if known.is_none_or(|batching| batching == Batching::Off) {
                assert!(!held, "{context}");
            }
        }
        Step::Poll => {
            assert!(!held || input.urgent == 0, "{context}");
            if held {
                // The knob may have been lowered since the batch was opened.
                let wait_ns = before.wait_ns.min(delay_limit_ns(params));
                let end_ns = before.open_ns.saturating_add(wait_ns);
                assert!(out.wake_ns <= end_ns, "{context}");
                assert!(
                    input.now_ns < out.wake_ns,
                    "a wake-up in the past: {context}"
                );
            }
        }
        Step::Close => {
            assert!(!held, "{context}");
            if batches_by_pid(params) && before.hold_ns <= delay_limit_ns(params) {
                assert!(after.hold_ns <= delay_limit_ns(params), "{context}");
            }
            if before.hold_ns >= -1 {
                assert!(after.hold_ns >= -1, "{context}");
            }
        }
        Step::Copyout => assert!(
            [0, 1, 2].contains(&after.copy_active) || after.copy_active == before.copy_active,
            "{context}"
        ),
    }
    if step != Step::Copyout {
        assert_eq!(
            (after.copy_active, after.copy_clean, after.copy_backoff),
            (before.copy_active, before.copy_clean, before.copy_backoff),
            "batching wrote copy-out's state: {context}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn single_steps(
        params in wild_params(),
        state in wild_state(),
        input in wild_input(),
    ) {
        for step in Step::ALL {
            let mut after = state;
            let out = control_step(step, &params, &mut after, &input);
            check(step, &params, &state, &after, &input, &out);

            let mut again = state;
            prop_assert_eq!(control_step(step, &params, &mut again, &input), out);
            prop_assert_eq!(again, after);
        }
        complete_events(&params, &state);
        if copyout_is_idle(&params, &state, &input) {
            let mut after = state;
            prop_assert_eq!(control_step(Step::Copyout, &params, &mut after, &input).copy, 0);
            prop_assert_eq!(after, state);
        }
    }

    /// Whatever passes gets to where OPEN and CLOSE get to; and a lone stream's commit passes.
    #[test]
    fn a_commit_that_passes_is_one_that_was_opened_and_closed(
        settings in settings(),
        state in wild_state(),
        input in wild_input(),
        lone in any::<bool>(),
    ) {
        let (mut params, mut before, mut input) = (settings, state, input);
        if lone {
            params.batching = Batching::Pid.value();
            params.setpoint_events = 0;
            (before.trial_phase, input.urgent, input.expected_events) = (0, 0, 0);
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

    #[test]
    fn urgent_closes_at_once(params in wild_params(), state in wild_state(), mut input in wild_input()) {
        prop_assume!(input.urgent != 0);
        for step in [Step::Open, Step::Poll] {
            let out = control_step(step, &params, &mut state.clone(), &input);
            prop_assert_eq!(out.reason, Reason::Urgent.value());
        }
        input.urgent = 0;
        let out = control_step(Step::Open, &params, &mut state.clone(), &input);
        prop_assert_ne!(out.reason, Reason::Urgent.value());
    }

    /// A larger error, a larger proportional term; more expected, a larger
    /// target; a longer average commit, a larger limit.
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

        let limits = [low, high].map(|commit_avg_ns| {
            let mut state = state;
            control_step(Step::Open, &params, &mut state, &Input { commit_avg_ns, ..input });
            state.limit_ns
        });
        prop_assert!(limits[0] <= limits[1]);
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
fn fewer_than_nobody_are_expected_by_nobody() {
    let input = Input {
        events: 3,
        expected_events: -2,
        commit_avg_ns: 1_000_000,
        ..Input::default()
    };
    let mut state = State::default();
    let out = control_step(Step::Open, &Params::default(), &mut state, &input);
    assert_eq!(state.setpoint_now_events, 3);
    assert_eq!(out.reason, Reason::Now.value());
}

/// An average that comes out as 0, as no history leaves it.
#[test]
fn an_average_step_of_nothing_divides_nothing() {
    let mut state = State {
        step_ns: -1,
        closed_ns: 1,
        ..State::default()
    };
    let input = Input {
        now_ns: 11,
        events: 1,
        ..Input::default()
    };
    let out = control_step(Step::Close, &Params::default(), &mut state, &input);
    assert_eq!((state.step_ns, out.dt_milli), (0, 10_000));
}

/// Bytes as a program: each pair picks a step and what changes before it. This
/// walks through states that only a history can reach.
fn walk(bytes: &[u8], mut params: Params) {
    let mut state = State::default();
    let mut input = Input {
        now_ns: 1,
        ..Input::default()
    };
    let mut returns = Returns::new();
    let mut open_limit_ns = None;
    for pair in bytes.chunks_exact(2) {
        let amount = 1_i64 << (pair[1] & 63);
        match (pair[0] >> 2) % 19 {
            0 => input.now_ns = input.now_ns.saturating_add(amount),
            1 => input.events = i64::from(pair[1]),
            2 => input.events = input.events.saturating_add(amount),
            3 => input.last_event_ns = input.now_ns,
            4 => input.commit_avg_ns = amount,
            5 => input.commit_avg_ns = 0,
            6 => input.urgent = i64::from(pair[1] & 1),
            7 => input.expected_events = amount,
            8 => {
                returns.arrive(u32::from(pair[1]), u32::from(pair[0]));
                input.expected_events = returns.expected(u32::from(pair[1]));
            }
            // One more than there are: an unknown one holds nothing.
            9 => {
                let last = Batching::ALL[Batching::ALL.len() - 1].value();
                params.batching = i64::from(pair[1]) % (last + 2);
            }
            10 => params.setpoint_events = i64::from(pair[1]),
            11 => params.delay_limit_us = amount.min(1_000_000),
            12 => input.writes = amount,
            13 => input.writes_delayed = i64::from(pair[1]),
            14 => input.writes_saved = i64::from(pair[1]),
            15 => input.writes_delay_ns = amount,
            16 => input.copy_ns = amount,
            17 => input.commit_events = i64::from(pair[1]),
            _ => input.now_ns = input.now_ns.wrapping_sub(amount),
        }
        let step = Step::ALL[usize::from(pair[0] & 3)];
        let before = state;
        let out = control_step(step, &params, &mut state, &input);
        check(step, &params, &before, &state, &input, &out);
        if step == Step::Open {
            open_limit_ns = Some(delay_limit_ns(&params));
        }
        // However often it is looked at: never held beyond what was allowed.
        if let (Step::Poll, Some(limit_ns)) = (step, open_limit_ns)
            && out.reason == Reason::Hold.value()
        {
            assert!(out.wake_ns <= state.open_ns.saturating_add(limit_ns));
        }
        assert!(returns.expected(u32::from(pair[0])) >= 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        // LUC_FUZZ_CASES=1000000 makes a night of it.
        cases: std::env::var("LUC_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(500),
        ..ProptestConfig::default()
    })]

    #[test]
    fn histories(bytes in prop::collection::vec(any::<u8>(), 0..400), params in settings()) {
        walk(&bytes, params);
    }
}
