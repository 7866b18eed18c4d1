//! Measures how reliable verdicts of the bets are and how long they take, on loads whose truth is
//! known.
//!
//! `cargo test --release -p luc-control --test verdicts -- --nocapture` prints the table of
//! `docs/figures/guard.md`.

mod common;

use common::Rng;
use luc_control::{Bets, BetsVerdict, coin};

/// Sequences of pairs for each figure, and the length of a sequence without a verdict. A debug
/// build checks all arithmetic, which takes time, so it runs fewer.
const RUNS: usize = if cfg!(debug_assertions) {
    2_000
} else {
    20_000
};
const PAIRS_MAX: usize = if cfg!(debug_assertions) { 500 } else { 2_000 };

/// How pairs vary although nothing was changed.
#[derive(Clone, Copy)]
struct Noise {
    /// Standard deviation of x, which is normally distributed.
    spread: f64,
    /// The load grows by this share from the first window of a pair to the second.
    growth: f64,
}

const NOISES: [(&str, Noise); 3] = [
    (
        "5 %",
        Noise {
            spread: 0.05,
            growth: 0.0,
        },
    ),
    (
        "9 %",
        Noise {
            spread: 0.09,
            growth: 0.0,
        },
    ),
    (
        "5 %, the load grows by 5 % a window",
        Noise {
            spread: 0.05,
            growth: 0.05,
        },
    ),
];

struct Load {
    random: Rng,
    pairs: u64,
}

impl Load {
    /// Draws a number with 0 < number <= 1.
    fn share(&mut self) -> f64 {
        ((self.random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Draws from a standard normal distribution (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.share().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.share()).cos()
    }

    /// Draws x of the next pair, in ppm; the coin decides which window is first.
    fn pair(&mut self, ratio: f64, noise: Noise) -> i64 {
        self.pairs += 1;
        let growth = (1.0 + noise.growth).ln();
        let order = if coin(self.pairs) { growth } else { -growth };
        let x = ratio.ln() + order + noise.spread * self.normal();
        #[allow(clippy::cast_possible_truncation)] // far within
        let x_ppm = (1e6 * x).round() as i64;
        x_ppm
    }

    fn verdict(&mut self, ratio: f64, noise: Noise) -> (Option<BetsVerdict>, usize) {
        let mut bets = Bets::default();
        for pairs in 1..=PAIRS_MAX {
            bets.hear(self.pair(ratio, noise));
            if let Some(verdict) = bets.verdict() {
                return (Some(verdict), pairs);
            }
        }
        (None, usize::MAX)
    }
}

/// The results of all sequences of one kind.
struct Found {
    certified: f64,
    refuted: f64,
    /// Number of pairs until the verdict, sorted.
    pairs: Vec<usize>,
}

impl Found {
    fn by(percent: f64, noise: Noise) -> Self {
        let mut load = Load {
            random: Rng(17),
            pairs: 0,
        };
        let ratio = 1.0 + percent / 100.0;
        let runs: Vec<_> = (0..RUNS).map(|_| load.verdict(ratio, noise)).collect();
        let share = |verdict| {
            let count = runs.iter().filter(|run| run.0 == Some(verdict)).count();
            100.0 * count as f64 / RUNS as f64
        };
        let (certified, refuted) = (share(BetsVerdict::Certified), share(BetsVerdict::Refuted));
        let mut pairs: Vec<_> = runs.into_iter().map(|run| run.1).collect();
        pairs.sort_unstable();
        Self {
            certified,
            refuted,
            pairs,
        }
    }

    /// Returns the number of pairs within which this many tenths of the sequences had a verdict.
    fn pairs(&self, tenths: usize) -> String {
        match self.pairs[(RUNS - 1) * tenths / 10] {
            usize::MAX => format!("over {PAIRS_MAX}"),
            pairs => pairs.to_string(),
        }
    }
}

/// At the limit, -1 %, either verdict is false, which tests the error bound the hardest. Bets that
/// never decide are never wrong, so clear effects must be found, and soon.
#[test]
fn false_verdicts_are_rare_and_clear_effects_found() {
    println!("| truth | noise of a pair | certified | refuted | pairs, half of runs | 9 in 10 |");
    println!("|---|---|---|---|---|---|");
    for (percent, half_max) in [
        (50.0, 25),
        (10.0, 50),
        (3.0, 200),
        (0.0, usize::MAX),
        (-1.0, usize::MAX),
        (-3.0, 500),
        (-10.0, 60),
    ] {
        for (name, noise) in NOISES {
            let found = Found::by(percent, noise);
            let (certified, refuted) = (found.certified, found.refuted);
            let [half, most] = [5, 9].map(|tenths| found.pairs(tenths));
            println!(
                "| {percent:+} % | {name} | {certified:.2} % | {refuted:.2} % | {half} | {most} |"
            );
            assert!(percent > -1.0 || certified <= 1.0, "false certificates");
            assert!(percent < -1.0 || refuted <= 1.0, "false refutals");
            assert!(found.pairs[RUNS / 2] <= half_max, "too late: {half} pairs");
        }
    }
}
