//! The worked example and the sample of output in the essay of `control/batching_pid.c`.

mod common;

use common::assert_written;
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
