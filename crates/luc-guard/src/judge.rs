//! Judges LUC by the pairs of one load, and notices when the load changes.
//!
//! A verdict is about a load. Once the stock rate of the last pairs is over twice or below half of
//! what it was when the load was first seen, the load counts as another one, and the bets start
//! afresh. Stock windows alone decide that, so that LUC's own effect is never taken for a change of
//! load. Each load has its own 1 %.
//!
//! Throughput judges a load that waits for its syncs. A load that runs by the clock has the same
//! throughput however long a sync takes; its users feel the latency. So there are bets on both, and
//! a verdict needs both to agree: it is right whichever measure counts. For a load without time
//! between its calls both say the same. For others the pairs show which measure counts. Latencies
//! differ by chance and by LUC. A load that waits gets more done when it waits less, so the
//! logarithms of its rates and latencies lie on a line of slope 1 or, with time between calls,
//! less. If the slope is above 0.1 by four standard errors, the load waits, and the rate decides
//! alone. If it is below 0.5 by two standard errors, the latency decides alone. If the rate decides
//! by error, a latency is certified that was never compared; if the latency decides by error, a
//! load that waits is judged by how long its users wait. The slope is computed from products, which
//! do not change if LUC and stock change places: no bet is chosen by its outcome.
//!
//! Where the time of each call is seen, [`crate::slow`] bets on the 99th percentile as well. It can
//! refute LUC alone, and a certificate needs it, too.

use serde::{Deserialize, Serialize};

use crate::evidence::{Evidence, TrialVerdict};
use crate::pair::{Measure, Pair};
use crate::slow::Slow;

/// Pairs whose stock rates identify the load. Chosen: odd, and enough that their median does not
/// move if one window in twenty stalls.
const RECENT: usize = 9;
/// Rates that differ by more than this factor belong to different loads. Chosen.
const OTHER_LOAD: f64 = 2.0;
/// Fewest pairs before a measure is picked. Chosen.
const PROBED_MIN: u64 = 8;
/// Bound of the slope, and by how many standard errors it must be cleared: a load that waits is
/// above the first, a load by the clock below the second. Chosen.
const WAITS: (f64, f64) = (0.1, 4.0);
const CLOCKED: (f64, f64) = (0.5, 2.0);
/// Bound of one pair's logarithms in the slope: a factor of 20. Chosen.
const FAR: f64 = 3.0;

/// The judge's answer to a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// There was no load.
    Idle,
    /// The pair counted.
    Counted,
    /// The load changed: the bets start afresh.
    Anew,
    /// The pair counted, and there is a verdict.
    Found(TrialVerdict),
}

/// Sums over the pairs that show whether rates follow latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Probe {
    pairs: u64,
    products: f64,
    rate_squares: f64,
    latency_squares: f64,
}

impl Probe {
    fn hear(&mut self, rate: f64, latency: f64) {
        self.pairs += 1;
        self.products += rate * latency;
        self.rate_squares += rate * rate;
        self.latency_squares += latency * latency;
    }

    /// The measure that counts; `None` while that is undecided.
    fn measure(&self) -> Option<Measure> {
        // Latencies that do not differ at all show nothing.
        if self.pairs < PROBED_MIN || self.latency_squares <= 0.0 {
            return None;
        }
        let slope = self.products / self.latency_squares;
        let left = (self.rate_squares - slope * self.products).max(0.0);
        let error = (left / (self.pairs - 1) as f64 / self.latency_squares).sqrt();
        if slope - WAITS.1 * error > WAITS.0 {
            Some(Measure::Rate)
        } else if slope + CLOCKED.1 * error < CLOCKED.0 {
            Some(Measure::Latency)
        } else {
            None
        }
    }
}

/// Judges the pairs of one file system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judge {
    rate: Evidence,
    latency: Evidence,
    slow: Slow,
    probe: Probe,
    /// The measure that counts, once that is known.
    known: Option<Measure>,
    /// Logarithm of the stock rate of the load's first pairs.
    reference: Option<f64>,
    /// Logarithms of the stock rates of the last pairs, the latest last.
    recent: Vec<f64>,
    /// How often the load changed.
    loads: u64,
}

impl Judge {
    /// The bets on the measure that counts; on throughput while that is undecided.
    pub fn evidence(&self) -> &Evidence {
        match self.measure() {
            Measure::Rate => &self.rate,
            Measure::Latency => &self.latency,
        }
    }

    pub fn measure(&self) -> Measure {
        self.known.unwrap_or_default()
    }

    /// The bets on slow syncs.
    pub fn slow(&self) -> &Slow {
        &self.slow
    }

    /// How often the load changed.
    pub fn loads(&self) -> u64 {
        self.loads
    }

    /// Starts the bets afresh on the same load.
    pub fn begin_anew(&mut self) {
        self.rate = Evidence::default();
        self.latency = Evidence::default();
        self.slow.begin_anew();
    }

    /// Hears a pair.
    pub fn hear(&mut self, pair: &Pair) -> Heard {
        let Some(rate) = pair.log_ratio(Measure::Rate) else {
            return Heard::Idle;
        };
        if self.is_another_load(pair.off.rate().ln()) {
            *self = Self {
                loads: self.loads + 1,
                ..Self::default()
            };
            return Heard::Anew;
        }
        self.rate.hear(rate);
        if pair.on.waited_ns.is_some() && pair.off.waited_ns.is_some() {
            // Without a call that ended, a window has no latency: its calls wait beyond its end.
            let latency = pair.log_ratio(Measure::Latency).unwrap_or(rate);
            self.latency.hear(latency);
            let far = |x: f64| x.clamp(-FAR, FAR);
            self.probe.hear(far(rate), far(latency));
            self.known = self.known.or(self.probe.measure());
        }
        self.slow.hear(pair);
        self.verdict().map_or(Heard::Counted, Heard::Found)
    }

    /// Either can refute LUC. Where times are seen, a certificate needs both.
    fn verdict(&self) -> Option<TrialVerdict> {
        use TrialVerdict::{Certified, Refuted};
        match (self.work_verdict(), self.slow.verdict()) {
            (Some(Refuted), _) | (_, Some(Refuted)) => Some(Refuted),
            (Some(Certified), Some(Certified)) => Some(Certified),
            (Some(Certified), None) if !self.slow.is_seen() => Some(Certified),
            _ => None,
        }
    }

    /// The verdict about the work that gets done, by the measure that counts.
    pub fn work_verdict(&self) -> Option<TrialVerdict> {
        match self.known {
            Some(_) => self.evidence().verdict(),
            // Where latencies are not seen, the rate is all there is.
            None if self.latency.pairs() == 0 => self.rate.verdict(),
            None => {
                let both = self.rate.verdict();
                both.filter(|_| both == self.latency.verdict())
            }
        }
    }

    fn is_another_load(&mut self, stock: f64) -> bool {
        if self.recent.len() == RECENT {
            self.recent.remove(0);
        }
        self.recent.push(stock);
        let full = Some(&self.recent[..]).filter(|recent| recent.len() == RECENT);
        let Some(now) = full.and_then(luc_stats::median) else {
            return false;
        };
        let reference = *self.reference.get_or_insert(now);
        // If most of the windows had no call, there is no rate to compare.
        now.is_finite() && reference.is_finite() && (now - reference).abs() > OTHER_LOAD.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::Window;
    use crate::times::{Bucket, Times};

    const SECOND_NS: u64 = 1_000_000_000;

    /// A window of a load with this many calls, each of this latency.
    fn window(calls: u64, latency_us: u64) -> Window {
        Window {
            time_ns: SECOND_NS,
            calls,
            commits: calls,
            waited_ns: Some(calls * latency_us * 1000),
            times: None,
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
            // Four tasks: rate times latency is constant, and LUC's rate is 2 to 5 % higher.
            let off = 1900 + 10 * noise;
            match judge.hear(&pair((2000, 2000), (off, 4_000_000 / off))) {
                Heard::Found(verdict) => Some(verdict),
                heard => {
                    assert_eq!(heard, Heard::Counted);
                    None
                }
            }
        });
        assert_eq!(found, Some(TrialVerdict::Certified));
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
        assert!(heard.contains(&Heard::Found(TrialVerdict::Refuted)));
        assert!(!heard.contains(&Heard::Found(TrialVerdict::Certified)));
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

    /// Hears 60 pairs of the same rate, in which this share of LUC's syncs takes 30 ms. The others
    /// take 10 ms, as all of stock's do.
    fn slowed(percent: u64, seen: bool) -> (Judge, Option<TrialVerdict>) {
        let window = |slow: u64| {
            let bucket = |ms: u64, syncs| Bucket {
                from_ns: ms * 1_000_000,
                to_ns: (ms + 1) * 1_000_000,
                syncs,
            };
            let times = Times::new([bucket(10, 1000 - 10 * slow), bucket(30, 10 * slow)]);
            Window {
                times: seen.then_some(times),
                ..window(1000, 10_000)
            }
        };
        let mut judge = Judge::default();
        let found = (0..60).find_map(|_| {
            let pair = Pair {
                on: window(percent),
                off: window(0),
            };
            match judge.hear(&pair) {
                Heard::Found(verdict) => Some(verdict),
                _ => None,
            }
        });
        (judge, found)
    }

    #[test]
    fn slow_syncs_refute_a_luc_whose_rate_is_the_same() {
        use TrialVerdict::{Certified, Refuted};
        let (judge, found) = slowed(4, true);
        assert_eq!((found, judge.slow().verdict()), (Some(Refuted), found));
        assert_eq!(judge.work_verdict(), None);
        let (judge, found) = slowed(0, true);
        assert_eq!((found, judge.slow().verdict()), (Some(Certified), found));
        // One slow sync in a hundred proves nothing, and a certificate needs both bets.
        let (judge, found) = slowed(1, true);
        assert_eq!((found, judge.work_verdict()), (None, Some(Certified)));
        // Times that are not seen are unknown, and the rate decides alone.
        let (judge, found) = slowed(4, false);
        assert_eq!(found, Some(Certified));
        assert!(!judge.slow().is_seen());
    }

    #[test]
    fn another_load_begins_anew() {
        let mut judge = Judge::default();
        for _ in 0..12 {
            assert_ne!(judge.hear(&pair((1000, 900), (1000, 1000))), Heard::Idle);
        }
        let mut heard = Vec::new();
        for _ in 0..6 {
            heard.push(judge.hear(&pair((5000, 100), (5000, 100))));
        }
        assert_eq!(heard.iter().filter(|one| **one == Heard::Anew).count(), 1);
        assert_eq!(judge.loads(), 1);
        assert!(judge.evidence().pairs() <= 3);
        // LUC's effect on its own windows does not make it another load.
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
