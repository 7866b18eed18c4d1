//! Which measured quantities correlate with the rate: section 3.3 of the dissertation.
//!
//! Every repeat of every point is a row. [`luc_model::causes`] ranks the quantities and finds their
//! principal components, as `luc trace rank` does for recordings.

use std::collections::BTreeMap;

use super::found::{Candidate, Found, Ranked, Ranking};
use crate::figures::PointResults;
use crate::measures;
use crate::result::ArmResult;
use luc_model::causes::{Causes, Quantities, Sign, rank};
use luc_stats::Interval;

/// The strongest correlation of a quantity with the rate of an arm. Its interval is as wide as
/// chance makes it: it contains 0 if chance alone may explain the correlation.
pub fn answer(points: &[&PointResults<'_>], arm: &str, rate: &str, quantities: &[String]) -> Found {
    let mut rows = Vec::new();
    let mut measured = 0;
    for point in points {
        let named = |found: &&ArmResult| found.arm == arm;
        let of_point = point.repeats.values().filter_map(|result| {
            let found = result.arms.iter().find(named)?;
            let of = |measure: &str| measures::value(measure, found, &result.cell);
            let values = quantities
                .iter()
                .filter_map(|name| Some((name.clone(), of(name)?)));
            Some(Quantities {
                throughput_per_s: of(rate)?,
                values: values.collect::<BTreeMap<_, _>>(),
            })
        });
        let before = rows.len();
        rows.extend(of_point);
        measured += usize::from(rows.len() > before);
    }
    let found = Found {
        points: points.len(),
        measured,
        ..Found::default()
    };
    // Too few rows, or all with the same rate: nothing to rank yet.
    let Ok(causes) = rank(&rows) else {
        return found;
    };
    let ranking = ranking(&causes, rows.len());
    let Some(first) = causes.causes.first() else {
        return found;
    };
    let (strength, chance) = (first.strength, causes.chance_strength);
    let does = match first.sign {
        Sign::Helps => "helps",
        Sign::Hurts => "hurts",
        Sign::Unclear => "neither helps nor hurts",
    };
    let interval = Interval {
        mean: strength,
        ends: Some((strength - chance, (strength + chance).min(1.0))),
        sd: None,
        repeats: rows.len(),
    };
    Found {
        candidates: vec![Candidate {
            at: format!("{} {does}, {} runs", first.name, rows.len()),
            alone: interval,
            jointly: interval,
        }],
        ranking: Some(ranking),
        ..found
    }
}

fn ranking(causes: &Causes, runs: usize) -> Ranking {
    let of_component = |values: &[f64]| values.get(causes.component?).copied();
    let shares: Vec<f64> = causes
        .components
        .iter()
        .map(|component| component.variance_share)
        .collect();
    let ranked = causes.causes.iter().map(|cause| Ranked {
        quantity: cause.name.clone(),
        pearson: cause.pearson,
        spearman: cause.spearman,
        loading: cause.loading,
    });
    Ranking {
        runs,
        chance_strength: causes.chance_strength,
        component_variance_share: of_component(&shares),
        component_pearson: of_component(&causes.component_pearsons),
        quantities: ranked.collect(),
    }
}
