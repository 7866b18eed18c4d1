//! Decides when to try LUC, and in which mode it rests between pairs.
//!
//! # Trying
//!
//! LUC steers, and observes for a window now and then: a tenth of the time at most.
//!
//! # Certified
//!
//! LUC steers, and observes for a hundredth of the time at most. The bets start afresh and go on,
//! so that a LUC that begins to harm is noticed. A new certificate replaces the old one.
//!
//! # Aside
//!
//! LUC is refuted and observes. It is tried again after ten minutes, then after twenty, doubling
//! each time up to a day. In a retrial it still observes between pairs, and steers for a tenth of
//! the time. Once certified, it steers again, and its next time aside is ten minutes. If 500 pairs
//! decide nothing, it stands aside again.
//!
//! # What that costs
//!
//! A LUC that helps by a share g loses a tenth of g until it is certified, and a hundredth later. A
//! LUC that harms by h costs h until it is refuted. Then it costs a tenth of h during retrials,
//! which take an ever smaller share of the time. Pairs are so far apart that these shares hold
//! however long a pair took; a pair that was given up counts, too.
//!
//! # Another load
//!
//! A verdict is about a load (see [`crate::judge`]). When the load changes, LUC is no longer
//! certified, and is tried as at first.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::evidence::TrialVerdict;
use crate::judge::{Heard, Judge};
use crate::pair::{Pair, Side};

/// Shares of time outside the rest mode. Chosen.
const DUTY_TRYING: f64 = 0.1;
const DUTY_CERTIFIED: f64 = 0.01;
/// First and longest time aside. Chosen: a passing harm, such as a backup's, is over by then; a day
/// is one cycle of most loads.
const ASIDE_FIRST: Duration = Duration::from_secs(600);
const ASIDE_MAX: Duration = Duration::from_secs(24 * 3600);
/// A retrial that has decided nothing after this many pairs ends. Chosen: twice what a difference
/// of 1 % needs.
const RETRY_PAIRS_MAX: u64 = 500;
/// Pairs of an idle file system are this far apart. Chosen.
const IDLE_PAUSE: Duration = Duration::from_secs(60);

/// LUC's standing on a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Stance {
    /// It steers and is tried.
    Trying,
    /// It steers, and pairs have shown that it does no harm.
    Certified {
        /// Pairs that the verdict took.
        pairs: u64,
        /// Ratio of LUC to stock, by these pairs.
        ratio: f64,
        /// Whether the 99th percentile is certified, too; otherwise it is unknown.
        p99: bool,
    },
    /// It observes until `until`, refuted or undecided in a retrial. Then it is tried again.
    Aside {
        /// On the clock that the caller passes in.
        until: Duration,
        /// Ratio of LUC to stock, by the pairs that sent it aside.
        ratio: f64,
        /// Whether the 99th percentile alone refuted it.
        by_p99: bool,
    },
    /// It observes and is tried again.
    Retrying,
}

/// A change of stance, for reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// LUC is certified and was not before.
    Certified { pairs: u64, ratio: f64, p99: bool },
    /// LUC harms, and stands aside for the time `aside`.
    Refuted {
        pairs: u64,
        ratio: f64,
        by_p99: bool,
        aside: Duration,
    },
    /// A retrial decided nothing.
    Undecided { pairs: u64, aside: Duration },
    /// The load changed, and LUC is no longer certified.
    OtherLoad,
}

/// Guards one file system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guard {
    judge: Judge,
    stance: Stance,
    /// State of the random numbers that order the windows.
    seed: u64,
    /// No pair begins before this time.
    next: Duration,
    /// Times aside since the last certificate.
    asides: u32,
    /// Pairs that counted, over all verdicts.
    pairs: u64,
}

impl Guard {
    /// Creates a guard for a file system that LUC steers.
    pub fn new(seed: u64, now: Duration) -> Self {
        Self {
            judge: Judge::default(),
            stance: Stance::Trying,
            seed,
            next: now,
            asides: 0,
            pairs: 0,
        }
    }

    pub fn stance(&self) -> Stance {
        self.stance
    }

    pub fn judge(&self) -> &Judge {
        &self.judge
    }

    /// Pairs that counted since the guard began.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// LUC's mode between pairs.
    pub fn rests_in(&self) -> Side {
        match self.stance {
            Stance::Trying | Stance::Certified { .. } => Side::On,
            Stance::Aside { .. } | Stance::Retrying => Side::Off,
        }
    }

    /// When the next pair may begin.
    pub fn next_pair(&self) -> Duration {
        match self.stance {
            Stance::Aside { until, .. } => until.max(self.next),
            _ => self.next,
        }
    }

    /// Begins a pair and returns the side that comes first, by a coin.
    pub fn begin_pair(&mut self) -> Side {
        if let Stance::Aside { .. } = self.stance {
            self.stance = Stance::Retrying;
            self.judge.begin_anew();
        }
        let mut coin = fastrand::Rng::with_seed(self.seed);
        let first = if coin.bool() { Side::On } else { Side::Off };
        self.seed = coin.get_seed();
        first
    }

    /// Starts afresh after other knobs were set: what pairs said no longer holds.
    pub fn begin_anew(&mut self) {
        self.judge = Judge::default();
        if let Stance::Certified { .. } = self.stance {
            self.stance = Stance::Trying;
        }
    }

    /// Gives up a pair. `away` is how long LUC was outside the rest mode.
    pub fn give_up(&mut self, now: Duration, away: Duration) {
        self.rest(now, away, Duration::ZERO);
    }

    /// Hears a pair that ended, and returns a change of stance.
    pub fn end_pair(&mut self, pair: &Pair, now: Duration, away: Duration) -> Option<Change> {
        let heard = self.judge.hear(pair);
        let least = match heard {
            Heard::Idle => IDLE_PAUSE,
            _ => Duration::ZERO,
        };
        if heard != Heard::Idle {
            self.pairs += 1;
        }
        let change = match heard {
            Heard::Found(TrialVerdict::Certified) => self.certify(),
            Heard::Found(TrialVerdict::Refuted) => Some(self.refute(now)),
            Heard::Anew => self.forget(),
            Heard::Counted => self.undecided(now),
            Heard::Idle => None,
        };
        self.rest(now, away, least);
        change
    }

    fn certify(&mut self) -> Option<Change> {
        let p99 = self.judge.slow().is_seen();
        let (pairs, ratio) = self.found();
        let was = matches!(self.stance, Stance::Certified { .. });
        self.stance = Stance::Certified { pairs, ratio, p99 };
        self.asides = 0;
        (!was).then_some(Change::Certified { pairs, ratio, p99 })
    }

    fn refute(&mut self, now: Duration) -> Change {
        let by_p99 = self.judge.work_verdict() != Some(TrialVerdict::Refuted);
        let (pairs, ratio) = self.found();
        let aside = self.stand_aside(now, ratio, by_p99);
        Change::Refuted {
            pairs,
            ratio,
            by_p99,
            aside,
        }
    }

    /// Pairs and ratio of a verdict; the bets start afresh.
    fn found(&mut self) -> (u64, f64) {
        let evidence = self.judge.evidence();
        let found = (evidence.pairs(), evidence.ratio().unwrap_or(1.0));
        self.judge.begin_anew();
        found
    }

    fn stand_aside(&mut self, now: Duration, ratio: f64, by_p99: bool) -> Duration {
        let aside = ASIDE_FIRST.saturating_mul(1 << self.asides.min(20));
        let aside = aside.min(ASIDE_MAX);
        self.asides = self.asides.saturating_add(1);
        let until = now + aside;
        self.stance = Stance::Aside {
            until,
            ratio,
            by_p99,
        };
        aside
    }

    fn forget(&mut self) -> Option<Change> {
        let Stance::Certified { .. } = self.stance else {
            return None;
        };
        self.stance = Stance::Trying;
        Some(Change::OtherLoad)
    }

    fn undecided(&mut self, now: Duration) -> Option<Change> {
        let pairs = self.judge.evidence().pairs();
        if self.stance != Stance::Retrying || pairs < RETRY_PAIRS_MAX {
            return None;
        }
        let (pairs, ratio) = self.found();
        let aside = self.stand_aside(now, ratio, false);
        Some(Change::Undecided { pairs, aside })
    }

    fn rest(&mut self, now: Duration, away: Duration, least: Duration) {
        let duty = match self.stance {
            Stance::Certified { .. } => DUTY_CERTIFIED,
            _ => DUTY_TRYING,
        };
        self.next = now + away.mul_f64(1.0 / duty - 1.0).max(least);
    }

    /// The share of time that LUC is outside the rest mode.
    pub fn duty(&self) -> f64 {
        match self.stance {
            Stance::Certified { .. } => DUTY_CERTIFIED,
            Stance::Trying | Stance::Retrying => DUTY_TRYING,
            Stance::Aside { .. } => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::Window;

    /// A pair in which LUC's rate is this ratio of stock's, exact to a ten-thousandth.
    fn pair(ratio: f64) -> Pair {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a ratio near 1"
        )]
        let window = |calls: f64| Window {
            time_ns: 1_000_000_000,
            calls: (calls * 1e4) as u64,
            commits: 1000,
            waited_ns: None,
            times: None,
        };
        Pair {
            on: window(ratio),
            off: window(1.0),
        }
    }

    /// The outcome of [`live`], where LUC's rate is `ratio(now)` of stock's: the time that LUC
    /// steered, all time, and the changes reported.
    struct Lived {
        on: Duration,
        all: Duration,
        told: Vec<(Duration, Change)>,
        guard: Guard,
    }

    fn live(hours: u64, ratio: impl Fn(Duration) -> f64) -> Lived {
        const HALF: Duration = Duration::from_millis(1300);
        let mut guard = Guard::new(7, Duration::ZERO);
        let (mut now, mut on, mut told) = (Duration::ZERO, Duration::ZERO, Vec::new());
        while now < Duration::from_secs(hours * 3600) {
            let rested = guard.next_pair().saturating_sub(now);
            if guard.rests_in() == Side::On {
                on += rested;
            }
            now += rested;
            guard.begin_pair();
            now += HALF * 2;
            on += HALF;
            if let Some(change) = guard.end_pair(&pair(ratio(now)), now, HALF) {
                told.push((now, change));
            }
        }
        Lived {
            on,
            all: now,
            told,
            guard,
        }
    }

    #[test]
    fn a_luc_that_helps_is_certified_and_left_alone() {
        let lived = live(4, |_| 1.3);
        assert!(matches!(lived.told[..], [(_, Change::Certified { .. })]));
        assert!(lived.told[0].0 < Duration::from_secs(600));
        let off = 1.0 - lived.on.as_secs_f64() / lived.all.as_secs_f64();
        assert!(off < 0.012, "{off}");
        assert_eq!(lived.guard.rests_in(), Side::On);
    }

    #[test]
    fn a_luc_that_harms_stands_aside_ever_longer() {
        // A standstill does not count as idle.
        assert!(matches!(live(1, |_| 0.0).told[0].1, Change::Refuted { .. }));
        let lived = live(48, |_| 0.8);
        let asides: Vec<_> = lived
            .told
            .iter()
            .map(|(_, change)| match change {
                Change::Refuted { aside, .. } => aside.as_secs(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(asides[..4], [600, 1200, 2400, 4800]);
        assert!(asides.iter().all(|aside| *aside <= 86_400));
        let share = lived.on.as_secs_f64() / lived.all.as_secs_f64();
        assert!(share < 0.01, "{share}");
    }

    #[test]
    fn a_harm_that_passes_is_forgiven_and_one_that_comes_is_heard() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        let lived = live(12, |now| if now < hours(2) { 0.7 } else { 1.2 });
        assert!(matches!(lived.guard.stance(), Stance::Certified { .. }));
        let lived = live(12, |now| if now < hours(2) { 1.2 } else { 0.7 });
        let refuted = lived
            .told
            .iter()
            .find(|(_, change)| matches!(change, Change::Refuted { .. }));
        let (when, _) = refuted.expect("heard");
        assert!(*when < hours(7), "{when:?}");
        assert_eq!(lived.guard.rests_in(), Side::Off);
    }

    #[test]
    fn an_idle_file_system_is_seldom_tried() {
        let mut guard = Guard::new(1, Duration::ZERO);
        guard.begin_pair();
        let now = Duration::from_secs(24);
        assert_eq!(guard.end_pair(&Pair::default(), now, now / 2), None);
        assert!(guard.next_pair() >= now + IDLE_PAUSE);
        assert_eq!((guard.pairs(), guard.stance()), (0, Stance::Trying));
    }

    #[test]
    fn the_coin_is_fair_and_goes_on_where_it_was() {
        let mut guard = Guard::new(3, Duration::ZERO);
        let on = (0..10_000).filter(|_| guard.begin_pair() == Side::On);
        assert!((4800..5200).contains(&on.count()));
        let text = serde_json::to_string(&guard).unwrap();
        let mut resumed: Guard = serde_json::from_str(&text).unwrap();
        assert_eq!(resumed, guard);
        for _ in 0..50 {
            assert_eq!(resumed.begin_pair(), guard.begin_pair());
        }
    }
}
