//! Campaigns too large to measure in full: draws of points, halves, and the judgement of many
//! points.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Formula, setup};
use luc_campaign::cell::Cell;
use luc_campaign::file::Half;
use luc_campaign::points::{self, Point};
use luc_campaign::show::Shown;
use luc_campaign::{Campaign, Part, Store, campaigns, run, sheets};
use luc_report::{Quiet, text};

const LARGE: &str = r#"
title = "Large"

[stop]
repeats_min = 2
repeats_max = 2

[[block]]
name = "paper"
place = "sim"
draw = 40
bench = "{run} {dir}"
arms = ["stock", "luc", "age", "copyout"]
set = [{ run = "create-fsync --threads {threads} --seconds {seconds}" }, { seconds = 2 }]
[block.factors]
disk = ["4ms:1", "1ms:64", "hdd-7200"]
threads = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
vcpus = [1, 2, 4, 8]

[[block]]
name = "machine"
place = "lab"
by_name = true
bench = "{run} {dir}"
arms = ["stock", "luc"]
set = [{ mkfs = "-J size={journal_mib}" }]
set_as = "paper"
factors = { kernel = "6.12", disk = "4ms:1", threads = 4, journal_mib = 16 }

[arms.age]
help = "jbd2's own rule"
on = "--policy age"

[[table]]
title = "Worst"
block = "paper"
rows = ["disk", "vcpus", "threads"]
worst = 3
columns = [{ heading = "to best", arm = "luc", to_best_of = ["stock", "age"], measure = "rate", at_least = 0.97 }]
goal = [{ heading = "to best", where = { threads = 1 }, at_least = 0.5 }]

[[table]]
title = "All"
block = "paper"
rows = ["vcpus"]
columns = [{ heading = "", arm = "luc", to = "stock", measure = "rate", points = ["count", "min", "p25", "mean", "max"] }]
goal = [{ heading = "min", at_least = 0.95 }]
"#;

fn large(part: &Part) -> Campaign {
    part.narrow(campaigns::parse("large.toml", LARGE).expect("it is sound"))
        .expect("a part")
}

fn cells(campaign: &Campaign) -> BTreeSet<Cell> {
    let of = |point: &Point<'_>| [point.cell(1), point.cell(2)];
    points::all(campaign).iter().flat_map(of).collect()
}

fn draw(draw: u32) -> Part {
    Part {
        draw: Some(draw),
        ..Part::default()
    }
}

#[test]
fn a_draw_is_of_the_seed_and_the_points_alone() {
    let some = cells(&large(&Part::default()));
    assert_eq!(some.len(), 2 * 40);
    let fewer = cells(&large(&draw(10)));
    assert!(fewer.len() == 2 * 10 && fewer.is_subset(&some));
    let all = cells(&large(&draw(u32::MAX)));
    assert!(all.len() == 2 * 120 && some.is_subset(&all));
    // Neither the order of values nor additional values change a point's lot.
    let turned = LARGE.replace("[1, 2, 4, 8]", "[16, 8, 4, 2, 1]");
    let turned = campaigns::parse("large.toml", &turned).expect("it is sound");
    let turned = cells(&draw(u32::MAX).narrow(turned).expect("a part"));
    assert!(turned.len() == 2 * 150 && all.is_subset(&turned));
    // A point keeps its lot if a factor is narrowed to one value.
    let part = Part {
        values: vec!["vcpus=4".to_owned()],
        ..draw(u32::MAX)
    };
    assert!(cells(&large(&part)).is_subset(&all));
    let other = Part {
        seed: Some(2),
        ..Part::default()
    };
    assert!(cells(&large(&other)).is_disjoint(&all), "other seeds");
}

#[test]
fn seeds_are_wide_and_their_own() {
    let all = cells(&large(&draw(u32::MAX)));
    let seeds: BTreeSet<u64> = all.iter().map(|cell| cell.seed).collect();
    assert_eq!(seeds.len(), all.len());
    let wide = seeds.iter().filter(|seed| **seed > 1 << 40).count();
    assert!(wide > 230 && seeds.last() < Some(&(1 << 48)), "{wide}");
    // In a block that does not draw, seeds are counted up, as in existing results.
    let lab = Part {
        blocks: vec!["machine".to_owned()],
        ..Part::default()
    };
    let lab = cells(&large(&lab));
    assert_eq!(lab.iter().map(|cell| cell.seed).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn halves_share_neither_points_nor_seeds() {
    let half = |half| {
        cells(&large(&Part {
            half: Some(half),
            ..Part::default()
        }))
    };
    let (even, odd) = (half(Half::Even), half(Half::Odd));
    assert!(even.iter().all(|cell| cell.seed % 2 == 0));
    assert!(odd.iter().all(|cell| cell.seed % 2 == 1));
    let both: BTreeSet<Cell> = even.union(&odd).cloned().collect();
    assert_eq!(both, cells(&large(&Part::default())));
    assert!(
        even.len() > 20 && odd.len() > 20,
        "{} {}",
        even.len(),
        odd.len()
    );
}

#[test]
fn a_block_by_name_is_left_out_and_has_the_values_of_another() {
    let names = |part: &Part| -> Vec<String> {
        let blocks = large(part).blocks.into_iter();
        blocks.map(|block| block.name.into_inner()).collect()
    };
    assert_eq!(names(&Part::default()), ["paper"]);
    let lab = Part {
        blocks: vec!["machine".to_owned()],
        ..Part::default()
    };
    assert_eq!(names(&lab), ["machine"]);
    let lab = large(&lab);
    let cell = points::all(&lab)[0].cell(1);
    assert_eq!(cell.bench, "create-fsync --threads 4 --seconds 2 {dir}");
    assert_eq!(cell.machine["mkfs"], "-J size=16");
    let why = Part {
        blocks: vec!["machine".to_owned()],
        ..draw(3)
    }
    .narrow(campaigns::parse("large.toml", LARGE).expect("it is sound"))
    .expect_err("it does not draw")
    .to_string();
    assert!(why.contains("no block draws"), "{why}");
}

/// The rate of an arm; each arm loses somewhere else.
fn rate(cell: &Cell, arm: &str) -> f64 {
    let threads: f64 = cell.bench.split(' ').nth(2).unwrap().parse().unwrap();
    let vcpus: f64 = cell.machine["vcpus"].parse().unwrap();
    // On one disk stock is best in one repeat, but age is best on average.
    let noise = if cell.repeat == 1 { 1.02 } else { 0.98 };
    match arm {
        "luc" => 1000.0 + vcpus - threads * 10.0,
        "age" if cell.machine["disk"] == "hdd-7200" => 1001.0,
        "age" => 1.0,
        _ => 1000.0 * noise,
    }
}

fn measured(formula: &Formula, campaign: &Campaign) -> (Store, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let store = Store::open(dir.path()).expect("a folder");
    run::run(campaign, &store, formula, &setup(), false, &Quiet).expect("measured");
    (store, dir)
}

#[test]
fn many_points_are_judged_and_the_worst_are_shown() {
    let campaign = large(&draw(u32::MAX));
    let formula = Formula {
        rate: Some(rate),
        ..Formula::default()
    };
    let (store, _dir) = measured(&formula, &campaign);
    let results = store.read().expect("readable");
    let shown = Shown::new(&campaign, &results, None);
    let (document, tally) = shown.document();
    // Where age is best, nothing varies: threads 4 to 10 certainly miss their bound. Elsewhere
    // stock is best, and its noise leaves the same points open.
    assert_eq!(tally.reached + tally.missed + tally.open, 120 + 4);
    assert_eq!((tally.reached, tally.missed), (36, 28), "{tally:?}");
    let text = text::render(&document, false);
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    insta::assert_snapshot!(text);
    insta::assert_snapshot!("points", sheets::from_tables(&shown)[1].csv());
}

#[test]
fn a_percentile_counts_points() {
    let campaign = large(&draw(u32::MAX));
    let formula = Formula {
        rate: Some(|cell, arm| match arm {
            "stock" => 1.0,
            _ => cell.bench.split(' ').nth(2).unwrap().parse().unwrap(),
        }),
        ..Formula::default()
    };
    let (store, _dir) = measured(&formula, &campaign);
    let results = store.read().expect("readable");
    let shown = Shown::new(&campaign, &results, None);
    let sheet = &sheets::from_tables(&shown)[1];
    // Three disks, one to ten threads: a quarter of the 30 points is at or below 3.
    let row = sheet.rows.iter().find(|row| row[0] == "8").expect("a row");
    let at = |heading: &str| {
        let at = sheet.headings.iter().position(|it| it == heading);
        row[at.expect(heading)].parse::<f64>().expect("a number")
    };
    for (heading, expected) in [("points", 30.0), ("min", 1.0), ("p25", 3.0), ("max", 10.0)] {
        assert!((at(heading) - expected).abs() < 1e-9, "{heading}");
    }
    let log10: f64 = (1..=10).map(|threads| f64::from(threads).ln()).sum();
    assert!((at("mean") - (log10 / 10.0).exp()).abs() < 1e-9);
}

/// LUC makes 400 with any number of processors, stock 100 for each of up to 8.
#[test]
fn a_figure_is_relative_to_the_best_point_of_another_arm() {
    let text = LARGE.replace(
        "arm = \"luc\", to = \"stock\", measure = \"rate\", points",
        "arm = \"luc\", measure = \"rate\", relative_to = { vcpus = \"best\" }, \
         relative_to_arm = \"stock\", points",
    );
    assert_ne!(text, LARGE);
    let campaign = campaigns::parse("large.toml", &text).expect("it is sound");
    let campaign = draw(u32::MAX).narrow(campaign).expect("a part");
    let formula = Formula {
        rate: Some(|cell, arm| match arm {
            "luc" => 400.0,
            _ => 100.0 * cell.machine["vcpus"].parse::<f64>().unwrap(),
        }),
        ..Formula::default()
    };
    let (store, _dir) = measured(&formula, &campaign);
    let results = store.read().expect("readable");
    let sheet = &sheets::from_tables(&Shown::new(&campaign, &results, None))[1];
    assert_eq!(sheet.rows.len(), 4);
    for row in &sheet.rows {
        let values: Vec<f64> = row.iter().filter_map(|cell| cell.parse().ok()).collect();
        assert!(
            values
                .iter()
                .filter(|value| (**value - 0.5).abs() < 1e-9)
                .count()
                >= 3,
            "{row:?}"
        );
    }
}

#[test]
fn a_factor_without_a_use_is_not_in_the_cell() {
    let plain = cells(&large(&draw(u32::MAX)));
    assert!(
        plain
            .iter()
            .all(|cell| !cell.machine.contains_key("governor"))
    );
    let governed = LARGE.replacen(
        "threads = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]",
        "threads = 1\ngovernor = [\"none\", \"schedutil\"]\nclocks = \"r710\"",
        1,
    );
    let why = campaigns::parse("large.toml", &governed).expect_err("no governor, but clocks");
    assert!(
        why.to_string().contains("clocks are for a governor"),
        "{why}"
    );
    let governed = governed.replace("\"none\", ", "");
    let campaign = campaigns::parse("large.toml", &governed).expect("it is sound");
    let cells = cells(&draw(u32::MAX).narrow(campaign).expect("a part"));
    assert!(
        cells
            .iter()
            .all(|cell| cell.machine["governor"] == "schedutil")
    );
}

#[test]
fn cells_that_fail_are_told_by_their_reason() {
    let campaign = large(&Part::default());
    let formula = Formula {
        fails: Some("hdd-7200"),
        ..Formula::default()
    };
    let (store, _dir) = measured(&formula, &campaign);
    let results = store.read().expect("readable");
    let (document, _) = Shown::new(&campaign, &results, None).document();
    let section = document.sections.last().expect("sections");
    assert_eq!(section.title, "Cells that failed");
    let row: BTreeMap<_, _> = section
        .table
        .headings
        .iter()
        .zip(&section.table.groups[0][0])
        .collect();
    assert_eq!(row[&"why".to_owned()].text, "on purpose");
    assert_eq!(
        row[&"cells".to_owned()].text,
        results.failed.len().to_string()
    );
}

#[test]
fn mistakes_are_told() {
    for (from, to, why) in [
        ("draw = 40", "draw = 0", "at least 1 point"),
        (
            "set_as = \"paper\"",
            "set_as = \"papers\"",
            "no block papers; did you mean paper?",
        ),
        (
            "{ seconds = 2 }",
            "{ seconds = \"{seconds}\" }",
            "{seconds}: some point has no value",
        ),
        (
            "{ seconds = 2 }",
            "{ where = { threads = 1 }, seconds = 2 }",
            "{seconds}: some point has no value",
        ),
        (
            "\"p25\"",
            "\"p200\"",
            "count, mean, min, max, or a percentile",
        ),
        ("worst = 3", "worst = 0", "at least 1"),
        (
            "worst = 3",
            "worst = 3\nacross = \"vcpus\"",
            "each row is one point",
        ),
        (
            "[\"stock\", \"age\"]",
            "[\"stock\", \"pid\"]",
            "pid: no arm of the block",
        ),
        (
            "to_best_of = [\"stock\", \"age\"]",
            "to_best_of = [\"age\"], to = \"stock\"",
            "only one of to, to_best_of, to_worst_of and minus",
        ),
        (
            "to_best_of = [\"stock\", \"age\"]",
            "relative_to_arm = \"stock\"",
            "relative_to_arm needs relative_to",
        ),
        (
            "to_best_of = [\"stock\", \"age\"], measure = \"rate\"",
            "measure = \"model_watts:cray\"",
            "measure model_watts:cray: no machine cray; the model has",
        ),
    ] {
        let text = LARGE.replacen(from, to, 1);
        assert_ne!(text, LARGE, "{from} is in the text");
        let error = campaigns::parse("large.toml", &text)
            .expect_err(to)
            .to_string();
        assert!(error.contains(why), "{to}: {error}");
    }
}

#[test]
fn every_value_is_used_where_it_is_set_or_by_an_arm_of_the_file() {
    let parsed = |text: &str| campaigns::parse("large.toml", text).map_err(|it| it.to_string());
    let unused = LARGE.replacen("{ seconds = 2 }", "{ seconds = 2, pause = 1 }", 1);
    let error = parsed(&unused).expect_err("no text names it");
    assert!(error.contains("set: pause is neither"), "{error}");
    // The block `machine`, which borrows it, does not.
    let lent = unused.replacen("\"{run} {dir}\"", "\"{run} --warmup-s {pause} {dir}\"", 1);
    parsed(&lent).expect("the lender uses it");
    let arm = "[arms.late]\nhelp = \"later\"\non = \"--set kp_milli={pause}\"\n\n[arms.age]";
    let of_arm = unused.replacen("[arms.age]", arm, 1);
    parsed(&of_arm).expect("an arm uses it that no block measures");
}

/// The arena's blocks are sound beyond their own draws.
#[test]
fn the_arena_is_sound_in_a_larger_draw() {
    for block in ["simulated", "governed", "lab", "lab-in-host-time"] {
        let part = Part {
            blocks: vec![block.to_owned()],
            ..draw(200)
        };
        let campaign = part
            .narrow(campaigns::load("arena").expect("it is sound"))
            .expect(block);
        let cells = cells(&campaign);
        assert!(cells.len() > 250, "{block}");
        assert!(
            !cells.iter().any(|cell| cell.bench.contains("{r")),
            "{block}"
        );
    }
}
