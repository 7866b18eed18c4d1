//! The tables of a report: each row is a point, many points, or one of the worst points.

use luc_report::show::document::{Entry, Row, Section, Table, Tone};
use luc_report::show::number;

use super::tally::{Tally, judged};
use super::{Shown, form, shown, unique};
use crate::arms;
use crate::file::{self, Bound, Column, Figure, Over};
use crate::places;
use crate::points::{self, Point};
use crate::wave;
use luc_stats::Interval;

/// Points that share a row of a table.
pub(crate) type Together<'a> = Vec<Point<'a>>;

impl<'a> Shown<'a> {
    pub(super) fn section(&self, table: &file::Table, tally: &mut Tally) -> Section {
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
    pub(crate) fn together(&self, table: &file::Table) -> Vec<Together<'a>> {
        let points = self.points(table.block.get_ref(), &table.fits);
        if !table.is_over_points() {
            return points.into_iter().map(|point| vec![point]).collect();
        }
        let factors = || table.rows.iter().chain(&table.across);
        let same = |a: &Point<'_>, b: &Point<'_>| {
            let mut factors = factors();
            factors.all(|factor| a.value(factor) == b.value(factor))
        };
        let mut all: Vec<Together<'a>> = Vec::new();
        for point in points {
            match all.iter_mut().find(|others| same(&others[0], &point)) {
                Some(others) => others.push(point),
                None => all.push(vec![point]),
            }
        }
        // Drawn points come with their values in any order.
        if let Some(block) = self.campaign.block(table.block.get_ref()) {
            all.sort_by_cached_key(|points| {
                let place = |factor: &String| {
                    let mut values = points::values_of(block, factor);
                    values.position(|value| value == points[0].value(factor))
                };
                factors().map(place).collect::<Vec<_>>()
            });
        }
        all
    }

    /// Rows of a table, in groups that share all but their last left entry.
    fn groups(&self, table: &file::Table, tally: &mut Tally) -> Vec<Vec<Row<String>>> {
        let together = self.together(table);
        let points: Vec<&Point<'_>> = together
            .iter()
            .filter_map(|points| points.first())
            .collect();
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
            let is_own = |points: &&Together<'_>| points.first().is_some_and(|it| key(it) == own);
            let same: Vec<&Together<'_>> = together.iter().filter(is_own).collect();
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
                    let is_here = |points: &&&Together<'_>| match (&table.across, at) {
                        (Some(factor), Some(value)) => points[0].value(factor) == value,
                        _ => true,
                    };
                    let here = same
                        .iter()
                        .find(is_here)
                        .map_or(&[] as &[_], |it| it.as_slice());
                    for column in &table.columns {
                        let heading = match at {
                            Some(value) => format!("{} {value}", column.heading),
                            None => column.heading.clone(),
                        };
                        let entries = self.entries(table, column, here, arm.as_deref(), tally);
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

    /// The arms that have rows of their own; a single `None` if none has.
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

    /// A figure, and its judgement if its column has a bound.
    fn entries(
        &self,
        table: &file::Table,
        column: &Column,
        points: &[Point<'_>],
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
        let mut entries = vec![Entry::of(found, text)];
        if table.judges(column) {
            let bound = points.first().map(|point| bound(table, column, point));
            entries.push(judged(bound.unwrap_or_default(), found, tally));
        }
        entries
    }

    /// A column's figure over the points of its row.
    pub(crate) fn figure_over(
        &self,
        points: &[Point<'_>],
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
        table: &file::Table,
        most: usize,
        tally: &mut Tally,
    ) -> (Vec<Vec<Row<String>>>, Vec<String>) {
        let Some(deciding) = table.deciding() else {
            return Default::default();
        };
        let figure = deciding.figure("");
        let mut known = Vec::new();
        for point in self.points(table.block.get_ref(), &table.fits) {
            let Some(found) = self.figure(&point, &figure) else {
                continue;
            };
            let bound = bound(table, deciding, &point);
            let factors = table.rows.iter();
            let mut row: Row<String> = factors
                .map(|factor| (factor.clone(), Entry::new(point.value(factor))))
                .collect();
            for column in &table.columns {
                let here = std::slice::from_ref(&point);
                let entries = self.entries(table, column, here, None, tally);
                let headings = [column.heading.clone(), String::new()];
                row.extend(headings.into_iter().zip(entries));
            }
            known.push((excess(bound, found.mean), bound, point, row));
        }
        known.sort_by(|a, b| b.0.total_cmp(&a.0));
        known.truncate(most);
        let mut commands = Vec::new();
        for (excess, bound, point, _) in &known {
            if *excess > 1.0 {
                commands.extend(self.again(table, &figure, *bound, point));
            }
        }
        let rows = known.into_iter().map(|(_, _, _, row)| row).collect();
        (vec![rows], commands)
    }

    /// The commands that measure a figure's arms again, in the repeat that is furthest beyond the
    /// bound, after a line that names the point. Empty if the place has no such commands.
    fn again(
        &self,
        table: &file::Table,
        figure: &Figure,
        bound: Bound,
        point: &Point<'_>,
    ) -> Vec<String> {
        let repeats = self.repeats(point);
        let figure = wave::against_best(&repeats, figure);
        let value = |result| wave::value(result, &figure);
        let by_excess = repeats
            .iter()
            .filter_map(|(repeat, result)| Some((excess(bound, value(result)?), *repeat)));
        let Some((_, repeat)) = by_excess.max_by(|a, b| a.0.total_cmp(&b.0)) else {
            return Vec::new();
        };
        let cell = point.cell(repeat);
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
        let values: Vec<&str> = table
            .rows
            .iter()
            .map(|factor| point.value(factor))
            .collect();
        let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
        let heading = format!("# {}: {}", values.join(" "), names.join(", then "));
        std::iter::once(heading).chain(commands).collect()
    }
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

fn bound(table: &file::Table, column: &Column, point: &Point<'_>) -> Bound {
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
    let mut counts: Vec<(String, usize)> = Vec::new();
    for reason in reasons {
        let line = reason.lines().next().unwrap_or_default();
        let short: String = line.chars().take(REASON_CHARS).collect();
        match counts.iter_mut().find(|(known, _)| *known == short) {
            Some((_, count)) => *count += 1,
            None => counts.push((short, 1)),
        }
    }
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
