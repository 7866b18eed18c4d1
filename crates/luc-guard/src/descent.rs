//! The lowest clock that a load needs: clocks are tried one by one, the highest first.
//!
//! Each clock is compared with the highest one by pairs of windows, as LUC is with stock: of a
//! [`Pair`], `on` is the window at the lower clock. Two bets ([`crate::evidence`]) must both say
//! that the lower clock keeps within the tolerance, one on the rate of syncs, one on their 99th
//! percentile. Either alone can prove it slower, and then no lower clock is tried. If a clock's
//! share of the time proves neither, it is undecided, and the next one is tried.
//!
//! A bet is wrong with a chance of at most [`ALPHA`]. So with n clocks tried, the chance that the
//! lowest one found is slower than the tolerance allows is at most n times that.

use std::time::Duration;

use serde::Serialize;

use crate::evidence::{ALPHA, Evidence, LIMIT, TrialVerdict};
use crate::pair::{Measure, Pair};
use crate::times::TAIL_CALLS_MIN;

/// The 99th percentile of the time of a sync in both windows of a pair, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tails {
    pub on_ns: f64,
    pub off_ns: f64,
}

impl Tails {
    /// `None` if times are not seen, or if a window has no sync.
    pub fn from_pair(pair: &Pair) -> Option<Self> {
        Some(Self {
            on_ns: pair.on.times.as_ref()?.tail_ns()?,
            off_ns: pair.off.times.as_ref()?.tail_ns()?,
        })
    }
}

/// The verdict about a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockVerdict {
    /// Rate and 99th percentile stay within the tolerance.
    Within,
    /// One of them does not.
    Slower,
    Undecided(Undecided),
}

/// Why there is no verdict about a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Undecided {
    /// A window had no sync.
    NoLoad,
    /// The windows had too few syncs for a 99th percentile.
    FewSyncs,
    /// Its time ran out.
    Time,
}

/// The bets on a clock.
#[derive(Clone, Debug, Default)]
pub struct ClockTrial {
    rate: Evidence,
    tail: Evidence,
    rates: Vec<f64>,
    tails: Vec<f64>,
    short_of_syncs: bool,
    verdict: Option<ClockVerdict>,
}

impl ClockTrial {
    pub fn pairs(&self) -> u64 {
        self.rate.pairs()
    }

    /// Ratios of syncs per second to those at the highest clock, one per pair.
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// The same ratios of the 99th percentile; above 1 the lower clock is slower.
    pub fn tails(&self) -> &[f64] {
        &self.tails
    }

    /// `None` until the clock has been tried.
    pub fn verdict(&self) -> Option<ClockVerdict> {
        self.verdict
    }

    fn hear(&mut self, pair: &Pair, tails: Option<Tails>, tails_seen: bool, tolerance: f64) {
        if pair.on.calls == 0 || pair.off.calls == 0 {
            self.verdict = Some(ClockVerdict::Undecided(Undecided::NoLoad));
            return;
        }
        // The bets test for `LIMIT`: this shift makes them test for the tolerance.
        let shift = LIMIT.ln() - (1.0 - tolerance).ln();
        let Some(x) = pair.log_ratio(Measure::Rate) else {
            self.short_of_syncs = true;
            return;
        };
        self.rate.hear(x + shift);
        self.rates.push(x.exp());
        // Both windows decide it together, so that no pair is left out by its outcome.
        let enough = pair.on.calls + pair.off.calls >= TAIL_CALLS_MIN;
        match tails.filter(|_| enough) {
            Some(Tails { on_ns, off_ns }) => {
                let x = off_ns.max(1.0).ln() - on_ns.max(1.0).ln();
                self.tail.hear(x + shift);
                self.tails.push((-x).exp());
            }
            None => self.short_of_syncs |= tails_seen,
        }
        self.verdict = self.found(tails_seen);
    }

    fn found(&self, tails_seen: bool) -> Option<ClockVerdict> {
        use TrialVerdict::{Certified, Refuted};
        match (self.rate.verdict(), self.tail.verdict()) {
            (Some(Refuted), _) | (_, Some(Refuted)) => Some(ClockVerdict::Slower),
            (Some(Certified), Some(Certified)) => Some(ClockVerdict::Within),
            (Some(Certified), None) if !tails_seen => Some(ClockVerdict::Within),
            (Some(Certified), None) if self.tail.pairs() == 0 => {
                Some(ClockVerdict::Undecided(Undecided::FewSyncs))
            }
            _ => None,
        }
    }
}

/// A descent from clock to clock.
#[derive(Clone, Debug)]
pub struct Descent {
    tolerance: f64,
    /// Whether the times of syncs are seen; otherwise the rate decides alone.
    tails_seen: bool,
    trials: Vec<ClockTrial>,
    at: usize,
    end: Duration,
    /// When the present clock's share of the time is over.
    until: Duration,
}

impl Descent {
    /// Begins with the first of `clocks` clocks below the highest, to last until `end` at most.
    pub fn new(
        clocks: usize,
        tolerance: f64,
        tails_seen: bool,
        now: Duration,
        end: Duration,
    ) -> Self {
        let mut descent = Self {
            tolerance,
            tails_seen,
            trials: vec![ClockTrial::default(); clocks],
            at: 0,
            end,
            until: end,
        };
        descent.share(now);
        descent
    }

    /// Gives the present clock its share of the time that is left.
    fn share(&mut self, now: Duration) {
        let clocks = u32::try_from(self.trials.len() - self.at.min(self.trials.len()));
        let each = self.end.saturating_sub(now) / clocks.unwrap_or(u32::MAX).max(1);
        self.until = now + each;
    }

    /// The clock to try next; `None` at the end.
    pub fn clock(&self) -> Option<usize> {
        (self.at < self.trials.len()).then_some(self.at)
    }

    /// When [`Descent::hear`] is to be called at the latest.
    pub fn until(&self) -> Duration {
        self.until
    }

    /// Hears a pair of the present clock; `None` if its time was over before the end of one.
    /// Returns the verdict about that clock if there is one now.
    pub fn hear(
        &mut self,
        heard: Option<(&Pair, Option<Tails>)>,
        now: Duration,
    ) -> Option<ClockVerdict> {
        let trial = self.trials.get_mut(self.at)?;
        if let Some((pair, tails)) = heard {
            trial.hear(pair, tails, self.tails_seen, self.tolerance);
        }
        if trial.verdict.is_none() && now >= self.until {
            let few = trial.short_of_syncs && trial.tails.is_empty();
            let why = if few {
                Undecided::FewSyncs
            } else {
                Undecided::Time
            };
            trial.verdict = Some(ClockVerdict::Undecided(why));
        }
        let verdict = trial.verdict?;
        self.at = match verdict {
            ClockVerdict::Slower | ClockVerdict::Undecided(Undecided::NoLoad) => self.trials.len(),
            _ => self.at + 1,
        };
        self.share(now);
        Some(verdict)
    }

    /// The trials of all clocks, the highest first.
    pub fn trials(&self) -> &[ClockTrial] {
        &self.trials
    }

    /// The lowest clock that keeps within the tolerance; `None` if only the highest does.
    pub fn lowest(&self) -> Option<usize> {
        let within = |trial: &ClockTrial| trial.verdict == Some(ClockVerdict::Within);
        self.trials.iter().rposition(within)
    }

    /// The highest chance that [`Descent::lowest`] is slower than the tolerance allows.
    pub fn error(&self) -> f64 {
        let tried = self.trials.iter().filter(|trial| trial.verdict.is_some());
        tried.count() as f64 * ALPHA
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pair::Window;

    const SECOND: Duration = Duration::from_secs(1);

    fn window(calls: u64) -> Window {
        Window {
            time_ns: 1_000_000_000,
            calls,
            commits: calls,
            waited_ns: None,
            times: None,
        }
    }

    /// A load whose speed is this power of the clock, with noise of this size in each window.
    struct Load {
        power: f64,
        noise: f64,
        chance: fastrand::Rng,
    }

    impl Load {
        fn new(power: f64, noise: f64, seed: u64) -> Self {
            Self {
                power,
                noise,
                chance: fastrand::Rng::with_seed(seed),
            }
        }

        fn noise(&mut self) -> f64 {
            let sum: f64 = (0..12).map(|_| self.chance.f64()).sum();
            (self.noise * (sum - 6.0)).exp()
        }

        fn pair(&mut self, share: f64) -> (Pair, Tails) {
            let speed = share.powf(self.power);
            let calls = |speed: f64| {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let calls = (10_000.0 * speed).round() as u64;
                window(calls)
            };
            let on = calls(speed * self.noise());
            let off = calls(self.noise());
            let tails = Tails {
                on_ns: 1e6 / speed * self.noise(),
                off_ns: 1e6 * self.noise(),
            };
            (Pair { on, off }, tails)
        }

        /// Descends over seven clocks, each an eighth of the highest below the one before it.
        fn descend(&mut self) -> Descent {
            let mut now = Duration::ZERO;
            let mut descent = Descent::new(7, 0.01, true, now, SECOND * 3500);
            while let Some(clock) = descent.clock() {
                let (pair, tails) = self.pair((7 - clock) as f64 / 8.0);
                now += SECOND;
                descent.hear(Some((&pair, Some(tails))), now);
            }
            descent
        }
    }

    /// The seeds of loads with noise; a judge of noise may be wrong for others.
    const SEEDS: std::ops::Range<u64> = 0..256;

    #[test]
    fn a_load_without_the_clock_ends_at_the_lowest() {
        for seed in SEEDS {
            let descent = Load::new(0.0, 0.004, seed).descend();
            assert_eq!(descent.lowest(), Some(6), "{seed}");
        }
    }

    #[test]
    fn a_load_in_proportion_to_the_clock_ends_at_the_highest() {
        for seed in SEEDS {
            let descent = Load::new(1.0, 0.02, seed).descend();
            assert_eq!(descent.lowest(), None, "{seed}");
            assert_eq!(descent.trials()[0].verdict(), Some(ClockVerdict::Slower));
            assert_eq!(descent.trials()[1].verdict(), None);
        }
    }

    proptest! {
        #[test]
        fn a_descent_ends_whatever_it_hears(
            windows in proptest::collection::vec((0_u64..3000, 0_u64..3000, any::<bool>()), 200),
            clocks in 0_usize..9,
        ) {
            let mut now = Duration::ZERO;
            let mut descent = Descent::new(clocks, 0.01, true, now, SECOND * 150);
            for (on, off, seen) in windows {
                let pair = Pair { on: window(on), off: window(off) };
                let tails = seen.then_some(Tails { on_ns: 1.0, off_ns: 2.0 });
                now += SECOND;
                descent.hear(Some((&pair, tails)), now);
            }
            prop_assert_eq!(descent.clock(), None);
        }
    }

    /// At most one load in a hundred that is slower by exactly the tolerance is found within it,
    /// and at most two that are not slower are found slower.
    #[test]
    fn verdicts_are_as_rarely_wrong_as_promised() {
        let runs = 2000;
        let wrong = |speed: f64, wrong: ClockVerdict| {
            let count = (0..runs).filter(|seed| {
                let mut load = Load::new(1.0, 0.01, *seed);
                let mut descent = Descent::new(1, 0.01, true, Duration::ZERO, SECOND * 300);
                for second in 1.. {
                    let (pair, tails) = load.pair(speed);
                    let now = SECOND * second;
                    if let Some(verdict) = descent.hear(Some((&pair, Some(tails))), now) {
                        return verdict == wrong;
                    }
                }
                false
            });
            count.count()
        };
        let certified = wrong(0.99, ClockVerdict::Within);
        assert!(certified <= 20, "{certified} of {runs}");
        let refuted = wrong(1.0, ClockVerdict::Slower);
        assert!(refuted <= 40, "{refuted} of {runs}");
    }

    #[test]
    fn a_wider_tolerance_takes_what_a_narrow_one_refutes() {
        let found = |tolerance: f64| {
            let mut load = Load::new(1.0, 0.005, 7);
            let mut descent = Descent::new(1, tolerance, true, Duration::ZERO, SECOND * 300);
            (1..).find_map(|second| {
                let (pair, tails) = load.pair(0.95);
                descent.hear(Some((&pair, Some(tails))), SECOND * second)
            })
        };
        assert_eq!(found(0.01), Some(ClockVerdict::Slower));
        assert_eq!(found(0.1), Some(ClockVerdict::Within));
    }

    fn undecided(heard: Option<ClockVerdict>) -> Option<Undecided> {
        match heard {
            Some(ClockVerdict::Undecided(why)) => Some(why),
            _ => None,
        }
    }

    #[test]
    fn a_load_that_ends_decides_nothing_and_ends_the_descent() {
        let mut descent = Descent::new(3, 0.01, true, Duration::ZERO, SECOND * 300);
        let tails = Tails {
            on_ns: 9.0,
            off_ns: 9.0,
        };
        for (on, off) in [(0, 5000), (5000, 0), (0, 0)] {
            let pair = Pair {
                on: window(on),
                off: window(off),
            };
            let mut descent = descent.clone();
            let verdict = descent.hear(Some((&pair, Some(tails))), SECOND);
            assert_eq!(undecided(verdict), Some(Undecided::NoLoad));
            assert_eq!((descent.clock(), descent.lowest()), (None, None));
        }
        // Time alone proves nothing either, and each clock has its share of it.
        assert_eq!(descent.hear(None, SECOND * 99), None);
        let verdict = descent.hear(None, SECOND * 100);
        assert_eq!(undecided(verdict), Some(Undecided::Time));
        assert_eq!((descent.clock(), descent.until()), (Some(1), SECOND * 200));
    }

    #[test]
    fn too_few_syncs_for_a_tail_decide_nothing() {
        let mut load = Load::new(0.0, 0.004, 1);
        let mut few = |tails_seen: bool, calls: u64| {
            let mut descent = Descent::new(1, 0.01, tails_seen, Duration::ZERO, SECOND * 300);
            (1..).find_map(|second| {
                let (_, tails) = load.pair(1.0);
                let pair = Pair {
                    on: window(calls),
                    off: window(calls),
                };
                let tails = Some(tails).filter(|_| tails_seen);
                descent.hear(Some((&pair, tails)), SECOND * second)
            })
        };
        assert_eq!(undecided(few(true, 499)), Some(Undecided::FewSyncs));
        assert_eq!(undecided(few(true, 3)), Some(Undecided::FewSyncs));
        assert_eq!(few(true, 500), Some(ClockVerdict::Within));
        // Where times are not seen, the rate decides alone.
        assert_eq!(few(false, 499), Some(ClockVerdict::Within));
        assert_eq!(undecided(few(false, 3)), Some(Undecided::FewSyncs));
    }
}
