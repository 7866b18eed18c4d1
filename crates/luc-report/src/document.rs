//! A report before it has a form: sections of text, tables and charts.

/// A whole report.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Heading.
    pub title: String,
    /// What this is, in a few sentences.
    pub intro: String,
    /// In reading order.
    pub sections: Vec<Section>,
    /// What it all came to, in plain words; the last line of the text.
    pub verdict: String,
    /// The same for the top of the page: a few short sentences; the verdict stands there without.
    pub lead: Vec<String>,
    /// Where the figures are from: the foot of the page.
    pub foot: Vec<String>,
}

/// A part of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// What is shown, with its conditions.
    pub note: String,
    /// Drawn above the table.
    pub charts: Vec<Chart>,
    /// The same for the page alone: a terminal has the table.
    pub page_charts: Vec<Chart>,
    /// The figures.
    pub table: Table,
}

/// Rows of cells below a row of headings; every row has one cell per heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Headings; those of `left` columns stand left, the others right.
    pub headings: Vec<String>,
    /// How many columns, from the first, hold words.
    pub left: usize,
    /// The column that tells what a row came to; a narrow page shows it first.
    pub deciding: Option<usize>,
    /// Groups of rows, set apart from each other.
    pub groups: Vec<Vec<Vec<Cell>>>,
}

/// One entry of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// How it is meant.
    pub tone: Tone,
}

/// How an entry is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    Plain,
    /// Good news.
    Good,
    /// Bad news.
    Bad,
}

impl Cell {
    /// A plain entry.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            tone: Tone::Plain,
        }
    }

    /// An entry with a meaning.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: text.into(),
            tone,
        }
    }

    /// What could not be measured.
    pub fn none() -> Self {
        Self::new("-")
    }
}

/// Lines over a few named positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Heading.
    pub title: String,
    /// What the positions are, with unit.
    pub x_label: String,
    /// What the values are, with unit.
    pub y_label: String,
    /// Names of the positions.
    pub x: Vec<String>,
    /// The lines; each has one value per position, or none where nothing was measured.
    pub lines: Vec<Line>,
}

/// One line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub name: String,
    /// Its values.
    pub y: Vec<Option<f64>>,
}

impl Document {
    /// The first chart there is.
    pub fn first_chart(&self) -> Option<&Chart> {
        self.sections.iter().flat_map(Section::all_charts).next()
    }
}

impl Section {
    /// Every chart of the page, in its order.
    pub fn all_charts(&self) -> impl Iterator<Item = &Chart> {
        self.charts.iter().chain(&self.page_charts)
    }
}

impl Chart {
    /// Whether there is a line to draw.
    pub fn has_a_line(&self) -> bool {
        let points = |line: &Line| line.y.iter().flatten().count();
        self.lines.iter().any(|line| points(line) > 1)
    }

    /// The largest value, 0 without any.
    pub fn y_max(&self) -> f64 {
        let values = self.lines.iter().flat_map(|line| line.y.iter().flatten());
        values.copied().fold(0.0, f64::max)
    }
}

/// Numbers as people read them.
pub mod number {
    use crate::record::Spread;

    /// A rate or another figure with about four digits.
    pub fn figure(value: f64) -> String {
        match value.abs() {
            a if a >= 10_000.0 => format!("{value:.0}"),
            a if a >= 100.0 => format!("{value:.0}"),
            a if a >= 10.0 => format!("{value:.1}"),
            _ => format!("{value:.2}"),
        }
    }

    /// A share as a percentage.
    pub fn percent(share: f64) -> String {
        format!("{:.1}%", share * 100.0)
    }

    /// A ratio.
    pub fn ratio(value: f64) -> String {
        format!("{value:.2}")
    }

    /// A ratio to three places, for those that should be 1.
    pub fn fine_ratio(value: f64) -> String {
        format!("{value:.3}")
    }

    /// A figure with the range it was seen in, where that is worth saying.
    pub fn spread(spread: Spread, form: impl Fn(f64) -> String) -> String {
        let (mean, min, max) = (form(spread.mean), form(spread.min), form(spread.max));
        if min == max {
            return mean;
        }
        format!("{mean} ({min} to {max})")
    }
}
