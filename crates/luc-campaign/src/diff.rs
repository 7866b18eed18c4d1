//! Compares two sets of results, figure by figure of the tables.
//!
//! Two intervals may overlap although their means differ significantly, so Welch's test compares
//! the means, those of ratios as logarithms. Of a hundred figures that did not change, five would
//! look changed at 95%: Holm's method keeps the confidence for all figures together.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::campaigns;
use crate::error::{CampaignError, Result};
use crate::file::{Campaign, Figure};
use crate::show::{Number, Shown, shown};
use crate::store::{CAMPAIGN_FILE, CellResult, Results, Store};
use luc_stats::{Interval, believed, chance};

/// Results with the campaign that they belong to.
pub struct DiffSide {
    campaign: Campaign,
    results: Results,
}

impl DiffSide {
    /// Reads all results in a folder; for each cell, the result measured last counts.
    ///
    /// # Errors
    /// It holds no results, or not their campaign.
    pub fn read(store: &Store) -> Result<Self> {
        let path = store.dir().join(CAMPAIGN_FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => CampaignError::BadFolder {
                path: store.dir().to_owned(),
                why: format!(
                    "it holds no {CAMPAIGN_FILE}; `luc-lab campaign report CAMPAIGN --out {}` \
                     writes it",
                    store.dir().display()
                ),
            },
            _ => CampaignError::file("read", &path)(error),
        })?;
        Ok(Self {
            campaign: campaigns::parse(&path.display().to_string(), &text)?,
            results: store.read()?,
        })
    }

    /// The folder before its last versions were measured: for each cell, the result before the
    /// last.
    #[must_use]
    pub fn before(&self) -> Self {
        let newest: BTreeSet<*const CellResult> = self
            .results
            .last()
            .into_values()
            .map(std::ptr::from_ref)
            .collect();
        let mut results = self.results.clone();
        results.results = self
            .results
            .results
            .iter()
            .filter(|result| !newest.contains(&std::ptr::from_ref(*result)))
            .cloned()
            .collect();
        Self {
            campaign: self.campaign.clone(),
            results,
        }
    }

    /// All places of the tables in their order, and each known figure by its place.
    fn figures(&self) -> (Vec<At>, BTreeMap<At, (Figure, Interval)>) {
        let shown = Shown::new(&self.campaign, &self.results, None);
        let (mut order, mut known) = (Vec::new(), BTreeMap::new());
        let mut seen = BTreeSet::new();
        for table in &self.campaign.tables {
            for line in shown.lines(table) {
                for (column, figure, found) in line.figures {
                    let at = At {
                        table: table.title.clone(),
                        row: line.factors.clone(),
                        heading: column.heading.clone(),
                        arm: figure.arm.clone(),
                        measure: figure.measure.clone(),
                    };
                    // The table does not tell these points apart; it, too, shows the first.
                    if !seen.insert(at.clone()) {
                        continue;
                    }
                    if let Some(interval) = found {
                        known.insert(at.clone(), (figure, interval));
                    }
                    order.push(at);
                }
            }
        }
        (order, known)
    }
}

/// The place of a figure in the tables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct At {
    pub table: String,
    /// Factors and their values.
    pub row: Vec<(String, String)>,
    pub heading: String,
    pub arm: String,
    pub measure: String,
}

/// How a figure of one side compares with that of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureChange {
    Changed,
    /// The spread of the repeats explains the difference.
    Same,
    /// A side has a single repeat, which has no spread.
    Unsure,
    OnlyInA,
    OnlyInB,
}

/// A figure of one side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SideValue {
    #[serde(flatten)]
    pub number: Number,
    /// The value as the user sees it.
    pub text: String,
}

/// A figure that at least one side has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedFigure {
    #[serde(flatten)]
    pub at: At,
    pub verdict: FigureChange,
    pub a: Option<SideValue>,
    pub b: Option<SideValue>,
    /// Mean of B divided by that of A.
    pub ratio: Option<f64>,
    /// Probability of a difference this large if nothing changed (p-value).
    pub chance: Option<f64>,
}

/// The comparison of two sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// Confidence in all verdicts together.
    pub confidence: f64,
    pub figures: Vec<ComparedFigure>,
}

impl Diff {
    pub fn count(&self, verdict: FigureChange) -> usize {
        let is = |figure: &&ComparedFigure| figure.verdict == verdict;
        self.figures.iter().filter(is).count()
    }

    /// Compares all figures of the tables, in the order of B's tables.
    pub fn compare(a: &DiffSide, b: &DiffSide) -> Self {
        let (order_a, known_a) = a.figures();
        let (mut order, known_b) = b.figures();
        order.extend(order_a.into_iter().filter(|at| !known_b.contains_key(at)));
        let mut seen = BTreeSet::new();
        order.retain(|at| seen.insert(at.clone()));
        let confidence = b.campaign.stop.confidence;
        let mut figures: Vec<ComparedFigure> = order
            .into_iter()
            .filter_map(|at| compared(known_a.get(&at), known_b.get(&at), at))
            .collect();
        let told: Vec<usize> = (0..figures.len())
            .filter(|index| figures[*index].chance.is_some())
            .collect();
        let chances: Vec<f64> = told
            .iter()
            .filter_map(|index| figures[*index].chance)
            .collect();
        for (index, changed) in told.iter().zip(believed(&chances, 1.0 - confidence)) {
            if changed {
                figures[*index].verdict = FigureChange::Changed;
            }
        }
        Self {
            confidence,
            figures,
        }
    }
}

fn compared(
    a: Option<&(Figure, Interval)>,
    b: Option<&(Figure, Interval)>,
    at: At,
) -> Option<ComparedFigure> {
    let value = |side: Option<&(Figure, Interval)>| {
        side.map(|(figure, interval)| SideValue {
            number: Number::from(*interval),
            text: shown(figure, interval),
        })
    };
    let (ratio, chance, verdict) = match (a, b) {
        (Some((figure, first)), Some((_, second))) => {
            let is_ratio = figure.is_ratio();
            let of = |interval: &Interval| {
                let mean = if is_ratio {
                    interval.mean.ln()
                } else {
                    interval.mean
                };
                // A figure that relates two points has a standard error instead of a deviation.
                let n = interval.repeats as f64;
                let repeats = if figure.relative_to.is_empty() {
                    1.0
                } else {
                    n
                };
                let sd = interval.sd.unwrap_or(0.0) * repeats.sqrt();
                (mean, sd, interval.repeats)
            };
            let chance = chance(of(first), of(second));
            let verdict = if chance.is_some() {
                FigureChange::Same
            } else {
                FigureChange::Unsure
            };
            let ratio = (first.mean != 0.0).then(|| second.mean / first.mean);
            (ratio, chance, verdict)
        }
        (Some(_), None) => (None, None, FigureChange::OnlyInA),
        (None, Some(_)) => (None, None, FigureChange::OnlyInB),
        (None, None) => return None,
    };
    Some(ComparedFigure {
        a: value(a),
        b: value(b),
        at,
        verdict,
        ratio,
        chance,
    })
}
