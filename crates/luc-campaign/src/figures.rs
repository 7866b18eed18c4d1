//! Figures of a point: one value for each repeat, and their interval.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use luc_stats::{Interval, Prior};

use crate::cell::Cell;
use crate::file::Figure;
use crate::measures;
use crate::points::{self, Point};
use crate::result::ArmResult;
use crate::store::CellResult;

/// A point with its results.
#[derive(Clone, Debug)]
pub struct PointResults<'a> {
    pub point: Point<'a>,
    /// By repeat.
    pub repeats: BTreeMap<u32, &'a CellResult>,
}

impl<'a> PointResults<'a> {
    /// Picks the point's results from those of all cells; `repeats` holds every repeat that some
    /// cell has.
    pub fn pick(
        point: Point<'a>,
        by_cell: &BTreeMap<&Cell, &'a CellResult>,
        repeats: &BTreeSet<u32>,
    ) -> Self {
        let of = |&repeat| Some((repeat, *by_cell.get(&point.cell(repeat))?));
        Self {
            repeats: repeats.iter().filter_map(of).collect(),
            point,
        }
    }

    /// A figure over the repeats; `None` if it is not known.
    pub fn interval(&self, figure: &Figure, confidence: f64, prior: &Prior) -> Option<Interval> {
        let values = self.values(figure);
        if figure.is_ratio() {
            Interval::of_ratios(&values, confidence, prior)
        } else {
            Interval::of_known(&values, confidence, prior)
        }
    }

    /// The values of a figure, one for each repeat that has one.
    pub fn values(&self, figure: &Figure) -> Vec<f64> {
        let figure = self.decided(figure);
        let results = self.repeats.values();
        results
            .filter_map(|result| value(result, &figure))
            .collect()
    }

    /// Turns the figure into a ratio to one arm. The best or worst of several arms is chosen once
    /// for all repeats, by the geometric mean, because noise would choose that of each repeat.
    pub fn decided<'f>(&self, figure: &'f Figure) -> Cow<'f, Figure> {
        let mean = |arm: &String| {
            let values = self.values(&figure.alone(arm));
            Some(Interval::of_ratios(&values, 0.5, &Prior::NONE)?.mean)
        };
        let of = |sign: f64| move |arm| Some((sign * mean(arm)?, arm));
        let best = figure.to_best_of.iter().filter_map(of(1.0));
        let worst = figure.to_worst_of.iter().filter_map(of(-1.0));
        match best.chain(worst).max_by(|a, b| a.0.total_cmp(&b.0)) {
            None => Cow::Borrowed(figure),
            Some((_, chosen)) => Cow::Owned(Figure {
                to: Some(chosen.clone()),
                to_best_of: Vec::new(),
                to_worst_of: Vec::new(),
                ..figure.clone()
            }),
        }
    }
}

/// A figure of one repeat: both arms of a ratio are from one boot. `None` until the arm to
/// divide by is chosen. A measure may name a factor of the cell: `model_joules:{disk}`.
pub fn value(result: &CellResult, figure: &Figure) -> Option<f64> {
    let measure = points::expanded(&figure.measure, &result.cell.machine);
    let of = |name: &str| -> Option<f64> {
        let named = |arm: &&ArmResult| arm.arm == name;
        let arm = result.arms.iter().find(named)?;
        measures::value(&measure, arm, &result.cell)
    };
    if figure.is_undecided() {
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
