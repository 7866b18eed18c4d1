//! The verdict on a claim: a function of the published number and of our intervals.
//!
//! The null, or no effect, is 1 for a ratio, 0 for anything else; a published number's effect is
//! its distance from the null. The *band* around a number is the tolerated share of its effect (of
//! the number itself for a level) to both sides. An interval *agrees* with a number if all of it
//! lies within the band (a test of equivalence: Schuirmann 1987); a wide interval never does.
//!
//! | claim | reproduced | same direction | refuted | unknown |
//! |---|---|---|---|---|
//! | number | agrees | excludes null on its side | excludes band, or is beyond null | else |
//! | level | agrees | never | excludes band | else |
//! | direction | excludes null on that side | never | has no effect over `same_share` | else |
//! | the same | all of it is within `same_share` of null | never | none of it is | else |
//! | never below | none of it is below that range | never | all of it is | else |
//!
//! The interval is that of the largest or smallest of all points ([`Found::extreme`]), as the claim
//! is about some point or about every point. Each rule errs in at most one of 20 experiments:
//! `tests/verdicts.rs` counts.
//!
//! A claim without an interval is unknown; if all its points were measured and have no value, it
//! cannot be asked here. While points are missing, a claim is also unknown if the measured points
//! cannot settle it: that something holds at every point, or at none. A refuted claim is explained
//! if it holds where its cause is switched on, and is refuted where the cause is switched off
//! ([`super::published::Cause`]). A figure is as good as the worst of its claims.

use serde::Serialize;

use luc_stats::Interval;

use super::found::{Found, signed};
use super::published::{Claim, Direction, Published};

/// A verdict, in order from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    Reproduced,
    SameDirection,
    /// Refuted here, and an experiment shows the cause.
    Explained,
    /// The measure does not exist where this was measured.
    CannotBeAsked,
    /// Not measured, or not enough to tell.
    Unknown,
    Refuted,
}

impl ClaimVerdict {
    pub const ALL: [Self; 6] = [
        Self::Reproduced,
        Self::SameDirection,
        Self::Explained,
        Self::CannotBeAsked,
        Self::Unknown,
        Self::Refuted,
    ];

    /// The verdict as the user sees it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::SameDirection => "same direction",
            Self::Explained => "explained",
            Self::CannotBeAsked => "cannot be asked here",
            Self::Unknown => "unknown",
            Self::Refuted => "refuted",
        }
    }

    /// A figure's verdict: the worst of its claims; nobody can ask a figure without claims.
    pub fn of_all(claims: impl IntoIterator<Item = Self>) -> Self {
        claims.into_iter().max().unwrap_or(Self::CannotBeAsked)
    }

    /// Whether the claim holds, if only in its direction.
    pub fn holds(self) -> bool {
        matches!(self, Self::Reproduced | Self::SameDirection)
    }
}

/// A verdict and the reason for it, a clause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    pub verdict: ClaimVerdict,
    pub why: String,
    /// Our number, and its point or points.
    #[serde(skip)]
    pub ours: Option<(Interval, String)>,
}

/// Judges our answer to a claim.
pub fn judge(claim: &Claim, found: &Found, rules: &Published) -> Judged {
    if !claim.cannot.is_empty() {
        return Judged {
            verdict: ClaimVerdict::CannotBeAsked,
            why: claim.cannot.clone(),
            ours: None,
        };
    }
    let mut judged = of_measured(claim, found, rules);
    // A missing point may refute a claim about every point, and may prove any other claim.
    let is_of_every_point = claim.is_of_every_point();
    let is_open = match judged.verdict {
        ClaimVerdict::Reproduced => is_of_every_point || claim.level,
        ClaimVerdict::Refuted => !is_of_every_point,
        _ => false,
    };
    if is_open && found.measured < found.points {
        judged.verdict = ClaimVerdict::Unknown;
        judged.why = format!(
            "{} of {} points are measured, and for these: {}",
            found.measured, found.points, judged.why
        );
    }
    judged
}

/// Judges as if no point were missing.
fn of_measured(claim: &Claim, found: &Found, rules: &Published) -> Judged {
    let extremes = claim.extremes().iter();
    let ours = extremes.filter_map(|extreme| found.extreme(*extreme));
    let judged = ours.map(|(interval, at)| {
        let (verdict, why) = of_interval(claim, found, rules, &interval);
        Judged {
            verdict,
            why,
            ours: Some((interval, at.to_owned())),
        }
    });
    // Every point has to hold, so that the worse end decides.
    judged
        .max_by_key(|judged| judged.verdict)
        .unwrap_or_else(|| {
            let (verdict, why) = if found.measured > 0 && found.measured == found.points {
                let why = "the measure does not exist where this was measured";
                (ClaimVerdict::CannotBeAsked, why)
            } else {
                (ClaimVerdict::Unknown, "not measured")
            };
            Judged {
                verdict,
                why: why.to_owned(),
                ours: None,
            }
        })
}

fn of_interval(
    claim: &Claim,
    found: &Found,
    rules: &Published,
    interval: &Interval,
) -> (ClaimVerdict, String) {
    let Some(ends) = interval.ends else {
        let why = "a single repeat has no interval";
        return (ClaimVerdict::Unknown, why.to_owned());
    };
    let rule = Rule::for_claim(claim, rules);
    match rule.judge(ends) {
        (ClaimVerdict::Unknown, _) => {
            let why = open(claim, found, &rule, interval);
            (ClaimVerdict::Unknown, why)
        }
        (verdict, why) => (verdict, why.to_owned()),
    }
}

/// The comparison that a claim asks for. A claim of something smaller is compared with its sign
/// changed, so that an effect is always above the null.
#[derive(Clone, Copy, Debug)]
enum Rule {
    Level {
        band: (f64, f64),
    },
    Effect {
        sign: f64,
        null: f64,
        band: (f64, f64),
    },
    /// An effect of any size; one that ends below `least` counts as none.
    Direction {
        sign: f64,
        null: f64,
        least: f64,
    },
    Range {
        range: (f64, f64),
        held: &'static str,
        failed: &'static str,
    },
}

impl Rule {
    fn for_claim(claim: &Claim, rules: &Published) -> Self {
        let null = claim.none();
        let tolerance = claim.tolerance_share.unwrap_or(rules.tolerance_share);
        let margin = rules.same_share;
        let range = |low, high, held, failed| Self::Range {
            range: (low, high),
            held,
            failed,
        };
        let band = |number: f64, effect: f64| {
            let tolerated = tolerance * effect.abs();
            (number - tolerated, number + tolerated)
        };
        let (least, most) = (null - margin, null + margin);
        match claim.side() {
            None => {
                let number = claim.published.unwrap_or(null);
                let band = band(number, number);
                Self::Level { band }
            }
            Some(Direction::Same) => {
                range(least, most, "practically no effect", "there is an effect")
            }
            Some(Direction::NotBelow) => range(least, f64::INFINITY, "never below", "below"),
            Some(Direction::NotAbove) => range(-f64::INFINITY, most, "never above", "above"),
            Some(side @ (Direction::Above | Direction::Below)) => {
                let sign = if side == Direction::Above { 1.0 } else { -1.0 };
                let null = sign * null;
                let least = null + margin;
                let effect = |number: f64| Self::Effect {
                    sign,
                    null,
                    band: band(sign * number, sign * number - null),
                };
                let direction = Self::Direction { sign, null, least };
                claim.published.map_or(direction, effect)
            }
        }
    }

    fn judge(&self, (low, high): (f64, f64)) -> (ClaimVerdict, &'static str) {
        use ClaimVerdict::{Refuted, Reproduced, SameDirection, Unknown};
        let is_within = |(from, to): (f64, f64)| from <= low && high <= to;
        let is_beyond = |(from, to): (f64, f64)| high < from || to < low;
        match *self {
            Self::Level { band } if is_within(band) => (Reproduced, "the level agrees"),
            Self::Level { band } if is_beyond(band) => (Refuted, "the level differs"),
            Self::Range { range, held, .. } if is_within(range) => (Reproduced, held),
            Self::Range { range, failed, .. } if is_beyond(range) => (Refuted, failed),
            Self::Level { .. } | Self::Range { .. } => (Unknown, ""),
            Self::Effect { sign, null, band } => {
                let (low, high) = signed(sign, (low, high));
                match () {
                    () if band.0 <= low && high <= band.1 => (Reproduced, "the size agrees"),
                    () if high < null => (Refuted, "the effect is the opposite"),
                    () if low <= null && high < band.0 => {
                        (Refuted, "the interval excludes that effect")
                    }
                    () if low <= null => (Unknown, ""),
                    () if high < band.0 => (SameDirection, "the effect is smaller"),
                    () if band.1 < low => (SameDirection, "the effect is larger"),
                    () => (
                        SameDirection,
                        "the interval is too wide to compare the size",
                    ),
                }
            }
            Self::Direction { sign, null, least } => match signed(sign, (low, high)) {
                (low, _) if null < low => (Reproduced, "the direction is the same"),
                (_, high) if high < null => (Refuted, "the effect is the opposite"),
                (_, high) if high < least => (Refuted, "practically no effect"),
                _ => (Unknown, ""),
            },
        }
    }

    /// The numbers at which the verdict changes.
    fn limits(&self) -> Vec<f64> {
        let limits = |sign: f64, limits: &[f64]| limits.iter().map(|it| sign * it).collect();
        match *self {
            Self::Level { band: (low, high) }
            | Self::Range {
                range: (low, high), ..
            } => limits(1.0, &[low, high]),
            Self::Effect { sign, null, band } => limits(sign, &[null, band.0, band.1]),
            Self::Direction { sign, null, least } => limits(sign, &[null, least]),
        }
    }
}

/// Why a claim is open, and what would settle it.
fn open(claim: &Claim, found: &Found, rule: &Rule, interval: &Interval) -> String {
    let mut why = "the interval is too wide to tell".to_owned();
    let mut open = vec![interval];
    if claim.is_of_every_point() {
        let all = found.candidates.iter().map(|it| &it.alone);
        let held = |it: &&Interval| it.ends.is_some_and(|ends| rule.judge(ends).0.holds());
        let (held, others): (Vec<_>, Vec<_>) = all.partition(held);
        open = others;
        if found.candidates.len() > 1 {
            let (held, points) = (held.len(), found.candidates.len());
            why = format!("it holds at {held} of {points} points, and is open at the others");
        }
    }
    let runs: Option<Vec<u64>> = open
        .into_iter()
        .map(|it| runs_that_settle(rule, it))
        .collect();
    match runs.and_then(|runs| runs.into_iter().max()) {
        Some(runs) => format!("{why}; about {runs} runs of a point would settle it"),
        None => format!("{why}; no practical number of runs would settle it"),
    }
}

/// More runs than anybody makes of a point.
const RUNS_MOST: f64 = 10_000.0;

/// The number of runs with which the interval would end before the nearest number at which the
/// verdict changes, if its mean stays where it is: a half width shrinks by the root of their
/// number. `None` if that is more than [`RUNS_MOST`].
fn runs_that_settle(rule: &Rule, interval: &Interval) -> Option<u64> {
    let (low, high) = interval.ends?;
    let distances = rule
        .limits()
        .into_iter()
        .map(|it| (it - interval.mean).abs());
    let nearest = distances.fold(f64::INFINITY, f64::min);
    let runs = interval.repeats as f64 * ((high - low) / 2.0 / nearest).powi(2);
    // Two digits: it is an estimate.
    let unit = 10.0_f64.powf((runs.log10().floor() - 1.0).max(0.0));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (runs <= RUNS_MOST).then(|| ((runs / unit).ceil() * unit) as u64)
}

#[cfg(test)]
mod tests {
    use super::super::found::Candidate;
    use super::*;

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

    fn candidate(low: f64, mean: f64, high: f64) -> Candidate {
        let interval = Interval {
            mean,
            ends: Some((low, high)),
            sd: None,
            repeats: 3,
        };
        Candidate {
            at: String::new(),
            alone: interval,
            jointly: interval,
        }
    }

    fn found(low: f64, mean: f64, high: f64) -> Found {
        Found {
            candidates: vec![candidate(low, mean, high)],
            points: 4,
            measured: 4,
            ranking: None,
        }
    }

    fn verdict(claim: &Claim, found: &Found) -> ClaimVerdict {
        judge(claim, found, &rules()).verdict
    }

    #[test]
    fn a_number_is_judged_by_its_effect() {
        // The effect is 1.26; from 1.945 to 2.575 agrees.
        let claim = claim("unit = \"times\"\npublished = 2.26");
        for ((low, mean, high), expected) in [
            ((2.1, 2.2, 2.3), ClaimVerdict::Reproduced),
            // The mean agrees, but the interval contains smaller effects.
            ((1.75, 2.0, 2.3), ClaimVerdict::SameDirection),
            ((1.3, 1.4, 1.5), ClaimVerdict::SameDirection),
            ((3.0, 3.1, 3.2), ClaimVerdict::SameDirection),
            ((0.98, 1.04, 1.10), ClaimVerdict::Refuted),
            // The mean agrees, but the interval also contains the null: undecided.
            ((0.5, 2.2, 9.0), ClaimVerdict::Unknown),
            ((0.9, 1.4, 2.1), ClaimVerdict::Unknown),
            ((0.6, 0.7, 0.8), ClaimVerdict::Refuted),
        ] {
            assert_eq!(verdict(&claim, &found(low, mean, high)), expected, "{mean}");
        }
    }

    #[test]
    fn a_negative_effect_is_judged_alike() {
        // The effect is -11.6; from -14.5 to -8.7 agrees.
        let claim = claim("unit = \"ms\"\npublished = -11.6");
        for ((low, mean, high), expected) in [
            ((-12.0, -11.0, -10.0), ClaimVerdict::Reproduced),
            ((-3.0, -2.0, -1.0), ClaimVerdict::SameDirection),
            ((-3.0, -1.0, 1.0), ClaimVerdict::Refuted),
            ((-9.0, -4.0, 1.0), ClaimVerdict::Unknown),
            ((1.0, 2.0, 3.0), ClaimVerdict::Refuted),
        ] {
            assert_eq!(verdict(&claim, &found(low, mean, high)), expected, "{mean}");
        }
    }

    #[test]
    fn what_nobody_can_ask_says_why() {
        let gone = claim("unit = \"times\"\ncannot = \"no such file system\"");
        let judged = judge(&gone, &Found::default(), &rules());
        assert_eq!(judged.verdict, ClaimVerdict::CannotBeAsked);
        assert_eq!(judged.why, "no such file system");
    }

    #[test]
    fn missing_results_are_unknown() {
        let number = claim("unit = \"times\"\npublished = 2.26");
        assert_eq!(verdict(&number, &Found::default()), ClaimVerdict::Unknown);
        let mut single = found(2.2, 2.2, 2.2);
        single.candidates[0].alone.ends = None;
        assert_eq!(verdict(&number, &single), ClaimVerdict::Unknown);
        let every = claim("unit = \"times\"\nside = \"above\"\ntake = \"every\"");
        assert_eq!(
            verdict(&every, &found(0.9, 1.0, 1.04)),
            ClaimVerdict::Refuted
        );
        assert_eq!(
            verdict(&every, &found(0.9, 1.0, 1.2)),
            ClaimVerdict::Unknown
        );
        let mut partly = found(1.1, 1.2, 1.3);
        assert_eq!(verdict(&every, &partly), ClaimVerdict::Reproduced);
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
        assert_eq!(verdict(&every, &opposite), ClaimVerdict::Refuted);
        assert_eq!(verdict(&number, &opposite), ClaimVerdict::Unknown);
        assert_eq!(
            verdict(&number, &found(0.7, 0.8, 0.9)),
            ClaimVerdict::Refuted
        );
        let large = Found {
            measured: 3,
            ..found(2.2, 2.3, 2.4)
        };
        assert_eq!(verdict(&number, &large), ClaimVerdict::Reproduced);
    }

    #[test]
    fn levels_and_ranges_have_rules_of_their_own() {
        let level = claim("unit = \"share\"\npublished = 0.32\nlevel = true");
        let same = claim("unit = \"times\"\nside = \"same\"");
        let never = claim("unit = \"times\"\nside = \"not-below\"");
        let gone = claim("unit = \"share\"\nside = \"not-above\"");
        for (claim, (low, high), expected) in [
            (&level, (0.28, 0.33), ClaimVerdict::Reproduced),
            (&level, (0.01, 0.03), ClaimVerdict::Refuted),
            // The published 9% is not reproduced by "4.1 to 78.4%".
            (&level, (0.10, 0.78), ClaimVerdict::Unknown),
            (&same, (0.97, 1.03), ClaimVerdict::Reproduced),
            (&same, (1.10, 1.30), ClaimVerdict::Refuted),
            (&same, (0.8, 1.2), ClaimVerdict::Unknown),
            (&never, (0.97, 2.0), ClaimVerdict::Reproduced),
            (&never, (0.7, 0.9), ClaimVerdict::Refuted),
            (&never, (0.8, 1.2), ClaimVerdict::Unknown),
            (&gone, (-0.3, 0.02), ClaimVerdict::Reproduced),
            (&gone, (0.2, 0.4), ClaimVerdict::Refuted),
        ] {
            let found = found(low, f64::midpoint(low, high), high);
            assert_eq!(verdict(claim, &found), expected, "{low} to {high}");
        }
    }

    /// A wide interval at one point hides neither that another refutes the claim, nor how many
    /// points hold.
    #[test]
    fn every_point_counts() {
        let every = claim("unit = \"times\"\nside = \"above\"\ntake = \"every\"");
        let mut found = found(0.5, 1.2, 3.0);
        found.candidates.push(candidate(1.1, 1.2, 1.3));
        let judged = judge(&every, &found, &rules());
        assert_eq!(judged.verdict, ClaimVerdict::Unknown);
        assert_eq!(
            judged.why,
            "it holds at 1 of 2 points, and is open at the others; about 210 runs of a point \
             would settle it"
        );
        found.candidates.push(candidate(0.7, 0.8, 0.9));
        assert_eq!(verdict(&every, &found), ClaimVerdict::Refuted);
    }

    #[test]
    fn the_largest_is_bounded_by_all() {
        // The middle one has the largest mean, the wide one may be larger.
        let some = claim("unit = \"times\"\npublished = 2.26");
        let mut found = found(1.0, 1.2, 1.4);
        found.candidates.push(candidate(1.3, 1.5, 1.7));
        assert_eq!(verdict(&some, &found), ClaimVerdict::SameDirection);
        found.candidates.push(candidate(0.5, 1.4, 4.0));
        let judged = judge(&some, &found, &rules());
        let (interval, _) = judged.ours.clone().unwrap();
        assert_eq!((interval.mean, interval.ends), (1.5, Some((1.3, 4.0))));
        assert_eq!(judged.why, "the interval is too wide to compare the size");
    }

    #[test]
    fn runs_are_those_that_shrink_the_interval() {
        let direction = claim("unit = \"times\"\nside = \"above\"");
        let rule = Rule::for_claim(&direction, &rules());
        let interval = |low, mean, high| Interval {
            ends: Some((low, high)),
            ..candidate(0.0, mean, 0.0).alone
        };
        // A half width of 0.4, 0.1 above the null and 0.05 above what counts as an effect.
        assert_eq!(runs_that_settle(&rule, &interval(0.7, 1.1, 1.5)), Some(200));
        assert_eq!(runs_that_settle(&rule, &interval(0.7, 1.0501, 1.5)), None);
    }

    #[test]
    fn a_figure_is_as_good_as_its_worst_claim() {
        use ClaimVerdict::{CannotBeAsked, Explained, Refuted, Reproduced, SameDirection, Unknown};
        for (claims, expected) in [
            (vec![Reproduced, Reproduced], Reproduced),
            (vec![Reproduced, SameDirection], SameDirection),
            (vec![Explained, SameDirection], Explained),
            (vec![Reproduced, Unknown], Unknown),
            (vec![Unknown, Refuted], Refuted),
            (vec![Reproduced, CannotBeAsked], CannotBeAsked),
            (vec![], CannotBeAsked),
        ] {
            assert_eq!(ClaimVerdict::of_all(claims), expected);
        }
    }

    #[test]
    fn no_effect_is_1_of_ratios_alone() {
        for (unit, none) in [
            ("times", 1.0),
            ("modulus", 1.0),
            ("share", 0.0),
            ("ms", 0.0),
            ("count", 0.0),
        ] {
            let claim = claim(&format!("unit = {unit:?}\npublished = 2"));
            assert!((claim.none() - none).abs() < 1e-9, "{unit}");
        }
    }
}
