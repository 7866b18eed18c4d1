//! Verdicts from pairs of windows, by the bets of `control/luc_bets.c`, which the module's own
//! trial uses, too. The essay there has the formulas and shows why at most 1 % of loads get a false
//! verdict.

use luc_control::{Bets, BetsVerdict};
use serde::{Deserialize, Serialize};

/// LUC counts as harmless down to this ratio to stock: nobody feels a smaller difference.
pub const LIMIT: f64 = 0.99;
/// The highest chance that a verdict is false.
pub const ALPHA: f64 = 0.01;

/// Bound of one pair in the reported ratio, ln 100: a side without a call would make it infinite.
const PLAIN_MAX_PPM: i64 = 4_605_170;
const PPM: f64 = 1e6;

/// The verdict that pairs give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialVerdict {
    /// LUC is at least 0.99 of stock.
    Certified,
    /// LUC is below 0.99 of stock.
    Refuted,
}

/// The serialized form of [`Bets`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Bets")]
struct Written {
    pairs: i64,
    sum: i64,
    squares: i64,
    wide_squares: i64,
    certificate: i64,
    harm: i64,
}

/// The two players, with their memory of past pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    #[serde(with = "Written")]
    bets: Bets,
    /// Sum of x, each limited to a factor of a hundred: for reports only.
    plain_ppm: i64,
}

impl Evidence {
    /// Pairs heard.
    pub fn pairs(&self) -> u64 {
        u64::try_from(self.bets.pairs).unwrap_or(0)
    }

    /// The factor by which the player for LUC has multiplied her capital; 1/alpha certifies LUC.
    pub fn for_luc(&self) -> f64 {
        (self.bets.certificate as f64 / PPM).exp()
    }

    /// The same factor for the player against LUC; 1/alpha refutes LUC.
    pub fn against_luc(&self) -> f64 {
        (self.bets.harm as f64 / PPM).exp()
    }

    /// The ratio to stock of the pairs heard; `None` before the first.
    pub fn ratio(&self) -> Option<f64> {
        (self.bets.pairs > 0).then(|| (self.plain_ppm as f64 / self.bets.pairs as f64 / PPM).exp())
    }

    /// Hears a pair, x = ln(on / off). Returns the verdict from the pair that decides it onwards.
    pub fn hear(&mut self, x: f64) -> Option<TrialVerdict> {
        let x_ppm = in_ppm(x);
        let before = self.bets.pairs;
        self.bets.hear(x_ppm);
        // The bets stop counting pairs once another one would teach them nothing.
        if self.bets.pairs > before {
            let plain_ppm = x_ppm.clamp(-PLAIN_MAX_PPM, PLAIN_MAX_PPM);
            self.plain_ppm = self.plain_ppm.saturating_add(plain_ppm);
        }
        self.verdict()
    }

    /// The verdict of the pairs heard so far.
    pub fn verdict(&self) -> Option<TrialVerdict> {
        self.bets.verdict().map(|verdict| match verdict {
            BetsVerdict::Certified => TrialVerdict::Certified,
            BetsVerdict::Refuted => TrialVerdict::Refuted,
        })
    }
}

/// Converts to ppm: infinity saturates, and NaN becomes the limit, which favours neither player.
fn in_ppm(x: f64) -> i64 {
    if x.is_nan() {
        return Bets::LIMIT_PPM;
    }
    #[expect(clippy::cast_possible_truncation, reason = "saturates, as it should")]
    let x_ppm = (x * PPM).round() as i64;
    x_ppm
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs_until(verdict: TrialVerdict, x: f64) -> u64 {
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
    fn the_bets_are_on_this_limit_at_this_chance() {
        assert_eq!(in_ppm(LIMIT.ln()), Bets::LIMIT_PPM);
        let won = Bets::WON_PPM as f64;
        assert!((won / PPM + ALPHA.ln()).abs() < 1e-6);
    }

    #[test]
    fn clear_pairs_decide_soon() {
        let up = pairs_until(TrialVerdict::Certified, 1.05_f64.ln());
        let far = pairs_until(TrialVerdict::Certified, 2.0_f64.ln());
        let down = pairs_until(TrialVerdict::Refuted, 0.9_f64.ln());
        let same = pairs_until(TrialVerdict::Certified, 0.0);
        for pairs in [up, far, down, same] {
            assert!((8..40).contains(&pairs), "{up} {far} {down} {same}");
        }
    }

    #[test]
    fn the_ratio_is_of_whole_pairs() {
        let mut evidence = Evidence::default();
        assert_eq!(evidence.ratio(), None);
        evidence.hear(3.0_f64.ln());
        evidence.hear(3.0_f64.ln());
        assert!((evidence.ratio().unwrap() - 3.0).abs() < 1e-5);
        assert_eq!(evidence.pairs(), 2);
    }

    #[test]
    fn what_is_no_number_says_nothing() {
        let mut evidence = Evidence::default();
        for x in [0.3, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN] {
            let before = evidence.clone();
            evidence.hear(x);
            assert!((-1.4..0.6).contains(&(evidence.for_luc() / before.for_luc()).ln()));
            assert!((-1.4..0.6).contains(&(evidence.against_luc() / before.against_luc()).ln()));
            if x.is_nan() {
                assert_eq!(evidence.bets.sum, before.bets.sum);
            }
        }
        assert_eq!(evidence.pairs(), 5);
    }

    proptest! {
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
