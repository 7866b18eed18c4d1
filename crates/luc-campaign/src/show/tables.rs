//! The tables of a report: each row is a point, many points, or one of the worst points.

use luc_report::show::document::{Entry, Row, Section, Table, Tone};
use luc_report::show::number;

use super::tally::{Tally, judged};
use super::{Shown, form, grouped, shown, unique};
use crate::arms;
use crate::figures::{self, PointResults};
use crate::file::{self, Bound, Column, Figure, Over};
use crate::places;
use crate::points::{self, Point};
use luc_stats::Interval;

/// Points that share a row of a table.
pub(crate) type Together<'s, 'a> = Vec<&'s PointResults<'a>>;

/// A line of a table: its factors, its arm if it has one, and the figures of the columns.
pub(crate) struct TableLine<'t> {
    pub factors: Vec<(String, String)>,
    pub arm: Option<String>,
    pub figures: Vec<(&'t Column, Figure, Option<Interval>)>,
}

impl<'a> Shown<'a> {
    pub(super) fn section(&self, table: &file::TableSpec, tally: &mut Tally) -> Section {
        let left = table.rows.len() + usize::from(table.arms.is_some());
        let (groups, commands) = match table.worst {
            None => (self.groups(table, tally), Vec::new()),
            Some(most) => self.worst(table, most, tally),
        };
        Section {
            title: table.title.clone(),
            note: table.note.clone(),
            table: Table::new(left, groups),
            commands,
            ..Section::default()
        }
    }

    /// The points of a table, grouped by the figure that they share: each is alone, unless the
    /// columns summarize many points.
    fn together(&self, table: &file::TableSpec) -> Vec<Together<'_, 'a>> {
        let points = self.points(table.block.get_ref(), &table.fits);
        if !table.is_over_points() {
            return points.into_iter().map(|point| vec![point]).collect();
        }
        let mut all = grouped(points, |it| values(&it.point, table.factors()));
        // Drawn points come with their values in any order.
        if let Some(block) = self.campaign.block(table.block.get_ref()) {
            all.sort_by_cached_key(|(own, _)| {
                let place = |(factor, own): (&String, &String)| {
                    let mut values = points::values_of(block, factor);
                    values.position(|value| value == own)
                };
                table.factors().zip(own).map(place).collect::<Vec<_>>()
            });
        }
        all.into_iter().map(|(_, points)| points).collect()
    }

    /// The lines of a table, in their order.
    pub(crate) fn lines<'t>(&self, table: &'t file::TableSpec) -> Vec<TableLine<'t>> {
        let arms = self.row_arms(table);
        let mut lines = Vec::new();
        for points in self.together(table) {
            for arm in &arms {
                let figures = table.columns.iter().map(|column| {
                    let figure = column.figure(arm.as_deref().unwrap_or_default());
                    let found = self.figure_over(&points, column, &figure);
                    (column, figure, found)
                });
                let own = values(&points[0].point, table.factors());
                lines.push(TableLine {
                    factors: table.factors().cloned().zip(own).collect(),
                    arm: arm.clone(),
                    figures: figures.collect(),
                });
            }
        }
        lines
    }

    /// Rows of a table, in groups that share all but their last left entry.
    fn groups(&self, table: &file::TableSpec, tally: &mut Tally) -> Vec<Vec<Row<String>>> {
        let together = self.together(table);
        let across: Vec<Option<String>> = match &table.across {
            None => vec![None],
            Some(factor) => {
                let points = together.iter().map(|points| points[0].point.value(factor));
                unique(points).into_iter().map(Some).collect()
            }
        };
        let arms = self.row_arms(table);
        let mut rows: Vec<(Vec<String>, Row<String>)> = Vec::new();
        let same_row = |points: &Together<'_, '_>| values(&points[0].point, table.rows.iter());
        for (own, same) in grouped(together, same_row) {
            for arm in &arms {
                let arm_shown = arm.as_deref().map(|arm| self.arm_shown(arm));
                let left: Vec<String> = own.iter().cloned().chain(arm_shown).collect();
                let headings = table.rows.iter().chain(&table.arms).cloned();
                let mut row: Row<String> =
                    headings.zip(left.iter().cloned().map(Entry::new)).collect();
                let mut is_known = false;
                for at in &across {
                    let is_here = |points: &&Together<'_, '_>| match (&table.across, at) {
                        (Some(factor), Some(value)) => points[0].point.value(factor) == value,
                        _ => true,
                    };
                    let here = same.iter().find(is_here).map_or(&[][..], Vec::as_slice);
                    for column in &table.columns {
                        let heading = match at {
                            Some(value) => format!("{} {value}", column.heading),
                            None => column.heading.clone(),
                        };
                        let entries = self.entries(table, column, here, arm.as_deref(), tally);
                        is_known |= entries.iter().any(|entry| *entry != Entry::none());
                        row.extend([heading, String::new()].into_iter().zip(entries));
                    }
                }
                if is_known {
                    rows.push((left[..left.len().saturating_sub(1)].to_vec(), row));
                }
            }
        }
        let groups = grouped(rows, |(group, _)| group.clone()).into_iter();
        let bare =
            |(_, rows): (_, Vec<(_, Row<String>)>)| rows.into_iter().map(|(_, row)| row).collect();
        groups.map(bare).collect()
    }

    fn arm_shown(&self, name: &str) -> String {
        points::arm(self.campaign, name)
            .map_or_else(|| name.to_owned(), |arm| arms::shown(name, arm))
    }

    /// The arms that have rows of their own; a single `None` if none has.
    fn row_arms(&self, table: &file::TableSpec) -> Vec<Option<String>> {
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

    /// A figure, and its judgement if its column has a bound.
    fn entries(
        &self,
        table: &file::TableSpec,
        column: &Column,
        points: &[&PointResults<'_>],
        arm: Option<&str>,
        tally: &mut Tally,
    ) -> Vec<Entry> {
        let of = column.figure(arm.unwrap_or_default());
        let found = self.figure_over(points, column, &of);
        let text = |found: Interval| match column.over {
            None => shown(&of, &found),
            Some(Over::Count) => number::whole(found.mean),
            Some(_) => form(&of)(found.mean),
        };
        let mut entries = vec![Entry::measured(found, text)];
        if table.judges(column) {
            let bound = points.first().map(|it| bound(table, column, &it.point));
            entries.push(judged(bound.unwrap_or_default(), found, tally));
        }
        entries
    }

    /// A column's figure over the points of its row.
    fn figure_over(
        &self,
        points: &[&PointResults<'_>],
        column: &Column,
        figure: &Figure,
    ) -> Option<Interval> {
        let Some(over) = column.over else {
            return self.figure(points.first()?, figure);
        };
        let known: Vec<Interval> = points
            .iter()
            .filter_map(|point| self.figure(point, figure))
            .collect();
        summed_up(over, &known, figure.is_ratio())
    }

    /// The rows of the worst points, and the commands that measure again those that miss the bound.
    fn worst(
        &self,
        table: &file::TableSpec,
        most: usize,
        tally: &mut Tally,
    ) -> (Vec<Vec<Row<String>>>, Vec<String>) {
        let Some(deciding) = table.deciding() else {
            return Default::default();
        };
        let figure = deciding.figure("");
        let mut known = Vec::new();
        for results in self.points(table.block.get_ref(), &table.fits) {
            let Some(found) = self.figure(results, &figure) else {
                continue;
            };
            let bound = bound(table, deciding, &results.point);
            let own = values(&results.point, table.rows.iter()).into_iter();
            let factors = table.rows.iter().cloned();
            let mut row: Row<String> = factors.zip(own.map(Entry::new)).collect();
            for column in &table.columns {
                let entries = self.entries(table, column, &[results], None, tally);
                let headings = [column.heading.clone(), String::new()];
                row.extend(headings.into_iter().zip(entries));
            }
            known.push((excess(bound, found.mean), bound, results, row));
        }
        known.sort_by(|a, b| b.0.total_cmp(&a.0));
        known.truncate(most);
        let mut commands = Vec::new();
        for (excess, bound, results, _) in &known {
            if *excess > 1.0 {
                commands.extend(again(table, &figure, *bound, results));
            }
        }
        let rows = known.into_iter().map(|(_, _, _, row)| row).collect();
        (vec![rows], commands)
    }
}

/// The values of factors at a point.
fn values<'f>(point: &Point<'_>, factors: impl Iterator<Item = &'f String>) -> Vec<String> {
    factors
        .map(|factor| point.value(factor).to_owned())
        .collect()
}

/// The commands that measure a figure's arms again, in the repeat that is furthest beyond the
/// bound, after a line that names the point. Empty if the place has no such commands.
fn again(
    table: &file::TableSpec,
    figure: &Figure,
    bound: Bound,
    results: &PointResults<'_>,
) -> Vec<String> {
    let figure = results.decided(figure);
    let by_excess = results.repeats.iter().filter_map(|(repeat, result)| {
        Some((excess(bound, figures::value(result, &figure)?), *repeat))
    });
    let Some((_, repeat)) = by_excess.max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return Vec::new();
    };
    let cell = results.point.cell(repeat);
    let names = [figure.to.as_ref(), figure.minus.as_ref(), Some(&figure.arm)];
    let arms: Vec<_> = names
        .into_iter()
        .flatten()
        .filter_map(|name| cell.arms.iter().find(|arm| arm.name == *name))
        .collect();
    let place = places::find(&cell.place);
    let commands: Vec<String> = arms
        .iter()
        .filter_map(|arm| place?.command(&cell, arm))
        .collect();
    if commands.is_empty() {
        return commands;
    }
    let at = values(&results.point, table.rows.iter()).join(" ");
    let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    let heading = format!("# {at}: {}", names.join(", then "));
    std::iter::once(heading).chain(commands).collect()
}

/// Summarizes many points by one number. Its interval is that number of their lower and of their
/// upper ends.
fn summed_up(over: Over, known: &[Interval], is_ratio: bool) -> Option<Interval> {
    if known.is_empty() {
        return None;
    }
    let number = |of: fn(&Interval) -> f64| {
        let mut values: Vec<f64> = known.iter().map(of).collect();
        let n = values.len() as f64;
        match over {
            Over::Count => n,
            Over::Mean if is_ratio => (values.iter().map(|it| it.ln()).sum::<f64>() / n).exp(),
            Over::Mean => values.iter().sum::<f64>() / n,
            Over::Percentile(percent) => {
                values.sort_by(f64::total_cmp);
                // From 1 to the number of values.
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let rank = (percent / 100.0 * n).ceil().clamp(1.0, n) as usize;
                values[rank - 1]
            }
        }
    };
    let ends = (
        number(|it| it.ends.map_or(it.mean, |ends| ends.0)),
        number(|it| it.ends.map_or(it.mean, |ends| ends.1)),
    );
    Some(Interval {
        mean: number(|it| it.mean),
        ends: (over != Over::Count).then_some(ends),
        sd: None,
        repeats: known.len(),
    })
}

/// The factor by which a figure exceeds its bound; at most 1 within it.
fn excess(bound: Bound, figure: f64) -> f64 {
    let below = bound.at_least.map_or(0.0, |least| least / figure);
    let above = bound.at_most.map_or(0.0, |most| figure / most);
    below.max(above)
}

fn bound(table: &file::TableSpec, column: &Column, point: &Point<'_>) -> Bound {
    let goal = table
        .goals
        .iter()
        .find(|goal| goal.heading == column.heading && point.fits(&goal.fits));
    goal.map_or(column.bound(), file::Goal::bound)
}

/// Most reasons for failed cells that are listed.
const REASONS_MAX: usize = 10;
/// Longest reason, characters.
const REASON_CHARS: usize = 80;

/// A section that counts failed cells by reason.
pub(super) fn failures<'r>(reasons: impl Iterator<Item = &'r str>) -> Option<Section> {
    let short = |reason: &&str| -> String {
        let line = reason.lines().next().unwrap_or_default();
        line.chars().take(REASON_CHARS).collect()
    };
    let groups = grouped(reasons, short).into_iter();
    let mut counts: Vec<(String, usize)> = groups.map(|(why, all)| (why, all.len())).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    let left_out = counts.len().saturating_sub(REASONS_MAX);
    let rows = counts.into_iter().take(REASONS_MAX).map(|(reason, count)| {
        let count = Entry::toned(count.to_string(), Tone::Bad);
        vec![("why", Entry::new(reason)), ("cells", count)]
    });
    let mut note = format!("{all} cells failed; no figure includes them.");
    if left_out > 0 {
        note = format!("{note} {left_out} further reasons are left out.");
    }
    (all > 0).then(|| Section {
        title: "Cells that failed".to_owned(),
        note,
        table: Table::new(1, vec![rows.collect()]),
        ..Section::default()
    })
}
