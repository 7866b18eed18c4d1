//! Ranks measured quantities by how they move with throughput: the root-cause analysis of the
//! dissertation's chapter 3, from many runs of one workload.
//!
//! Each trace gives a row of quantities and its throughput. Columns are standardised, because a
//! count and a time have no common unit.
//!
//! - Does the quantity move with throughput? Pearson's correlation shows a straight line,
//!   Spearman's any rise or fall. A single outlier pulls one of them; [`Cause::strength`] is the
//!   weaker one.
//! - Which quantities move together? Principal components: five quantities with large loadings on
//!   the same component are one cause, not five.
//! - Which component moves with throughput? [`Causes::component`]; the loading of a quantity on it
//!   is the third column of the ranking.
//!
//! Correlation is not causation. If something else changes both, such as the speed of the
//! processor, only a run without the suspect shows it ([`crate::foretold`], or `luc off`). With few
//! rows strong correlations occur by chance; [`Causes::chance_strength`] says how strong.

use crate::observed::{Observed, ObservedTable};
use crate::stats::{correlation, ranks, standardised};
use luc_trace::{CREATED, Sight, Span, SpanKind, Trace};
use serde::Serialize;
use std::collections::BTreeMap;
use thiserror::Error;

mod components;

pub use components::Component;

/// Fewest rows to compare: two always lie on a line.
pub const ROWS_MIN: usize = 3;

/// Smallest spread of a ranked quantity, as a share of its largest absolute value.
pub const SPREAD_SHARE_MIN: f64 = 0.01;

/// The throughput to explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    Syncs,
    Writes,
    /// Bytes written.
    Bytes,
    /// Files opened with `O_CREAT`.
    Creations,
}

impl Throughput {
    /// Returns the throughput of a trace; `None` if the trace has no length, or its tracer could
    /// not see the events.
    pub fn per_s(self, trace: &Trace, observed: &Observed) -> Option<f64> {
        let of = match self {
            Self::Syncs => None,
            Self::Writes | Self::Bytes => Some(Sight::Writes),
            Self::Creations => Some(Sight::Opens),
        };
        if of.is_some_and(|sight| observed.unseen.contains(&sight)) {
            return None;
        }
        let created = |span: &&Span| {
            span.kind == SpanKind::Open && span.result == 0 && span.flags & CREATED != 0
        };
        let amount = match self {
            Self::Syncs => observed.syncs.len() as f64,
            Self::Writes => observed.writes.len() as f64,
            Self::Bytes => observed
                .writes
                .iter()
                .fold(0.0, |sum, w| sum + w.bytes as f64),
            Self::Creations => trace.on(observed.dev).filter(created).count() as f64,
        };
        let duration_ns = observed.duration_ns();
        (duration_ns > 0).then(|| amount * 1e9 / duration_ns as f64)
    }
}

/// The measured quantities of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Quantities {
    pub throughput_per_s: f64,
    /// Values by name; a name ends in its unit.
    pub values: BTreeMap<String, f64>,
}

impl Quantities {
    /// Takes the quantities of [`ObservedTable`], with a throughput that the workload measured.
    pub fn from_observed(observed: &Observed, throughput_per_s: f64) -> Self {
        let table = observed.table();
        // The empty sum of floats is -0.
        let other_waits = observed.other_waits.values();
        let other_buffer_ns = other_waits.fold(0.0, |sum, waits| sum + waits.buffer_ns as f64);
        let seconds = (table.duration_ns as f64 / 1e9).max(1e-9);
        let values = [
            ("commits_per_s", table.commits as f64 / seconds),
            ("commit_mean_ns", table.commit.mean_ns),
            ("sync_events_per_commit", table.sync_events_per_commit),
            ("sync_mean_ns", table.sync.mean_ns),
            ("sync_delay_mean_ns", table.sync_delay_mean_ns),
            ("commits_waited_mean", table.commits_waited_mean),
            ("flush_mean_ns", table.flush_mean_ns),
            ("write_mean_ns", table.write.mean_ns),
            ("writes_delayed_share", table.writes_delayed_share),
            ("write_delay_mean_ns", table.write_delay_mean_ns),
            ("threads", table.threads as f64),
            ("threads_blocked", table.threads_blocked as f64),
            ("other_buffer_waits_ns_per_s", other_buffer_ns / seconds),
        ];
        let mut unknown = ObservedTable::unknown(&observed.unseen);
        if unknown.contains(&"write") {
            unknown.push("write_mean_ns");
        }
        if observed.unseen.contains(&Sight::WaitBuffer) {
            unknown.push("other_buffer_waits_ns_per_s");
        }
        let known = values
            .into_iter()
            .filter(|(name, _)| !unknown.contains(name));
        Self {
            throughput_per_s,
            values: known
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        }
    }
}

/// The reason why a quantity is not ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOut {
    /// It is the same in all rows.
    Constant,
    /// It varies by less than [`SPREAD_SHARE_MIN`], which explains nothing.
    Steady,
    /// Some rows lack it.
    Missing,
    /// It is infinite or not a number in some row.
    NotFinite,
}

/// The direction of throughput when the quantity grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sign {
    /// Throughput rises.
    Helps,
    /// Throughput falls.
    Hurts,
    /// The two correlations disagree, or one of them is 0.
    Unclear,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// The quantity.
    pub name: String,
    pub sign: Sign,
    /// The smaller absolute value of the two correlations, 0 to 1; 0 if unclear.
    pub strength: f64,
    /// Pearson's correlation with throughput, -1 to 1.
    pub pearson: f64,
    /// Spearman's correlation with throughput, -1 to 1.
    pub spearman: f64,
    /// Loading on [`Causes::component`], -1 to 1.
    pub loading: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Causes {
    /// The strongest first; among equals the larger loading, then by name.
    pub causes: Vec<Cause>,
    /// Quantities in the order of the components' loadings.
    pub names: Vec<String>,
    /// The components, the largest variance first.
    pub components: Vec<Component>,
    /// Index of the component whose scores correlate most with throughput.
    pub component: Option<usize>,
    /// Pearson correlation of each component with throughput, in their order.
    pub component_pearsons: Vec<f64>,
    /// With as many rows and as many random quantities, the strongest quantity reaches this in one
    /// set of 20. A weaker cause may be chance.
    pub chance_strength: f64,
    /// Quantities that are not ranked, by name.
    pub left_out: BTreeMap<String, LeftOut>,
}

/// The reason why rows cannot be ranked.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CauseError {
    #[error("{rows} traces are too few to compare; give at least {ROWS_MIN}")]
    TooFewRows { rows: usize },
    #[error(
        "the throughput is the same in all traces; vary something, for example the number of \
         threads"
    )]
    ThroughputConstant,
    /// Rows are numbered from 0.
    #[error("the throughput of trace {row} is not a finite number")]
    ThroughputNotFinite { row: usize },
}

/// Ranks the quantities by how they move with throughput.
pub fn rank(rows: &[Quantities]) -> Result<Causes, CauseError> {
    if rows.len() < ROWS_MIN {
        return Err(CauseError::TooFewRows { rows: rows.len() });
    }
    let throughput: Vec<f64> = rows.iter().map(|row| row.throughput_per_s).collect();
    if let Some(row) = throughput.iter().position(|value| !value.is_finite()) {
        return Err(CauseError::ThroughputNotFinite { row });
    }
    let target = standardised(&throughput).ok_or(CauseError::ThroughputConstant)?;

    let mut answer = Causes::default();
    let mut columns = Vec::new();
    let mut spearmans = Vec::new();
    let names: std::collections::BTreeSet<&String> =
        rows.iter().flat_map(|row| row.values.keys()).collect();
    for name in names {
        let raw: Vec<f64> = rows
            .iter()
            .filter_map(|row| row.values.get(name).copied())
            .collect();
        match column(&raw, rows.len()) {
            Ok(column) => {
                answer.names.push(name.clone());
                columns.push(column);
                spearmans.push(spearman(&raw, &throughput));
            }
            Err(reason) => {
                answer.left_out.insert(name.clone(), reason);
            }
        }
    }

    answer.components = components::components(&columns);
    let score = |component: &Component| {
        // `None` if the component has no variance.
        standardised(&component.scores).map_or(0.0, |scores| correlation(&scores, &target))
    };
    let scores: Vec<f64> = answer.components.iter().map(score).collect();
    // Among equals the first, which has the larger variance.
    answer.component = (0..scores.len())
        .rev()
        .max_by(|a, b| scores[*a].abs().total_cmp(&scores[*b].abs()));
    answer.component_pearsons = scores;
    answer.chance_strength = chance_strength(rows.len(), columns.len());
    let loadings = answer.component.map(|at| &answer.components[at].loadings);

    let causes = answer.names.iter().enumerate().map(|(at, name)| {
        let loading = loadings.map_or(0.0, |loadings| loadings[at]);
        cause(
            name,
            correlation(&columns[at], &target),
            spearmans[at],
            loading,
        )
    });
    let mut causes: Vec<Cause> = causes.collect();
    causes.sort_by(|a, b| {
        let by_loading = b.loading.abs().total_cmp(&a.loading.abs());
        b.strength.total_cmp(&a.strength).then(by_loading)
    });
    answer.causes = causes;
    Ok(answer)
}

/// Returns [`Causes::chance_strength`]. With r as the sine of an angle, the angle of `rows`
/// unrelated pairs has a density that is its cosine to the power of `rows` - 3 (Student's t for
/// pairs from normal distributions). The strongest of `quantities` stays below a limit if each of
/// them does. Quantities count as independent, and Pearson's correlation as the strength: both err
/// towards doubt.
fn chance_strength(rows: usize, quantities: usize) -> f64 {
    const STEPS: usize = 10_000;
    let step = std::f64::consts::FRAC_PI_2 / STEPS as f64;
    let power = i32::try_from(rows.saturating_sub(ROWS_MIN)).unwrap_or(i32::MAX);
    // Taken at the middle of each step.
    let density = |at: usize| ((at as f64 + 0.5) * step).cos().powi(power);
    let all: f64 = (0..STEPS).map(density).sum();
    let wanted = 0.95_f64.powf(1.0 / quantities.max(1) as f64) * all;
    let mut sum = 0.0;
    let below = (0..STEPS).take_while(|at| {
        sum += density(*at);
        sum < wanted
    });
    ((below.count() as f64 + 0.5) * step).sin().min(1.0)
}

fn column(raw: &[f64], rows: usize) -> Result<Vec<f64>, LeftOut> {
    if raw.len() < rows {
        Err(LeftOut::Missing)
    } else if raw.iter().any(|value| !value.is_finite()) {
        Err(LeftOut::NotFinite)
    } else {
        let column = standardised(raw).ok_or(LeftOut::Constant)?;
        let smallest = raw.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = raw.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let scale = smallest.abs().max(largest.abs());
        // Divided first, because the difference of two finite numbers may be infinite.
        if largest / scale - smallest / scale < SPREAD_SHARE_MIN {
            return Err(LeftOut::Steady);
        }
        Ok(column)
    }
}

fn spearman(a: &[f64], b: &[f64]) -> f64 {
    match (standardised(&ranks(a)), standardised(&ranks(b))) {
        (Some(a), Some(b)) => correlation(&a, &b),
        _ => 0.0,
    }
}

fn cause(name: &str, pearson: f64, spearman: f64, loading: f64) -> Cause {
    let sign = if pearson > 0.0 && spearman > 0.0 {
        Sign::Helps
    } else if pearson < 0.0 && spearman < 0.0 {
        Sign::Hurts
    } else {
        Sign::Unclear
    };
    let strength = match sign {
        Sign::Unclear => 0.0,
        Sign::Helps | Sign::Hurts => pearson.abs().min(spearman.abs()),
    };
    Cause {
        name: name.to_owned(),
        sign,
        strength,
        pearson,
        spearman,
        loading,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_quantities_are_left_out() {
        let of = |raw: &[f64]| column(raw, raw.len()).err();
        assert_eq!(of(&[467.0, 468.0, 469.0]), Some(LeftOut::Steady));
        assert_eq!(of(&[467.0, 468.0, 480.0]), None);
        assert_eq!(of(&[-100.0, -100.5, -99.9]), Some(LeftOut::Steady));
        assert_eq!(of(&[0.0, 0.0, 1e-9]), None);
        assert_eq!(of(&[7.0, 7.0, 7.0]), Some(LeftOut::Constant));
    }

    /// Compares with tables of critical values of Pearson's correlation, two-sided.
    #[test]
    fn chance_agrees_with_tables() {
        for (rows, wanted) in [(3, 0.997), (4, 0.950), (5, 0.878), (10, 0.632), (30, 0.361)] {
            let found = chance_strength(rows, 1);
            assert!((found - wanted).abs() < 0.001, "{rows}: {found}");
        }
        // 5% for the strongest of ten is 0.512% for each; a table has 0.765 for 1% and 0.872 for
        // 0.1%.
        let found = chance_strength(10, 10);
        assert!((0.765..0.872).contains(&found), "{found}");
        assert!(chance_strength(3, 12) <= 1.0);
        assert!(chance_strength(usize::MAX, 1) < 0.01);
    }
}
