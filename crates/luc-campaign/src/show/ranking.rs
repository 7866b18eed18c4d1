//! Rankings: the rows of a table compete, the best first.

use std::collections::BTreeMap;

use luc_report::show::document::{Entry, Row, Section, Table};
use luc_stats::{Interval, Prior};
use serde::Serialize;

use super::{Number, Shown, grouped, shown, with_ends};
use crate::figures::{self, PointResults};
use crate::file::{Figure, Ranked, TableSpec};
use luc_report::show::number;

/// Heading of the column that compares a row with the best one.
const OF_BEST: &str = "of the best";

/// Choices under the same conditions, the best first.
#[derive(Clone, Debug, Serialize)]
pub struct Ranking {
    /// Values of the conditions.
    pub at: BTreeMap<String, String>,
    pub choices: Vec<Choice>,
    /// Number of choices without a result.
    pub missing: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct Choice {
    pub values: BTreeMap<String, String>,
    pub arm: String,
    /// By heading.
    pub figures: BTreeMap<String, Option<Number>>,
    /// Its score over that of the best. If the interval contains 1, they cannot be told apart.
    pub of_best: Option<Number>,
    /// One for each repeat in which all deciding figures are known.
    #[serde(skip)]
    scores: Vec<f64>,
    #[serde(skip)]
    row: Row<String>,
}

impl Shown<'_> {
    /// The rankings of all tables that have one.
    pub fn rankings(&self) -> Vec<Ranking> {
        let tables = self.campaign.tables.iter();
        let ranked = tables.filter_map(|table| Some((table, table.ranked.as_ref()?)));
        ranked
            .flat_map(|(table, ranked)| self.rankings_of(table, ranked))
            .collect()
    }

    fn rankings_of(&self, table: &TableSpec, ranked: &Ranked) -> Vec<Ranking> {
        let points = self.points(table.block.get_ref(), &table.fits);
        let at = |it: &&PointResults<'_>| -> BTreeMap<String, String> {
            let value = |name: &String| (name.clone(), it.point.value(name).to_owned());
            ranked.within.iter().map(value).collect()
        };
        let all = grouped(points, at).into_iter();
        all.map(|(at, points)| {
            let choices = points
                .into_iter()
                .flat_map(|point| self.choices(table, ranked, point));
            let (known, missing): (Vec<Choice>, Vec<Choice>) =
                choices.partition(|choice| choice.figures.values().any(Option::is_some));
            Ranking {
                at,
                choices: self.in_order(known),
                missing: missing.len(),
            }
        })
        .collect()
    }

    /// The choices of a point: its arms.
    fn choices(
        &self,
        table: &TableSpec,
        ranked: &Ranked,
        results: &PointResults<'_>,
    ) -> Vec<Choice> {
        let arms = results.point.cell(1).arms.into_iter();
        arms.map(|named| {
            let arm = named.name;
            let columns = table.columns.iter().map(|column| {
                let figure = column.figure(&arm);
                let found = self.figure(results, &figure);
                (column.heading.clone(), figure, found)
            });
            let columns: Vec<(String, Figure, Option<Interval>)> = columns.collect();
            let values = table.rows.iter().map(|name| {
                let value = results.point.value(name);
                (name.clone(), value.to_owned())
            });
            let values: Vec<(String, String)> = values.collect();
            let is_deciding = |heading: &String| ranked.by.contains(heading);
            let deciding = columns.iter().filter(|(heading, ..)| is_deciding(heading));
            let deciding: Vec<&Figure> = deciding.map(|(_, figure, _)| figure).collect();
            let left = values.iter().cloned();
            let left = left.chain(table.arms.iter().map(|it| (it.clone(), arm.clone())));
            let left = left.map(|(name, value)| (name, Entry::new(value)));
            let figures = columns.iter().map(|(heading, figure, found)| {
                let entry = Entry::measured(*found, |found| shown(figure, &found));
                (heading.clone(), entry)
            });
            Choice {
                row: left.chain(figures).collect(),
                scores: scores(results, &deciding),
                values: values.into_iter().collect(),
                figures: columns
                    .into_iter()
                    .map(|(heading, _, found)| (heading, found.map(Number::from)))
                    .collect(),
                arm,
                of_best: None,
            }
        })
        .collect()
    }

    /// Sorts choices, those without a score last, and compares each with the first.
    fn in_order(&self, mut choices: Vec<Choice>) -> Vec<Choice> {
        choices.sort_by(|a, b| mean(&b.scores).total_cmp(&mean(&a.scores)));
        let best = choices.first().map(|best| best.scores.clone());
        let confidence = self.campaign.stop.confidence;
        for choice in choices.iter_mut().skip(1) {
            let best = best.as_deref().unwrap_or_default();
            let ratio = Interval::of_separate_ratio(&choice.scores, best, confidence, &Prior::NONE);
            choice.of_best = ratio.map(Number::from);
        }
        choices
    }

    /// A section for each ranking of a table.
    pub(super) fn ranked_sections(&self, table: &TableSpec, ranked: &Ranked) -> Vec<Section> {
        let rankings = self.rankings_of(table, ranked).into_iter();
        let with_any = rankings.filter(|ranking| !ranking.choices.is_empty());
        with_any
            .map(|ranking| {
                let at = ranked.within.iter().filter_map(|name| ranking.at.get(name));
                let at: Vec<&str> = at.map(String::as_str).collect();
                let missing = match ranking.missing {
                    0 => String::new(),
                    missing => format!(" {missing} choices are not measured."),
                };
                let rows = ranking
                    .choices
                    .into_iter()
                    .enumerate()
                    .map(|(place, choice)| {
                        let of_best = choice.of_best.map_or_else(
                            || if place == 0 { "1" } else { "-" }.to_owned(),
                            |it| with_ends(it.mean, it.low.zip(it.high), number::fine_ratio),
                        );
                        let mut row = choice.row;
                        row.push((OF_BEST.to_owned(), Entry::new(of_best)));
                        row
                    });
                let left = table.rows.len() + usize::from(table.arms.is_some());
                Section {
                    title: format!("{}: {}", table.title, at.join(", ")),
                    note: format!("By {}. {}{missing}", ranked.by.join(" and "), table.note),
                    table: Table::new(left, vec![rows.collect()]),
                    ..Section::default()
                }
            })
            .collect()
    }
}

/// The geometric mean of the figures in each repeat that knows them all.
fn scores(results: &PointResults<'_>, figures: &[&Figure]) -> Vec<f64> {
    let repeats = results.repeats.values();
    repeats
        .filter_map(|result| {
            let values = figures.iter().map(|figure| figures::value(result, figure));
            let values: Vec<f64> = values.collect::<Option<_>>()?;
            let logs: f64 = values.iter().map(|value| value.ln()).sum();
            Some((logs / values.len() as f64).exp())
        })
        .collect()
}

/// The mean; below every other if there is none.
fn mean(scores: &[f64]) -> f64 {
    if scores.is_empty() {
        return f64::NEG_INFINITY;
    }
    scores.iter().sum::<f64>() / scores.len() as f64
}
