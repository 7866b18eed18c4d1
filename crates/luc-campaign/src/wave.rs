//! Finds the cells that are still to be measured, from the campaign and its results so far.
//!
//! A campaign runs in waves. The first holds the minimum number of repeats of every point. Each
//! later wave holds, for points whose intervals are too wide, as many more repeats as the width
//! calls for, at most doubling their number. Whatever ended a campaign, the same function tells how
//! it continues.

use std::collections::{BTreeMap, BTreeSet};

use luc_stats::Prior;

use crate::cell::{Cell, draw};
use crate::figures::PointResults;
use crate::file::{Block, Campaign, Figure, StopRule};
use crate::points;
use crate::store::CellResult;

/// How far a campaign has come.
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

/// The next wave; empty when the campaign is done.
pub fn next(
    campaign: &Campaign,
    by_cell: &BTreeMap<&Cell, &CellResult>,
    failed: &BTreeSet<&Cell>,
) -> Wave {
    let mut wave = Wave::default();
    let measured = by_cell.keys().map(|cell| cell.repeat).collect();
    for block in &campaign.blocks {
        let rule = campaign.stop_of(block);
        for point in points::of_block(campaign, block) {
            wave.points += 1;
            let results = PointResults::pick(point, by_cell, &measured);
            let (point, repeats) = (&results.point, &results.repeats);
            let has_failed = |repeat: u32| failed.contains(&point.cell(repeat));
            let tried = |repeat: &u32| repeats.contains_key(repeat) || has_failed(*repeat);
            wave.done += repeats.len();
            wave.failed += (1..=rule.repeats_max)
                .filter(|repeat| has_failed(*repeat))
                .count();
            let last = (1..=rule.repeats_max).rev().find(tried).unwrap_or(0);
            let stop_at = stop_figures(campaign, block);
            let wanted = match wanted(&results, &stop_at, &rule) {
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

fn wanted(results: &PointResults<'_>, stop_at: &[Figure], rule: &StopRule) -> Wanted {
    // A number of repeats is small.
    let there = u32::try_from(results.repeats.len()).unwrap_or(u32::MAX);
    if there < rule.repeats_min {
        return Wanted::Repeats(rule.repeats_min);
    }
    if rule.repeats_max == rule.repeats_min {
        return Wanted::Narrow;
    }
    let width = |figure: &Figure| {
        let interval = results.interval(figure, rule.confidence, &Prior::NONE);
        interval?.half_width_share()
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
fn stop_figures(campaign: &Campaign, block: &Block) -> Vec<Figure> {
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
        ..Figure::default()
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
