//! A report made of results alone: tables and plots as the campaign's file describes them.

use std::collections::{BTreeMap, BTreeSet};

use luc_report::show::document::{Chart, Document, Entry, Line, Row, Section, Table, Tone};
use luc_report::show::number;

use crate::arms;
use crate::cell::Cell;
use crate::file::{self, Bound, Campaign, Column, Figure};
use crate::measure::VersionsOf;
use crate::measures;
use crate::places::Setup;
use crate::points::{self, Point};
use crate::stats::{Interval, Prior};
use crate::store::{CellResult, Results};
use crate::wave;

/// How many figures reached their bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub reached: usize,
    pub missed: usize,
    /// The mean misses the bound, and the interval holds it.
    pub open: usize,
}

impl Tally {
    /// In a sentence; empty where nothing was judged.
    pub fn sentence(self) -> String {
        let Self {
            reached,
            missed,
            open,
        } = self;
        match (reached + missed + open, missed + open) {
            (0, _) => String::new(),
            (all, 0) => format!("All {all} figures were reached."),
            (all, _) if open == 0 => {
                format!("{reached} of {all} figures were reached; missed: {missed}.")
            }
            (all, _) => format!(
                "{reached} of {all} figures were reached; missed: {missed}; open, as intervals are wide: {open}."
            ),
        }
    }
}

/// A campaign with its results.
pub struct Shown<'a> {
    pub campaign: &'a Campaign,
    by_cell: BTreeMap<&'a Cell, &'a CellResult>,
    /// Cells that failed and have no result.
    failed: usize,
}

impl<'a> Shown<'a> {
    /// The results of the campaign's own cells, one a cell: of the versions on this machine if it
    /// is given and has them, or else the last that was measured.
    pub fn new(campaign: &'a Campaign, results: &'a Results, machine: Option<&Setup>) -> Self {
        let own: BTreeSet<Cell> = points::all(campaign)
            .iter()
            .flat_map(|point| {
                let block = campaign.block(point.block);
                let most = block.map_or(0, |block| campaign.stop_of(block).repeats_max);
                (1..=most).map(|repeat| point.cell(repeat))
            })
            .collect();
        let mut versions = machine.map(VersionsOf::new);
        let mut is_current = |result: &CellResult| {
            let now = versions.as_mut();
            now.is_some_and(|now| now.count(&result.cell, &result.versions).unwrap_or(false))
        };
        let mut chosen: BTreeMap<&'a Cell, ((bool, u64), &'a CellResult)> = BTreeMap::new();
        for result in results
            .results
            .iter()
            .filter(|result| own.contains(&result.cell))
        {
            let rank = (is_current(result), result.at_s);
            let best = chosen.entry(&result.cell).or_insert((rank, result));
            if rank > best.0 {
                *best = (rank, result);
            }
        }
        let failed = results
            .failed
            .iter()
            .filter(|failed| own.contains(&failed.cell));
        Self {
            campaign,
            failed: failed
                .filter(|failed| !chosen.contains_key(&failed.cell))
                .count(),
            by_cell: chosen
                .into_iter()
                .map(|(cell, (_, result))| (cell, result))
                .collect(),
        }
    }

    /// A figure at a point.
    pub fn figure(&self, point: &Point<'_>, figure: &Figure) -> Option<Interval> {
        let block = self.campaign.block(point.block)?;
        let confidence = self.campaign.stop_of(block).confidence;
        if figure.relative_to.is_empty() {
            return wave::interval(&self.repeats(point), figure, confidence, &Prior::NONE);
        }
        let is_base = |other: &Point<'_>| {
            let mut factors = block.factors.keys().map(toml::Spanned::get_ref);
            factors.all(|name| {
                let base = figure.relative_to.get(name).map(|base| base.0.as_str());
                other.value(name) == base.unwrap_or_else(|| point.value(name))
            })
        };
        let points = points::of_block(self.campaign, block);
        let base = points.into_iter().find(is_base)?;
        let values = |point: &Point<'_>| wave::values(&self.repeats(point), figure);
        Interval::of_separate_ratio(&values(point), &values(&base), confidence, &Prior::NONE)
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
        let mut sections: Vec<(&str, Section)> = Vec::new();
        for table in &self.campaign.tables {
            sections.push((table.block.get_ref(), self.section(table, &mut tally)));
        }
        sections.retain(|(_, section)| !section.table.groups.is_empty());
        for plot in &self.campaign.plots {
            let mut charts = self.charts(plot);
            charts.retain(Chart::has_a_line);
            let of_block = sections
                .iter_mut()
                .find(|(block, _)| block == plot.block.get_ref());
            if let Some((_, section)) = of_block {
                let shown = if plot.on_terminal {
                    &mut section.charts
                } else {
                    &mut section.page_charts
                };
                shown.extend(charts);
            }
        }
        let rule = &self.campaign.stop;
        let intervals = format!(
            "Intervals are Student's t, {}%; ratios are paired, each pair of one boot.",
            rule.confidence * 100.0
        );
        let about = self.campaign.about.trim();
        let single = self.by_cell.keys().all(|cell| cell.repeat == 1);
        let intro = [about, if single { "" } else { &intervals }].join(" ");
        let sentences = self.campaign.sentences.iter();
        let lead: Vec<String> = sentences
            .filter_map(|sentence| self.sentence(sentence))
            .collect();
        let verdict = tally.sentence();
        let last = lead
            .iter()
            .map(String::as_str)
            .chain([verdict.as_str()])
            .collect::<Vec<_>>()
            .join(" ");
        let document = Document {
            title: self.campaign.title.clone(),
            intro: intro.trim().to_owned(),
            sections: sections.into_iter().map(|(_, section)| section).collect(),
            verdict: if last.trim().is_empty() {
                format!("{} cells.", self.by_cell.len())
            } else {
                last.trim().to_owned()
            },
            lead: lead
                .into_iter()
                .chain(Some(verdict).filter(|verdict| !verdict.is_empty()))
                .collect(),
            foot: self.foot(),
        };
        (document, tally)
    }

    /// A sentence with its values; `None` where one is not known.
    fn sentence(&self, sentence: &file::Sentence) -> Option<String> {
        let mut text = sentence.text.clone();
        for (name, picked) in &sentence.values {
            let (point, value) = self.picked(picked)?;
            let percent = |value: f64| format!("{:.0}%", value.abs() * 100.0);
            let change = match value - 1.0 {
                more if more > 0.005 => format!("{} faster", percent(more)),
                less if less < -0.005 => format!("{} slower", percent(less)),
                _ => "neither faster nor slower".to_owned(),
            };
            let form = if picked.figure.is_ratio() {
                number::ratio
            } else {
                measures::form(&picked.figure.measure)
            };
            text = text
                .replace(&format!("{{{name}}}"), &form(value))
                .replace(&format!("{{{name}%}}"), &number::percent(value))
                .replace(&format!("{{{name}+}}"), &change);
            for (factor, value) in &point.values {
                text = text.replace(&format!("{{{name}.{factor}}}"), value);
            }
        }
        Some(text)
    }

    /// The point that a sentence picks, and its figure there.
    fn picked(&self, picked: &file::Picked) -> Option<(Point<'a>, f64)> {
        let of = |point: &Point<'_>| Some(self.figure(point, &picked.figure)?.mean);
        let points = self
            .points(picked.block.get_ref(), &picked.fits)
            .into_iter();
        let mut known: Vec<(Point<'a>, f64)> = points
            .filter_map(|point| of(&point).map(|value| (point, value)))
            .collect();
        if picked.take != file::Take::First {
            known.sort_by(|a, b| a.1.total_cmp(&b.1));
        }
        let at = match picked.take {
            file::Take::First | file::Take::Min => 0,
            file::Take::Max => known.len().checked_sub(1)?,
            file::Take::Median => known.len() / 2,
        };
        (at < known.len()).then(|| known.swap_remove(at))
    }

    /// Where the figures come from.
    pub(crate) fn foot(&self) -> Vec<String> {
        let results = self.by_cell.values();
        let releases: BTreeSet<&str> = results
            .map(|result| result.kernel_release.as_str())
            .collect();
        let releases: Vec<&str> = releases.into_iter().collect();
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
        if self.failed > 0 {
            foot.push(format!("{} cells failed and are left out.", self.failed));
        }
        foot
    }

    fn section(&self, table: &file::Table, tally: &mut Tally) -> Section {
        let left = table.rows.len() + usize::from(table.arms.is_some());
        Section {
            title: table.title.clone(),
            note: table.note.clone(),
            table: Table::new(left, self.groups(table, tally)),
            ..Section::default()
        }
    }

    /// Rows of a table, in groups that share all but their last left entry.
    fn groups(&self, table: &file::Table, tally: &mut Tally) -> Vec<Vec<Row<String>>> {
        let points = self.points(table.block.get_ref(), &table.fits);
        let across: Vec<Option<String>> = match &table.across {
            None => vec![None],
            Some(factor) => {
                let values = unique(points.iter().map(|point| point.value(factor)));
                values.into_iter().map(Some).collect()
            }
        };
        let key = |point: &Point<'_>| -> Vec<String> {
            table
                .rows
                .iter()
                .map(|factor| point.value(factor).to_owned())
                .collect()
        };
        let mut keys: Vec<Vec<String>> = Vec::new();
        for point in &points {
            let key = key(point);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let arms = self.row_arms(table);
        let mut groups: Vec<(Vec<String>, Vec<Row<String>>)> = Vec::new();
        for own in keys {
            let same: Vec<&Point<'_>> = points.iter().filter(|point| key(point) == own).collect();
            let mut left = own.clone();
            for arm in &arms {
                left.truncate(own.len());
                left.extend(arm.as_deref().map(|arm| self.arm_shown(arm)));
                let mut row: Row<String> = Vec::new();
                let headings = table.rows.iter().chain(&table.arms);
                row.extend(
                    headings
                        .zip(&left)
                        .map(|(name, value)| (name.clone(), Entry::new(value.clone()))),
                );
                let mut known = false;
                for at in &across {
                    let is_here = |point: &&&Point<'_>| match (&table.across, at) {
                        (Some(factor), Some(value)) => point.value(factor) == value,
                        _ => true,
                    };
                    let point = same.iter().find(is_here).copied();
                    for column in &table.columns {
                        let heading = match at {
                            Some(value) => format!("{} {value}", column.heading),
                            None => column.heading.clone(),
                        };
                        let entries = self.entries(table, column, point, arm.as_deref(), tally);
                        known |= entries.iter().any(|entry| *entry != Entry::none());
                        row.extend([heading, String::new()].into_iter().zip(entries));
                    }
                }
                if !known {
                    continue;
                }
                let group = left[..left.len().saturating_sub(1)].to_vec();
                match groups.iter_mut().find(|(other, _)| *other == group) {
                    Some((_, rows)) => rows.push(row),
                    None => groups.push((group, vec![row])),
                }
            }
        }
        groups.into_iter().map(|(_, rows)| rows).collect()
    }

    fn arm_shown(&self, name: &str) -> String {
        points::arm(self.campaign, name)
            .map_or_else(|| name.to_owned(), |arm| arms::shown(name, arm))
    }

    /// The arms that have rows of their own; `None` once where none has.
    pub(crate) fn row_arms(&self, table: &file::Table) -> Vec<Option<String>> {
        let block = self
            .campaign
            .block(table.block.get_ref())
            .filter(|_| table.arms.is_some());
        match block {
            Some(block) => block
                .arms
                .iter()
                .map(|arm| Some(arm.get_ref().clone()))
                .collect(),
            None => vec![None],
        }
    }

    /// A figure at a point, and the judgement of it if its column has one.
    fn entries(
        &self,
        table: &file::Table,
        column: &Column,
        point: Option<&Point<'_>>,
        arm: Option<&str>,
        tally: &mut Tally,
    ) -> Vec<Entry> {
        let of = column.figure(arm.unwrap_or_default());
        let figure = point.and_then(|point| self.figure(point, &of));
        let mut entries = vec![Entry::of(figure, |figure| shown(&of, &figure))];
        if has_bound(table, column) {
            let bound = point
                .map(|point| bound(table, column, point))
                .unwrap_or_default();
            entries.push(judged(bound, figure, tally));
        }
        entries
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
                    x_label: plot.x_label.clone().unwrap_or_else(|| plot.x.clone()),
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
    let form = if figure.is_ratio() {
        number::fine_ratio as fn(f64) -> String
    } else {
        measures::form(&figure.measure)
    };
    with_ends(interval.mean, interval.ends, form)
}

/// An end that is so many times the mean says nothing but that nothing is known.
const ENDS_SHOWN: f64 = 1000.0;

/// A mean with the ends of its interval, where it has a width; those of a hopelessly wide one in a
/// word.
pub(crate) fn with_ends(
    mean: f64,
    ends: Option<(f64, f64)>,
    form: impl Fn(f64) -> String,
) -> String {
    let shown = form(mean);
    match ends {
        Some((low, high)) if high > low => {
            let most = low.abs().max(high.abs());
            if mean != 0.0 && most > ENDS_SHOWN * mean.abs() {
                return format!("{shown} (or any other)");
            }
            format!("{shown} ({} to {})", form(low), form(high))
        }
        _ => shown,
    }
}

fn has_bound(table: &file::Table, column: &Column) -> bool {
    column.bound() != Bound::default()
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
    goal.map_or(column.bound(), file::Goal::bound)
}

/// Whether the mean keeps its bound. Where it does not, and its interval holds the bound, that is
/// open: more repeats would tell.
fn judged(bound: Bound, figure: Option<Interval>, tally: &mut Tally) -> Entry {
    let (Some(figure), true) = (figure, bound != Bound::default()) else {
        return Entry::none();
    };
    let (low, high) = figure.ends.unwrap_or((figure.mean, figure.mean));
    let keeps = |low: f64, high: f64| {
        bound.at_least.is_none_or(|least| high >= least)
            && bound.at_most.is_none_or(|most| low <= most)
    };
    if keeps(figure.mean, figure.mean) {
        tally.reached += 1;
        Entry::toned("reached", Tone::Good)
    } else if keeps(low, high) {
        tally.open += 1;
        Entry::new("open")
    } else {
        tally.missed += 1;
        Entry::toned("MISSED", Tone::Bad)
    }
}
