//! The worked examples in the essays of `control/`: their numbers are those that the code gives.

use luc_control::{Decision, Input, Output, Params, Reason, State, Step, control_step};

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

/// One step of a controller with its defaults.
fn step(step: Step, state: &mut State, input: Input) -> Decision {
    let mut decision = Decision {
        step: step.value(),
        params: Params::default(),
        input,
        state: *state,
        out: Output::default(),
    };
    decision.out = control_step(step, &decision.params, state, &input);
    decision
}

/// Whether an essay holds each of these lines.
fn assert_written(essay: &str, lines: &[String]) {
    for line in lines {
        assert!(
            essay.contains(line),
            "not in the essay:\n{}",
            lines.join("\n")
        );
    }
}

/// The fields of a trace line that are not 0, wrapped as the essay wraps them.
fn wrapped(decision: &Decision) -> Vec<String> {
    let mut lines = vec![" *\tluc_decision: dev=254:0 tid=9".to_owned()];
    for (field, value) in Decision::fields().zip(decision.values()) {
        if value == 0 {
            continue;
        }
        let word = format!("{}={value}", field.name);
        let line = lines.last_mut().unwrap();
        if line.len() + word.len() < 78 {
            *line += " ";
            *line += &word;
        } else {
            lines.push(format!(" *\t{word}"));
        }
    }
    lines
}

/// Four tasks on a disk whose commits take 4 ms, a commit each 4.3 ms. Arrivals come 0.1 ms
/// apart, and the journal's thread is slow to wake in the second commit.
#[test]
fn four_tasks_and_commits_of_4_ms() {
    let mut state = State::default();
    let mut rows = Vec::new();
    let mut last = Decision::default();
    let commits = [(4, 300 * US), (5, 400 * US), (3, 1_200 * US)];
    for (commit, (came, waited_ns)) in (1..).zip(commits) {
        let open_ns = 1_000 * MS + (commit - 1) * 4_300 * US;
        let input = |events: i64, now_ns| Input {
            now_ns,
            events,
            events_wait_ns: (0..events).map(|n| now_ns - open_ns - n * 100 * US).sum(),
            expected_events: (4 - events).max(0),
            last_event_ns: open_ns + (events - 1) * 100 * US,
            commit_avg_ns: 4 * MS,
            ..Input::default()
        };
        let open = step(Step::Open, &mut state, input(1, open_ns));
        let end_ns = open_ns + waited_ns;
        let poll = step(Step::Poll, &mut state, input(came, end_ns));
        last = step(Step::Close, &mut state, input(came, end_ns));
        let milli = |value: i64| format!("{:.3}", value as f64 / 1e3);
        rows.push(format!(
            " *\t{}\t{}\t{}\t{}\t{came}\t{}\t{}\t{}\t{}\t{}\t{}",
            commit,
            last.state.setpoint_now_events,
            open.out.wake_ns - open_ns,
            Reason::from_value(poll.out.reason).unwrap(),
            milli(last.out.e_milli),
            milli(last.out.p_milli),
            milli(last.out.i_milli),
            milli(last.out.d_milli),
            milli(last.out.u_milli),
            state.hold_ns,
        ));
    }
    rows.extend(wrapped(&last));
    assert_written(include_str!("../../../control/batching_pid.c"), &rows);
}

/// Two convoys of 32 tasks. Unheld, a commit serves one of them each 2 ms; held, both each 4.5 ms.
#[test]
fn a_trial_of_one_round() {
    let mut state = State::default();
    let (mut now_ns, mut calls) = (1_000 * MS, 1);
    let mut held_calls = 0;
    while state.trial_winner == 0 {
        let input = |events: i64, wait_ns: i64, now_ns, calls| Input {
            now_ns,
            events,
            events_wait_ns: events * (wait_ns - MS),
            expected_events: 64 - events,
            calls,
            last_event_ns: now_ns - 100,
            commit_avg_ns: MS,
            writes: events,
            ..Input::default()
        };
        let open = step(Step::Open, &mut state, input(32, 2 * MS, now_ns, calls));
        let (events, period_ns, wait_ns, hold_ns) = if open.out.reason == Reason::Hold.value() {
            (64, 4_500 * US, 1_500 * US, 500 * US)
        } else {
            (32, 2 * MS, 2 * MS, 0)
        };
        calls += events;
        let close = input(events, wait_ns, now_ns + hold_ns, calls);
        step(Step::Close, &mut state, close);
        held_calls = state.trial_calls;
        now_ns += period_ns;
    }
    assert_eq!((state.trial_rounds, state.trial_stay), (1, 512));
    let rate = state.trial_free_milli / 1_000;
    let rows = [
        format!(
            "\tfree\t384 calls in 24 ms\t{rate} a second\twait {} ns",
            state.trial_free_wait_ns
        ),
        format!(
            "\theld\t{held_calls} calls in 54 ms\t{} a second\twait {} ns",
            held_calls * 1_000 / 54,
            state.trial_wait_ns / held_calls
        ),
        format!(
            "\tgain\tthroughput {} permille, waiting {} permille",
            state.trial_gain_permille, state.trial_wait_gain_permille
        ),
    ];
    assert_written(include_str!("../../../control/luc_trial.c"), &rows);
}

/// A commit with delays, copies that are needed, four clean runs, a stop that was too early.
#[test]
fn copy_out_stops_too_early() {
    let mut state = State::default();
    let mut rows = Vec::new();
    let delayed = (8, 0, 0);
    let clean = (0, 0, 60);
    let commits = [delayed, (0, 9, 60), clean, clean, clean, clean, delayed];
    for (commit, (delayed, saved, copy_us)) in (1..).zip(commits) {
        let input = Input {
            writes: 100,
            writes_delayed: delayed,
            writes_delay_ns: delayed * 2 * MS,
            writes_saved: saved,
            copy_ns: copy_us * US,
            commit_events: 4,
            ..Input::default()
        };
        let copy = step(Step::Copyout, &mut state, input).out.copy;
        rows.push(format!(
            " *\t{commit}\t{delayed}\t{saved}\t{copy_us}\t{}\t{}\t{}\t{}\t{copy}\n",
            state.copy_delay_ns, state.copy_cost_ns, state.copy_clean, state.copy_backoff
        ));
    }
    assert_written(include_str!("../../../control/copyout_auto.c"), &rows);
}
