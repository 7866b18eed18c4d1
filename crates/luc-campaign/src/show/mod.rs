//! A report made from results alone: tables and plots as the campaign's file describes them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use luc_report::show::document::{Chart, Document, Section};
use luc_report::show::number;
use serde::Serialize;
use time::OffsetDateTime;

use crate::cell::Cell;
use crate::figures::PointResults;
use crate::file::{self, BEST, Campaign, Figure};
use crate::measure::VersionsOf;
use crate::measures;
use crate::places::Setup;
use crate::points::{self, Point};
use crate::store::{CellResult, Failed, Results};
use luc_stats::{Interval, Prior};

mod charts;
mod ranking;
mod tables;
mod tally;

pub use ranking::{Choice, Ranking};
pub(crate) use tables::TableLine;
pub use tally::Tally;

/// A campaign with its results.
pub struct Shown<'a> {
    pub campaign: &'a Campaign,
    /// In the order of the campaign's text.
    points: Vec<PointResults<'a>>,
    /// Cells that failed and have no result.
    failed: Vec<&'a Failed>,
}

impl<'a> Shown<'a> {
    /// Picks one result for each of the campaign's own cells: one of `machine`'s current versions
    /// if there is one, or else the last that was measured.
    pub fn new(campaign: &'a Campaign, results: &'a Results, machine: Option<&Setup>) -> Self {
        let points = points::all(campaign);
        let failed = results.failed.iter().map(|failed| &failed.cell);
        let measured = results.results.iter().map(|result| &result.cell);
        let repeats: BTreeSet<u32> = measured.chain(failed).map(|cell| cell.repeat).collect();
        let cells = |point: &Point<'_>| -> Vec<Cell> {
            repeats.iter().map(|repeat| point.cell(*repeat)).collect()
        };
        let own: BTreeSet<Cell> = points.iter().flat_map(cells).collect();
        let mut versions = machine.map(VersionsOf::new);
        let mut is_current = |result: &CellResult| {
            let now = versions.as_mut();
            now.is_some_and(|now| now.count(&result.cell, &result.versions).unwrap_or(false))
        };
        let mut ranked: Vec<((bool, u64), &'a CellResult)> = results
            .results
            .iter()
            .filter(|result| own.contains(&result.cell))
            .map(|result| ((is_current(result), result.at_s), result))
            .collect();
        // The first of equals counts; the map keeps the last.
        ranked.reverse();
        ranked.sort_by_key(|(rank, _)| *rank);
        let chosen: BTreeMap<&Cell, &'a CellResult> = ranked
            .into_iter()
            .map(|(_, result)| (&result.cell, result))
            .collect();
        let failed = results.failed.iter();
        Self {
            campaign,
            failed: failed
                .filter(|failed| own.contains(&failed.cell) && !chosen.contains_key(&failed.cell))
                .collect(),
            points: points
                .into_iter()
                .map(|point| PointResults::pick(point, &chosen, &repeats))
                .collect(),
        }
    }

    /// A figure at a point.
    pub fn figure(&self, results: &PointResults<'_>, figure: &Figure) -> Option<Interval> {
        let confidence = self.campaign.stop.confidence;
        if figure.relative_to.is_empty() {
            return results.interval(figure, confidence, &Prior::NONE);
        }
        let (point, block) = (&results.point, self.campaign.block(results.point.block)?);
        let is_base = |other: &&PointResults<'_>| {
            let mut factors = block.factors.keys().map(toml::Spanned::get_ref);
            other.point.block == point.block
                && factors.all(|name| {
                    let base = figure.relative_to.get(name).map(|base| base.0.as_str());
                    base == Some(BEST)
                        || other.point.value(name) == base.unwrap_or_else(|| point.value(name))
                })
        };
        let of_base = match &figure.relative_to_arm {
            Some(arm) => Cow::Owned(figure.alone(arm)),
            None => Cow::Borrowed(figure),
        };
        let bases = self.points.iter().filter(is_base);
        let bases = bases.filter_map(|base| {
            let values = base.values(&of_base);
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            (!values.is_empty()).then_some((mean, values))
        });
        let (_, base) = bases.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        Interval::of_separate_ratio(&results.values(figure), &base, confidence, &Prior::NONE)
    }

    /// The points of a block that match, in the order of the campaign's text.
    pub fn points(&self, block: &str, conditions: &file::Where) -> Vec<&PointResults<'a>> {
        let is_meant =
            |it: &&PointResults<'_>| it.point.block == block && it.point.fits(conditions);
        self.points.iter().filter(is_meant).collect()
    }

    /// All points.
    pub fn all(&self) -> &[PointResults<'a>] {
        &self.points
    }

    /// The charts that show a line.
    pub fn plots(&self) -> Vec<Chart> {
        let charts = self
            .campaign
            .plots
            .iter()
            .flat_map(|plot| self.charts(plot));
        charts.filter(Chart::has_a_line).collect()
    }

    /// The results shown, each once: a cell may belong to points of several blocks.
    fn results(&self) -> BTreeMap<&'a Cell, &'a CellResult> {
        let results = self.points.iter().flat_map(|point| point.repeats.values());
        results.map(|result| (&result.cell, *result)).collect()
    }

    /// The whole report.
    pub fn document(&self) -> (Document, Tally) {
        let mut tally = Tally::default();
        let mut sections: Vec<(&str, Section)> = Vec::new();
        for table in &self.campaign.tables {
            let of_table = match &table.ranked {
                Some(ranked) => self.ranked_sections(table, ranked),
                None => vec![self.section(table, &mut tally)],
            };
            let block = table.block.get_ref().as_str();
            sections.extend(of_table.into_iter().map(|section| (block, section)));
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
        let mut sections: Vec<Section> = sections.into_iter().map(|(_, section)| section).collect();
        sections.extend(tables::failures(
            self.failed.iter().map(|it| it.why.as_str()),
        ));
        let about = self.campaign.about.trim();
        let has_intervals = self.points.iter().any(|point| {
            let repeats = point.repeats.keys();
            repeats.max().is_some_and(|last| *last > 1)
        });
        let intervals = format!(
            "Intervals are Student's t at {}%; ratios are paired, each pair from one repeat.",
            self.campaign.stop.confidence * 100.0
        );
        let sentences = self.campaign.sentences.iter();
        let lead: Vec<String> = sentences
            .filter_map(|sentence| self.sentence(sentence))
            .chain(Some(tally.sentence()).filter(|verdict| !verdict.is_empty()))
            .collect();
        let document = Document {
            title: self.campaign.title.clone(),
            head: self.head(),
            intro: [about, if has_intervals { &intervals } else { "" }]
                .join(" ")
                .trim()
                .to_owned(),
            sections,
            verdict: if lead.is_empty() {
                format!("{} cells.", self.results().len())
            } else {
                lead.join(" ")
            },
            lead,
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
    fn picked(&self, picked: &file::Picked) -> Option<(&Point<'a>, f64)> {
        let points = self.points(picked.block.get_ref(), &picked.fits);
        let of = |it: &PointResults<'a>| Some(self.figure(it, &picked.figure)?.mean);
        let mut known: Vec<(&Point<'a>, f64)> = points
            .into_iter()
            .filter_map(|it| Some((&it.point, of(it)?)))
            .collect();
        if picked.take != file::Take::First {
            known.sort_by(|a, b| a.1.total_cmp(&b.1));
        }
        let at = match picked.take {
            file::Take::First | file::Take::Min => 0,
            file::Take::Max => known.len().checked_sub(1)?,
            file::Take::Median => known.len() / 2,
        };
        known.get(at).copied()
    }

    /// Returns a text of each result, equal ones once.
    fn told(&self, text: fn(&CellResult) -> String) -> Vec<String> {
        let results = self.results();
        let all: BTreeSet<String> = results.values().map(|result| text(result)).collect();
        all.into_iter().collect()
    }

    /// When and where the figures were measured.
    pub(crate) fn head(&self) -> Vec<String> {
        let days = self.told(|result| {
            let at_s = i64::try_from(result.at_s).unwrap_or_default();
            let at = OffsetDateTime::from_unix_timestamp(at_s);
            at.map_or_else(|_| String::new(), |at| at.date().to_string())
        });
        let to = days.last().filter(|_| days.len() > 1);
        let days: Vec<&str> = days.iter().take(1).chain(to).map(String::as_str).collect();
        let hosts = self.told(|result| result.host.clone()).join(", ");
        let kernels = self.told(|result| result.kernel_release.clone());
        vec![
            days.join(" to "),
            format!("host {hosts}"),
            format!("kernel {}", kernels.join(", ")),
        ]
    }

    /// Where the figures come from, in lines.
    pub(crate) fn foot(&self) -> Vec<String> {
        let releases = self.told(|result| result.kernel_release.clone());
        let mut foot = vec![format!(
            "{} cells; kernels {}.",
            self.results().len(),
            if releases.is_empty() {
                "none".to_owned()
            } else {
                releases.join(", ")
            }
        )];
        let versions = self.told(|result| text(&result.versions));
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

/// Groups items by a key, in the order of their first appearance.
pub(crate) fn grouped<T, K: PartialEq>(
    items: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for item in items {
        let own = key(&item);
        match groups.iter_mut().find(|(other, _)| *other == own) {
            Some((_, group)) => group.push(item),
            None => groups.push((own, vec![item])),
        }
    }
    groups
}

/// Values in the order of their first appearance.
fn unique<'v>(values: impl Iterator<Item = &'v str>) -> Vec<String> {
    let groups = grouped(values, |value| *value);
    groups
        .into_iter()
        .map(|(value, _)| value.to_owned())
        .collect()
}

/// An interval in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Number {
    pub mean: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub repeats: usize,
}

impl From<Interval> for Number {
    fn from(interval: Interval) -> Self {
        Self {
            mean: interval.mean,
            low: interval.ends.map(|(low, _)| low),
            high: interval.ends.map(|(_, high)| high),
            repeats: interval.repeats,
        }
    }
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
