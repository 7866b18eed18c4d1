//! Types of a campaign's file.
//!
//! Each block measures a product of factors; tables and plots show the results. Both are data: this
//! module defines their types, and [`crate::points`] multiplies the factors out.
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
use std::fmt;

use serde::Deserialize;
use toml::Spanned;

use crate::arms::Arm;
pub use crate::values::{Value, Values, Where};

/// A whole campaign.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Campaign {
    /// The text that the campaign was read from.
    #[serde(skip)]
    pub text: String,
    pub title: String,
    /// Its purpose: the introduction of its report.
    #[serde(default)]
    pub about: String,
    /// Seed of the order of the cells, and of everything random in them.
    #[serde(default = "one")]
    pub seed: u64,
    #[serde(default)]
    pub stop: StopRule,
    /// Arms in addition to the built-in ones.
    #[serde(default)]
    pub arms: BTreeMap<String, Arm>,
    #[serde(rename = "block")]
    pub blocks: Vec<Block>,
    #[serde(default, rename = "table")]
    pub tables: Vec<TableSpec>,
    #[serde(default, rename = "plot")]
    pub plots: Vec<Plot>,
    #[serde(default, rename = "sentence")]
    pub sentences: Vec<Sentence>,
    /// Which half of the drawn points to use; `None`: all of them.
    #[serde(skip)]
    pub half: Option<Half>,
}

/// Half of the drawn points, with half of all seeds. A value tuned on one half must hold on the
/// other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Half {
    Even,
    Odd,
}

fn one() -> u64 {
    1
}

/// The rule that tells when a point has enough repeats.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StopRule {
    /// Confidence of every interval, 0.5 to 0.999.
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
    /// Name of a row of [`crate::places::ALL`].
    #[serde(default = "lab")]
    pub place: String,
    /// Arguments of `luc-lab bench`; `{NAME}` stands for a factor's value, `{seed}` for the
    /// repeat's seed, `{dir}` for the folder.
    pub bench: Spanned<String>,
    /// Arms, measured one after the other in one boot; the stop rule looks at ratios to the first.
    pub arms: Vec<Spanned<String>>,
    /// Measures whose intervals decide when repeating ends; the main figure if none is named.
    #[serde(default)]
    pub stop_at: Vec<String>,
    /// Factors of the place, and those that `bench` names.
    pub factors: BTreeMap<Spanned<String>, Values>,
    /// Values that follow from others. For each name, the first setting that matches applies.
    #[serde(default)]
    pub set: Vec<Setting>,
    /// Block whose `set` and `skip` are appended to this one's.
    pub set_as: Option<Spanned<String>>,
    /// Combinations to leave out; with [`crate::points::ARM`], that arm alone is left out.
    #[serde(default)]
    pub skip: Vec<Where>,
    /// Those of the block that `set_as` names.
    #[serde(skip)]
    pub borrowed_skip: Vec<Where>,
    /// Number of points to draw by the campaign's seed; their own seeds are drawn, too. `None`: all
    /// points.
    pub draw: Option<u32>,
    /// Whether the block is measured only if the user names it.
    #[serde(default)]
    pub by_name: bool,
    /// Overrides of the campaign's rule.
    pub repeats_min: Option<u32>,
    pub repeats_max: Option<u32>,
}

fn lab() -> String {
    "lab".to_owned()
}

impl Block {
    /// Combinations to leave out, with those of the block that `set_as` names.
    pub fn skips(&self) -> impl Iterator<Item = &Where> {
        self.skip.iter().chain(&self.borrowed_skip)
    }
}

/// Values for the points that match `where`; for all points if there is none.
#[derive(Clone, Debug, Deserialize)]
pub struct Setting {
    #[serde(default, rename = "where")]
    pub fits: Where,
    /// Whether it comes from another block, by `set_as`.
    #[serde(skip)]
    pub is_borrowed: bool,
    #[serde(flatten)]
    pub values: BTreeMap<String, Value>,
}

/// A figure over the repeats of a point: a measure of one arm, or its ratio or difference to that
/// of another; each repeat gives one value.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    pub arm: String,
    /// A measure, as [`crate::measures`] names it.
    pub measure: String,
    /// Arm to divide by.
    pub to: Option<String>,
    /// Arms to divide by: at each point, the one with the highest measure.
    #[serde(default)]
    pub to_best_of: Vec<String>,
    /// The same for the one with the lowest measure.
    #[serde(default)]
    pub to_worst_of: Vec<String>,
    /// Arm to subtract.
    pub minus: Option<String>,
    /// Figure to divide by.
    pub over: Option<Box<Figure>>,
    /// Factor values of the point whose figure to divide by; its other factors are the same.
    /// [`BEST`] for a factor: the value with the highest figure.
    #[serde(default)]
    pub relative_to: BTreeMap<String, Value>,
    /// Arm of that other point, if it is not the figure's own.
    pub relative_to_arm: Option<String>,
}

/// Stands for the best value of a factor in [`Figure::relative_to`].
pub const BEST: &str = "best";

impl Figure {
    /// The same measure of an arm, compared with nothing.
    #[must_use]
    pub fn alone(&self, arm: &str) -> Self {
        Self {
            arm: arm.to_owned(),
            measure: self.measure.clone(),
            ..Self::default()
        }
    }

    /// Whether the arm to divide by is not chosen yet.
    pub fn is_undecided(&self) -> bool {
        !self.to_best_of.is_empty() || !self.to_worst_of.is_empty()
    }

    /// Whether it has no unit: its interval is that of a ratio.
    pub fn is_ratio(&self) -> bool {
        self.to.is_some()
            || self.is_undecided()
            || self.over.is_some()
            || !self.relative_to.is_empty()
    }
}

/// A table: a row for each combination of the values of `rows`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
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
    /// Heading of a further left column, for the arm: each arm has a row, and a column that names
    /// no arm shows the row's.
    pub arms: Option<String>,
    /// Number of points to show, the worst by the first column with a bound: each in its own row,
    /// with the commands that measure it again. All points are judged.
    pub worst: Option<usize>,
    pub columns: Vec<Column>,
    /// Bounds for some rows; they override those of the column.
    #[serde(default, rename = "goal")]
    pub goals: Vec<Goal>,
    /// Makes it a ranking of its rows.
    pub ranked: Option<Ranked>,
}

/// How the rows of a table compete.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ranked {
    /// Factors that are conditions, not choices: each combination of their values has a ranking of
    /// its own.
    pub within: Vec<String>,
    /// Headings of the columns that decide, the highest first; several count by their geometric
    /// mean.
    pub by: Vec<String>,
}

impl TableSpec {
    /// The factors that tell its figures apart.
    pub fn factors(&self) -> impl Iterator<Item = &String> {
        let within = self.ranked.iter().flat_map(|ranked| &ranked.within);
        within.chain(&self.rows).chain(&self.across)
    }

    /// Whether each row summarizes many points.
    pub fn is_over_points(&self) -> bool {
        self.columns.iter().any(|column| column.over.is_some())
    }

    /// The first column with a bound.
    pub fn deciding(&self) -> Option<&Column> {
        self.columns.iter().find(|column| self.judges(column))
    }

    /// Whether a column has a bound in some row.
    pub fn judges(&self, column: &Column) -> bool {
        let mut goals = self.goals.iter();
        column.bound() != Bound::default() || goals.any(|goal| goal.heading == column.heading)
    }
}

/// A figure under its heading, with bounds for its mean. A figure without a bound is shown but not
/// judged.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    pub heading: String,
    pub arm: Option<String>,
    measure: String,
    to: Option<String>,
    #[serde(default)]
    to_best_of: Vec<String>,
    minus: Option<String>,
    #[serde(rename = "over")]
    divisor: Option<Box<Figure>>,
    #[serde(default)]
    relative_to: BTreeMap<String, Value>,
    relative_to_arm: Option<String>,
    /// Summaries of all points of the row, each a column; if empty, a row is one point.
    #[serde(default)]
    points: Vec<Over>,
    /// One of `points`, after each was given a column of its own.
    #[serde(skip)]
    pub over: Option<Over>,
    at_least: Option<f64>,
    at_most: Option<f64>,
}

/// A number that summarizes many points.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum Over {
    /// Number of points that have the figure.
    Count,
    /// Mean; for ratios, the geometric mean.
    Mean,
    /// Percentile of the points: 0 is the lowest, 100 the highest.
    Percentile(f64),
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("points"),
            Self::Mean => f.write_str("mean"),
            Self::Percentile(0.0) => f.write_str("min"),
            Self::Percentile(100.0) => f.write_str("max"),
            Self::Percentile(percent) => write!(f, "p{percent}"),
        }
    }
}

impl TryFrom<String> for Over {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let percentile = |text: &str| {
            let percent: f64 = text.strip_prefix('p')?.parse().ok()?;
            (0.0..=100.0).contains(&percent).then_some(percent)
        };
        match text.as_str() {
            "count" => Ok(Self::Count),
            "mean" => Ok(Self::Mean),
            "min" => Ok(Self::Percentile(0.0)),
            "max" => Ok(Self::Percentile(100.0)),
            other => percentile(other).map(Self::Percentile).ok_or_else(|| {
                format!(
                    "points {text:?}: must be count, mean, min, max, or a percentile such as p99"
                )
            }),
        }
    }
}

impl Column {
    /// Splits the column into one for each of `points`, whose name is appended to the heading.
    fn spread(self) -> Vec<Self> {
        if self.points.is_empty() {
            return vec![self];
        }
        let of = |over: &Over| Self {
            heading: format!("{} {over}", self.heading).trim().to_owned(),
            over: Some(*over),
            ..self.clone()
        };
        self.points.iter().map(of).collect()
    }

    /// The figure in the row of an arm.
    pub fn figure(&self, arm: &str) -> Figure {
        Figure {
            arm: self.arm.clone().unwrap_or_else(|| arm.to_owned()),
            measure: self.measure.clone(),
            to: self.to.clone(),
            to_best_of: self.to_best_of.clone(),
            to_worst_of: Vec::new(),
            minus: self.minus.clone(),
            over: self.divisor.clone(),
            relative_to: self.relative_to.clone(),
            relative_to_arm: self.relative_to_arm.clone(),
        }
    }

    pub fn bound(&self) -> Bound {
        Bound {
            at_least: self.at_least,
            at_most: self.at_most,
        }
    }
}

/// Bounds for a figure's mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bound {
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
}

/// A bound for the figures under one heading in rows that match `where`; the first match applies.
/// If it has neither limit, those figures are not judged.
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

/// A figure of one of the points that match.
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

/// Which of the matching points is taken.
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
    /// Label of the x axis; the factor's name if absent.
    pub x_label: Option<String>,
    /// A factor, or `arm`: then each of `figures` is a line.
    #[serde(default = "arm")]
    pub lines: String,
    pub y_label: String,
    pub figures: Vec<Figure>,
    /// Whether it is also shown on a terminal.
    #[serde(default)]
    pub on_terminal: bool,
}

fn arm() -> String {
    "arm".to_owned()
}

impl Campaign {
    /// A campaign with nothing to measure and nothing to show.
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
            half: None,
            text: String::new(),
        }
    }

    /// Expands what the text abbreviates: columns over many points, and in each block the settings
    /// and skipped points of the block that its `set_as` names. Fails with that name if there is no
    /// such block.
    pub(crate) fn written_out(&mut self) -> Result<(), Spanned<String>> {
        for table in &mut self.tables {
            let columns = std::mem::take(&mut table.columns).into_iter();
            table.columns = columns.flat_map(Column::spread).collect();
        }
        let own: BTreeMap<_, _> = self
            .blocks
            .iter()
            .map(|block| {
                let lent = (block.set.clone(), block.skip.clone());
                (block.name.get_ref().clone(), lent)
            })
            .collect();
        for block in &mut self.blocks {
            let Some(name) = &block.set_as else {
                continue;
            };
            let (set, skip) = own.get(name.get_ref()).ok_or_else(|| name.clone())?;
            block.set.extend(set.iter().cloned().map(|setting| Setting {
                is_borrowed: true,
                ..setting
            }));
            block.borrowed_skip.clone_from(skip);
        }
        Ok(())
    }

    /// Takes this machine for every measure of the energy model.
    pub fn model_machine(&mut self, machine: &str) {
        let columns = self.tables.iter_mut().flat_map(|table| &mut table.columns);
        for column in columns.filter(|column| column.measure.starts_with("model_")) {
            let measure = column.measure.split(':').next().unwrap_or_default();
            column.measure = format!("{measure}:{machine}");
        }
    }

    pub fn block(&self, name: &str) -> Option<&Block> {
        self.blocks
            .iter()
            .find(|block| block.name.get_ref() == name)
    }

    /// Keeps these blocks, with what the report shows of them.
    pub(crate) fn keep(&mut self, is_kept: impl FnMut(&Block) -> bool) {
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.retain(is_kept);
        let is_left = |name: &Spanned<String>| {
            let mut left = blocks.iter().map(|block| block.name.get_ref());
            left.any(|left| left == name.get_ref())
        };
        self.tables.retain(|table| is_left(&table.block));
        self.plots.retain(|plot| is_left(&plot.block));
        self.sentences.retain(|sentence| {
            let mut values = sentence.values.values();
            values.all(|picked| is_left(&picked.block))
        });
        self.blocks = blocks;
    }

    /// The stop rule of a block.
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
