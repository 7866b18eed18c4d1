//! Two bets that run against each other: a certificate, and harm.
//!
//! # The question
//!
//! A pair of windows gives x = ln(on / off), what LUC makes of stock. m = ln 0.99 is
//! the limit, y = x - m how far the pair is above it. "LUC is worse than 0.99" says that y is below 0
//! on average; "LUC is not" says that it is not.
//!
//! # The bet
//!
//! A player who doubts the first sentence stakes a share of her capital on each pair: it
//! becomes 1 + l y times as large. While the sentence is true no choice of stakes lets her expect to
//! gain, so, by Ville's inequality, the chance that she *ever* has a hundred times her first capital is
//! below one percent. When she has, the sentence is given up: LUC is certified. A second player bets
//! 1 - l y on the opposite and refutes LUC. There is no number of pairs that must be fixed before, and
//! one may look after each (Waudby-Smith and Ramdas, arXiv 2010.09686, section 4.4).
//!
//! # The clip
//!
//! A stake must not lose more than all, so y has to be bounded: it is cut at -B and +B.
//! The cut is centred on the limit, not on "no difference". A pair of a LUC that is exactly at the
//! limit is above and below it by symmetric noise, as chance decides which window came first; a cut
//! centred on x = 0 would take more from below than from above, and the average of what is left would
//! be above the limit: false certificates.
//!
//! # The bound
//!
//! B is 2.5 times the root mean square of the y of the pairs *before*, within 0.02 and 0.2. It
//! must not know the pair that it cuts. A wide bound costs: stakes are limited to 3/4 of 1/B, so that a
//! difference of 1 % moves the capital by 4 % a pair under a bound of 0.2, and by 38 % under one of 0.02.
//! No pair moves it by more than 75 %, so nine are the least that decide.
//!
//! # The stake
//!
//! l is the mean of past y by their mean square, "aGRAPA" there: it grows the capital the fastest if the
//! pairs to come are like the past ones. Before the first pair the mean is 0 and the deviation 5 %:
//! nothing is known, so little is staked.
//!
//! # The price of cutting
//!
//! What is judged is the mean of cut pairs. For noise that is symmetric that is the same sentence. It
//! always is here: a coin says which window comes first, both are equally long, and so whatever happens
//! to a window happens to LUC's and to stock's with the same chance, even where windows differ wildly and
//! each is like the one before.

use serde::{Deserialize, Serialize};

/// LUC may be slower by so much and counts as harmless: what differs less is not felt.
pub const LIMIT: f64 = 0.99;
/// The chance that a verdict is false.
pub const ALPHA: f64 = 0.01;

/// A pair counts for so much at most and at least, as a logarithm: see the bound, above. Chosen.
const BOUND_MAX: f64 = 0.2;
const BOUND_MIN: f64 = 0.02;
/// The bound in root mean squares: a normal noise is cut once in eighty pairs. Chosen.
const BOUND_SPREADS: f64 = 2.5;
/// Of the largest stake that cannot lose all. Theirs.
const STAKE_SHARE: f64 = 0.75;
/// No pair counts as more than a hundredfold, or less than a hundredth, in the ratio for people: a side
/// without a call would make it infinite. ln 100.
const PLAIN_MAX: f64 = 4.605_170_185_988_091;
/// Deviation that the first pair is expected to have. Chosen.
const FIRST_SPREAD: f64 = 0.05;

/// A verdict of the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// LUC is at least 0.99 of stock.
    Certified,
    /// It is less.
    Refuted,
}

/// The two players, and what they know of the past.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    pairs: u64,
    /// Of y, cut at a hundredfold: for people alone.
    plain: f64,
    /// Of cut y.
    sum: f64,
    /// Of squares of cut y, around the mean of those before each.
    squares: f64,
    /// Of squares of y, cut at the largest bound only.
    wide_squares: f64,
    /// Logarithms of the players' capital.
    certificate: f64,
    harm: f64,
}

impl Evidence {
    /// Pairs heard.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// By how much the player for LUC has multiplied her capital; 1/alpha is a certificate.
    pub fn for_luc(&self) -> f64 {
        self.certificate.exp()
    }

    /// The same of the player against LUC.
    pub fn against_luc(&self) -> f64 {
        self.harm.exp()
    }

    /// The ratio to stock of the pairs heard; `None` before the first.
    pub fn ratio(&self) -> Option<f64> {
        (self.pairs > 0).then(|| LIMIT * (self.plain / self.pairs as f64).exp())
    }

    /// Bound of the next pair, by the past ones alone.
    pub fn bound(&self) -> f64 {
        if self.pairs == 0 {
            return BOUND_MAX;
        }
        let spread = (self.wide_squares / self.pairs as f64).sqrt();
        (BOUND_SPREADS * spread).clamp(BOUND_MIN, BOUND_MAX)
    }

    /// Mean and mean square of past y, with a first one of nothing known.
    fn past(&self) -> (f64, f64) {
        let n = self.pairs as f64 + 1.0;
        let mean = self.sum / n;
        let variance = (FIRST_SPREAD * FIRST_SPREAD + self.squares) / n;
        (mean, variance + mean * mean)
    }

    /// Stakes on the next pair, for LUC and against it: by the past ones alone, too.
    pub fn stakes(&self) -> (f64, f64) {
        let (mean, mean_square) = self.past();
        let most = STAKE_SHARE / self.bound();
        let stake = (mean / mean_square).clamp(-most, most);
        (stake.max(0.0), (-stake).max(0.0))
    }

    /// Hears a pair: x = ln(on / off). Tells a verdict from the pair that gives it on.
    pub fn hear(&mut self, x: f64) -> Option<Verdict> {
        let bound = self.bound();
        let (for_luc, against_luc) = self.stakes();
        let whole = x - LIMIT.ln();
        // An infinite ratio is as far beyond as one can count; what is no number says nothing.
        let whole = if whole.is_nan() { 0.0 } else { whole };
        self.plain += whole.clamp(-PLAIN_MAX, PLAIN_MAX);
        let y = whole.clamp(-bound, bound);
        self.certificate += (for_luc * y).ln_1p();
        self.harm += (-against_luc * y).ln_1p();
        let (mean, _) = self.past();
        self.squares += (y - mean) * (y - mean);
        self.sum += y;
        let wide = whole.clamp(-BOUND_MAX, BOUND_MAX);
        self.wide_squares += wide * wide;
        self.pairs += 1;
        self.verdict()
    }

    /// The verdict of the pairs heard so far.
    pub fn verdict(&self) -> Option<Verdict> {
        let enough = -ALPHA.ln();
        if self.harm >= enough {
            return Some(Verdict::Refuted);
        }
        (self.certificate >= enough).then_some(Verdict::Certified)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs_until(verdict: Verdict, x: f64) -> u64 {
        let mut evidence = Evidence::default();
        for _ in 0..10_000 {
            if let Some(found) = evidence.hear(x) {
                assert_eq!(found, verdict);
                return evidence.pairs();
            }
        }
        panic!("no verdict at {x}");
    }

    #[test]
    fn clear_pairs_decide_soon() {
        let up = pairs_until(Verdict::Certified, 1.05_f64.ln());
        let far = pairs_until(Verdict::Certified, 2.0_f64.ln());
        let down = pairs_until(Verdict::Refuted, 0.9_f64.ln());
        let same = pairs_until(Verdict::Certified, 0.0);
        for pairs in [up, far, down, same] {
            assert!((8..40).contains(&pairs), "{up} {far} {down} {same}");
        }
    }

    #[test]
    fn at_the_limit_nothing_is_gained() {
        let mut evidence = Evidence::default();
        for _ in 0..1000 {
            assert_eq!(evidence.hear(LIMIT.ln()), None);
        }
        assert!((evidence.for_luc() - 1.0).abs() < 1e-9);
        assert!((evidence.ratio().unwrap() - LIMIT).abs() < 1e-9);
    }

    #[test]
    fn a_worked_pair() {
        let mut evidence = Evidence::default();
        assert_eq!(evidence.ratio(), None);
        assert_eq!(evidence.stakes(), (0.0, 0.0));
        evidence.hear(LIMIT.ln() + 0.06);
        // sum 0.06, squares 0.0036; n 2: mean 0.03, variance 0.00305, mean square 0.00395.
        let (stake, against) = evidence.stakes();
        assert!((evidence.bound() - 0.15).abs() < 1e-12);
        assert!((stake - 0.75 / 0.15).abs() < 1e-9, "0.03 / 0.00395 is more");
        assert!(against == 0.0 && (evidence.for_luc() - 1.0).abs() < 1e-12);
        evidence.hear(LIMIT.ln() - 1.0);
        assert!(
            (evidence.for_luc() - 0.25).abs() < 1e-9,
            "three quarters are lost, not all"
        );
    }

    proptest! {
        /// Whatever was heard: the next stake on two pairs alike but for their sign is fair.
        #[test]
        fn no_past_makes_an_unfair_bet(past in proptest::collection::vec(-3.0_f64..3.0, 0..60), next in 0.0_f64..3.0) {
            let mut evidence = Evidence::default();
            for x in past {
                evidence.hear(x);
            }
            let after = |y: f64| {
                let mut evidence = evidence.clone();
                evidence.hear(LIMIT.ln() + y);
                (evidence.for_luc(), evidence.against_luc())
            };
            let (up, down) = (after(next), after(-next));
            let fair = |a: f64, b: f64, now: f64| (f64::midpoint(a, b) - now).abs() <= 1e-9 * now.max(1e-300);
            prop_assert!(fair(up.0, down.0, evidence.for_luc()));
            prop_assert!(fair(up.1, down.1, evidence.against_luc()));
        }

        /// No pair ruins a player, not even one that is no number; the bound stays within its own.
        #[test]
        fn capital_stays_above_nothing(all in proptest::collection::vec(prop::num::f64::ANY, 0..200)) {
            let mut evidence = Evidence::default();
            for x in all {
                evidence.hear(x);
                prop_assert!(evidence.certificate.is_finite() && evidence.harm.is_finite());
                prop_assert!((BOUND_MIN..=BOUND_MAX).contains(&evidence.bound()));
                let (up, down) = evidence.stakes();
                prop_assert!(up * evidence.bound() < 1.0 && down * evidence.bound() < 1.0);
            }
        }

        #[test]
        fn what_is_written_down_goes_on(all in proptest::collection::vec(-0.3_f64..0.3, 0..40)) {
            let mut evidence = Evidence::default();
            for x in all {
                evidence.hear(x);
                let text = serde_json::to_string(&evidence).unwrap();
                prop_assert_eq!(&serde_json::from_str::<Evidence>(&text).unwrap(), &evidence);
            }
        }
    }
}
