//! The documents' figures: `campaigns/published.toml`, as types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::found::Extreme;
use crate::error::did_you_mean;
use crate::file::{Figure, Value, Values, Where};

/// Everything that the documents report and that ours is compared with.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// How far a number may be off and still agree, as a share of its effect.
    pub tolerance_share: f64,
    /// How far from no effect still counts as none, if a document says "the same".
    pub same_share: f64,
    /// The question that the page answers, and the meaning of its columns, for the reader.
    pub question: String,
    pub columns: String,
    /// The answer in words: paragraphs on how far the claims hold.
    pub discussion: Vec<String>,
    /// The part of the campaign that a quick run measures.
    pub quick: Quick,
    /// Unknowns that no factor stands for, by their names.
    #[serde(default)]
    pub windows: BTreeMap<String, Windows>,
    /// Causes that experiments show, by their names.
    #[serde(default)]
    pub explanations: BTreeMap<String, Explanation>,
    /// Names of the documents by the first letter of their figures' names.
    pub documents: BTreeMap<String, String>,
    #[serde(rename = "figure")]
    pub figures: Vec<Reported>,
}

/// An unknown that decides which values of a factor stand for the documents' values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Windows {
    /// The unknown, for the reader.
    pub says: String,
    pub factor: String,
    /// The factor's values for each value of the unknown.
    pub values: BTreeMap<String, Vec<Value>>,
}

/// A quick run: few points, fewest repeats.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    pub repeats: u32,
    /// Repeats of simulated points, which cost less.
    pub repeats_simulated: u32,
    /// Blocks that it does not measure.
    #[serde(default)]
    pub without: Vec<String>,
    /// Values that factors keep in the lab, if a block has them.
    #[serde(rename = "where")]
    pub fits: Where,
}

/// A figure or table of a document.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reported {
    /// Name as the user types it: `D5.8`.
    pub id: String,
    /// Other figures that show the same.
    #[serde(default)]
    pub also: Vec<String>,
    pub title: String,
    /// Page, if the document has page numbers.
    #[serde(default)]
    pub page: Option<u32>,
    /// Machine and workload that the document names.
    pub conditions: String,
    /// Our stand-in for their machines, and its limits.
    #[serde(default)]
    pub ours: String,
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
}

/// One statement of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The document's statement, restated.
    pub says: String,
    /// The number; absent if the document gives only a direction.
    pub published: Option<f64>,
    pub unit: Unit,
    /// The direction; if absent, the number implies it.
    pub side: Option<Direction>,
    /// Whether the number is a level that has no direction: a share, a time.
    #[serde(default)]
    pub level: bool,
    /// Tolerance instead of the general one.
    pub tolerance_share: Option<f64>,
    /// How the figures at many points become one number.
    #[serde(default)]
    pub take: ClaimTake,
    /// The figure at each point.
    pub of: Option<Figure>,
    /// Name of the block.
    #[serde(default)]
    pub block: String,
    #[serde(default, rename = "where")]
    pub fits: Where,
    /// Factors or [`Published::windows`] whose true values nobody knows: the claim has to hold for
    /// each combination of their values.
    #[serde(default)]
    pub nuisance: Vec<String>,
    /// The factor along which `take` looks, from its first value to its last.
    pub over: Option<String>,
    /// Arm shown for comparison: today's LUC, where `of` is a published controller.
    pub beside: Option<String>,
    /// A second witness: the same in the lab. The verdict does not depend on it.
    pub lab: Option<Elsewhere>,
    /// Measures to rank by their correlation with `of`, a rate.
    #[serde(default)]
    pub causes: Vec<String>,
    /// Gains whose closed-loop poles are computed, instead of `of`.
    pub poles: Option<Gains>,
    /// Why nobody can ask it today; empty if somebody can.
    #[serde(default)]
    pub cannot: String,
    /// Why ours differs, if the reason was found.
    #[serde(default)]
    pub because: String,
    /// Name of the cause, one of [`Published::explanations`], if an experiment shows it.
    pub explanation: Option<String>,
}

/// Other points for the same claim.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elsewhere {
    /// Block, if it is not the claim's.
    pub block: Option<String>,
    /// Conditions instead of the claim's.
    #[serde(default, rename = "where")]
    pub fits: Where,
}

/// An experiment that shows why claims are refuted here: such a claim holds where the cause is on,
/// and is refuted where it is off. Its conditions replace those of the claim for the same factors.
/// An unknown of the claim, by what its window says, may stand for its factor: `ipc = "0.5"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explanation {
    /// The cause.
    pub says: String,
    pub on: Where,
    pub off: Where,
}

/// Gain sets: every combination.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gains {
    pub kp: Vec<f64>,
    pub ki: Vec<f64>,
    pub kd: Vec<f64>,
    pub c: Vec<f64>,
}

/// The kind of a claim's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A ratio: no effect is 1.
    Times,
    /// The modulus of a pole, compared with 1.
    Modulus,
    /// A share, shown as a percentage.
    Share,
    Ms,
    Count,
    /// Strength of a correlation, 0 to 1.
    Correlation,
}

/// A direction, relative to no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    Above,
    Below,
    /// No effect.
    Same,
    /// No effect, or one above it: "never below".
    NotBelow,
    /// No effect, or one below it: "no slowdown".
    NotAbove,
}

/// How the figures at a claim's points become one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimTake {
    /// The largest.
    #[default]
    Max,
    /// The smallest.
    Min,
    /// The claim is about every point: the point farthest from it decides.
    Every,
    /// The largest share lost from one value of `over` to a later one.
    Lost,
    /// The share lost from the first value of `over` to the last; the largest over the other
    /// factors.
    LostEnds,
    /// The share lost from the best value of `over` to the last; the largest.
    LostLast,
    /// The ratio of the last value of `over` to the first; the largest.
    RiseEnds,
    /// The last value of `over` minus the first, for a count; the largest.
    MoreEnds,
    /// The largest standard deviation between repeats, as a share of the mean.
    Spread,
}

impl ClaimTake {
    /// Whether it looks along a factor.
    pub fn is_along(self) -> bool {
        matches!(
            self,
            Self::Lost | Self::LostEnds | Self::LostLast | Self::RiseEnds | Self::MoreEnds
        )
    }

    /// Whether it uses one arm's own values.
    pub fn is_plain(self) -> bool {
        self.is_along() || self == Self::Spread
    }
}

impl Claim {
    /// The claim about other points.
    #[must_use]
    pub fn elsewhere(&self, other: &Elsewhere) -> Self {
        Self {
            block: other.block.clone().unwrap_or_else(|| self.block.clone()),
            fits: other.fits.clone(),
            ..self.clone()
        }
    }

    /// The claim where a factor has one of these values.
    #[must_use]
    pub fn with(&self, factor: &str, values: &[Value]) -> Self {
        let mut part = self.clone();
        let values = Values::Many(values.to_vec());
        part.fits.insert(factor.to_owned(), values);
        part
    }

    /// The value that means no effect.
    pub fn none(&self) -> f64 {
        match self.unit {
            Unit::Times | Unit::Modulus => 1.0,
            _ => 0.0,
        }
    }

    /// Whether it claims something of every point, not of one.
    pub fn is_of_every_point(&self) -> bool {
        self.take == ClaimTake::Every
            || matches!(
                self.side(),
                Some(Direction::Same | Direction::NotBelow | Direction::NotAbove)
            )
    }

    /// Which of all points decide it.
    pub fn extremes(&self) -> &'static [Extreme] {
        match (self.take, self.side()) {
            (ClaimTake::Every, None | Some(Direction::Same)) => {
                &[Extreme::Smallest, Extreme::Largest]
            }
            (ClaimTake::Every, Some(Direction::Above | Direction::NotBelow))
            | (ClaimTake::Min, _) => &[Extreme::Smallest],
            _ => &[Extreme::Largest],
        }
    }

    /// The claimed direction; `None` for a level.
    pub fn side(&self) -> Option<Direction> {
        if self.level {
            return None;
        }
        let of_number = |published: f64| {
            if published > self.none() {
                Direction::Above
            } else {
                Direction::Below
            }
        };
        self.side.or(self.published.map(of_number))
    }
}

impl Published {
    /// The claim at all points that its answer needs: its own, the lab's and its explanation's.
    pub fn everywhere(&self, claim: &Claim) -> Vec<Claim> {
        let explained = self.explanation(claim).into_iter();
        let explained = explained.flat_map(|it| [&it.on, &it.off].map(|it| self.given(claim, it)));
        let lab = claim.lab.iter().map(|lab| claim.elsewhere(lab));
        let own = std::iter::once(claim.clone());
        own.chain(explained).chain(lab).collect()
    }

    /// The claim's explanation; `None` if it has none, or names one that does not exist.
    pub fn explanation(&self, claim: &Claim) -> Option<&Explanation> {
        self.explanations.get(claim.explanation.as_ref()?)
    }

    /// The claim under the conditions of an explanation.
    #[must_use]
    pub fn given(&self, claim: &Claim, conditions: &Where) -> Claim {
        let unknowns = claim.nuisance.iter();
        let unknowns: Vec<&Windows> = unknowns.filter_map(|it| self.windows.get(it)).collect();
        let mut given = claim.clone();
        for (name, wanted) in conditions {
            let window = unknowns.iter().find(|it| it.says == *name);
            let window = window.zip(wanted.all().first());
            let values = window.and_then(|(it, Value(value))| Some((it, it.values.get(value)?)));
            given = match values {
                Some((it, values)) => given.with(&it.factor, values),
                None => given.with(name, wanted.all()),
            };
        }
        given
    }

    /// The figures with these names, in the order of the file; all if none is named.
    ///
    /// # Errors
    /// A name is unknown.
    pub fn chosen(&self, names: &[String]) -> Result<Vec<&Reported>, String> {
        let ids = || {
            let all = self.figures.iter();
            all.flat_map(|figure| std::iter::once(&figure.id).chain(&figure.also))
        };
        for name in names {
            if !ids().any(|id| id.eq_ignore_ascii_case(name)) {
                let near = did_you_mean(&name.to_uppercase(), ids().map(String::as_str));
                return Err(format!("no figure {name}{near}"));
            }
        }
        let wanted = |figure: &&Reported| {
            names.is_empty()
                || names.iter().any(|name| {
                    let mut own = std::iter::once(&figure.id).chain(&figure.also);
                    own.any(|id| id.eq_ignore_ascii_case(name))
                })
        };
        Ok(self.figures.iter().filter(wanted).collect())
    }
}
