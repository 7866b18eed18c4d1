//! Measures how often verdicts are wrong, in many runs whose true ratio is known.
//!
//! `cargo run --release -p luc-guard --example verdicts [RUNS]` prints the table of
//! `docs/figures/guard.md`. LUC's rate is a known ratio of stock's; windows differ by noise of
//! several kinds, some of them far from any textbook's. Each run ends at a verdict, when the load
//! changes, or after 2,000 pairs.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts and ranks, far from any bound"
)]

use std::f64::consts::TAU;
use std::thread;

use fastrand::Rng;
use luc_guard::{ALPHA, Heard, Judge, LIMIT, Pair, Side, TrialVerdict, Window};

const RUNS: u64 = 10_000;
const PAIRS_MAX: u64 = 2_000;
const RATIOS: [f64; 5] = [1.05, 1.0, 0.99, 0.97, 0.9];

/// How the logarithms of the windows' rates vary when nothing was changed.
#[derive(Clone, Copy)]
enum Noise {
    /// Independent and normal, with this standard deviation.
    Normal(f64),
    /// Student's t with two degrees of freedom, whose variance is infinite, times this.
    HeavyTails(f64),
    /// One window in twenty has a third of the rate; the others are as in `Normal(0.02)`.
    Stalls,
    /// Each window is 0.95 of the one before, plus a normal step of 3 %.
    Waves,
    /// The load drifts by normal steps of 2 % and returns to no mean.
    Walk,
    /// A hundred calls in a window, give or take ten, whatever LUC does: LUC changes the latency
    /// alone. That varies by 5 %, independently of the number of calls.
    ByTheClock,
}

const NOISES: [(&str, Noise); 7] = [
    ("normal, 2 %", Noise::Normal(0.02)),
    ("normal, 5 %", Noise::Normal(0.05)),
    ("heavy tails, 3 %", Noise::HeavyTails(0.03)),
    ("stalls", Noise::Stalls),
    ("waves", Noise::Waves),
    ("random walk", Noise::Walk),
    ("by the clock", Noise::ByTheClock),
];

/// A load and its source of random numbers.
struct Load {
    random: Rng,
    noise: Noise,
    level: f64,
}

impl Load {
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.random.f64()).ln()).sqrt();
        radius * (TAU * self.random.f64()).cos()
    }

    /// Deviation of the next window: the logarithm of its rate or, for a load by the clock, minus
    /// that of its latency.
    fn differs(&mut self) -> f64 {
        match self.noise {
            Noise::Normal(sd) => sd * self.normal(),
            Noise::HeavyTails(scale) => {
                // Two degrees of freedom: the chi squared is exponential.
                let half_chi = -(1.0 - self.random.f64()).ln();
                scale * self.normal() / half_chi.max(1e-12).sqrt()
            }
            Noise::Stalls if self.random.u8(..20) == 0 => -(3.0_f64.ln()),
            Noise::Stalls => 0.02 * self.normal(),
            Noise::Waves => {
                self.level = 0.95 * self.level + 0.03 * self.normal();
                self.level
            }
            Noise::Walk => {
                self.level += 0.02 * self.normal();
                self.level
            }
            Noise::ByTheClock => 0.05 * self.normal(),
        }
    }

    /// A window in which LUC's performance is this ratio of stock's.
    fn window(&mut self, ratio: f64) -> Window {
        let differs = self.differs() + ratio.ln();
        let (calls, latency_ns) = if let Noise::ByTheClock = self.noise {
            let calls = 100.0 + 10.0 * self.normal();
            (calls, 1e6 * (-differs).exp())
        } else {
            // Four tasks that do nothing but wait.
            let calls = (1e6 * differs.exp()).clamp(1.0, 1e15);
            (calls, 4e9 / calls)
        };
        let calls = calls.max(1.0);
        Window {
            time_ns: 1_000_000_000,
            calls: calls as u64,
            commits: 1000,
            waited_ns: Some((calls * latency_ns) as u64),
            times: None,
        }
    }

    fn pair(&mut self, ratio: f64) -> Pair {
        let first = if self.random.bool() {
            Side::On
        } else {
            Side::Off
        };
        let [a, b] = [first, first.other()].map(|side| match side {
            Side::On => self.window(ratio),
            Side::Off => self.window(1.0),
        });
        match first {
            Side::On => Pair { on: a, off: b },
            Side::Off => Pair { on: b, off: a },
        }
    }

    /// The verdict of a run, and the pairs that it took.
    fn run(&mut self, ratio: f64) -> (Option<TrialVerdict>, u64) {
        let mut judge = Judge::default();
        self.level = 0.0;
        for pairs in 1..=PAIRS_MAX {
            if let Heard::Found(verdict) = judge.hear(&self.pair(ratio)) {
                return (Some(verdict), pairs);
            }
            if judge.loads() > 0 {
                return (None, pairs);
            }
        }
        (None, PAIRS_MAX)
    }
}

fn is_false(verdict: TrialVerdict, ratio: f64) -> bool {
    match verdict {
        TrialVerdict::Certified => ratio <= LIMIT,
        TrialVerdict::Refuted => ratio >= LIMIT,
    }
}

/// A row of the table, and the largest share of one kind of false verdict.
fn row(ratio: f64, (name, noise): (&str, Noise), runs: u64) -> (String, f64) {
    let mut load = Load {
        random: Rng::with_seed(17),
        noise,
        level: 0.0,
    };
    let (mut certified, mut refuted, mut took) = (0_u64, 0_u64, Vec::new());
    for _ in 0..runs {
        let (verdict, pairs) = load.run(ratio);
        match verdict {
            Some(TrialVerdict::Certified) => certified += 1,
            Some(TrialVerdict::Refuted) => refuted += 1,
            None => {}
        }
        took.push(if verdict.is_some() { pairs } else { u64::MAX });
    }
    took.sort_unstable();
    let pairs = |share: f64| match took[(share * (runs - 1) as f64) as usize] {
        u64::MAX => format!("over {PAIRS_MAX}"),
        pairs => pairs.to_string(),
    };
    let percent = |count: u64| 100.0 * count as f64 / runs as f64;
    let wrong = |verdict, count| {
        if is_false(verdict, ratio) {
            percent(count)
        } else {
            0.0
        }
    };
    let worst =
        wrong(TrialVerdict::Certified, certified).max(wrong(TrialVerdict::Refuted, refuted));
    let line = format!(
        "| {:+.0} % | {name} | {:.2} % | {:.2} % | {worst:.2} % | {} | {} |",
        100.0 * (ratio - 1.0),
        percent(certified),
        percent(refuted),
        pairs(0.5),
        pairs(0.9)
    );
    (line, worst)
}

fn main() {
    let given = std::env::args().nth(1).and_then(|runs| runs.parse().ok());
    let runs = given.unwrap_or(RUNS).max(1);
    println!("| truth | noise | certified | refuted | false | pairs, half of runs | 9 in 10 |");
    println!("|---|---|---|---|---|---|---|");
    let mut worst = 0.0_f64;
    for ratio in RATIOS {
        let rows = NOISES.map(|noise| thread::spawn(move || row(ratio, noise, runs)));
        for done in rows {
            let (line, wrong) = done.join().expect("a row");
            worst = worst.max(wrong);
            println!("{line}");
        }
    }
    println!();
    println!(
        "false verdicts of a kind: {worst:.2} % at most; allowed {:.0} %",
        100.0 * ALPHA
    );
}
