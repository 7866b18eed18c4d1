//! A campaign from its file to its report, with a back-end that answers by a formula.

mod common;

use std::fs;

use common::{Formula, setup};
use luc_campaign::backends::Backend;
use luc_campaign::measure::Board;
use luc_campaign::show::{Shown, Tally};
use luc_campaign::{Campaign, CampaignError, Cell, Part, Store, campaigns, places, run, sheets};
use luc_report::{Quiet, text};

const SMALL: &str = include_str!("data/small.toml");

fn small() -> Campaign {
    campaigns::parse("small.toml", SMALL).expect("it is sound")
}

fn store() -> (Store, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("temporary directory");
    (Store::open(dir.path()).expect("a folder"), dir)
}

fn run(formula: &Formula, store: &Store) -> run::Ended {
    run::run(&small(), store, formula, &setup(), false, &Quiet).expect("measured")
}

#[test]
fn equal_repeats_end_at_the_fewest() {
    let (store, _dir) = store();
    let formula = Formula::default();
    let ended = run(&formula, &store);
    assert_eq!(
        (ended.measured, ended.wave.points, ended.wave.narrow),
        (8, 4, 4)
    );
    // Nothing is measured twice.
    assert_eq!(run(&formula, &store).measured, 0);
    assert_eq!(formula.count(), 8);
}

#[test]
fn unequal_repeats_go_on_until_the_most() {
    let (store, _dir) = store();
    let formula = Formula {
        noise: 0.3,
        ..Formula::default()
    };
    let ended = run(&formula, &store);
    assert_eq!(
        (ended.measured, ended.wave.narrow, ended.wave.wide),
        (24, 0, 4)
    );
}

#[test]
fn results_beyond_the_most_repeats_count() {
    let (store, _dir) = store();
    let formula = Formula {
        noise: 0.3,
        ..Formula::default()
    };
    assert_eq!(run(&formula, &store).measured, 24);
    let fewer = SMALL.replace("repeats_max = 6", "repeats_max = 3");
    let fewer = campaigns::parse("small.toml", &fewer).expect("it is sound");
    let ended = run::run(&fewer, &store, &formula, &setup(), false, &Quiet).expect("measured");
    assert_eq!(
        (ended.measured, ended.wave.done, ended.wave.wide),
        (0, 24, 4)
    );
    let results = store.read().expect("readable");
    let shown = Shown::new(&fewer, &results, None);
    let repeats = shown.all().iter().map(|point| point.repeats.len());
    assert_eq!(repeats.collect::<Vec<_>>(), [6; 4]);
}

#[test]
fn the_order_is_drawn_and_the_same_again() {
    let orders: Vec<Vec<String>> = (0..2)
        .map(|_| {
            let (store, _dir) = store();
            let formula = Formula::default();
            run(&formula, &store);
            formula.asked.into_inner()
        })
        .collect();
    assert_eq!(orders[0], orders[1]);
    let mut sorted = orders[0].clone();
    sorted.sort();
    assert_ne!(orders[0], sorted);
}

#[test]
fn an_interrupted_campaign_goes_on() {
    let (store, _dir) = store();
    let first = Formula {
        stop_after: Some(3),
        ..Formula::default()
    };
    let error =
        run::run(&small(), &store, &first, &setup(), false, &Quiet).expect_err("interrupted");
    assert!(matches!(error, CampaignError::Interrupted), "{error}");
    let rest = Formula::default();
    assert_eq!(run(&rest, &store).measured, 5);
    let mut all = [first.asked.into_inner(), rest.asked.into_inner()].concat();
    all.sort();
    let before = all.len();
    all.dedup();
    assert_eq!((all.len(), before), (8, 8));
}

#[test]
fn a_damaged_result_is_measured_again() {
    let (store, dir) = store();
    run(&Formula::default(), &store);
    let mut files = fs::read_dir(dir.path().join("cells")).expect("cells");
    let file = files.next().expect("a cell").expect("a cell").path();
    let whole = fs::read(&file).expect("readable");
    fs::write(&file, &whole[..whole.len() / 2]).expect("writable");
    assert_eq!(store.read().expect("readable").damaged, [file]);
    assert_eq!(run(&Formula::default(), &store).measured, 1);
    assert!(store.read().expect("readable").damaged.is_empty());
}

#[test]
fn a_failed_cell_stops_no_other_and_is_tried_again_if_asked_for() {
    let (store, dir) = store();
    let formula = Formula {
        fails: Some("1ms:64"),
        ..Formula::default()
    };
    let ended = run(&formula, &store);
    assert_eq!(
        (ended.measured, ended.wave.failed, ended.wave.narrow),
        (4, 4, 2)
    );
    let logs = fs::read_dir(dir.path().join("failed")).expect("failed");
    assert_eq!(logs.count(), 8, "four lines and four logs");
    assert_eq!(run(&Formula::default(), &store).measured, 0, "left at that");
    let again = run::run(
        &small(),
        &store,
        &Formula::default(),
        &setup(),
        true,
        &Quiet,
    );
    assert_eq!(again.expect("measured").measured, 4);
    assert!(store.read().expect("readable").failed.is_empty());
    // A failure beside a result does not count.
    let (result, setup) = (&store.read().expect("readable").results[0], setup());
    let kept = store.keep_failure(&result.cell, &result.versions, "late", None);
    kept.expect("writable");
    let results = store.read().expect("readable");
    let state = run::state(&small(), &results, &setup, |_| true).expect("a state");
    assert_eq!((state.failed, state.done, state.cells.len()), (0, 8, 0));
}

/// Makes all results those of other versions.
fn change_versions(store: &Store) {
    for file in fs::read_dir(store.dir().join("cells")).expect("cells") {
        let path = file.expect("a cell").path();
        let text = fs::read_to_string(&path).expect("readable");
        fs::write(&path, text.replace("\"module\":\"", "\"module\":\"other")).expect("writable");
    }
}

/// Somebody edits the sources during a run.
struct Edited(Formula);

impl Backend for Edited {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn measure(
        &self,
        cells: &[Cell],
        store: &Store,
        setup: &places::Setup,
        board: &mut Board<'_>,
    ) -> Result<(), CampaignError> {
        self.0.measure(cells, store, setup, board)?;
        change_versions(store);
        Ok(())
    }
}

#[test]
fn sources_that_change_during_a_run_end_it() {
    let (store, _dir) = store();
    let edited = Edited(Formula::default());
    let error = run::run(&small(), &store, &edited, &setup(), false, &Quiet).unwrap_err();
    let line = error.to_string();
    assert!(
        line.contains("sources changed while it was measured"),
        "{line}"
    );
}

#[test]
fn results_of_other_versions_do_not_count() {
    let (store, _dir) = store();
    run(&Formula::default(), &store);
    change_versions(&store);
    let state = |any_version| {
        let setup = places::Setup {
            any_version,
            ..setup()
        };
        let results = store.read().expect("readable");
        run::state(&small(), &results, &setup, |_| true).expect("a state")
    };
    assert_eq!((state(false).done, state(false).cells.len()), (0, 8));
    // Unless any version counts.
    assert_eq!((state(true).done, state(true).cells.len()), (8, 0));
    assert_eq!(run(&Formula::default(), &store).measured, 8);
}

#[test]
fn two_runs_at_once_are_one_too_many() {
    let (store, _dir) = store();
    let _lock = store.lock().expect("free");
    let error = run::run(
        &small(),
        &store,
        &Formula::default(),
        &setup(),
        false,
        &Quiet,
    );
    assert!(matches!(error, Err(CampaignError::Busy { .. })));
}

#[test]
fn the_report_is_made_of_results_alone() {
    let (store, _dir) = store();
    let formula = Formula {
        noise: 0.01,
        ..Formula::default()
    };
    run(&formula, &store);
    let (campaign, results) = (small(), store.read().expect("readable"));
    let shown = Shown::new(&campaign, &results, None);
    let (document, tally) = shown.document();
    assert_eq!(
        tally,
        Tally {
            reached: 4,
            missed: 0,
            open: 0
        }
    );
    insta::assert_snapshot!(text::render(&document, false));
    insta::assert_snapshot!("csv", sheets::from_tables(&shown)[0].csv());
}

#[test]
fn bounds_are_missed_or_open() {
    for (gain, noise, missed, open, told) in [
        (
            1.2,
            0.0,
            2,
            0,
            "2 of 4 figures reached their bounds; missed: 2.",
        ),
        (1.4, 0.3, 0, 2, "open because the intervals are wide: 2."),
    ] {
        let (store, _dir) = store();
        let formula = Formula {
            gain,
            noise,
            ..Formula::default()
        };
        run(&formula, &store);
        let (campaign, results) = (small(), store.read().expect("readable"));
        let (document, tally) = Shown::new(&campaign, &results, None).document();
        let reached = 2;
        assert_eq!(
            tally,
            Tally {
                reached,
                missed,
                open
            }
        );
        assert!(document.verdict.contains(told), "{}", document.verdict);
    }
}

#[test]
fn keys_are_read_back() {
    let campaign = small();
    for point in luc_campaign::points::all(&campaign) {
        let cell = point.cell(3);
        assert_eq!(luc_campaign::cell_of_key(&cell.key()).expect("a key"), cell);
        assert_ne!(point.cell(4).key(), cell.key());
    }
    for key in ["", "{}", "[1]", r#"{"place":"moon"}"#] {
        let error = luc_campaign::cell_of_key(key)
            .expect_err("no key")
            .to_string();
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_part_has_other_values() {
    let part = Part {
        blocks: vec!["loops".into()],
        values: vec!["threads=2,3".into(), "disk=20us:64".into()],
        repeats: Some(7),
        ..Part::default()
    };
    let campaign = part.narrow(small()).expect("a part");
    let points = luc_campaign::points::all(&campaign);
    let threads: Vec<&str> = points.iter().map(|point| point.value("threads")).collect();
    assert_eq!(threads, ["2", "3"]);
    assert_eq!(campaign.stop.repeats_max, 7);
    let part = |blocks: &[&str], values: &[&str]| Part {
        blocks: blocks.iter().map(|&name| name.into()).collect(),
        values: values.iter().map(|&text| text.into()).collect(),
        ..Part::default()
    };
    for (part, why) in [
        (part(&["loop"], &[]), "no block loop; did you mean loops?"),
        (
            part(&[], &["thread=1"]),
            "no factor thread; did you mean threads?",
        ),
        (part(&[], &["threads"]), "FACTOR=VALUE"),
        (part(&[], &["disk=9bananas"]), "disk"),
    ] {
        let error = part.narrow(small()).expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    }
}
