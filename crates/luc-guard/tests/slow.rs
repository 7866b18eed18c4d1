//! Measures how reliable verdicts about the 99th percentile are and how long they take, on loads
//! whose truth is known.
//!
//! `cargo test --release -p luc-guard --test slow -- --nocapture` prints the table of
//! `docs/figures/guard.md`.

use std::f64::consts::TAU;
use std::iter::successors;

use luc_guard::slow::{CERTIFIED, REFUTED, Slow};
use luc_guard::{ALPHA, Bucket, Pair, Times, TrialVerdict, Window};

/// Runs for each figure, and the pairs of a run without a verdict. A debug build does fewer.
const RUNS: usize = if cfg!(debug_assertions) { 200 } else { 2_000 };
const PAIRS_MAX: usize = if cfg!(debug_assertions) { 150 } else { 500 };
/// True ratios of the 99th percentiles. Two are the limits of the claims.
const RATIOS: [f64; 6] = [0.7, 1.0, 1.05, REFUTED, CERTIFIED, 2.0];

/// How long commits take, as a share of the shortest or of the median.
#[derive(Clone, Copy)]
enum Shape {
    /// A fixed part, and an exponential one of the same mean.
    Exponential,
    /// Log-logistic: times of one in a thousand are twice those of one in a hundred.
    Heavy,
    /// All alike, but for 3 % that take three times as long.
    TwoKinds,
    Alike,
}

impl Shape {
    /// The share of commits that take longer.
    fn above(self, time: f64) -> f64 {
        match self {
            Self::Exponential => (1.0 - time).min(0.0).exp(),
            Self::Heavy => (1.0 + time.powf(10.0 / 3.0)).recip(),
            Self::TwoKinds | Self::Alike if time < 1.0 => 1.0,
            Self::TwoKinds if time < 3.0 => 0.03,
            Self::TwoKinds | Self::Alike => 0.0,
        }
    }
}

/// A load whose syncs take as long as their commits.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    shape: Shape,
    /// Commits in a window of stock, and syncs in each.
    commits: u64,
    syncs: u64,
    /// LUC merges this number of commits into one.
    merged: u64,
    /// All times of a window vary together, their logarithm by this standard deviation.
    drift: f64,
    /// Its 99th percentile, and 1.2 times that, are bounds of buckets: a refutation at 1.2 depends
    /// on the bets alone.
    on_bounds: bool,
}

const fn load(name: &'static str, shape: Shape, commits: u64, syncs: u64) -> Load {
    Load {
        name,
        shape,
        commits,
        syncs,
        merged: 1,
        drift: 0.0,
        on_bounds: false,
    }
}

const LOADS: [Load; 9] = [
    load("200 lone syncs", Shape::Exponential, 200, 1),
    load("200 of 8", Shape::Exponential, 200, 8),
    load("2,000 of 4", Shape::Exponential, 2000, 4),
    load("200 of 4, heavy tails", Shape::Heavy, 200, 4),
    load("200 of 4, two kinds", Shape::TwoKinds, 200, 4),
    load("200 of 4, all alike", Shape::Alike, 200, 4),
    Load {
        merged: 2,
        ..load("200 of 4, LUC makes half", Shape::Exponential, 200, 4)
    },
    Load {
        drift: 0.1,
        ..load("200 of 4, windows differ", Shape::Exponential, 200, 4)
    },
    Load {
        on_bounds: true,
        ..load("200 of 4, on bounds", Shape::Exponential, 200, 4)
    },
];

/// The bounds of the tracer's buckets, sixteen for each power of two.
fn bounds_ns() -> Vec<u64> {
    let next = |bound: &u64| Some(bound + (1 << (bound.ilog2() - 4)));
    successors(Some(1 << 20), next).take(16 * 12).collect()
}

struct World {
    load: Load,
    /// Places the load's times among the bounds.
    unit_ns: f64,
    bounds_ns: Vec<u64>,
    chance: fastrand::Rng,
}

impl World {
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.chance.f64()).ln()).sqrt();
        radius * (TAU * self.chance.f64()).cos()
    }

    /// Draws how many of the commits are of a kind that has this chance.
    fn count(&mut self, commits: u64, chance: f64) -> u64 {
        let mean = commits as f64 * chance;
        if mean <= 0.0 {
            return 0;
        }
        if chance > 0.5 {
            return commits - self.count(commits, 1.0 - chance);
        }
        if mean < 30.0 {
            // Jumps from one to the next.
            let rest = (1.0 - chance).ln();
            let (mut at, mut count) = (0.0, 0);
            loop {
                at += ((1.0 - self.chance.f64()).ln() / rest).floor() + 1.0;
                if at > commits as f64 {
                    return count;
                }
                count += 1;
            }
        }
        let spread = (mean * (1.0 - chance)).sqrt();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let count = (mean + spread * self.normal()).round().max(0.0) as u64;
        count.min(commits)
    }

    fn window(&mut self, commits: u64, syncs: u64, ratio: f64) -> Window {
        let unit_ns = self.unit_ns * ratio * (self.load.drift * self.normal()).exp();
        let above = |ns: u64| self.load.shape.above(ns as f64 / unit_ns);
        let begin = self.bounds_ns.partition_point(|ns| above(*ns) > 0.2);
        let bounds_ns = self.bounds_ns[begin - 1..].to_vec();
        // All that are faster count as one bucket.
        let (mut left, mut longer, mut buckets) = (commits, 1.0, Vec::new());
        for ends in bounds_ns.windows(2) {
            let still_longer = self.load.shape.above(ends[1] as f64 / unit_ns);
            let here = self.count(left, 1.0 - still_longer / longer);
            (left, longer) = (left - here, still_longer);
            buckets.push(Bucket {
                from_ns: ends[0],
                to_ns: ends[1],
                syncs: here * syncs,
            });
            if left == 0 {
                break;
            }
        }
        Window {
            calls: commits * syncs,
            times: Some(Times::new(buckets)),
            ..Window::default()
        }
    }

    fn pair(&mut self, ratio: f64) -> Pair {
        let Load {
            commits,
            syncs,
            merged,
            ..
        } = self.load;
        Pair {
            on: self.window(commits / merged, syncs * merged, ratio),
            off: self.window(commits, syncs, 1.0),
        }
    }
}

/// The verdict about a load, and the pairs that it took.
fn run(load: Load, ratio: f64, seed: u64) -> Option<(TrialVerdict, usize)> {
    let mut chance = fastrand::Rng::with_seed(seed);
    let unit_ns = if load.on_bounds {
        f64::from(5 << 22) / (1.0 + 100.0_f64.ln())
    } else {
        1e7 * (1.0 + chance.f64())
    };
    let mut world = World {
        load,
        unit_ns,
        bounds_ns: bounds_ns(),
        chance,
    };
    let mut slow = Slow::default();
    (1..=PAIRS_MAX).find_map(|pairs| {
        slow.hear(&world.pair(ratio));
        Some((slow.verdict()?, pairs))
    })
}

/// Prints a row of the table, and returns the shares of runs with each verdict.
fn row(load: Load, ratio: f64) -> (f64, f64) {
    let runs: Vec<_> = (0..RUNS as u64)
        .map(|seed| run(load, ratio, seed))
        .collect();
    let share = |verdict: TrialVerdict| {
        let found = runs.iter().flatten().filter(|found| found.0 == verdict);
        found.count() as f64 / RUNS as f64
    };
    let (certified, refuted) = (share(TrialVerdict::Certified), share(TrialVerdict::Refuted));
    let mut pairs: Vec<usize> = runs
        .iter()
        .map(|it| it.map_or(usize::MAX, |it| it.1))
        .collect();
    pairs.sort_unstable();
    let pairs = |tenths: usize| match pairs[RUNS * tenths / 10] {
        usize::MAX => format!("over {PAIRS_MAX}"),
        pairs => pairs.to_string(),
    };
    println!(
        "| {ratio:.2} | {} | {:.2} % | {:.2} % | {} | {} |",
        load.name,
        100.0 * certified,
        100.0 * refuted,
        pairs(5),
        pairs(9),
    );
    (certified, refuted)
}

#[test]
fn false_verdicts_are_rare_and_clear_ones_come_soon() {
    println!("| truth | commits | certified | refuted | pairs, half of runs | 9 in 10 |");
    println!("|---|---|---|---|---|---|");
    for ratio in RATIOS {
        for load in LOADS {
            let (certified, refuted) = row(load, ratio);
            let what = format!("{}, {ratio}: {certified} {refuted}", load.name);
            assert!(ratio > REFUTED || refuted <= ALPHA, "{what}");
            assert!(ratio < CERTIFIED || certified <= ALPHA, "{what}");
            assert!(ratio > 1.0 || certified >= 0.99, "{what}");
            assert!(ratio < 2.0 || refuted >= 0.99, "{what}");
        }
    }
}
