//! The ranking of causes, on tables whose causes are known.

mod common;

use common::{DEV, Little, US};
use luc_model::causes::{LeftOut, Sign};
use luc_model::{CauseError, Observed, Quantities, rank};
use proptest::prelude::*;

fn row(throughput_per_s: f64, values: &[(&str, f64)]) -> Quantities {
    Quantities {
        throughput_per_s,
        values: values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
    }
}

#[test]
fn a_known_cause_comes_first() {
    // commits rises as throughput falls; so does waits, except in one odd run; noise goes up and
    // down.
    let rows = [
        (100.0, 1.0, 1.0, 5.0),
        (90.0, 2.0, 2.0, -5.0),
        (80.0, 3.0, 30.0, 5.0),
        (70.0, 4.0, 4.0, -5.0),
        (60.0, 5.0, 5.0, 5.0),
    ]
    .map(|(per_s, commits, waits, noise)| {
        let values = [
            ("commits", commits),
            ("waits", waits),
            ("noise", noise),
            ("size", 7.0),
        ];
        row(per_s, &values)
    });
    let got = rank(&rows).unwrap();
    let names: Vec<&str> = got.causes.iter().map(|cause| cause.name.as_str()).collect();
    assert_eq!(names, ["commits", "waits", "noise"]);
    let first = &got.causes[0];
    assert_eq!(first.sign, Sign::Hurts);
    assert!((first.pearson + 1.0).abs() < 1e-9 && (first.spearman + 1.0).abs() < 1e-9);
    assert!((first.strength - 1.0).abs() < 1e-9 && first.loading.abs() > 0.5);
    // Ranks 1 2 5 3 4 against 5 4 3 2 1: 1 - 6 * 34 / 120 = -0.7. Pearson's shows only the odd run.
    let second = &got.causes[1];
    assert!((second.spearman + 0.7).abs() < 1e-9, "{second:?}");
    assert!(second.strength < 0.2);
    assert_eq!(got.left_out["size"], LeftOut::Constant);
    assert_eq!(got.names, ["commits", "noise", "waits"]);
    let shares: f64 = got.components.iter().map(|c| c.variance_share).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    assert!(got.component_pearsons[got.component.unwrap()].abs() > 0.8);
}

#[test]
fn quantities_are_left_out_for_a_reason() {
    let rows = [
        row(1.0, &[("a", 1.0), ("b", 2.0), ("c", f64::NAN)]),
        row(2.0, &[("a", 2.0), ("c", 1.0)]),
        row(3.0, &[("a", 3.0), ("b", 2.0), ("c", 1.0)]),
    ];
    let got = rank(&rows).unwrap();
    assert_eq!(got.left_out["b"], LeftOut::Missing);
    assert_eq!(got.left_out["c"], LeftOut::NotFinite);
    assert_eq!((got.causes.len(), got.causes[0].sign), (1, Sign::Helps));
    // An empty ranking is a valid answer.
    let bare = [row(1.0, &[]), row(2.0, &[]), row(3.0, &[])];
    let bare = rank(&bare).unwrap();
    assert!(bare.causes.is_empty() && bare.component.is_none());
}

#[test]
fn rows_that_cannot_be_ranked() {
    assert_eq!(rank(&[]), Err(CauseError::TooFewRows { rows: 0 }));
    let two = [row(1.0, &[("a", 1.0)]), row(2.0, &[("a", 2.0)])];
    let error = rank(&two).unwrap_err();
    assert_eq!(
        error.to_string(),
        "2 traces are too few to compare; give at least 3"
    );
    let same = vec![row(5.0, &[("a", 1.0)]); 4];
    assert_eq!(rank(&same), Err(CauseError::ThroughputConstant));
    let mut odd = vec![row(5.0, &[]), row(6.0, &[]), row(7.0, &[])];
    odd[1].throughput_per_s = f64::INFINITY;
    assert_eq!(rank(&odd), Err(CauseError::ThroughputNotFinite { row: 1 }));
}

/// In each run the threads come back over a longer time than in the one before: fewer of them share
/// a commit, more wait for two, and fewer files are created.
#[test]
fn traces_name_the_sync_delay() {
    let rows: Vec<Quantities> = (0..6)
        .map(|step| {
            let little = Little {
                think_ns: 0,
                jitter_ns: (10 + step * 300) * US,
                lag_ns: 400 * US,
                rounds: 200,
                seed: step,
                ..Little::default()
            };
            let trace = little.trace();
            let seen = Observed::from_trace(&trace, DEV);
            let table = seen.table();
            let created_per_s = table.sync_events as f64 * 1e9 / table.duration_ns as f64;
            Quantities::from_observed(&seen, created_per_s)
        })
        .collect();
    let got = rank(&rows).unwrap();
    let find = |name: &str| got.causes.iter().find(|cause| cause.name == name).unwrap();
    assert_eq!(find("sync_events_per_commit").sign, Sign::Helps);
    let waited = find("commits_waited_mean");
    assert_eq!(waited.sign, Sign::Hurts);
    assert!(waited.strength > 0.8, "{waited:?}");
    // No thread wrote: those columns are constant.
    assert_eq!(got.left_out["threads_blocked"], LeftOut::Constant);
}

proptest! {
    #[test]
    fn any_rows(
        rows in prop::collection::vec(
            (any::<f64>(), prop::collection::btree_map("[a-d]", any::<f64>(), 0..4)),
            0..8,
        ),
    ) {
        let rows: Vec<Quantities> = rows
            .into_iter()
            .map(|(throughput_per_s, values)| Quantities { throughput_per_s, values })
            .collect();
        if let Ok(got) = rank(&rows) {
            for cause in &got.causes {
                prop_assert!((0.0..=1.0).contains(&cause.strength), "{:?}", cause);
                prop_assert!(cause.loading.abs() <= 1.0);
            }
            let known = got.names.len() + got.left_out.len();
            let all: std::collections::BTreeSet<_> =
                rows.iter().flat_map(|row| row.values.keys()).collect();
            prop_assert_eq!(known, all.len());
        }
    }
}
