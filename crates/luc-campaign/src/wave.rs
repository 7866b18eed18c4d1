//! Finds the cells that are still to be measured, from the campaign and its results so far.
//!
//! A campaign runs in waves. The first holds the minimum number of repeats of every point. Each
//! later wave holds, for points whose intervals are too wide, as many more repeats as the width
//! calls for, at most doubling their number. Whatever ended a campaign, the same function tells how
//! it continues.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::cell::{Cell, draw};
use crate::file::{Campaign, Figure, StopRule};
use crate::measures;
use crate::points::{self, Point};
use crate::result::ArmResult;
use crate::store::CellResult;
use luc_stats::{Interval, Prior};

/// How far a campaign is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wave {
    /// Cells to measure, in this order.
    pub cells: Vec<Cell>,
    /// Cells with a result, of all that are known to be needed.
    pub done: usize,
    /// Cells that failed and are not tried again.
    pub failed: usize,
    /// Points whose intervals are narrow enough.
    pub narrow: usize,
    /// Points that are not, although they were measured as often as allowed.
    pub wide: usize,
    pub points: usize,
}

/// Results of one point by repeat.
pub type Repeats<'a> = BTreeMap<u32, &'a CellResult>;

/// The results of a point among those of all cells.
pub fn repeats_of<'a>(
    point: &Point<'_>,
    by_cell: &BTreeMap<&Cell, &'a CellResult>,
    most: u32,
) -> Repeats<'a> {
    let of = |repeat| Some((repeat, *by_cell.get(&point.cell(repeat))?));
    (1..=most).filter_map(of).collect()
}

/// The next wave; empty when the campaign is done.
pub fn next(
    campaign: &Campaign,
    by_cell: &BTreeMap<&Cell, &CellResult>,
    failed: &BTreeSet<&Cell>,
) -> Wave {
    let mut wave = Wave::default();
    for block in &campaign.blocks {
        let rule = campaign.stop_of(block);
        for point in points::of_block(campaign, block) {
            wave.points += 1;
            let repeats = repeats_of(&point, by_cell, rule.repeats_max);
            let has_failed = |repeat: u32| failed.contains(&point.cell(repeat));
            let tried = |repeat: &u32| repeats.contains_key(repeat) || has_failed(*repeat);
            wave.done += repeats.len();
            wave.failed += (1..=rule.repeats_max)
                .filter(|repeat| has_failed(*repeat))
                .count();
            let last = (1..=rule.repeats_max).rev().find(tried).unwrap_or(0);
            let stop_at = stop_figures(campaign, block);
            let wanted = match wanted(&repeats, &stop_at, &rule) {
                Wanted::Narrow => {
                    wave.narrow += 1;
                    continue;
                }
                Wanted::Repeats(_) if last >= rule.repeats_max => last,
                Wanted::Repeats(wanted) => wanted.max(last).min(rule.repeats_max),
            };
            let missing: Vec<u32> = (1..=wanted).filter(|repeat| !tried(repeat)).collect();
            // Missing repeats in between, such as damaged ones, may still narrow it.
            wave.wide += usize::from(last >= rule.repeats_max && missing.is_empty());
            wave.cells
                .extend(missing.into_iter().map(|repeat| point.cell(repeat)));
        }
    }
    wave.cells.sort();
    wave.cells.dedup();
    // In a drawn order, so that no drift of the machine follows a factor.
    wave.cells
        .sort_by_cached_key(|cell| draw(campaign.seed, &["order", &cell.key()]));
    wave
}

enum Wanted {
    Narrow,
    Repeats(u32),
}

fn wanted(repeats: &Repeats<'_>, stop_at: &[Figure], rule: &StopRule) -> Wanted {
    // A number of repeats is small.
    let there = u32::try_from(repeats.len()).unwrap_or(u32::MAX);
    if there < rule.repeats_min {
        return Wanted::Repeats(rule.repeats_min);
    }
    if rule.repeats_max == rule.repeats_min {
        return Wanted::Narrow;
    }
    let width = |figure: &Figure| {
        interval(repeats, figure, rule.confidence, &Prior::NONE)?.half_width_share()
    };
    let widest = stop_at.iter().filter_map(width).fold(0.0, f64::max);
    if widest <= rule.half_width_share {
        return Wanted::Narrow;
    }
    let shrink = widest / rule.half_width_share;
    let needed = (f64::from(there) * shrink * shrink)
        .ceil()
        .min(f64::from(there) * 2.0);
    // It is above 0 and at most twice a number of repeats.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Wanted::Repeats((needed as u32).max(there + 1))
}

/// The figures whose intervals decide when repeating ends: the ratio of each arm to the first, or
/// the first's own figure if it is alone. Arms that are mere bounds do not count.
fn stop_figures(campaign: &Campaign, block: &crate::file::Block) -> Vec<Figure> {
    let rate = ["rate".to_owned()];
    let measures = if block.stop_at.is_empty() {
        &rate[..]
    } else {
        &block.stop_at
    };
    let counts = |name: &&String| points::arm(campaign, name).is_some_and(|arm| !arm.bound);
    let arms: Vec<&String> = block.arms.iter().map(toml::Spanned::get_ref).collect();
    let Some((base, others)) = arms.split_first() else {
        return Vec::new();
    };
    let others: Vec<&String> = others.iter().copied().filter(counts).collect();
    let figure = |arm: &String, measure: &String, to: Option<&String>| Figure {
        arm: arm.clone(),
        measure: measure.clone(),
        to: to.cloned(),
        to_best_of: Vec::new(),
        minus: None,
        over: None,
        relative_to: BTreeMap::new(),
    };
    let of = |measure: &String| -> Vec<Figure> {
        if others.is_empty() {
            return vec![figure(base, measure, None)];
        }
        others
            .iter()
            .map(|arm| figure(arm, measure, Some(base)))
            .collect()
    };
    measures.iter().flat_map(of).collect()
}

/// A figure over the repeats of a point; `None` if it is not known.
pub fn interval(
    repeats: &Repeats<'_>,
    figure: &Figure,
    confidence: f64,
    prior: &Prior,
) -> Option<Interval> {
    let values = values(repeats, figure);
    if figure.is_ratio() {
        Interval::of_ratios(&values, confidence, prior)
    } else {
        Interval::of_known(&values, confidence, prior)
    }
}

/// The values of a figure, one for each repeat that has one.
pub fn values(repeats: &Repeats<'_>, figure: &Figure) -> Vec<f64> {
    let figure = against_best(repeats, figure);
    repeats
        .values()
        .filter_map(|result| value(result, &figure))
        .collect()
}

/// Turns the figure into a ratio to one arm. The best of several arms is chosen once for all
/// repeats, by the geometric mean, because noise would choose the best of each repeat.
pub fn against_best<'f>(repeats: &Repeats<'_>, figure: &'f Figure) -> Cow<'f, Figure> {
    let mean = |arm: &String| {
        let own = Figure {
            arm: arm.clone(),
            to: None,
            to_best_of: Vec::new(),
            minus: None,
            over: None,
            ..figure.clone()
        };
        Some(Interval::of_ratios(&values(repeats, &own), 0.5, &Prior::NONE)?.mean)
    };
    let known = figure
        .to_best_of
        .iter()
        .filter_map(|arm| Some((mean(arm)?, arm)));
    match known.max_by(|a, b| a.0.total_cmp(&b.0)) {
        None => Cow::Borrowed(figure),
        Some((_, best)) => Cow::Owned(Figure {
            to: Some(best.clone()),
            to_best_of: Vec::new(),
            ..figure.clone()
        }),
    }
}

/// A figure of one repeat: both arms of a ratio are from one boot. `None` until the best arm is
/// chosen.
pub fn value(result: &CellResult, figure: &Figure) -> Option<f64> {
    let of = |name: &str| -> Option<f64> {
        let named = |arm: &&ArmResult| arm.arm == name;
        let arm = result.arms.iter().find(named)?;
        measures::of(&figure.measure, arm, &result.cell)
    };
    if !figure.to_best_of.is_empty() {
        return None;
    }
    let own = of(&figure.arm)?;
    let compared = match (&figure.to, &figure.minus) {
        (Some(base), _) => quotient(own, of(base)?)?,
        (_, Some(base)) => own - of(base)?,
        _ => own,
    };
    match &figure.over {
        Some(other) => quotient(compared, value(result, other)?),
        None => Some(compared),
    }
}

fn quotient(of: f64, to: f64) -> Option<f64> {
    (to != 0.0).then(|| of / to)
}
