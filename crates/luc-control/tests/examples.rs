//! The worked example in the essay of `control/batching_returns.c`.

mod common;

use common::assert_written;
use luc_control::{Input, Output, Params, Reason, State, Step, control_step};

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

/// Runs one step of the controller with its defaults.
fn step(step: Step, state: &mut State, input: &Input) -> Output {
    control_step(step, &Params::default(), state, input)
}

/// Four tasks on a disk whose commits take 4 ms. Arrivals come 0.1 ms apart.
#[test]
fn four_tasks_and_commits_of_4_ms() {
    let mut state = State::default();
    let mut rows = Vec::new();
    for (commit, came, held_ns) in [(1, 4, 300 * US), (2, 3, 700 * US)] {
        let open_ns = 1_000 * MS + (commit - 1) * 4_300 * US;
        let input = |events: i64, now_ns| Input {
            now_ns,
            events,
            expected_events: 4 - events,
            last_event_ns: open_ns + (events - 1) * 100 * US,
            commit_avg_ns: 4 * MS,
            ..Input::default()
        };
        let open = step(Step::Open, &mut state, &input(1, open_ns));
        let setpoint = state.setpoint_now_events;
        let end_ns = open_ns + held_ns;
        let poll = step(Step::Poll, &mut state, &input(came, end_ns));
        step(Step::Close, &mut state, &input(came, end_ns));
        // The loss by the essay's formula; the debt beside it comes from the controller.
        let lost = ((5 - came) * held_ns - (came - 1) * 4 * MS) / 4;
        rows.push(format!(
            " *\t{commit}\t1\t{setpoint}\t{}\t\t\t{}\t{came}\t{lost}\t{}",
            open.wake_ns - open_ns,
            Reason::from_value(poll.reason).unwrap(),
            state.debt_ns,
        ));
    }
    assert_written(include_str!("../../../control/batching_returns.c"), &rows);
}
