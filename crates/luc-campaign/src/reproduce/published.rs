//! The documents' figures: `campaigns/published.toml`, as types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::did_you_mean;
use crate::file::{Figure, Where};

/// Everything that the documents report and that is to be set beside ours.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// How far a number may be off and agree, as a share of its effect.
    pub tolerance_share: f64,
    /// How far from no effect counts as none, where a document says "the same".
    pub same_share: f64,
    /// The part of the campaign that a quick run measures.
    pub quick: Quick,
    /// Letter of a figure's name and the document's.
    pub documents: BTreeMap<String, String>,
    #[serde(rename = "figure")]
    pub figures: Vec<Reported>,
}

/// A quick run: few points, fewest repeats.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    pub repeats: u32,
    /// Blocks that it does not measure.
    #[serde(default)]
    pub without: Vec<String>,
    /// Values that factors keep, where a block has them.
    #[serde(rename = "where")]
    pub fits: Where,
}

/// A figure or table of a document.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reported {
    /// As it is typed: `D5.8`.
    pub id: String,
    /// Other figures that show the same.
    #[serde(default)]
    pub also: Vec<String>,
    pub title: String,
    /// Pages, where the document's text has any.
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

/// One thing that a figure says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The document's statement, restated.
    pub says: String,
    /// The number; absent where the document gives a direction only.
    pub published: Option<f64>,
    pub unit: Unit,
    /// The direction; that of the number if it has one.
    pub side: Option<Side>,
    /// Whether the number is a level that has no direction: a share, a time.
    #[serde(default)]
    pub level: bool,
    /// In place of the tolerance of all.
    pub tolerance_share: Option<f64>,
    /// How one number is made of many points.
    #[serde(default)]
    pub take: Take,
    /// The figure at each point.
    pub of: Option<Figure>,
    /// Name of the block.
    #[serde(default)]
    pub block: String,
    #[serde(default, rename = "where")]
    pub fits: Where,
    /// The factor along which `take` looks, from its first value to its last.
    pub over: Option<String>,
    /// The arm that is shown beside: what LUC does today where `of` is a published controller.
    pub beside: Option<String>,
    /// The measures of which that is sought which goes most with `of`, a rate.
    #[serde(default)]
    pub causes: Vec<String>,
    /// In place of `of`: the closed loop's poles.
    pub poles: Option<Gains>,
    /// Why ours differs, where that was found.
    #[serde(default)]
    pub because: String,
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
    /// A share, shown as a percentage.
    Share,
    Ms,
    Count,
    /// 0 to 1, by how well two quantities go together.
    Correlation,
}

/// A direction, beside no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    Above,
    Below,
    /// No effect.
    Same,
    /// No effect, or one above it: "never below".
    NotBelow,
    /// No effect, or one below it: "no slowdown".
    NotAbove,
}

/// How a claim's number is made of the figures at its points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// The largest.
    #[default]
    Max,
    /// The smallest.
    Min,
    /// Every point: that which is farthest from the claimed side.
    Every,
    /// The largest share lost from one value of `over` to a later one.
    Lost,
    /// The share lost from the first value of `over` to the last; the largest over the other factors.
    LostEnds,
    /// The share lost from the best value of `over` to the last; the largest.
    LostLast,
    /// The last value of `over` to the first, a ratio; the largest.
    RiseEnds,
    /// The last value of `over` less the first, of a count; the largest.
    MoreEnds,
    /// The largest standard deviation between repeats, as a share of the mean.
    Spread,
}

impl Take {
    /// Whether it looks along a factor.
    pub fn is_along(self) -> bool {
        matches!(
            self,
            Self::Lost | Self::LostEnds | Self::LostLast | Self::RiseEnds | Self::MoreEnds
        )
    }

    /// Whether it is of one arm's own values.
    pub fn is_plain(self) -> bool {
        self.is_along() || self == Self::Spread
    }
}

impl Claim {
    /// The value that means no effect.
    pub fn none(&self) -> f64 {
        if self.unit == Unit::Times { 1.0 } else { 0.0 }
    }

    /// The claimed direction; `None` of a level.
    pub fn side(&self) -> Option<Side> {
        if self.level {
            return None;
        }
        let of_number = |published: f64| {
            if published > self.none() {
                Side::Above
            } else {
                Side::Below
            }
        };
        self.side.or(self.published.map(of_number))
    }
}

impl Published {
    /// The figures of these names, in the order of the file; all if none is named.
    ///
    /// # Errors
    /// A name is none.
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
