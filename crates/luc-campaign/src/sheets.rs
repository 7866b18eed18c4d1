//! Tables as sheets, for other programs.

use crate::file::Table;
use crate::show::Shown;

/// A table's cells as text: for CSV, with numbers that are not rounded.
pub struct Sheet {
    pub title: String,
    pub headings: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// Every table as a sheet: mean, both ends of the interval, standard deviation and repeats.
pub fn of(shown: &Shown<'_>) -> Vec<Sheet> {
    shown
        .campaign
        .tables
        .iter()
        .map(|table| sheet(shown, table))
        .collect()
}

fn sheet(shown: &Shown<'_>, table: &Table) -> Sheet {
    let mut headings: Vec<String> = table
        .rows
        .iter()
        .chain(&table.across)
        .chain(&table.arms)
        .cloned()
        .collect();
    for column in &table.columns {
        let name = &column.heading;
        headings
            .extend(["", " low", " high", " sd", " repeats"].map(|part| format!("{name}{part}")));
    }
    let mut rows = Vec::new();
    for points in shown.together(table) {
        let Some(point) = points.first() else {
            continue;
        };
        for arm in shown.row_arms(table) {
            let factors = table.rows.iter().chain(&table.across);
            let mut row: Vec<String> = factors
                .map(|factor| point.value(factor).to_owned())
                .collect();
            row.extend(arm.clone());
            for column in &table.columns {
                let of = column.figure(arm.as_deref().unwrap_or_default());
                let figure = shown.figure_over(&points, column, &of);
                let number =
                    |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
                row.extend([
                    number(figure.map(|figure| figure.mean)),
                    number(figure.and_then(|figure| Some(figure.ends?.0))),
                    number(figure.and_then(|figure| Some(figure.ends?.1))),
                    number(figure.and_then(|figure| figure.sd)),
                    figure.map_or(0, |figure| figure.repeats).to_string(),
                ]);
            }
            rows.push(row);
        }
    }
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
