//! The copy-out controllers.

mod common;

use common::{Rng, assert_written};
use luc_control::{Copies, Copyout, Input, Params, State, Step, control_step};
use proptest::prelude::*;

/// Commits that rest after the last sleep or needed copy, by the contended controller.
const REST: usize = 256;

fn step(copyout: Copyout, state: &mut State, input: &Input) -> Copies {
    let params = Params {
        copyout: copyout.value(),
        ..Params::default()
    };
    Copies::from_value(control_step(Step::Copyout, &params, state, input).copy).expect("copies")
}

fn commit(handles: i64, writes_delayed: i64, buffers_spared: i64) -> Input {
    Input {
        handles,
        writes_delayed,
        buffers_spared,
        ..Input::default()
    }
}

#[test]
fn published_copies_above_the_threshold_until_clean_runs() {
    let mut state = State::default();
    let mut step = |input| step(Copyout::Published, &mut state, &input);
    assert_eq!(
        step(commit(1_000, 50, 0)),
        Copies::None,
        "5% is not more than 5%"
    );
    assert_eq!(step(commit(1_000, 51, 0)), Copies::All);
    // A delay in between starts the count anew; a needed copy is not counted.
    for clean in [3, 2, 0] {
        for _ in 0..clean {
            assert_eq!(step(commit(1_000, 0, 9)), Copies::All);
        }
        assert_eq!(step(commit(1_000, 1, 0)), Copies::All);
    }
    for left in (0..4).rev() {
        let wanted = if left > 0 { Copies::All } else { Copies::None };
        assert_eq!(step(commit(1_000, 0, 0)), wanted);
    }
    assert_eq!(step(commit(1_000, 50, 0)), Copies::None);
}

#[test]
fn one_sleep_or_one_needed_copy_keeps_contended_buffers_copied() {
    let mut state = State::default();
    let mut step = |input| step(Copyout::Contended, &mut state, &input);
    assert_eq!(step(commit(1_000, 0, 0)), Copies::None);
    for hurt in [commit(1_000_000, 1, 0), commit(1_000_000, 0, 1)] {
        assert_eq!(step(hurt), Copies::Contended);
        let copied = (0..=REST)
            .take_while(|_| step(commit(1_000, 0, 0)) == Copies::Contended)
            .count();
        assert_eq!(copied, REST - 1);
    }
}

/// The published heuristic, written down again: on above the threshold, off after `clean_runs`
/// commits in a row without a delay.
#[derive(Default)]
struct Heuristic {
    on: bool,
    clean: i64,
}

impl Heuristic {
    fn step(&mut self, params: &Params, delayed: i64, handles: i64) -> bool {
        if self.on {
            self.clean = if delayed > 0 { 0 } else { self.clean + 1 };
            self.on = self.clean < params.copyout_clean_runs;
        } else if delayed * 1_000 > handles.max(1) * params.copyout_threshold_permille
            && delayed > 0
        {
            (self.on, self.clean) = (true, 0);
        }
        self.on
    }
}

proptest! {
    #[test]
    fn published_is_the_heuristic(
        seed in any::<u64>(),
        threshold in 0_i64..=1_000,
        clean_runs in 1_i64..10,
        share in 1_i64..200,
    ) {
        let mut rng = Rng(seed);
        let params = Params {
            copyout: Copyout::Published.value(),
            copyout_threshold_permille: threshold,
            copyout_clean_runs: clean_runs,
            ..Params::default()
        };
        let mut state = State::default();
        let mut heuristic = Heuristic::default();
        for commit_number in 0..300 {
            let handles = rng.below(200);
            let delayed = if rng.below(3) == 0 { rng.below(share) } else { 0 };
            let input = commit(handles, delayed, rng.below(share));
            let got = control_step(Step::Copyout, &params, &mut state, &input).copy;
            let wanted = i64::from(heuristic.step(&params, delayed, handles));
            prop_assert_eq!(got, wanted * Copies::All.value(), "commit {}", commit_number);
        }
    }

    /// Contended buffers are copied exactly while one of the last commits hurt an operation, and
    /// the state that another controller left behind does not matter for longer than that.
    #[test]
    fn contended_copies_while_operations_are_hurt(seed in any::<u64>(), left in any::<i64>()) {
        let mut rng = Rng(seed);
        let mut state = State {
            copy_left_commits: left,
            ..State::default()
        };
        let mut since = None;
        for _ in 0..2_000 {
            let hurt = if rng.below(300) == 0 { 1 + rng.below(100) } else { 0 };
            let copies = step(Copyout::Contended, &mut state, &commit(100, hurt, 0));
            since = if hurt > 0 { Some(0) } else { since.map(|commits| commits + 1) };
            if let Some(commits) = since {
                prop_assert_eq!(copies == Copies::Contended, commits < REST);
            }
        }
    }
}

/// The worked example of the essay.
#[test]
fn a_sleep_a_needed_copy_and_one_that_is_not() {
    let mut state = State::default();
    let mut rows = Vec::new();
    for (number, (delayed, spared)) in (1..).zip([(1, 0), (0, 1), (0, 0)]) {
        let copies = step(
            Copyout::Contended,
            &mut state,
            &commit(100, delayed, spared),
        );
        rows.push(format!(
            " *\t{number}\t{delayed}\t{spared}\t{}\t{}\n",
            state.copy_left_commits,
            copies.value()
        ));
    }
    assert_written(include_str!("../../../control/copyout_contended.c"), &rows);
}
