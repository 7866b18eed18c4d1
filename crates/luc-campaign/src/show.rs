//! A report made from results alone: tables and plots as the campaign's file describes them.

use std::collections::{BTreeMap, BTreeSet};

use luc_report::show::document::{Chart, Document, Section};
use luc_report::show::number;

use crate::cell::Cell;
use crate::file::{self, Campaign, Figure};
use crate::measure::VersionsOf;
use crate::measures;
use crate::places::Setup;
use crate::points::{self, Point};
use crate::store::{CellResult, Failed, Results};
use crate::wave;
use luc_stats::{Interval, Prior};

mod charts;
mod tables;
mod tally;

pub use tally::Tally;

/// A campaign with its results.
pub struct Shown<'a> {
    pub campaign: &'a Campaign,
    by_cell: BTreeMap<&'a Cell, &'a CellResult>,
    /// Cells that failed and have no result.
    failed: Vec<&'a Failed>,
}

impl<'a> Shown<'a> {
    /// Picks one result for each of the campaign's own cells: one of `machine`'s current versions
    /// if there is one, or else the last that was measured.
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
                .collect(),
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

    /// The points of a block that match, in the order of the campaign's text.
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
        let reasons = self.failed.iter().map(|failed| failed.why.as_str());
        let failures = tables::failures(reasons);
        let rule = &self.campaign.stop;
        let intervals = format!(
            "Intervals are Student's t at {}%; ratios are paired, each pair from one boot.",
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
            sections: sections
                .into_iter()
                .map(|(_, section)| section)
                .chain(failures)
                .collect(),
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

    /// A sentence with its values; `None` if one is not known.
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

    /// Where the figures come from, in lines.
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
        if !self.failed.is_empty() {
            let cells = self.failed.len();
            foot.push(format!("{cells} cells failed and are left out."));
        }
        foot
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

/// Formats a figure: its mean, and the ends of its interval.
pub(crate) fn shown(figure: &Figure, interval: &Interval) -> String {
    with_ends(interval.mean, interval.ends, form(figure))
}

fn form(figure: &Figure) -> fn(f64) -> String {
    if figure.is_ratio() {
        number::fine_ratio
    } else {
        measures::form(&figure.measure)
    }
}

/// An end more than this many times the mean means that nothing is known.
const ENDS_SHOWN: f64 = 1000.0;

/// Formats a mean with the ends of its interval, if that has a width and is not hopelessly wide.
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
                return format!("{shown} (interval too wide)");
            }
            format!("{shown} ({} to {})", form(low), form(high))
        }
        _ => shown,
    }
}
