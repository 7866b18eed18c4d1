//! The file of a campaign.
//!
//! What is measured is a product of factors, block by block; what is shown are tables and plots
//! over the results. Both are data: this module gives them types and checks them, and
//! [`crate::points`] multiplies them out.
//!
//! ```toml
//! title = "fsync-heavy threads"
//!
//! [[block]]
//! name = "loops"
//! bench = "create-fsync --threads {threads} --seconds {seconds} --warmup-s 0.5 {dir}"
//! arms = ["stock", "luc"]
//! factors = { kernel = ["6.12"], disk = ["4ms:1", "1ms:64"], threads = [1, 4] }
//! set = [{ where = { disk = "4ms:1" }, seconds = 4 }, { seconds = 1 }]
//!
//! [[table]]
//! title = "Files per second"
//! block = "loops"
//! rows = ["kernel", "disk", "threads"]
//! columns = [
//!     { heading = "stock", arm = "stock", measure = "rate" },
//!     { heading = "ratio", arm = "luc", to = "stock", measure = "rate", at_least = 0.99 },
//! ]
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::arms::Arm;

/// A value of a factor, as text: `4ms:1`, `16`, `0.5`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Value(pub String);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a text, a number, or true or false")]
        enum Scalar {
            Text(String),
            Whole(i64),
            Number(f64),
            Truth(bool),
        }
        Ok(Self(match Scalar::deserialize(deserializer)? {
            Scalar::Text(text) => text,
            Scalar::Whole(number) => number.to_string(),
            Scalar::Number(number) => number.to_string(),
            Scalar::Truth(truth) => truth.to_string(),
        }))
    }
}

/// One value, or several.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a value, or a list of values")]
pub enum Values {
    One(Value),
    Many(Vec<Value>),
}

impl Values {
    pub fn all(&self) -> &[Value] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

/// Values that factors must have: each named factor has one of its values.
pub type Where = BTreeMap<String, Values>;

/// A whole campaign.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Campaign {
    /// The text that all of this was read from.
    #[serde(skip)]
    pub text: String,
    pub title: String,
    /// Its purpose: the introduction of its report.
    #[serde(default)]
    pub about: String,
    /// Seed of the order of cells, and of what is random in them.
    #[serde(default = "one")]
    pub seed: u64,
    #[serde(default)]
    pub stop: StopRule,
    /// Arms beside those that are built in.
    #[serde(default)]
    pub arms: BTreeMap<String, Arm>,
    #[serde(rename = "block")]
    pub blocks: Vec<Block>,
    #[serde(default, rename = "table")]
    pub tables: Vec<Table>,
    #[serde(default, rename = "plot")]
    pub plots: Vec<Plot>,
    #[serde(default, rename = "sentence")]
    pub sentences: Vec<Sentence>,
}

fn one() -> u64 {
    1
}

/// When a point has been measured often enough.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StopRule {
    /// Of every interval, 0.5 to 0.999.
    pub confidence: f64,
    /// Half width of the interval as a share of the mean, at which repeating ends.
    pub half_width_share: f64,
    /// Fewest repeats: an interval needs two.
    pub repeats_min: u32,
    pub repeats_max: u32,
}

impl Default for StopRule {
    fn default() -> Self {
        Self {
            confidence: 0.95,
            half_width_share: 0.02,
            repeats_min: 3,
            repeats_max: 10,
        }
    }
}

/// Cells of one kind: the product of the factors.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    pub name: Spanned<String>,
    /// A row of [`crate::places::ALL`].
    #[serde(default = "lab")]
    pub place: String,
    /// Arguments of `luc bench`; `{NAME}` stands for a factor's value, `{seed}` for the number of
    /// the repeat's seed, `{dir}` for the folder.
    pub bench: Spanned<String>,
    /// Measured one after the other in one boot; ratios are to the first unless a table says else.
    pub arms: Vec<Spanned<String>>,
    /// Measures whose intervals decide when repeating ends; the main figure if none is named.
    #[serde(default)]
    pub stop_at: Vec<String>,
    /// Factors of the place, and those that `bench` names.
    pub factors: BTreeMap<Spanned<String>, Values>,
    /// Values that follow from others. Of each name the first that fits holds.
    #[serde(default)]
    pub set: Vec<Setting>,
    /// Combinations to leave out.
    #[serde(default)]
    pub skip: Vec<Where>,
    /// Overrides of the campaign's rule.
    pub repeats_min: Option<u32>,
    pub repeats_max: Option<u32>,
}

fn lab() -> String {
    "lab".to_owned()
}

/// Values for those points that fit `where`; without one, for all.
#[derive(Clone, Debug, Deserialize)]
pub struct Setting {
    #[serde(default, rename = "where")]
    pub fits: Where,
    #[serde(flatten)]
    pub values: BTreeMap<String, Value>,
}

/// A figure over the repeats of a point: a measure of one arm, or its ratio or difference to that of
/// another; each repeat gives one value.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    pub arm: String,
    /// A row of [`crate::measures::ALL`].
    pub measure: String,
    /// As a ratio to this arm.
    pub to: Option<String>,
    /// Less that of this arm.
    pub minus: Option<String>,
    /// Divided by another figure.
    pub over: Option<Box<Figure>>,
    /// As a ratio to the same figure of the point that differs in these factors alone.
    #[serde(default)]
    pub relative_to: BTreeMap<String, Value>,
}

impl Figure {
    /// Whether it has no unit: its interval is that of a ratio.
    pub fn is_ratio(&self) -> bool {
        self.to.is_some() || self.over.is_some() || !self.relative_to.is_empty()
    }
}

/// A table: a row for each combination of the values of `rows`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    pub title: String,
    #[serde(default)]
    pub note: String,
    /// Name of the block.
    pub block: Spanned<String>,
    #[serde(default, rename = "where")]
    pub fits: Where,
    pub rows: Vec<String>,
    /// A factor: every column appears once for each of its values.
    pub across: Option<String>,
    /// Heading of a last left column that names an arm: a row for each, and columns that name none
    /// are of the row's.
    pub arms: Option<String>,
    pub columns: Vec<Column>,
    /// Bounds that hold for some rows; they go before those of the column.
    #[serde(default, rename = "goal")]
    pub goals: Vec<Goal>,
}

/// A figure under its heading, with the bounds that its mean is to keep. A figure without a bound is
/// shown and not judged.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    pub heading: String,
    pub arm: Option<String>,
    measure: String,
    to: Option<String>,
    minus: Option<String>,
    over: Option<Box<Figure>>,
    #[serde(default)]
    relative_to: BTreeMap<String, Value>,
    at_least: Option<f64>,
    at_most: Option<f64>,
}

impl Column {
    /// The figure, in the row of an arm.
    pub fn figure(&self, arm: &str) -> Figure {
        Figure {
            arm: self.arm.clone().unwrap_or_else(|| arm.to_owned()),
            measure: self.measure.clone(),
            to: self.to.clone(),
            minus: self.minus.clone(),
            over: self.over.clone(),
            relative_to: self.relative_to.clone(),
        }
    }

    pub fn bound(&self) -> Bound {
        Bound {
            at_least: self.at_least,
            at_most: self.at_most,
        }
    }
}

/// Where a figure's mean is to lie.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bound {
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
}

/// A bound for the figures under one heading, where `where` fits; the first that fits holds. With
/// none of its own, such figures are not judged.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    pub heading: String,
    #[serde(default, rename = "where")]
    pub fits: Where,
    at_least: Option<f64>,
    at_most: Option<f64>,
}

impl Goal {
    pub fn bound(&self) -> Bound {
        Bound {
            at_least: self.at_least,
            at_most: self.at_most,
        }
    }
}

/// A sentence for the top of the report. `text` names values in braces: `{best}` is the figure,
/// `{best.disk}` a factor of the point that gave it, `{best%}` the figure as a percentage,
/// `{best+}` how much faster or slower it is than 1.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sentence {
    pub text: String,
    pub values: BTreeMap<String, Picked>,
}

/// A figure of one point among those that fit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Picked {
    pub block: Spanned<String>,
    #[serde(default, rename = "where")]
    pub fits: Where,
    #[serde(default)]
    pub take: Take,
    pub figure: Figure,
}

/// Which point counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Take {
    /// The first in the order of the campaign's text.
    #[default]
    First,
    Max,
    Min,
    /// The one in the middle.
    Median,
}

/// A chart for each combination of the values of `each`: a line for each of `lines`, over `x`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    pub title: String,
    pub block: Spanned<String>,
    #[serde(default, rename = "where")]
    pub fits: Where,
    #[serde(default)]
    pub each: Vec<String>,
    /// A factor.
    pub x: String,
    /// The factor's name if absent.
    pub x_label: Option<String>,
    /// A factor, or `arm`: then each of `figures` is a line.
    #[serde(default = "arm")]
    pub lines: String,
    pub y_label: String,
    pub figures: Vec<Figure>,
    /// Whether a terminal shows it, too.
    #[serde(default)]
    pub on_terminal: bool,
}

fn arm() -> String {
    "arm".to_owned()
}

impl Campaign {
    /// A campaign without blocks: there is nothing to measure, and nothing to show.
    pub(crate) fn nothing() -> Self {
        Self {
            title: String::new(),
            about: String::new(),
            seed: one(),
            stop: StopRule::default(),
            arms: BTreeMap::new(),
            blocks: Vec::new(),
            tables: Vec::new(),
            plots: Vec::new(),
            sentences: Vec::new(),
            text: String::new(),
        }
    }

    pub fn block(&self, name: &str) -> Option<&Block> {
        self.blocks
            .iter()
            .find(|block| block.name.get_ref() == name)
    }

    /// The rule that holds for a block.
    pub fn stop_of(&self, block: &Block) -> StopRule {
        let mut rule = self.stop.clone();
        rule.repeats_min = block.repeats_min.unwrap_or(rule.repeats_min);
        rule.repeats_max = block
            .repeats_max
            .unwrap_or(rule.repeats_max)
            .max(rule.repeats_min);
        rule
    }
}
