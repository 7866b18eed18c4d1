//! The verdict on a claim: a function of the published number and of our interval.
//!
//! The null, or no effect, is 1 for a ratio, 0 for anything else; a published number's effect is
//! its distance from the null. Our interval *agrees* with a number if its mean lies within the
//! tolerated share of the effect, or if it overlaps that range and is no wider.
//!
//! | claim | reproduced | same direction | not reproduced | unknown |
//! |---|---|---|---|---|
//! | number | agrees, excludes null | excludes null on its side | else | contains null and number |
//! | level | agrees | never | else | contains the number, but is wider than tolerated |
//! | direction | excludes null on that side | never | else | contains null and such an effect |
//! | the same | all of it is within `same_share` of null | never | none of it is | else |
//! | never below | none of it is below that range | never | all of it is | else |
//!
//! A claim without an interval is unknown; if all its points were measured and have no value, it is
//! not applicable. While points are missing, a claim is also unknown if the measured points cannot
//! settle it: that something holds at every point, or at none. Unknown is no success: a figure is
//! reproduced only if all of its applicable claims are.

use serde::Serialize;

use super::found::Found;
use super::published::{Claim, ClaimTake, Direction, Published};

/// A verdict, in order from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    Reproduced,
    SameDirection,
    NotReproduced,
    /// Not measured, or not enough to tell.
    Unknown,
    NotApplicable,
}

impl ClaimVerdict {
    pub const ALL: [Self; 5] = [
        Self::Reproduced,
        Self::SameDirection,
        Self::NotReproduced,
        Self::Unknown,
        Self::NotApplicable,
    ];

    /// The verdict as the user sees it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::SameDirection => "same direction",
            Self::NotReproduced => "not reproduced",
            Self::Unknown => "unknown",
            Self::NotApplicable => "not applicable",
        }
    }

    /// A figure's verdict: the worst of its applicable claims. A refuted claim counts as worse than
    /// an unknown one.
    pub fn of_all(claims: impl IntoIterator<Item = Self>) -> Self {
        let claims: Vec<Self> = claims.into_iter().collect();
        if claims.contains(&Self::NotReproduced) {
            return Self::NotReproduced;
        }
        claims
            .into_iter()
            .filter(|claim| *claim != Self::NotApplicable)
            .max()
            .unwrap_or(Self::NotApplicable)
    }
}

/// A verdict and the reason for it, a clause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    pub verdict: ClaimVerdict,
    pub why: String,
}

const TOO_WIDE: &str = "the interval is too wide to tell";

fn judged(verdict: ClaimVerdict, why: &str) -> Judged {
    Judged {
        verdict,
        why: why.to_owned(),
    }
}

/// Judges our answer to a claim.
pub fn judge(claim: &Claim, found: &Found, rules: &Published) -> Judged {
    let judged = of_measured(claim, found, rules);
    let is_of_every_point = claim.take == ClaimTake::Every
        || matches!(
            claim.side(),
            Some(Direction::Same | Direction::NotBelow | Direction::NotAbove)
        );
    // A missing point may refute a claim about every point, and may prove any other claim.
    let is_open = match judged.verdict {
        ClaimVerdict::Reproduced => is_of_every_point || claim.level,
        ClaimVerdict::NotReproduced => !is_of_every_point,
        _ => false,
    };
    if !is_open || found.measured == found.points {
        return judged;
    }
    Judged {
        verdict: ClaimVerdict::Unknown,
        why: format!(
            "{} of {} points are measured, and for these: {}",
            found.measured, found.points, judged.why
        ),
    }
}

/// Judges as if no point were missing.
fn of_measured(claim: &Claim, found: &Found, rules: &Published) -> Judged {
    let Some(interval) = found.interval else {
        if found.measured > 0 && found.measured == found.points {
            return judged(
                ClaimVerdict::NotApplicable,
                "the measure does not exist where this was measured",
            );
        }
        return judged(ClaimVerdict::Unknown, "not measured");
    };
    let Some((low, high)) = interval.ends else {
        return judged(ClaimVerdict::Unknown, "a single repeat has no interval");
    };
    let none = claim.none();
    let tolerance = claim.tolerance_share.unwrap_or(rules.tolerance_share);
    let margin = rules.same_share;
    match claim.side() {
        None => {
            let published = claim.published.unwrap_or(none);
            let agrees = agrees(
                (low, interval.mean, high),
                published,
                tolerance * published.abs(),
            );
            if agrees {
                judged(ClaimVerdict::Reproduced, "the level agrees")
            } else if low < published && published < high {
                judged(ClaimVerdict::Unknown, TOO_WIDE)
            } else {
                judged(ClaimVerdict::NotReproduced, "the level differs")
            }
        }
        Some(Direction::Same) => bounded(
            low >= none - margin && high <= none + margin,
            high < none - margin || low > none + margin,
            "practically no effect",
            "there is an effect",
        ),
        Some(Direction::NotBelow) => bounded(
            low >= none - margin,
            high < none - margin,
            "never below",
            "below",
        ),
        Some(Direction::NotAbove) => bounded(
            high <= none + margin,
            low > none + margin,
            "never above",
            "above",
        ),
        Some(side @ (Direction::Above | Direction::Below)) => {
            let beyond = interval.beyond(none);
            let wanted = if side == Direction::Above { 1 } else { -1 };
            if beyond == -wanted {
                return judged(ClaimVerdict::NotReproduced, "the effect is the opposite");
            }
            if beyond == 0 {
                // For a direction alone, an effect counts only if it exceeds `same_share`.
                let effect = claim.published.unwrap_or(if wanted == 1 {
                    none + margin
                } else {
                    none - margin
                });
                if low < effect && effect < high {
                    return judged(ClaimVerdict::Unknown, TOO_WIDE);
                }
                return judged(
                    ClaimVerdict::NotReproduced,
                    "the interval excludes that effect",
                );
            }
            let Some(published) = claim.published else {
                return judged(ClaimVerdict::Reproduced, "the direction is the same");
            };
            if agrees(
                (low, interval.mean, high),
                published,
                tolerance * (published - none).abs(),
            ) {
                return judged(ClaimVerdict::Reproduced, "the size agrees");
            }
            let is_larger = (interval.mean - none).abs() > (published - none).abs();
            let why = if is_larger {
                "the effect is larger"
            } else {
                "the effect is smaller"
            };
            judged(ClaimVerdict::SameDirection, why)
        }
    }
}

fn bounded(holds: bool, fails: bool, held: &str, failed: &str) -> Judged {
    if holds {
        judged(ClaimVerdict::Reproduced, held)
    } else if fails {
        judged(ClaimVerdict::NotReproduced, failed)
    } else {
        judged(ClaimVerdict::Unknown, TOO_WIDE)
    }
}

/// Whether an interval agrees with a number to within `band`.
fn agrees((low, mean, high): (f64, f64, f64), published: f64, band: f64) -> bool {
    let (from, to) = (published - band, published + band);
    let reaches = low <= to && high >= from;
    (from..=to).contains(&mean) || reaches && (high - low) / 2.0 <= band
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_stats::Interval;

    fn rules() -> Published {
        Published {
            tolerance_share: 0.25,
            same_share: 0.05,
            ..Published::builtin().clone()
        }
    }

    fn claim(text: &str) -> Claim {
        toml::from_str(&format!("says = \"\"\n{text}")).unwrap()
    }

    fn found(low: f64, mean: f64, high: f64) -> Found {
        Found {
            interval: Some(Interval {
                mean,
                ends: Some((low, high)),
                sd: None,
                repeats: 3,
            }),
            points: 4,
            measured: 4,
            ..Found::default()
        }
    }

    fn of(claim: &Claim, found: &Found) -> ClaimVerdict {
        judge(claim, found, &rules()).verdict
    }

    #[test]
    fn a_number_is_judged_by_its_effect() {
        // The effect is 1.26; from 1.945 to 2.575 agrees.
        let claim = claim("unit = \"times\"\npublished = 2.26");
        for ((low, mean, high), expected) in [
            ((2.1, 2.2, 2.3), ClaimVerdict::Reproduced),
            ((1.75, 1.90, 2.06), ClaimVerdict::Reproduced),
            ((1.3, 1.4, 1.5), ClaimVerdict::SameDirection),
            ((3.0, 3.1, 3.2), ClaimVerdict::SameDirection),
            // It overlaps that range only because it is wide.
            ((1.1, 1.8, 2.9), ClaimVerdict::SameDirection),
            ((0.98, 1.04, 1.10), ClaimVerdict::NotReproduced),
            // The mean agrees, but the interval also contains the null: undecided.
            ((0.5, 2.2, 9.0), ClaimVerdict::Unknown),
            ((0.6, 0.7, 0.8), ClaimVerdict::NotReproduced),
        ] {
            assert_eq!(of(&claim, &found(low, mean, high)), expected, "{mean}");
        }
    }

    #[test]
    fn a_negative_effect_is_judged_alike() {
        let claim = claim("unit = \"ms\"\npublished = -11.6");
        assert_eq!(
            of(&claim, &found(-12.0, -11.0, -10.0)),
            ClaimVerdict::Reproduced
        );
        assert_eq!(
            of(&claim, &found(-3.0, -2.0, -1.0)),
            ClaimVerdict::SameDirection
        );
        assert_eq!(
            of(&claim, &found(-3.0, -1.0, 1.0)),
            ClaimVerdict::NotReproduced
        );
        assert_eq!(
            of(&claim, &found(1.0, 2.0, 3.0)),
            ClaimVerdict::NotReproduced
        );
    }

    #[test]
    fn what_is_missing_is_unknown() {
        let number = claim("unit = \"times\"\npublished = 2.26");
        assert_eq!(of(&number, &Found::default()), ClaimVerdict::Unknown);
        let mut single = found(2.2, 2.2, 2.2);
        single.interval.as_mut().unwrap().ends = None;
        assert_eq!(of(&number, &single), ClaimVerdict::Unknown);
        let every = claim("unit = \"times\"\nside = \"above\"\ntake = \"every\"");
        assert_eq!(
            of(&every, &found(0.9, 1.0, 1.04)),
            ClaimVerdict::NotReproduced
        );
        assert_eq!(of(&every, &found(0.9, 1.0, 1.2)), ClaimVerdict::Unknown);
        let mut partly = found(1.1, 1.2, 1.3);
        assert_eq!(of(&every, &partly), ClaimVerdict::Reproduced);
        partly.measured = 3;
        let judged = judge(&every, &partly, &rules());
        assert_eq!(judged.verdict, ClaimVerdict::Unknown);
        assert_eq!(
            judged.why,
            "3 of 4 points are measured, and for these: the direction is the same"
        );
        // One point refutes a claim about every point; only all points refute a claim about one.
        let opposite = Found {
            measured: 3,
            ..found(0.7, 0.8, 0.9)
        };
        assert_eq!(of(&every, &opposite), ClaimVerdict::NotReproduced);
        assert_eq!(of(&number, &opposite), ClaimVerdict::Unknown);
        assert_eq!(
            of(&number, &found(0.7, 0.8, 0.9)),
            ClaimVerdict::NotReproduced
        );
        let large = Found {
            measured: 3,
            ..found(2.2, 2.3, 2.4)
        };
        assert_eq!(of(&number, &large), ClaimVerdict::Reproduced);
    }

    #[test]
    fn levels_and_bounds_have_rules_of_their_own() {
        let level = claim("unit = \"share\"\npublished = 0.32\nlevel = true");
        assert_eq!(
            of(&level, &found(0.28, 0.30, 0.33)),
            ClaimVerdict::Reproduced
        );
        assert_eq!(
            of(&level, &found(0.01, 0.02, 0.03)),
            ClaimVerdict::NotReproduced
        );
        let same = claim("unit = \"times\"\nside = \"same\"");
        assert_eq!(of(&same, &found(0.97, 1.0, 1.03)), ClaimVerdict::Reproduced);
        assert_eq!(
            of(&same, &found(1.10, 1.2, 1.30)),
            ClaimVerdict::NotReproduced
        );
        assert_eq!(of(&same, &found(0.8, 1.0, 1.2)), ClaimVerdict::Unknown);
        let never = claim("unit = \"times\"\nside = \"not-below\"");
        assert_eq!(of(&never, &found(0.97, 1.5, 2.0)), ClaimVerdict::Reproduced);
        assert_eq!(
            of(&never, &found(0.7, 0.8, 0.9)),
            ClaimVerdict::NotReproduced
        );
        assert_eq!(of(&never, &found(0.8, 1.0, 1.2)), ClaimVerdict::Unknown);
        let gone = claim("unit = \"share\"\nside = \"not-above\"");
        assert_eq!(
            of(&gone, &found(-0.3, -0.1, 0.02)),
            ClaimVerdict::Reproduced
        );
        assert_eq!(
            of(&gone, &found(0.2, 0.3, 0.4)),
            ClaimVerdict::NotReproduced
        );
    }

    #[test]
    fn a_figure_is_as_good_as_its_worst_claim() {
        use ClaimVerdict::{NotApplicable, NotReproduced, Reproduced, SameDirection, Unknown};
        for (claims, expected) in [
            (vec![Reproduced, Reproduced], Reproduced),
            (vec![Reproduced, SameDirection], SameDirection),
            (vec![Reproduced, Unknown], Unknown),
            (vec![Unknown, NotReproduced], NotReproduced),
            (vec![Reproduced, NotApplicable], Reproduced),
            (vec![NotApplicable], NotApplicable),
            (vec![], NotApplicable),
        ] {
            assert_eq!(ClaimVerdict::of_all(claims), expected);
        }
    }

    #[test]
    fn no_effect_is_1_of_ratios_alone() {
        for (unit, none) in [("times", 1.0), ("share", 0.0), ("ms", 0.0), ("count", 0.0)] {
            let claim = claim(&format!("unit = {unit:?}\npublished = 2"));
            assert!((claim.none() - none).abs() < 1e-9, "{unit}");
        }
    }
}
