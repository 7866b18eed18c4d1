//! A report made of results alone: tables and plots as the campaign's file describes them.

use std::collections::BTreeMap;

use luc_report::show::document::{Chart, Document, Entry, Line, Row, Section, Table, Tone};
use luc_report::show::number;

use crate::cell::Cell;
use crate::file::{self, Bound, Campaign, Column, Figure};
use crate::measures;
use crate::points::{self, Point};
use crate::stats::Interval;
use crate::store::{CellResult, Results};
use crate::wave;

/// How many figures reached their bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub reached: usize,
    pub missed: usize,
}

/// A campaign with its results, and the rule that chooses among those of several versions.
pub struct Shown<'a> {
    pub campaign: &'a Campaign,
    by_cell: BTreeMap<&'a Cell, &'a CellResult>,
    results: &'a Results,
}

/// A table's cells as text: for CSV, with every number whole.
pub struct Sheet {
    pub title: String,
    pub headings: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl<'a> Shown<'a> {
    /// `current` says of a result whether it is of the versions that are wanted.
    pub fn new(
        campaign: &'a Campaign,
        results: &'a Results,
        current: impl Fn(&CellResult) -> bool,
    ) -> Self {
        Self {
            campaign,
            by_cell: results.by_cell(current),
            results,
        }
    }

    /// A figure at a point.
    pub fn figure(&self, point: &Point<'_>, figure: &Figure) -> Option<Interval> {
        let block = self.campaign.block(point.block)?;
        let confidence = self.campaign.stop_of(block).confidence;
        wave::interval(&self.repeats(point), figure, confidence)
    }

    /// The results of a point by repeat.
    pub fn repeats(&self, point: &Point<'_>) -> wave::Repeats<'a> {
        let most = self
            .campaign
            .block(point.block)
            .map_or(0, |block| self.campaign.stop_of(block).repeats_max);
        wave::repeats_of(point, &self.by_cell, most)
    }

    /// The points of a block that fit, in the order of the campaign's text.
    pub fn points(&self, block: &str, conditions: &file::Where) -> Vec<Point<'a>> {
        let block = self.campaign.block(block);
        let points = block
            .map(|block| points::of_block(self.campaign, block))
            .unwrap_or_default();
        points
            .into_iter()
            .filter(|point| point.fits(conditions))
            .collect()
    }

    /// The whole report.
    pub fn document(&self) -> (Document, Tally) {
        let mut tally = Tally::default();
        let mut sections: Vec<Section> = self
            .campaign
            .tables
            .iter()
            .map(|table| self.section(table, &mut tally))
            .collect();
        sections.retain(|section| !section.table.groups.is_empty());
        let plots = self
            .campaign
            .plots
            .iter()
            .flat_map(|plot| self.charts(plot));
        let plots: Vec<Chart> = plots.filter(Chart::has_a_line).collect();
        if !plots.is_empty() {
            sections.push(Section {
                title: "Plots".to_owned(),
                page_charts: plots,
                ..Section::default()
            });
        }
        let rule = &self.campaign.stop;
        let about = self.campaign.about.trim();
        let document = Document {
            title: self.campaign.title.clone(),
            intro: format!(
                "{about}{}Intervals are Student's t, {}%; ratios are paired, each pair of one boot.",
                if about.is_empty() { "" } else { "\n" },
                rule.confidence * 100.0
            ),
            sections,
            verdict: match tally {
                Tally {
                    reached: 0,
                    missed: 0,
                } => format!("{} cells.", self.by_cell.len()),
                Tally { reached, missed: 0 } => format!("All {reached} figures were reached."),
                Tally { reached, missed } => {
                    format!(
                        "{reached} of {} figures were reached; missed: {missed}.",
                        reached + missed
                    )
                }
            },
            lead: Vec::new(),
            foot: self.foot(),
        };
        (document, tally)
    }

    /// Where the figures come from.
    pub(crate) fn foot(&self) -> Vec<String> {
        let releases: Vec<&str> = self.results.releases().into_iter().collect();
        let mut versions: Vec<String> = self
            .by_cell
            .values()
            .map(|result| text(&result.versions))
            .collect();
        versions.sort();
        versions.dedup();
        let mut foot = vec![format!(
            "{} cells; kernels {}.",
            self.by_cell.len(),
            if releases.is_empty() {
                "none".to_owned()
            } else {
                releases.join(", ")
            }
        )];
        foot.extend(
            versions
                .iter()
                .map(|versions| format!("Versions: {versions}.")),
        );
        if !self.results.failed.is_empty() {
            foot.push(format!(
                "{} cells failed and are left out.",
                self.results.failed.len()
            ));
        }
        foot
    }

    fn section(&self, table: &file::Table, tally: &mut Tally) -> Section {
        let groups = self.groups(table, |table, column, point| {
            let figure = self.figure(point, &column.figure);
            let bound = bound(table, column, point);
            let mut entries = vec![Entry::of(figure, |figure| shown(&column.figure, &figure))];
            if has_bound(table, column) {
                entries.push(judged(bound, figure, tally));
            }
            entries
        });
        Section {
            title: table.title.clone(),
            note: table.note.clone(),
            table: Table::new(table.rows.len(), groups),
            ..Section::default()
        }
    }

    /// Rows of a table in groups that share all but the last of `rows`.
    fn groups(
        &self,
        table: &file::Table,
        mut entries: impl FnMut(&file::Table, &Column, &Point<'_>) -> Vec<Entry>,
    ) -> Vec<Vec<Row<String>>> {
        let points = self.points(table.block.get_ref(), &table.fits);
        let across: Vec<Option<String>> = match &table.across {
            None => vec![None],
            Some(factor) => unique(points.iter().map(|point| point.value(factor)))
                .into_iter()
                .map(Some)
                .collect(),
        };
        let mut groups: Vec<(Vec<String>, Vec<Row<String>>)> = Vec::new();
        let mut done: Vec<Vec<String>> = Vec::new();
        for first in &points {
            let key: Vec<String> = table
                .rows
                .iter()
                .map(|factor| first.value(factor).to_owned())
                .collect();
            if done.contains(&key) {
                continue;
            }
            done.push(key.clone());
            let same = |point: &&Point<'_>| {
                table
                    .rows
                    .iter()
                    .zip(&key)
                    .all(|(factor, value)| point.value(factor) == value)
            };
            let mut row: Row<String> = table
                .rows
                .iter()
                .zip(&key)
                .map(|(factor, value)| (factor.clone(), Entry::new(value.clone())))
                .collect();
            let mut known = false;
            for at in &across {
                let here = |point: &&Point<'_>| match (&table.across, at) {
                    (Some(factor), Some(value)) => point.value(factor) == value,
                    _ => true,
                };
                let point = points.iter().filter(same).find(here);
                for column in &table.columns {
                    let heading = match at {
                        Some(value) => format!("{} {value}", column.heading).trim().to_owned(),
                        None => column.heading.clone(),
                    };
                    let found = point.map(|point| entries(table, column, point));
                    let width = 1 + usize::from(has_bound(table, column));
                    let found = found.unwrap_or_else(|| vec![Entry::none(); width]);
                    known |= found.iter().any(|entry| *entry != Entry::none());
                    let headings = [heading, String::new()];
                    row.extend(headings.into_iter().zip(found));
                }
            }
            if !known {
                continue;
            }
            let group = key[..key.len().saturating_sub(1)].to_vec();
            match groups.iter_mut().find(|(other, _)| *other == group) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((group, vec![row])),
            }
        }
        groups.into_iter().map(|(_, rows)| rows).collect()
    }

    fn charts(&self, plot: &file::Plot) -> Vec<Chart> {
        let points = self.points(plot.block.get_ref(), &plot.fits);
        let of = |point: &Point<'_>| -> Vec<String> {
            plot.each
                .iter()
                .map(|factor| point.value(factor).to_owned())
                .collect()
        };
        let mut each: Vec<Vec<String>> = Vec::new();
        for point in &points {
            let key = of(point);
            if !each.contains(&key) {
                each.push(key);
            }
        }
        each.into_iter()
            .map(|key| {
                let here: Vec<&Point<'_>> =
                    points.iter().filter(|point| of(point) == key).collect();
                let x = unique(here.iter().map(|point| point.value(&plot.x)));
                let title = if key.is_empty() {
                    plot.title.clone()
                } else {
                    format!("{}, {}", plot.title, key.join(", "))
                };
                Chart {
                    title,
                    x_label: plot.x.clone(),
                    y_label: plot.y_label.clone(),
                    lines: self.lines(plot, &here, &x),
                    x,
                }
            })
            .collect()
    }

    fn lines(&self, plot: &file::Plot, here: &[&Point<'_>], x: &[String]) -> Vec<Line> {
        let values = if plot.lines == "arm" {
            vec![String::new()]
        } else {
            unique(here.iter().map(|point| point.value(&plot.lines)))
        };
        let mut lines = Vec::new();
        for value in &values {
            for figure in &plot.figures {
                let at = |at: &String| {
                    let fits = |point: &&&Point<'_>| {
                        point.value(&plot.x) == at
                            && (value.is_empty() || point.value(&plot.lines) == value)
                    };
                    let point = here.iter().find(fits)?;
                    Some(self.figure(point, figure)?.mean)
                };
                let name = match (value.as_str(), plot.figures.len()) {
                    ("", _) => figure.arm.clone(),
                    (value, 1) => value.to_owned(),
                    (value, _) => format!("{value}, {}", figure.arm),
                };
                lines.push(Line {
                    name,
                    y: x.iter().map(at).collect(),
                });
            }
        }
        lines
    }

    /// Every table as a sheet: mean, both ends of the interval, standard deviation and repeats.
    pub fn sheets(&self) -> Vec<Sheet> {
        self.campaign
            .tables
            .iter()
            .map(|table| self.sheet(table))
            .collect()
    }

    fn sheet(&self, table: &file::Table) -> Sheet {
        let mut headings: Vec<String> = table.rows.iter().chain(&table.across).cloned().collect();
        for column in &table.columns {
            let name = &column.heading;
            headings.extend(
                ["", " low", " high", " sd", " repeats"].map(|part| format!("{name}{part}")),
            );
        }
        let mut rows = Vec::new();
        for point in self.points(table.block.get_ref(), &table.fits) {
            let factors = table.rows.iter().chain(&table.across);
            let mut row: Vec<String> = factors
                .map(|factor| point.value(factor).to_owned())
                .collect();
            for column in &table.columns {
                let figure = self.figure(&point, &column.figure);
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
        Sheet {
            title: table.title.clone(),
            headings,
            rows,
        }
    }
}

fn text(versions: &crate::cell::Versions) -> String {
    versions
        .iter()
        .map(|(name, version)| format!("{name} {version}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Values in the order of their first appearance.
fn unique<'a>(values: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for value in values {
        if !all.iter().any(|other| other == value) {
            all.push(value.to_owned());
        }
    }
    all
}

/// A figure for people: mean, and the ends of its interval.
pub(crate) fn shown(figure: &Figure, interval: &Interval) -> String {
    let form = if figure.to.is_some() {
        number::fine_ratio as fn(f64) -> String
    } else {
        measures::form(&figure.measure)
    };
    let mean = form(interval.mean);
    match interval.ends {
        Some((low, high)) if high > low => format!("{mean} ({} to {})", form(low), form(high)),
        _ => mean,
    }
}

fn has_bound(table: &file::Table, column: &Column) -> bool {
    column.bound != Bound::default()
        || table
            .goals
            .iter()
            .any(|goal| goal.heading == column.heading)
}

fn bound(table: &file::Table, column: &Column, point: &Point<'_>) -> Bound {
    let goal = table
        .goals
        .iter()
        .find(|goal| goal.heading == column.heading && point.fits(&goal.fits));
    goal.map_or(column.bound, |goal| goal.bound)
}

/// Whether the mean keeps its bound.
fn judged(bound: Bound, figure: Option<Interval>, tally: &mut Tally) -> Entry {
    let (Some(figure), true) = (figure, bound != Bound::default()) else {
        return Entry::none();
    };
    let low = bound.at_least.is_none_or(|least| figure.mean >= least);
    let high = bound.at_most.is_none_or(|most| figure.mean <= most);
    if low && high {
        tally.reached += 1;
        Entry::toned("reached", Tone::Good)
    } else {
        tally.missed += 1;
        Entry::toned("MISSED", Tone::Bad)
    }
}

impl Sheet {
    /// As CSV, RFC 4180.
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
