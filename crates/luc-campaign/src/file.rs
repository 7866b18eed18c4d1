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
use crate::error::{CampaignError, Result};

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
    pub title: String,
    /// What it is for: the introduction of its report.
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
/// another.
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
    pub columns: Vec<Column>,
    /// Bounds that hold for some rows; they go before those of the column.
    #[serde(default, rename = "goal")]
    pub goals: Vec<Goal>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Column {
    pub heading: String,
    #[serde(flatten)]
    pub figure: Figure,
    #[serde(flatten)]
    pub bound: Bound,
}

/// What a figure is to reach. A figure without a bound is shown and not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Bound {
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
}

/// A bound for the figures under one heading, where `where` fits.
#[derive(Clone, Debug, Deserialize)]
pub struct Goal {
    pub heading: String,
    #[serde(default, rename = "where")]
    pub fits: Where,
    #[serde(flatten)]
    pub bound: Bound,
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
    /// A factor, or `arm`: then each of `figures` is a line.
    #[serde(default = "arm")]
    pub lines: String,
    pub y_label: String,
    pub figures: Vec<Figure>,
}

fn arm() -> String {
    "arm".to_owned()
}

impl Campaign {
    /// Reads a campaign's text; `source_name` is its file in messages.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and column.
    pub fn parse(source_name: &str, text: &str) -> Result<Self> {
        let parsed: std::result::Result<Self, toml::de::Error> = toml::from_str(text);
        let campaign = parsed.map_err(|error| CampaignError::BadFile {
            source_name: error.span().map_or_else(
                || source_name.to_owned(),
                |span| positioned(source_name, text, span.start),
            ),
            why: one_line(error.message()),
        })?;
        crate::check::campaign(&campaign).map_err(|(at, why)| CampaignError::BadFile {
            source_name: at.map_or_else(
                || source_name.to_owned(),
                |at| positioned(source_name, text, at),
            ),
            why,
        })?;
        Ok(campaign)
    }

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

/// `FILE:LINE:COLUMN` of a place in the text.
fn positioned(source_name: &str, text: &str, at: usize) -> String {
    let before = &text[..at.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .map_or(0, |part| part.chars().count())
        + 1;
    format!("{source_name}:{line}:{column}")
}

fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join(" ")
}
