//! The copy-out heuristic.

mod common;

use common::{Rng, assert_written};
use luc_control::{Copyout, Input, Output, Params, State, Step, control_step};
use proptest::prelude::*;

fn copyout_step(params: &Params, state: &mut State, input: &Input) -> Output {
    control_step(Step::Copyout, params, state, input)
}

fn commit(handles: i64, writes_delayed: i64, buffers_spared: i64) -> Input {
    Input {
        handles,
        writes_delayed,
        buffers_spared,
        ..Input::default()
    }
}

fn fixed() -> Params {
    Params {
        copyout_adapt: 0,
        ..Params::default()
    }
}

#[test]
fn on_above_the_threshold_off_after_clean_runs() {
    let mut state = State::default();
    let mut step = |input| copyout_step(&fixed(), &mut state, &input).copy;
    assert_eq!(step(commit(1_000, 50, 0)), 0, "5% is not more than 5%");
    assert_eq!(step(commit(1_000, 51, 0)), 1);
    // A delay restarts the count.
    for clean in [3, 2, 0] {
        for _ in 0..clean {
            assert_eq!(step(commit(1_000, 0, 0)), 1);
        }
        assert_eq!(step(commit(1_000, 1, 0)), 1);
    }
    // A spared buffer counts as a delay.
    assert_eq!(step(commit(1_000, 0, 1)), 1);
    for left in (0..4).rev() {
        assert_eq!(step(commit(1_000, 0, 0)), i64::from(left > 0));
    }
    assert_eq!(step(commit(1_000, 50, 0)), 0);
}

#[test]
fn stopping_too_early_doubles_the_clean_runs_and_calm_halves_them() {
    let params = Params::default();
    let mut state = State::default();
    let mut on_for = Vec::new();
    for _ in 0..16 {
        assert_eq!(
            copyout_step(&params, &mut state, &commit(10, 10, 0)).copy,
            1
        );
        let mut commits = 1;
        while copyout_step(&params, &mut state, &commit(10, 0, 0)).copy == 1 {
            commits += 1;
        }
        on_for.push(commits);
    }
    assert_eq!(on_for[..4], [4, 8, 16, 32]);
    assert_eq!(on_for.last(), Some(&(4 << 12)), "{on_for:?}");
    assert_eq!(state.copy_backoff, 12, "bounded");
    // A long calm resets it.
    for _ in 0..100_000 {
        copyout_step(&params, &mut state, &commit(10, 0, 0));
    }
    assert_eq!((state.copy_phase, state.copy_backoff), (0, 0), "off");
}

/// The published heuristic, written independently: on above the threshold, off after N commits in a
/// row without a delay.
#[derive(Default)]
struct Heuristic {
    on: bool,
    clean: i64,
}

impl Heuristic {
    fn step(&mut self, params: &Params, hurt: i64, handles: i64) -> bool {
        if self.on {
            self.clean = if hurt > 0 { 0 } else { self.clean + 1 };
            self.on = self.clean < params.copyout_clean_runs;
        } else if hurt * 1_000 > handles.max(1) * params.copyout_threshold_permille && hurt > 0 {
            (self.on, self.clean) = (true, 0);
        }
        self.on
    }
}

proptest! {
    /// The published controller does not count spared buffers, so they are passed to it as delays.
    #[test]
    fn without_adaptation_it_is_the_published_heuristic(
        seed in any::<u64>(),
        threshold in 0_i64..=1_000,
        clean_runs in 1_i64..10,
        share in 1_i64..200,
    ) {
        let mut rng = Rng(seed);
        let auto = Params {
            copyout_threshold_permille: threshold,
            copyout_clean_runs: clean_runs,
            ..fixed()
        };
        let published = Params { copyout: Copyout::Published.value(), ..auto };
        let mut states = [State::default(); 2];
        let mut heuristic = Heuristic::default();
        for commit_number in 0..300 {
            let writes = rng.below(200);
            let mut hurt = || if rng.below(3) == 0 { rng.below(share) } else { 0 };
            let (delayed, saved) = (hurt(), hurt());
            let got = copyout_step(&auto, &mut states[0], &commit(writes, delayed, saved));
            let all = commit(writes, delayed + saved, 0);
            let as_published = copyout_step(&published, &mut states[1], &all);
            let wanted = i64::from(heuristic.step(&auto, delayed + saved, writes));
            let copies = [got.copy, as_published.copy];
            prop_assert_eq!(copies, [wanted; 2], "commit {}", commit_number);
        }
    }

    /// Copy-out stays on for a bounded number of clean commits.
    #[test]
    fn bounded(seed in any::<u64>(), clean_runs in 1_i64..100) {
        let mut rng = Rng(seed);
        let params = Params { copyout_clean_runs: clean_runs, ..Params::default() };
        let mut state = State::default();
        let mut clean = 0;
        for _ in 0..2_000 {
            let hurt = if rng.below(8) == 0 { rng.below(100) } else { 0 };
            let out = copyout_step(&params, &mut state, &commit(100, hurt, 0));
            clean = if hurt > 0 { 0 } else { clean + 1 };
            prop_assert!((0..=12).contains(&state.copy_backoff));
            let most = clean_runs << state.copy_backoff;
            prop_assert!(out.copy == 0 || clean < most);
        }
    }
}

#[test]
fn a_journal_short_of_space_pauses_it_and_an_urgent_wait_does_not() {
    let params = Params::default();
    let mut state = State::default();
    let hurt = Input {
        handles: 100,
        writes_delayed: 50,
        ..Input::default()
    };
    assert_eq!(copyout_step(&params, &mut state, &hurt).copy, 1);
    let urgent = Input { urgent: 1, ..hurt };
    assert_eq!(copyout_step(&params, &mut state, &urgent).copy, 1);
    let short = Input {
        space_short: 1,
        ..urgent
    };
    assert_eq!(copyout_step(&params, &mut state, &short).copy, 0);
    let pause = (0..32)
        .take_while(|_| copyout_step(&params, &mut state, &hurt).copy == 0)
        .count();
    assert_eq!(pause, 31);
}

/// Runs a load: without copies each commit delays one operation for `delay_ns`, with copies it
/// takes `copy_ns` longer for each of two waiting tasks. Returns how many commits copied.
fn load(state: &mut State, params: &Params, delay_ns: i64, copy_ns: i64, commits: usize) -> usize {
    let mut copying = false;
    let mut copies = 0;
    for _ in 0..commits {
        let input = if copying {
            Input {
                copy_ns,
                ..commit(4, 0, 4)
            }
        } else {
            Input {
                writes_delay_ns: delay_ns,
                ..commit(4, i64::from(delay_ns > 0), 0)
            }
        };
        let input = Input {
            commit_events: 2,
            ..input
        };
        copying = copyout_step(params, state, &input).copy == 1;
        copies += usize::from(copying);
    }
    copies
}

/// Unlike this, the published heuristic does not weigh the cost.
#[test]
fn copies_stay_where_they_save_more_than_they_cost() {
    for (params, delay_ns, commits, wanted) in [
        (Params::default(), 10_000, 10_000, 1..100),
        (Params::default(), 1_000_000, 1_000, 981..1_001),
        (fixed(), 10_000, 1_000, 1_000..1_001),
    ] {
        let copies = load(&mut State::default(), &params, delay_ns, 40_000, commits);
        assert!(
            wanted.contains(&copies),
            "{delay_ns} ns: {copies} of {commits}"
        );
    }
}

#[test]
fn the_cost_of_copying_is_forgotten_where_delays_go_on() {
    let params = Params::default();
    let mut state = State::default();
    load(&mut state, &params, 10_000, 40_000, 100);
    // Copies have become cheap, which the controller notices only if it tries them.
    let copies = load(&mut state, &params, 10_000, 1_000, 2_000);
    assert!(copies > 1_000, "{copies} of 2000");
}

#[test]
fn a_load_without_delays_comes_to_rest() {
    let mut state = State::default();
    load(&mut state, &Params::default(), 1_000, 40_000, 100);
    load(&mut state, &Params::default(), 0, 40_000, 200);
    assert_eq!(state.copy_delay_ns, 0);
    let before = state;
    load(&mut state, &Params::default(), 0, 40_000, 10);
    assert_eq!(state, before);
}

/// The worked example of the essay: necessary copies, clean runs, a stop that is too early.
#[test]
fn a_stop_that_was_too_early() {
    let mut state = State::default();
    let mut rows = Vec::new();
    let delayed = (8, 0, 0);
    let clean = (0, 0, 60);
    let commits = [delayed, (0, 9, 60), clean, clean, clean, clean, delayed];
    for (number, (delayed, saved, copy_us)) in (1..).zip(commits) {
        let input = Input {
            writes_delay_ns: delayed * 2_000_000,
            copy_ns: copy_us * 1_000,
            commit_events: 4,
            ..commit(100, delayed, saved)
        };
        let copy = copyout_step(&Params::default(), &mut state, &input).copy;
        rows.push(format!(
            " *\t{number}\t{delayed}\t{saved}\t{copy_us}\t{}\t{}\t{}\t{}\t{copy}\n",
            state.copy_delay_ns, state.copy_cost_ns, state.copy_clean, state.copy_backoff
        ));
    }
    assert_written(include_str!("../../../control/copyout_auto.c"), &rows);
}
