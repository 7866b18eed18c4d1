//! Holding against not holding: the trial finds the faster one and stays with it.

mod common;

use common::assert_written;
use luc_control::{Input, Output, Params, State, Step, TrialPhase, control_step};

const OFF: i64 = TrialPhase::Off as i64;
const FREE: i64 = TrialPhase::Free as i64;
const STAY_FREE: i64 = TrialPhase::StayFree as i64;
const STAY_HELD: i64 = TrialPhase::StayHeld as i64;
/// `enum luc_reason`.
const HOLD: i64 = 0;

const COMMIT_NS: i64 = 1_000_000;
/// Commits that a first verdict holds for, where one round was enough for it.
const STAY_CLEAR: usize = 512;

/// A journal whose next batch takes `held_ns` when it was held and `free_ns` when not.
struct Journal {
    state: State,
    now_ns: i64,
    held_ns: i64,
    free_ns: i64,
    /// How many of the four that are out come while a commit is held.
    came: i64,
    /// `enum luc_mode`.
    mode: i64,
}

const OBSERVE: i64 = 0;
const STEER: i64 = 1;

impl Journal {
    fn new(held_ns: i64, free_ns: i64) -> Self {
        Self {
            state: State::default(),
            now_ns: 1_000_000_000,
            held_ns,
            free_ns,
            came: 2,
            mode: STEER,
        }
    }

    fn step_with(&mut self, step: Step, input: Input) -> Output {
        let params = Params {
            mode: self.mode,
            ..Params::default()
        };
        control_step(step, &params, &mut self.state, &input)
    }

    fn input(&self, events: i64, expected_events: i64, last_event_ns: i64) -> Input {
        Input {
            now_ns: self.now_ns,
            events,
            expected_events,
            last_event_ns,
            commit_avg_ns: COMMIT_NS,
            ..Input::default()
        }
    }

    fn step(&mut self, step: Step, events: i64, expected: i64, last_event_ns: i64) -> Output {
        self.step_with(step, self.input(events, expected, last_event_ns))
    }

    /// One commit: four tasks are there, some of four more come while it is held; two are not
    /// enough for the estimate to call the wait a gain. Tells whether it was held.
    fn commit(&mut self) -> bool {
        let last_event_ns = self.now_ns;
        let held = self.step(Step::Open, 4, 4, last_event_ns).reason == HOLD;
        if held {
            self.now_ns += if self.came > 2 { 300_000 } else { 900_000 };
            self.step(Step::Close, 4 + self.came, 4 - self.came, self.now_ns - 100);
            self.now_ns += self.held_ns;
        } else {
            self.step(Step::Close, 4, 4, last_event_ns);
            self.now_ns += self.free_ns;
        }
        held
    }

    /// The same for commits that are only observed: they are not held, whatever the answer is.
    fn observe(&mut self, commits: usize) {
        self.mode = OBSERVE;
        for _ in 0..commits {
            let last_event_ns = self.now_ns;
            self.step(Step::Open, 4, 4, last_event_ns);
            self.step(Step::Close, 4, 4, last_event_ns);
            self.now_ns += self.free_ns;
        }
        self.mode = STEER;
    }

    fn run_until(&mut self, phase: i64) -> usize {
        for commits in 0..200 {
            if self.state.trial_phase == phase {
                return commits;
            }
            self.commit();
        }
        panic!(
            "phase {} after 200 commits, not {phase}",
            self.state.trial_phase
        );
    }
}

/// Two that come of four make the estimate call each wait a loss, four a gain. The verdict goes by
/// the rate alone, and is kept.
#[test]
fn the_faster_one_stays_whatever_the_estimate() {
    for (held_ns, free_ns, came, winner) in [
        (2_000_000, 1_000_000, 2, STAY_FREE),
        (100_000, 2_000_000, 2, STAY_HELD),
        (4_000_000, 1_000_000, 4, STAY_FREE),
        (1_000_000, 2_000_000, 4, STAY_HELD),
    ] {
        let mut journal = Journal::new(held_ns, free_ns);
        journal.came = came;
        assert!(journal.commit(), "nothing speaks against holding at first");
        journal.run_until(winner);
        for _ in 0..STAY_CLEAR - 1 {
            assert_eq!(journal.commit(), winner == STAY_HELD, "{held_ns} {came}");
        }
    }
}

/// All four come, after a pause before each commit.
#[test]
fn bursts_that_only_gain_are_not_tried() {
    let mut journal = Journal::new(1_000_000, 2_000_000);
    journal.came = 4;
    for _ in 0..200 {
        journal.now_ns += 20 * COMMIT_NS;
        assert!(journal.commit());
    }
    assert_eq!(journal.state.trial_winner, OFF);
}

/// Times of commits that differ by up to a third, by chance: a gain or loss of 4 % is still found.
#[test]
fn a_small_difference_gets_more_rounds() {
    let verdict = |seed: i64, held_ns: i64, free_ns: i64| {
        let mut journal = Journal::new(held_ns, free_ns);
        journal.came = 4;
        let mut random = seed;
        let mut rounds = 0;
        for _ in 0..1000 {
            random = (random * 1_103_515_245 + 12_345) & 0x7fff_ffff;
            journal.now_ns += (random >> 8) % 800_000;
            rounds = rounds.max(journal.state.trial_rounds);
            journal.commit();
            if journal.state.trial_winner != OFF {
                return (journal.state.trial_winner, rounds);
            }
        }
        panic!("no verdict: {:?}", journal.state);
    };
    // Not held, chance included, eight events take 2.8 ms; held, 2.9 or 2.7 of which 0.3 are the hold.
    let lose: Vec<_> = (1..=20)
        .map(|seed| verdict(seed, 2_200_000, 1_000_000))
        .collect();
    let win: Vec<_> = (1..=20)
        .map(|seed| verdict(seed, 2_000_000, 1_000_000))
        .collect();
    let right = |all: &[(i64, i64)], phase| all.iter().filter(|one| one.0 == phase).count();
    assert!(right(&lose, STAY_FREE) >= 16, "{lose:?}");
    assert!(right(&win, STAY_HELD) >= 16, "{win:?}");
    assert!(lose.iter().any(|one| one.1 > 0), "{lose:?}");
}

#[test]
fn a_verdict_confirmed_stays_twice_as_long() {
    let mut journal = Journal::new(2_000_000, 1_000_000);
    journal.run_until(STAY_FREE);
    let first = journal.state.trial_stay;
    while journal.state.trial_phase == STAY_FREE {
        journal.commit();
    }
    journal.run_until(STAY_FREE);
    assert_eq!(journal.state.trial_stay, 2 * first);
}

#[test]
fn a_loser_that_becomes_the_winner_is_found() {
    let mut journal = Journal::new(2_000_000, 1_000_000);
    journal.run_until(STAY_FREE);
    (journal.held_ns, journal.free_ns) = (100_000, 2_000_000);
    while journal.state.trial_phase == STAY_FREE {
        journal.commit();
    }
    journal.run_until(STAY_HELD);
}

/// Bursts of commits with long pauses, held or not. Each commit serves six sync calls,
/// which wait for its start for `HELD_WAIT_NS` where it was held, for `free_wait_ns` where not.
struct Bursts {
    journal: Journal,
    commits: usize,
    calls: i64,
    free_wait_ns: i64,
    seen: usize,
    pause_ns: i64,
}

const HELD_WAIT_NS: i64 = 900_000;

impl Bursts {
    fn new(commits: usize, free_wait_ns: i64) -> Self {
        Self {
            journal: Journal::new(0, 0),
            commits,
            calls: 1,
            free_wait_ns,
            seen: 0,
            pause_ns: 20 * COMMIT_NS,
        }
    }

    fn input(&self, events: i64, events_wait_ns: i64) -> Input {
        Input {
            now_ns: self.journal.now_ns,
            events,
            events_wait_ns,
            expected_events: 8 - events,
            syncing_events: 2,
            calls: self.calls,
            last_event_ns: self.journal.now_ns - 100,
            commit_avg_ns: COMMIT_NS,
            ..Input::default()
        }
    }

    fn commit(&mut self) -> bool {
        if self.seen.is_multiple_of(self.commits) {
            // Of no two bursts the same.
            self.pause_ns = 20 * COMMIT_NS + (self.pause_ns * 7) % (80 * COMMIT_NS);
            self.journal.now_ns += self.pause_ns;
        }
        self.seen += 1;
        self.calls += 6;
        let held = self.journal.step_with(Step::Open, self.input(4, 0)).reason == HOLD;
        let wait_ns = if held {
            HELD_WAIT_NS
        } else {
            self.free_wait_ns
        };
        self.journal.now_ns += wait_ns;
        self.journal
            .step_with(Step::Close, self.input(6, 6 * wait_ns));
        self.journal.now_ns += COMMIT_NS;
        held
    }

    /// How many of the next commits are held.
    fn held(&mut self, commits: usize) -> usize {
        (0..commits).filter(|_| self.commit()).count()
    }
}

#[test]
fn bursts_that_lose_are_given_up_and_bursts_that_win_are_held() {
    for commits in [1, 2, 5, 11, 12, 40, 200] {
        for (free_wait_ns, wins) in [(100_000, false), (2_000_000, true)] {
            let mut bursts = Bursts::new(commits, free_wait_ns);
            bursts.held(400);
            let held = bursts.held(1_000);
            let right = if wins { held > 850 } else { held < 150 };
            assert!(right, "{commits} commits, win {wins}: {held} of 1000 held");
        }
    }
}

/// A call that finds its data committed has not waited; one that waits has.
#[test]
fn calls_that_need_no_commit_count() {
    let mut bursts = Bursts::new(5, 1_000_000);
    let mut commit = || {
        if bursts.seen.is_multiple_of(5) {
            bursts.journal.now_ns += 40 * COMMIT_NS;
        }
        bursts.seen += 1;
        bursts.calls += 6;
        let held = bursts
            .journal
            .step_with(Step::Open, bursts.input(1, 0))
            .reason
            == HOLD;
        if held {
            bursts.journal.now_ns += HELD_WAIT_NS;
        }
        let events = if held { 6 } else { 1 };
        let input = bursts.input(events, events * HELD_WAIT_NS);
        bursts.journal.step_with(Step::Close, input);
        bursts.journal.now_ns += COMMIT_NS;
        held
    };
    // Not held, one of six waits, as long as each of the six does where it is held.
    let held = (0..1_400).map(|_| commit()).skip(400).filter(|held| *held);
    let held = held.count();
    assert!(held < 150, "{held} of 1000 held");
}

/// Two convoys in a closed loop. A round of theirs is a commit for `held` of them where it is held, one
/// for `free` where not: calls, time until the next commit is asked for, wait of each.
struct Loops {
    bursts: Bursts,
    held: (i64, i64, i64),
    free: (i64, i64, i64),
    /// How long a commit is held; nearly as long as it takes makes the estimate doubt.
    hold_ns: i64,
    /// A pause of this length after every so many commits.
    pause: (usize, i64),
    /// Only after one that was held.
    pause_if_held: bool,
    was_held: bool,
}

impl Loops {
    fn new(held: (i64, i64, i64), free: (i64, i64, i64)) -> Self {
        let bursts = Bursts::new(1, 0);
        let pause = (usize::MAX, 0);
        Self {
            bursts,
            held,
            free,
            hold_ns: COMMIT_NS / 2,
            pause,
            pause_if_held: false,
            was_held: false,
        }
    }

    fn input(&self, events: i64, wait_ns: i64, expected_events: i64) -> Input {
        Input {
            expected_events,
            handles: events,
            ..self.bursts.input(events, (wait_ns - COMMIT_NS) * events)
        }
    }

    fn commit(&mut self) -> bool {
        self.bursts.seen += 1;
        let pauses = self.was_held || !self.pause_if_held;
        if pauses && self.bursts.seen.is_multiple_of(self.pause.0) {
            self.bursts.journal.now_ns += self.pause.1;
        }
        let input = self.input(self.free.0, self.free.2, self.free.0);
        let held = self.bursts.journal.step_with(Step::Open, input).reason == HOLD;
        let (calls, period_ns, wait_ns) = if held { self.held } else { self.free };
        self.bursts.calls += calls;
        let hold_ns = if held { self.hold_ns } else { 0 };
        self.bursts.journal.now_ns += hold_ns;
        self.bursts
            .journal
            .step_with(Step::Close, self.input(calls, wait_ns, 0));
        self.bursts.journal.now_ns += period_ns - hold_ns;
        self.was_held = held;
        held
    }

    fn verdict(&mut self) -> i64 {
        for _ in 0..1_000 {
            self.commit();
            if self.bursts.journal.state.trial_winner != OFF {
                return self.bursts.journal.state.trial_winner;
            }
        }
        panic!("no verdict: {:?}", self.bursts.journal.state);
    }
}

/// As varmail's 64 threads on a disk that takes 32 requests at once: each call waits less for its
/// commit where that is held, but more for the next one to be asked for.
#[test]
fn calls_that_wait_less_but_are_fewer_are_a_loss() {
    let free = (32, 2 * COMMIT_NS, 2 * COMMIT_NS);
    let mut loops = Loops::new((64, 9 * COMMIT_NS / 2, 3 * COMMIT_NS / 2), free);
    assert_eq!(loops.verdict(), STAY_FREE);
    // Found in one round, so that little is lost before stock is back.
    let state = &loops.bursts.journal.state;
    assert_eq!((state.trial_rounds, state.trial_stay), (1, 512));
    let (free_milli, calls) = (state.trial_free_milli, state.trial_calls);
    let rows = [
        format!(
            "24 ms\t{} a second\twait {} ns",
            free_milli / 1_000,
            state.trial_free_wait_ns
        ),
        format!("{calls} calls in 54 ms\t{} a second", calls * 1_000 / 54),
        format!("wait {} ns\n", state.trial_wait_ns / calls),
        format!("throughput {} permille", state.trial_gain_permille),
        format!("waiting {} permille", state.trial_wait_gain_permille),
    ];
    assert_written(include_str!("../../../control/luc_trial.c"), &rows);
}

/// A shorter wait, or more calls by threads that wait longer in line for a processor.
#[test]
fn calls_that_are_more_are_a_gain() {
    let free = (32, 2 * COMMIT_NS, 2 * COMMIT_NS);
    for (period, wait) in [(6, 3), (7, 5)] {
        let mut loops = Loops::new((64, period * COMMIT_NS / 2, wait * COMMIT_NS / 2), free);
        assert_eq!(loops.verdict(), STAY_HELD, "{period} {wait}");
    }
}

/// Pauses that do not depend on holding.
#[test]
fn loops_that_pause_are_judged_by_what_they_do_between_pauses() {
    let free = (32, 2 * COMMIT_NS, 2 * COMMIT_NS);
    for (held_ns, winner) in [(9, STAY_FREE), (6, STAY_HELD)] {
        for commits in [3, 10, 20] {
            let held = (64, held_ns * COMMIT_NS / 2, 3 * COMMIT_NS / 2);
            let mut loops = Loops::new(held, free);
            loops.pause = (commits, 40 * COMMIT_NS);
            loops.hold_ns = 9 * COMMIT_NS / 10;
            assert_eq!(loops.verdict(), winner, "{held_ns} {commits}");
        }
    }
}

/// As oltp: stock does other work beside the syncs, and held it is done after them.
#[test]
fn pauses_that_holding_makes_count() {
    let held = (64, 3 * COMMIT_NS, 3 * COMMIT_NS / 2);
    // A third more between pauses; in all a sixth more, or a fifth less.
    for (commits, pause_ns, winner) in [
        (20, 5 * COMMIT_NS, STAY_HELD),
        (4, 8 * COMMIT_NS, STAY_FREE),
    ] {
        let mut loops = Loops::new(held, (32, 2 * COMMIT_NS, 2 * COMMIT_NS));
        loops.pause = (commits, pause_ns);
        loops.pause_if_held = true;
        loops.hold_ns = 9 * COMMIT_NS / 10;
        assert_eq!(loops.verdict(), winner, "{commits} {pause_ns}");
    }
}

/// As shared-files: a pause does not put off the proof where calls found their data committed
/// meanwhile, for the estimate is wrong there.
#[test]
fn bursts_with_calls_that_need_no_commit_are_proven() {
    let winner = |unneeded| {
        let held = (64, 3 * COMMIT_NS, 3 * COMMIT_NS / 2);
        let mut loops = Loops::new(held, (32, 2 * COMMIT_NS, 2 * COMMIT_NS));
        loops.pause = (2, 40 * COMMIT_NS);
        for _ in 0..200 {
            loops.bursts.calls += unneeded;
            loops.commit();
        }
        loops.bursts.journal.state.trial_winner
    };
    // Two are in sync calls.
    assert_eq!(winner(2), OFF);
    assert_ne!(winner(3), OFF);
}

/// Stock blocks writers. A burst that begins anew keeps its copies while it is tried without
/// holding, and without a pause for a window it does not.
#[test]
fn bursts_keep_their_copies_in_trials() {
    for (commits, calls, copies) in [(2, 6, true), (2, 9, false), (usize::MAX, 6, false)] {
        let mut bursts = Bursts::new(commits, 100_000);
        let mut copied = 0;
        let mut free = 0;
        for _ in 0..600 {
            bursts.calls += calls - 6;
            bursts.commit();
            let state = &bursts.journal.state;
            let unheld = [FREE, STAY_FREE].contains(&state.trial_phase) && state.limit_ns > 0;
            let input = Input {
                now_ns: bursts.journal.now_ns,
                handles: 10,
                writes_delayed: 5,
                writes_delay_ns: 1_000_000,
                buffers_spared: 5,
                ..Input::default()
            };
            let copy = bursts.journal.step_with(Step::Copyout, input).copy != 0;
            free += usize::from(unheld);
            copied += usize::from(unheld && copy);
        }
        assert!(free > 100, "{free} of 600 unheld");
        assert_eq!(
            copied > 9 * free / 10,
            copies,
            "{commits} {calls}: {copied} of {free}"
        );
        assert_eq!(
            copied == 0,
            !copies,
            "{commits} {calls}: {copied} of {free}"
        );
    }
}

#[test]
fn hopeless_holding_is_given_up_early() {
    let held_in_trial = |held_ns| {
        let mut journal = Journal::new(held_ns, 1_000_000);
        while journal.state.trial_phase == OFF {
            journal.commit();
        }
        let mut held = 0;
        while journal.state.trial_phase != STAY_FREE {
            held += usize::from(journal.commit());
        }
        held
    };
    assert!(held_in_trial(3_000_000) < held_in_trial(1_000_000));
}

#[test]
fn stale_batches_teach_fresh_ones_nothing() {
    let mut journal = Journal::new(1_000_000, 1_000_000);
    for _ in 0..4 {
        // The first batch of a burst: all tasks come at once.
        let reason = journal.step(Step::Open, 1, 3, journal.now_ns).reason;
        assert_eq!(reason, HOLD, "the first batch of a burst is held");
        journal.now_ns += 10_000;
        journal.step(Step::Close, 4, 0, journal.now_ns);
        journal.now_ns += COMMIT_NS;
        // The last one sat through that commit; no task comes.
        let old_ns = journal.now_ns - COMMIT_NS;
        if journal.step(Step::Open, 1, 3, old_ns).reason == HOLD {
            journal.now_ns += 500_000;
        }
        journal.step(Step::Close, 1, 3, old_ns);
        journal.now_ns += 50 * COMMIT_NS;
    }
    assert!(journal.state.stale_skip_next > 1);
    assert_eq!(journal.state.fresh_skip_next, 1);
}

#[test]
fn an_urgent_commit_lets_the_next_ones_pass() {
    let mut journal = Journal::new(1_000_000, 1_000_000);
    let input = Input {
        urgent: 1,
        ..journal.input(1, 3, journal.now_ns)
    };
    journal.step_with(Step::Open, input);
    let held = (0..8).map(|_| journal.commit()).collect::<Vec<_>>();
    assert_eq!(held.iter().position(|&held| held), Some(4));
}

/// A hold that was only decided brings no task: that is no reason to ban the next one.
#[test]
fn what_is_only_observed_bans_nothing() {
    let mut journal = Journal::new(1_000_000, 2_000_000);
    journal.observe(200);
    assert!(journal.commit());
    // A ban that steering set is not used up by observing.
    journal.came = 0;
    journal.commit();
    assert_eq!(journal.state.fresh_skip, 1);
    journal.observe(200);
    assert_eq!(journal.state.fresh_skip, 1);
}

/// A window in which LUC observed begins anew, and no round is heard of it.
#[test]
fn the_trial_rests_while_luc_only_observes() {
    let mut journal = Journal::new(100_000, 2_000_000);
    journal.run_until(FREE);
    for _ in 0..10 {
        journal.commit();
    }
    journal.observe(500);
    let state = &journal.state;
    assert_eq!(
        (state.trial_phase, state.trial_rounds, state.trial_calls),
        (FREE, 0, 0)
    );
    // As `luc try` alternates: the verdict is that of steering alone.
    for (held_ns, free_ns, winner) in [
        (2_000_000, 1_000_000, STAY_FREE),
        (100_000, 2_000_000, STAY_HELD),
    ] {
        let mut journal = Journal::new(held_ns, free_ns);
        for _ in 0..20 {
            for _ in 0..100 {
                if journal.state.trial_phase != winner {
                    journal.commit();
                }
            }
            journal.observe(100);
        }
        assert_eq!(journal.state.trial_phase, winner);
        let left = journal.state.trial_left;
        journal.observe(1_000);
        assert_eq!(journal.state.trial_left, left, "no verdict ages");
    }
}
