//! What pairs of one load show, and when it is another load.
//!
//! A verdict is about a load. Where the stock rate of the last pairs is twice or half of what it was when
//! the load was first seen, it is another one, and the bets begin anew. Stock windows alone decide that,
//! so that LUC's own effect is never taken for another load. Each load has its own 1 %.
//!
//! Throughput judges a load that waits for its syncs. A load that comes by the clock has the same
//! throughput whatever a sync takes; its users feel the latency. Which it is, the first pairs show: by
//! chance alone, and by LUC, their latencies differ; a load that waits gets more done where it waits less,
//! so its logarithms of rate and of latency lie on a line of slope 1 or, with time between calls, less.
//! One with a slope below a tenth comes by the clock. That is decided once for each load, after eight
//! pairs, and the bets on latency begin with the ninth: no pair chooses by what it is judged.

use serde::{Deserialize, Serialize};

use crate::evidence::{Evidence, Verdict};
use crate::pair::{Measure, Pair};

/// Pairs whose stock rates say which load it is. Chosen: an odd number, whose median two odd ones do not
/// move.
const RECENT: usize = 5;
/// Rates that differ by more than this factor are of two loads. Chosen.
const OTHER_LOAD: f64 = 2.0;
/// Pairs before it is decided what counts. Chosen.
const PROBED: u64 = 8;
/// A slope below this is no slope. Chosen.
const SLOPE_MIN: f64 = 0.1;

/// What a pair meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// There was no load.
    Idle,
    /// It counted.
    Counted,
    /// It is another load than before, or it was seen what counts for it: the bets begin anew.
    Anew,
    /// It counted, and there is a verdict.
    Found(Verdict),
}

/// Sums of the pairs that show whether rates follow latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Probe {
    pairs: u64,
    products: f64,
    squares: f64,
}

/// Judges the pairs of one file system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judge {
    evidence: Evidence,
    measure: Measure,
    probe: Probe,
    /// Logarithm of the stock rate of the load's first pairs.
    reference: Option<f64>,
    /// The same of the last pairs, the latest last.
    recent: Vec<f64>,
    /// Loads that were another one than before.
    loads: u64,
}

impl Judge {
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// How often the load became another one.
    pub fn loads(&self) -> u64 {
        self.loads
    }

    /// Begins the bets anew on the same load.
    pub fn begin_anew(&mut self) {
        self.evidence = Evidence::default();
    }

    /// Hears a pair.
    pub fn hear(&mut self, pair: &Pair) -> Heard {
        let Some(x) = pair.log_ratio(self.measure) else {
            return Heard::Idle;
        };
        if self.is_another_load(pair.off.rate().ln()) {
            *self = Self {
                loads: self.loads + 1,
                ..Self::default()
            };
            return Heard::Anew;
        }
        let found = self.evidence.hear(x);
        if self.chooses_latency(pair) {
            self.measure = Measure::Latency;
            self.begin_anew();
            return Heard::Anew;
        }
        found.map_or(Heard::Counted, Heard::Found)
    }

    fn is_another_load(&mut self, stock: f64) -> bool {
        if self.recent.len() == RECENT {
            self.recent.remove(0);
        }
        self.recent.push(stock);
        if self.recent.len() < RECENT {
            return false;
        }
        let now = median(&self.recent);
        let reference = *self.reference.get_or_insert(now);
        // Without a call in most of five windows there is no rate to compare.
        now.is_finite() && reference.is_finite() && (now - reference).abs() > OTHER_LOAD.ln()
    }

    /// Whether this pair was the one that shows that latency counts.
    fn chooses_latency(&mut self, pair: &Pair) -> bool {
        let both = pair
            .log_ratio(Measure::Rate)
            .zip(pair.log_ratio(Measure::Latency));
        let Some((rate, latency)) = both.filter(|(rate, _)| rate.is_finite()) else {
            return false;
        };
        if self.probe.pairs == PROBED {
            return false;
        }
        self.probe.pairs += 1;
        self.probe.products += rate * latency;
        self.probe.squares += latency * latency;
        self.probe.pairs == PROBED && self.probe.products < SLOPE_MIN * self.probe.squares
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::Window;

    const SECOND_NS: u64 = 1_000_000_000;

    /// A window of a load with so many calls, each of this latency.
    fn window(calls: u64, latency_us: u64) -> Window {
        Window {
            time_ns: SECOND_NS,
            calls,
            commits: calls,
            waited_ns: Some(calls * latency_us * 1000),
        }
    }

    fn pair(on: (u64, u64), off: (u64, u64)) -> Pair {
        Pair {
            on: window(on.0, on.1),
            off: window(off.0, off.1),
        }
    }

    #[test]
    fn a_load_that_waits_is_judged_by_its_rate() {
        let mut judge = Judge::default();
        let found = (0..100).find_map(|n| {
            let noise = n % 7;
            // Four tasks: rate times latency is the same always.
            match judge.hear(&pair((2000 + noise, 2000), (1900 + noise, 2105))) {
                Heard::Found(verdict) => Some(verdict),
                heard => {
                    assert_eq!(heard, Heard::Counted);
                    None
                }
            }
        });
        assert_eq!(found, Some(Verdict::Certified));
        assert_eq!(judge.measure(), Measure::Rate);
    }

    #[test]
    fn a_load_by_the_clock_is_judged_by_its_latency() {
        let mut judge = Judge::default();
        let mut heard = Vec::new();
        for n in 0..60 {
            heard.push(judge.hear(&pair((1000 + n % 3, 5000), (1000 + (n + 1) % 3, 4000))));
        }
        assert_eq!(judge.measure(), Measure::Latency);
        assert_eq!(heard[7], Heard::Anew);
        assert!(heard.contains(&Heard::Found(Verdict::Refuted)));
        assert!(!heard.contains(&Heard::Found(Verdict::Certified)));
    }

    #[test]
    fn without_latencies_the_rate_counts() {
        let mut judge = Judge::default();
        let blind = |calls| Window {
            waited_ns: None,
            ..window(calls, 0)
        };
        for _ in 0..50 {
            judge.hear(&Pair {
                on: blind(1000),
                off: blind(1000),
            });
        }
        assert_eq!(judge.measure(), Measure::Rate);
        assert!(judge.evidence().for_luc() > 1.0);
    }

    #[test]
    fn another_load_begins_anew() {
        let mut judge = Judge::default();
        for _ in 0..8 {
            assert_ne!(judge.hear(&pair((1000, 900), (1000, 1000))), Heard::Idle);
        }
        let mut heard = Vec::new();
        for _ in 0..5 {
            heard.push(judge.hear(&pair((5000, 100), (5000, 100))));
        }
        assert_eq!(heard.iter().filter(|one| **one == Heard::Anew).count(), 1);
        assert_eq!(judge.loads(), 1);
        assert!(judge.evidence().pairs() <= 3);
        // What LUC does to its own windows is no other load.
        let mut judge = Judge::default();
        for _ in 0..20 {
            judge.hear(&pair((9000, 111), (1000, 1000)));
        }
        assert_eq!(judge.loads(), 0);
    }

    #[test]
    fn idle_pairs_are_not_heard() {
        let mut judge = Judge::default();
        assert_eq!(judge.hear(&pair((3, 1), (4, 1))), Heard::Idle);
        assert_eq!(judge, Judge::default());
    }
}
