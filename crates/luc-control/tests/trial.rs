//! The trial of holding against not holding: what it finds, how often it errs, what it costs.

mod common;

use common::Rng;
use luc_control::{Input, Params, State, Step, TrialPhase, control_step};

const OFF: i64 = TrialPhase::Off as i64;
const FREE: i64 = TrialPhase::Free as i64;
const HELD: i64 = TrialPhase::Held as i64;
const STAY_FREE: i64 = TrialPhase::StayFree as i64;
const STAY_HELD: i64 = TrialPhase::StayHeld as i64;
/// Value of `enum luc_reason`.
const HOLD: i64 = 0;

const COMMIT_NS: i64 = 1_000_000;
const S: i64 = 1_000_000_000;

/// Draws from about a normal distribution: the sum of twelve uniform numbers.
fn normal(drawn: &mut Rng) -> f64 {
    let unit = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
    (0..12).map(|_| unit(drawn.next_u64())).sum::<f64>() - 6.0
}

/// A load on a journal, whose commits serve four sync events each, held or not.
struct Journal {
    params: Params,
    state: State,
    now_ns: i64,
    drawn: Rng,
    /// How long a commit of stock takes on average; the next one follows at once.
    commit_ns: i64,
    /// Throughput of held commits divided by that of free ones.
    gain: f64,
    /// The gain in the time that a sync event waits: above 1, it waits less with holding.
    wait_gain: f64,
    /// Standard deviation of the logarithm of a commit's time.
    noise: f64,
    /// The load grows by this share with each commit.
    growth: f64,
    speed: f64,
    held: usize,
    free: usize,
}

impl Journal {
    fn new(gain: f64, noise: f64, seed: u64) -> Self {
        Self {
            params: Params::default(),
            state: State::default(),
            now_ns: S,
            drawn: Rng(seed),
            commit_ns: 2 * COMMIT_NS,
            gain,
            wait_gain: gain,
            noise,
            growth: 0.0,
            speed: 1.0,
            held: 0,
            free: 0,
        }
    }

    fn input(&self, events: i64, expected_events: i64) -> Input {
        Input {
            now_ns: self.now_ns,
            events,
            expected_events,
            last_event_ns: self.now_ns,
            commit_avg_ns: self.commit_ns,
            handles: 400,
            ..Input::default()
        }
    }

    fn step(&mut self, step: Step, input: &Input) -> i64 {
        control_step(step, &self.params, &mut self.state, input).reason
    }

    /// Runs one commit of four events; returns whether it was held.
    fn commit(&mut self) -> bool {
        let open = self.input(1, 3);
        let held = self.step(Step::Open, &open) == HOLD;
        let waited_ns = if held { self.commit_ns / 20 } else { 0 };
        self.now_ns += waited_ns;
        let arm = if held { self.gain } else { 1.0 };
        let wait_arm = if held { self.wait_gain } else { 1.0 };
        let noise = (self.noise * normal(&mut self.drawn)).exp();
        let commit_ns = self.commit_ns as f64 * noise;
        let mut close = self.input(4, 0);
        close.events_wait_ns = whole(10.0 * commit_ns / wait_arm) - 4 * self.commit_ns;
        self.step(Step::Close, &close);
        self.now_ns += whole(commit_ns / (arm * self.speed)) - waited_ns;
        self.speed *= 1.0 + self.growth;
        *(if held { &mut self.held } else { &mut self.free }) += 1;
        held
    }

    /// Runs for an hour. While a verdict stands, the trial only waits: that time passes at once.
    fn hour(mut self) -> Hour {
        let (begin_ns, end_ns) = (self.now_ns, self.now_ns + HOUR_S * S);
        let mut hour = Hour {
            verdict_s: f64::INFINITY,
            regret_s: 0.0,
        };
        let holds_best = self.gain > 1.0;
        while self.now_ns < end_ns {
            let before_ns = self.now_ns;
            let stays = [STAY_FREE, STAY_HELD].contains(&self.state.trial_phase);
            let held = if stays && self.state.trial_until_ns > before_ns {
                self.now_ns = self.state.trial_until_ns.min(end_ns);
                self.state.trial_phase == STAY_HELD
            } else {
                self.commit()
            };
            if held != holds_best {
                let lost = (self.gain - 1.0).abs();
                hour.regret_s += lost * (self.now_ns - before_ns) as f64 / S as f64;
            }
            if hour.verdict_s.is_infinite() && self.state.trial_winner != OFF {
                hour.verdict_s = (self.now_ns - begin_ns) as f64 / S as f64;
            }
        }
        hour
    }

    /// Returns the first verdict, if there is one within this many commits.
    fn verdict(&mut self, commits: usize) -> Option<i64> {
        (0..commits).find_map(|_| {
            self.commit();
            (self.state.trial_winner != OFF).then_some(self.state.trial_winner)
        })
    }
}

#[allow(clippy::cast_possible_truncation)] // far below 2^53
fn whole(value: f64) -> i64 {
    value.round() as i64
}

/// Noise of a commit. A round was measured to vary by 92 per mille; it compares two windows of
/// twelve commits each.
const NOISE: f64 = 0.092 * 3.46 / 1.41;

/// Returns how many of `loads` loads get each verdict: held, free, none.
fn verdicts(loads: u64, commits: usize, journal: impl Fn(u64) -> Journal) -> [usize; 3] {
    let mut found = [0; 3];
    for seed in 0..loads {
        let at = match journal(seed).verdict(commits) {
            Some(STAY_HELD) => 0,
            Some(_) => 1,
            None => 2,
        };
        found[at] += 1;
    }
    found
}

const HOUR_S: i64 = 3600;

/// A load's first hour.
struct Hour {
    /// When the first verdict came.
    verdict_s: f64,
    /// Work lost against always doing the better, in seconds of stock's work.
    regret_s: f64,
}

/// Returns the value that this share of the values does not exceed.
fn within(share: f64, values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an index
    values[((values.len() - 1) as f64 * share).round() as usize]
}

/// Commits a second of a load, and the largest share of the hour's work that it may lose.
const STATED_REGRET: [(i64, f64); 3] = [(1000, 0.001), (100, 0.007), (10, 0.025)];

/// Keeps to the stated regret, and to the commits that a verdict may take, in 95 of 100 loads.
///
/// `cargo test --release -p luc-control --test trial deciding -- --nocapture` prints the table of
/// `docs/figures/guard.md`.
#[test]
fn deciding_costs_at_most_the_stated_regret() {
    let loads = if cfg!(debug_assertions) { 5 } else { 200 };
    println!(
        "| truth | commits/s | verdict, half of loads | 95 % | regret, half of loads | 95 % |"
    );
    println!("|---|---|---|---|---|---|");
    for (gain, verdict_max_commits) in [
        (1.5, 11_000.0),
        (1.1, 20_000.0),
        (1.0, f64::INFINITY),
        (0.97, 27_000.0),
        (0.9, 3_000.0),
    ] {
        for (rate, regret_max) in STATED_REGRET {
            let commit_ns = S / rate;
            let journal = |seed| Journal {
                commit_ns,
                ..Journal::new(gain, NOISE, seed)
            };
            let hours: Vec<_> = (0..loads).map(|seed| journal(seed).hour()).collect();
            let verdict = |share| within(share, hours.iter().map(|hour| hour.verdict_s));
            let regret = |share| within(share, hours.iter().map(|hour| hour.regret_s));
            let shown = [verdict(0.5), verdict(0.95)].map(|s| match s {
                f64::INFINITY => format!("none in {HOUR_S} s"),
                s => format!("{s:.1} s"),
            });
            println!(
                "| {:+.0} % | {rate} | {} | {:.1} s | {:.1} s |",
                100.0 * (gain - 1.0),
                shown.join(" | "),
                regret(0.5),
                regret(0.95)
            );
            let share = regret(0.95) / HOUR_S as f64;
            assert!(
                share <= regret_max,
                "{gain}, {rate} commits/s: {share} lost"
            );
            let commits = verdict(0.95) * rate as f64;
            assert!(commits <= verdict_max_commits, "{gain}: after {commits}");
        }
    }
}

#[test]
fn what_loses_is_seldom_called_a_gain() {
    for gain in [0.97, 0.95, 0.9] {
        let [held, free, none] = verdicts(1000, 8_000, |seed| Journal::new(gain, NOISE, seed));
        println!("{gain}: held {held}, free {free}, none {none} of 1000");
        assert!(held <= 10, "{gain}: {held} of 1000");
    }
    let growing = |seed| Journal {
        growth: 0.05 / 36.0,
        ..Journal::new(0.97, NOISE, seed)
    };
    let [held, free, none] = verdicts(1000, 4_000, growing);
    println!("0.97 and growing: held {held}, free {free}, none {none} of 1000");
    assert!(held <= 10, "a load that grows: {held} of 1000");
}

#[test]
fn what_gains_or_does_nothing_is_seldom_called_a_loss() {
    for gain in [1.0, 1.1, 1.5] {
        let [held, free, none] = verdicts(1000, 8_000, |seed| Journal::new(gain, NOISE, seed));
        println!("{gain}: held {held}, free {free}, none {none} of 1000");
        assert!(free <= 10, "{gain}: {free} of 1000");
    }
}

/// The trial finds a loss of a tenth within 2000 commits, and the finding lasts.
#[test]
fn a_loss_is_found_and_avoided() {
    let mut journal = Journal::new(0.9, 0.05, 1);
    assert_eq!(journal.verdict(2_000), Some(STAY_FREE));
    let held = journal.held;
    for _ in 0..20_000 {
        journal.commit();
    }
    let share = (journal.held - held) as f64 / 20_000.0;
    assert!(share < 0.05, "{share} of the commits are held all the same");
}

/// If holding gains much, only a few percent of the commits are free for the trial.
#[test]
fn looking_is_cheap_where_holding_gains() {
    for (gain, most) in [(1.5, 0.02), (1.2, 0.04), (1.1, 0.06)] {
        let mut journal = Journal::new(gain, 0.05, 1);
        for _ in 0..30_000 {
            journal.commit();
        }
        let share = journal.free as f64 / 30_000.0;
        println!("{gain}: {share:.4} of the commits free");
        assert!(share < most, "{gain}: {share} of the commits are free");
    }
}

/// A load that is driven by the clock gets as much done either way; its users only feel the
/// waiting.
#[test]
fn a_load_by_the_clock_is_judged_by_its_waiting() {
    let clocked = |wait_gain, seed| Journal {
        wait_gain,
        ..Journal::new(1.0, 0.02, seed)
    };
    assert_eq!(clocked(0.8, 1).verdict(4_000), Some(STAY_FREE));
    let mut better = clocked(1.4, 1);
    for _ in 0..20_000 {
        better.commit();
        assert_ne!(better.state.trial_phase, STAY_FREE);
    }
    assert!(better.free < 800, "{} commits were free", better.free);
}

/// Throughput counts operations that change metadata, not sync calls: if holding makes calls wait
/// that otherwise need not, there are more events but not more work.
#[test]
fn more_events_are_no_gain() {
    let mut journal = Journal::new(0.9, 0.02, 1);
    journal.wait_gain = 1.0;
    let verdict = (0..6_000).find_map(|_| {
        let open = journal.input(1, 3);
        let held = journal.step(Step::Open, &open) == HOLD;
        let mut close = journal.input(if held { 16 } else { 2 }, 0);
        close.events_wait_ns = close.events * COMMIT_NS;
        journal.now_ns += if held { 200_000 } else { 0 };
        journal.step(Step::Close, &close);
        journal.now_ns += whole(if held { 2.0e6 } else { 1.98e6 });
        (journal.state.trial_winner != OFF).then_some(journal.state.trial_winner)
    });
    assert_eq!(verdict, Some(STAY_FREE));
}

#[test]
fn a_coin_says_which_window_comes_first() {
    let mut firsts = [0; 2];
    for seed in 0..40 {
        let mut journal = Journal::new(1.0, NOISE, seed);
        let mut before = OFF;
        for _ in 0..3_000 {
            journal.commit();
            let now = journal.state.trial_phase;
            if now != before && journal.state.trial_is_second == 0 && [FREE, HELD].contains(&now) {
                firsts[usize::from(now == HELD)] += 1;
            }
            before = now;
        }
    }
    let [free, held] = firsts;
    assert!(free + held > 500, "{firsts:?}");
    assert!(free * 3 > held && held * 3 > free, "{firsts:?}");
}

#[test]
fn a_short_run_has_no_trial() {
    let mut journal = Journal::new(1.0, 0.0, 1);
    for _ in 0..511 {
        assert!(journal.commit());
    }
    assert_eq!(journal.state.trial_phase, OFF);
    journal.commit();
    assert_ne!(journal.state.trial_phase, OFF);
}

/// The trial compares nothing while LUC only observes, and then restarts the current window.
#[test]
fn it_rests_while_luc_observes() {
    let mut journal = Journal::new(0.5, 0.05, 1);
    while journal.state.trial_phase == OFF {
        journal.commit();
    }
    let phase = journal.state.trial_phase;
    journal.params.mode = 0;
    for _ in 0..500 {
        journal.commit();
        assert_eq!(journal.state.trial_phase, phase);
        assert_eq!(journal.state.rate_pairs, 0);
    }
    journal.params.mode = 1;
    assert_eq!(journal.verdict(2_500), Some(STAY_FREE));
}
