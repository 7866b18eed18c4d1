//! Tables as sheets, for other programs.

use crate::file::TableSpec;
use crate::show::{Shown, TableLine};

/// A table's cells as text: for CSV, with numbers that are not rounded.
pub struct Sheet {
    pub title: String,
    pub headings: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// Every table as a sheet: mean, both ends of the interval, standard deviation and repeats.
pub fn from_tables(shown: &Shown<'_>) -> Vec<Sheet> {
    shown
        .campaign
        .tables
        .iter()
        .map(|table| sheet(shown, table))
        .collect()
}

fn sheet(shown: &Shown<'_>, table: &TableSpec) -> Sheet {
    let mut headings: Vec<String> = table.factors().chain(&table.arms).cloned().collect();
    for column in &table.columns {
        let name = &column.heading;
        headings
            .extend(["", " low", " high", " sd", " repeats"].map(|part| format!("{name}{part}")));
    }
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let row = |line: TableLine<'_>| -> Vec<String> {
        let factors = line.factors.into_iter().map(|(_, value)| value);
        let figures = line.figures.iter().flat_map(|(_, _, figure)| {
            [
                number(figure.map(|figure| figure.mean)),
                number(figure.and_then(|figure| Some(figure.ends?.0))),
                number(figure.and_then(|figure| Some(figure.ends?.1))),
                number(figure.and_then(|figure| figure.sd)),
                figure.map_or(0, |figure| figure.repeats).to_string(),
            ]
        });
        factors.chain(line.arm).chain(figures).collect()
    };
    let rows = shown.lines(table).into_iter().map(row).collect();
    Sheet {
        title: table.title.clone(),
        headings,
        rows,
    }
}

impl Sheet {
    /// The sheet as CSV, RFC 4180.
    pub fn csv(&self) -> String {
        let cell = |text: &String| {
            if text.contains(['"', ',', '\n', '\r']) {
                format!("\"{}\"", text.replace('"', "\"\""))
            } else {
                text.clone()
            }
        };
        let line = |row: &Vec<String>| row.iter().map(cell).collect::<Vec<_>>().join(",");
        let lines = std::iter::once(&self.headings).chain(&self.rows).map(line);
        lines.map(|line| line + "\r\n").collect()
    }
}
