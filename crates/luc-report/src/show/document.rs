//! A report, independent of its format: sections of text, tables and charts.

/// A whole report.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub title: String,
    /// When, where and by which command it was made: the line below the page's title.
    pub head: Vec<String>,
    /// Introduction in a few sentences.
    pub intro: String,
    /// In reading order.
    pub sections: Vec<Section>,
    /// The outcome in plain words; the last line of the text.
    pub verdict: String,
    /// The outcome for the top of the page, in a few short sentences; if empty, the verdict is
    /// shown there.
    pub lead: Vec<String>,
    /// Origin of the figures: the foot of the page.
    pub foot: Vec<String>,
}

/// A part of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    pub title: String,
    /// Subject and conditions of the figures.
    pub note: String,
    /// Charts above the table.
    pub charts: Vec<Chart>,
    /// Charts on the page alone: a terminal shows only the table.
    pub page_charts: Vec<Chart>,
    pub table: Table,
    /// Shell commands, shown below the table.
    pub commands: Vec<String>,
}

impl Section {
    /// Whether a terminal can show any of it.
    pub fn is_text(&self) -> bool {
        !self.note.is_empty() || !self.charts.is_empty() || !self.table.groups.is_empty()
    }
}

/// Rows of entries below a row of headings; every row has one entry per heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Headings; those of the first `left` columns are aligned left, the others right.
    pub headings: Vec<String>,
    /// Number of leading columns that hold words.
    pub left: usize,
    /// The column that summarizes a row; a narrow page shows it first.
    pub deciding: Option<usize>,
    /// Groups of rows, set apart from each other.
    pub groups: Vec<Vec<Vec<Entry>>>,
}

/// A row before it is in a table: each entry with its heading. An empty heading marks the judgement
/// of the figure before it.
pub type Row<Heading = &'static str> = Vec<(Heading, Entry)>;

/// Headings of columns that summarize a row.
const DECIDING: [&str; 6] = ["ratio", "LUC/stock", "to stock", "lowest", "LUC", "lost"];

impl Table {
    /// A table of these groups, without the empty ones. All rows have the headings of the first.
    pub fn new<Heading: AsRef<str>>(left: usize, groups: Vec<Vec<Row<Heading>>>) -> Self {
        let first = groups.iter().flatten().next();
        let names = first
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_ref().to_owned());
        let headings: Vec<String> = names.collect();
        let entries = |row: Row<Heading>| row.into_iter().map(|(_, entry)| entry).collect();
        let groups = groups.into_iter().filter(|group| !group.is_empty());
        Self {
            left,
            deciding: headings
                .iter()
                .position(|name| DECIDING.contains(&name.as_str())),
            headings,
            groups: groups
                .map(|group| group.into_iter().map(entries).collect())
                .collect(),
        }
    }
}

/// One entry of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub text: String,
    pub tone: Tone,
}

/// How an entry is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Good,
    Bad,
}

impl Entry {
    /// A plain entry.
    pub fn new(text: impl Into<String>) -> Self {
        Self::toned(text, Tone::Plain)
    }

    /// An entry with a meaning.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: text.into(),
            tone,
        }
    }

    /// A formatted value; "-" if nothing could be measured.
    pub fn measured<T>(value: Option<T>, form: impl FnOnce(T) -> String) -> Self {
        Self::new(value.map_or_else(|| "-".to_owned(), form))
    }

    /// "-": nothing could be measured.
    pub fn none() -> Self {
        Self::new("-")
    }
}

/// Lines over a few named positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    pub title: String,
    /// Quantity of the positions, with unit.
    pub x_label: String,
    /// Quantity of the values, with unit.
    pub y_label: String,
    /// Names of the positions.
    pub x: Vec<String>,
    pub lines: Vec<Line>,
}

/// One line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub name: String,
    /// One per position; `None` where nothing was measured.
    pub spots: Vec<Option<Spot>>,
}

/// A value of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    pub y: f64,
    /// Ends of its interval, if that is known.
    pub ends: Option<(f64, f64)>,
}

impl Section {
    pub fn has_charts(&self) -> bool {
        self.all_charts().next().is_some()
    }

    /// Every chart of the page, in order.
    pub fn all_charts(&self) -> impl Iterator<Item = &Chart> {
        self.charts.iter().chain(&self.page_charts)
    }
}

impl Chart {
    /// Whether a line has two points.
    pub fn has_a_line(&self) -> bool {
        let spots = |line: &Line| line.spots.iter().flatten().count();
        self.lines.iter().any(|line| spots(line) > 1)
    }

    /// The end of the axis: the largest value, or the largest end of an interval unless that is
    /// far away.
    pub fn highest(&self) -> f64 {
        let most = self.y_max();
        let spots = self
            .lines
            .iter()
            .flat_map(|line| line.spots.iter().flatten());
        let ends = spots.filter_map(|spot| Some(spot.ends?.1));
        ends.fold(most, f64::max).min(2.0 * most)
    }

    /// The largest value; 0 if there is none.
    pub fn y_max(&self) -> f64 {
        let spots = self
            .lines
            .iter()
            .flat_map(|line| line.spots.iter().flatten());
        spots.map(|spot| spot.y).fold(0.0, f64::max)
    }
}
