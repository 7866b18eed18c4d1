//! How long `luc power` takes to find that a lower clock is as fast.
//!
//! Prints the median time per clock, by syncs per second and tolerance, for a load whose syncs take
//! 1 ms and an exponential time of 0.5 ms on average, at both clocks.

use std::time::Duration;

use luc_guard::{Descent, Pair, Tails, Window};

/// Syncs in a window, and the time that a pair takes with its burn-ins, s.
const WINDOWS: [(u32, f64); 4] = [(500, 22.0), (1000, 2.4), (5000, 2.4), (20_000, 2.4)];
const LOADS: u64 = 15;

fn main() {
    for (calls, pair_s) in WINDOWS {
        for tolerance in [0.01, 0.02, 0.05] {
            let mut pairs: Vec<u32> = (0..LOADS)
                .filter_map(|seed| pairs(calls, tolerance, seed))
                .collect();
            pairs.sort_unstable();
            let median = pairs[pairs.len() / 2];
            println!(
                "{calls:>6} syncs per window, {:.0}%: {median:>5} pairs, {:>6.0} s",
                tolerance * 100.0,
                f64::from(median) * pair_s
            );
        }
    }
}

/// Returns the pairs until the first verdict; `None` without one.
fn pairs(calls: u32, tolerance: f64, seed: u64) -> Option<u32> {
    let mut chance = fastrand::Rng::with_seed(seed);
    let mut tail_ns = || {
        let times = (0..calls).map(|_| 1e6 - 5e5 * (1.0 - chance.f64()).ln());
        let mut times: Vec<f64> = times.collect();
        times.sort_by(f64::total_cmp);
        times[times.len() * 99 / 100]
    };
    let window = Window {
        time_ns: 1_000_000_000,
        calls: calls.into(),
        commits: calls.into(),
        waited_ns: None,
        times: None,
    };
    let pair = Pair {
        on: window.clone(),
        off: window,
    };
    let end = Duration::from_secs(1_000_000);
    let mut descent = Descent::new(1, tolerance, true, Duration::ZERO, end);
    (1..100_000).find(|pairs| {
        let tails = Tails {
            on_ns: tail_ns(),
            off_ns: tail_ns(),
        };
        let now = Duration::from_secs(u64::from(*pairs));
        descent.hear(Some((&pair, Some(tails))), now).is_some()
    })
}
