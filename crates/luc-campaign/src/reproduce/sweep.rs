//! A claim's figure over our sweep.

use luc_control::poles;

use super::published::{Claim, Gains, Side, Take};
use crate::file::{Block, Figure};
use crate::measures;
use crate::points::Point;
use crate::show::Shown;
use crate::stats::Interval;
use crate::wave::{self, Repeats};

/// Our answer to a claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub interval: Option<Interval>,
    /// The point, or the two, that it is of.
    pub at: String,
    /// Points that the claim is about, and those of them that were measured.
    pub points: usize,
    pub measured: usize,
}

/// Reads the answer off the results.
pub fn answer(shown: &Shown<'_>, claim: &Claim) -> Found {
    if let Some(gains) = &claim.poles {
        return of_poles(gains);
    }
    let (Some(figure), Some(block)) = (&claim.of, shown.campaign.block(&claim.block)) else {
        return Found::default();
    };
    figure_of(shown, claim, block, figure)
}

/// The same for the arm beside.
pub fn beside(shown: &Shown<'_>, claim: &Claim) -> Option<Found> {
    let (arm, figure) = (claim.beside.as_ref()?, claim.of.as_ref()?);
    let figure = Figure {
        arm: arm.clone(),
        ..figure.clone()
    };
    let block = shown.campaign.block(&claim.block)?;
    Some(figure_of(shown, claim, block, &figure))
}

/// The largest modulus of the poles of all sets: computed, so its interval is itself.
fn of_poles(gains: &Gains) -> Found {
    let mut largest: Option<(f64, String)> = None;
    let mut sets = 0;
    for &kp in &gains.kp {
        for &ki in &gains.ki {
            for &kd in &gains.kd {
                for &c in &gains.c {
                    sets += 1;
                    // Gains that are none leave the claim without an answer.
                    let Ok(found) = poles(kp, ki, kd, c) else {
                        return Found::default();
                    };
                    let modulus = found.published.modulus;
                    if largest.as_ref().is_none_or(|(most, _)| modulus > *most) {
                        largest = Some((modulus, format!("Kp {kp}, Ki {ki}, Kd {kd}, c {c}")));
                    }
                }
            }
        }
    }
    let Some((modulus, at)) = largest else {
        return Found::default();
    };
    Found {
        interval: Some(Interval {
            mean: modulus,
            ends: Some((modulus, modulus)),
            sd: None,
            repeats: 1,
        }),
        at,
        points: sets,
        measured: sets,
    }
}

/// Something of which the claim's number may be.
struct Candidate<'a> {
    at: String,
    sample: Sample<'a>,
}

enum Sample<'a> {
    Figure(Repeats<'a>, &'a Figure),
    /// The share lost from the first to the second.
    Lost(Vec<f64>, Vec<f64>),
    /// The second to the first.
    Rise(Vec<f64>, Vec<f64>),
    Spread(Vec<f64>),
}

impl Sample<'_> {
    fn interval(&self, confidence: f64) -> Option<Interval> {
        match self {
            Self::Figure(repeats, figure) => wave::interval(repeats, figure, confidence),
            Self::Rise(from, to) => Interval::of_separate_ratio(to, from, confidence),
            Self::Spread(values) => Interval::of_spread(values, confidence),
            Self::Lost(from, to) => {
                let ratio = Interval::of_separate_ratio(to, from, confidence)?;
                Some(Interval {
                    mean: 1.0 - ratio.mean,
                    ends: ratio.ends.map(|(low, high)| (1.0 - high, 1.0 - low)),
                    ..ratio
                })
            }
        }
    }
}

fn figure_of<'a>(
    shown: &'a Shown<'a>,
    claim: &Claim,
    block: &'a Block,
    figure: &'a Figure,
) -> Found {
    let points = shown.points(&claim.block, &claim.fits);
    let has_value = |point: &&Point<'_>| {
        let repeats = shown.repeats(point);
        wave::interval(&repeats, figure, 0.5).is_some()
    };
    let measured: Vec<&Point<'_>> = points.iter().filter(has_value).collect();
    let candidates = match claim.take {
        Take::Spread => measured
            .iter()
            .map(|point| Candidate {
                at: label(block, point, None),
                sample: Sample::Spread(values(shown, point, figure)),
            })
            .collect(),
        take if take.is_along() => along(shown, claim, block, figure, &measured),
        _ => measured
            .iter()
            .map(|point| Candidate {
                at: label(block, point, None),
                sample: Sample::Figure(shown.repeats(point), figure),
            })
            .collect(),
    };
    let confidence = shown.campaign.stop_of(block).confidence;
    let found = extreme(claim, &candidates, confidence);
    Found {
        interval: found.map(|(_, interval)| interval),
        at: found.map_or_else(String::new, |(candidate, _)| candidate.at.clone()),
        points: points.len(),
        measured: measured.len(),
    }
}

/// The candidate that the claim is about. One that is chosen among n because it is the largest gets
/// an interval at 1 - (1 - confidence)/n (Bonferroni). Where every point must hold, the worst does
/// at the plain confidence: that all do is said only if all do.
fn extreme<'a>(
    claim: &Claim,
    candidates: &'a [Candidate<'a>],
    confidence: f64,
) -> Option<(&'a Candidate<'a>, Interval)> {
    let chosen_by = |mean: f64| match (claim.take, claim.side()) {
        (Take::Min, _) | (Take::Every, Some(Side::Above | Side::NotBelow)) => -mean,
        (Take::Every, Some(Side::Same)) => (mean - claim.none()).abs(),
        _ => mean,
    };
    let best = candidates
        .iter()
        .filter_map(|candidate| Some((candidate, candidate.sample.interval(confidence)?)))
        .max_by(|(_, a), (_, b)| chosen_by(a.mean).total_cmp(&chosen_by(b.mean)))?;
    if claim.take == Take::Every {
        return Some(best);
    }
    let confidence = 1.0 - (1.0 - confidence) / candidates.len().max(1) as f64;
    Some((best.0, best.0.sample.interval(confidence)?))
}

/// Pairs of points that differ in `over` alone, the earlier value first.
fn along<'a>(
    shown: &'a Shown<'a>,
    claim: &Claim,
    block: &Block,
    figure: &Figure,
    points: &[&Point<'_>],
) -> Vec<Candidate<'a>> {
    let over = claim.over.as_deref().unwrap_or_default();
    let order: Vec<&str> = block
        .factors
        .iter()
        .filter(|(name, _)| name.get_ref() == over)
        .flat_map(|(_, values)| values.all())
        .map(|value| value.0.as_str())
        .collect();
    let place = |point: &Point<'_>| {
        order
            .iter()
            .position(|value| *value == point.value(over))
            .unwrap_or(usize::MAX)
    };
    let (first, last) = (0, order.len().saturating_sub(1));
    let same_group = |a: &Point<'_>, b: &Point<'_>| {
        let mut names = block.factors.keys().map(toml::Spanned::get_ref);
        names.all(|name| name == over || a.value(name) == b.value(name))
    };
    let mut candidates = Vec::new();
    for from in points {
        for to in points {
            let (i, j) = (place(from), place(to));
            let is_wanted = match claim.take {
                Take::Lost => i < j,
                Take::LostLast => i < j && j == last,
                _ => i == first && j == last && i < j,
            };
            if !is_wanted || !same_group(from, to) {
                continue;
            }
            let (a, b) = (values(shown, from, figure), values(shown, to, figure));
            let at = label(block, from, Some(over));
            let step = format!("{over} {} to {}", from.value(over), to.value(over));
            candidates.push(Candidate {
                at: [at, step]
                    .into_iter()
                    .filter(|part| !part.is_empty())
                    .collect::<Vec<_>>()
                    .join(", "),
                sample: if claim.take == Take::RiseEnds {
                    Sample::Rise(a, b)
                } else {
                    Sample::Lost(a, b)
                },
            });
        }
    }
    candidates
}

/// One arm's own values, a repeat each.
fn values(shown: &Shown<'_>, point: &Point<'_>, figure: &Figure) -> Vec<f64> {
    let repeats = shown.repeats(point);
    let of = |result: &&crate::store::CellResult| {
        let arm = result.arms.iter().find(|arm| arm.arm == figure.arm)?;
        measures::of(&figure.measure, arm)
    };
    repeats.values().filter_map(of).collect()
}

/// A point by those factors that vary, but for one.
pub fn label(block: &Block, point: &Point<'_>, but: Option<&str>) -> String {
    let varying = block
        .factors
        .iter()
        .filter(|(name, values)| values.all().len() > 1 && but != Some(name.get_ref().as_str()));
    let words: Vec<String> = varying
        .map(|(name, _)| format!("{} {}", name.get_ref(), point.value(name.get_ref())))
        .collect();
    words.join(", ")
}
