//! The ranking of file systems, from results alone.

use std::collections::BTreeMap;

use luc_campaign::cell::{Cell, Versions};
use luc_campaign::result::ArmResult;
use luc_campaign::show::{Ranking, Shown};
use luc_campaign::store::{CellResult, Results};
use luc_campaign::{Campaign, Part, campaigns, points};
use serde_json::json;

const PRINTED: &str = include_str!("data/create-fsync.json");

fn part(values: &[&str]) -> Result<Campaign, String> {
    let part = Part {
        values: values.iter().map(ToString::to_string).collect(),
        ..Part::default()
    };
    let whole = campaigns::load("recommend").expect("it is sound");
    part.narrow(whole).map_err(|error| error.to_string())
}

/// ext4 and XFS with defaults, and with noatime.
fn campaign() -> Campaign {
    part(&[
        "load=mail",
        "fs=ext4,xfs",
        "block=4k",
        "mode=ordered",
        "format=own",
    ])
    .expect("a part")
}

/// The rate of an arm, and the busy time of its processor in one second, ns.
fn measured(cell: &Cell, arm: &str) -> (f64, u64) {
    let noise = 1.0 + 0.01 * f64::from(cell.repeat);
    let (rate, busy_ns) = match (cell.machine["fs"].as_str(), arm) {
        ("xfs", _) => (1000.0, 900_000_000),
        (_, "luc") => (900.0, 100_000_000),
        _ => (500.0, 100_000_000),
    };
    (rate * noise, busy_ns)
}

/// Three repeats of each point; energy is known unless `fs` is this one.
fn results(campaign: &Campaign, no_energy: &str) -> Results {
    let arm = |cell: &Cell, name: &str| {
        let (rate, busy_ns) = measured(cell, name);
        let mut report: serde_json::Value = serde_json::from_str(PRINTED).expect("JSON");
        report["ops_per_s"] = rate.into();
        if cell.machine["fs"] != no_energy {
            let busy = json!([{ "kips": 3_600_000, "busy_ns": busy_ns }]);
            report["activity"] = json!({
                "elapsed_ns": 1_000_000_000,
                "processors": [{ "busy": busy, "idle": [] }],
                "disks": {
                    "disks": 1, "busy_ns": 0, "read_bytes": 0, "written_bytes": 0, "flushes": 0,
                },
            });
        }
        ArmResult {
            arm: name.to_owned(),
            report: serde_json::from_value(report).expect("a report"),
            counters: BTreeMap::new(),
            after: None,
        }
    };
    let result = |cell: Cell| CellResult {
        schema: String::new(),
        arms: cell
            .arms
            .iter()
            .map(|named| arm(&cell, &named.name))
            .collect(),
        cell,
        versions: Versions::new(),
        kernel_release: String::new(),
        at_s: 0,
        took_s: 0.0,
        host: String::new(),
    };
    let points = points::all(campaign);
    let cells = points
        .iter()
        .flat_map(|point| (1..=3).map(|repeat| point.cell(repeat)));
    Results {
        results: cells.map(result).collect(),
        ..Results::default()
    }
}

fn ranking(by: &[&str], no_energy: &str) -> Ranking {
    let mut campaign = campaign();
    let ranked = campaign.tables[0].ranked.as_mut().expect("a ranking");
    ranked.by = by.iter().map(ToString::to_string).collect();
    let results = results(&campaign, no_energy);
    let mut rankings = Shown::new(&campaign, &results, None).rankings();
    assert_eq!(rankings.len(), 1, "one load on one disk");
    rankings.remove(0)
}

/// Each choice as `fs mount arm`.
fn order(ranking: &Ranking) -> Vec<String> {
    let choice = |it: &luc_campaign::show::Choice| {
        format!("{} {} {}", it.values["fs"], it.values["mount"], it.arm)
    };
    ranking.choices.iter().map(choice).collect()
}

#[test]
fn the_deciding_figure_orders_the_choices() {
    let by_speed = ranking(&["ops/s"], "");
    assert_eq!(
        order(&by_speed),
        [
            "xfs  stock",
            "xfs noatime stock",
            "ext4  luc",
            "ext4 noatime luc",
            "ext4  stock",
            "ext4 noatime stock",
        ]
    );
    let of_best: Vec<_> = by_speed.choices.iter().map(|it| it.of_best).collect();
    assert!(of_best[0].is_none(), "the best is compared with nothing");
    let (equal, third) = (of_best[1].expect("a ratio"), of_best[2].expect("a ratio"));
    assert!(equal.low < Some(1.0) && Some(1.0) < equal.high);
    assert!((third.mean - 0.9).abs() < 0.01 && third.high < Some(1.0));
    // A busy processor costs more than XFS gains.
    let by_energy = ranking(&["ops/J"], "");
    assert_eq!(order(&by_energy)[0], "ext4  luc");
    let of = |ranking: &Ranking, at: usize, heading: &str| {
        ranking.choices[at].figures[heading].expect("known").mean
    };
    let both = ranking(&["ops/s", "ops/J"], "");
    for at in 0..both.choices.len() - 1 {
        let score = |at| of(&both, at, "ops/s") * of(&both, at, "ops/J");
        assert!(score(at) >= score(at + 1) * (1.0 - 1e-9), "{at}");
    }
}

#[test]
fn a_choice_whose_energy_is_unknown_comes_last() {
    let both = ranking(&["ops/s", "ops/J"], "xfs");
    let last = both.choices.last().expect("a choice");
    assert_eq!(last.values["fs"], "xfs");
    assert!(last.figures["ops/J"].is_none() && last.of_best.is_none());
    assert_eq!(both.missing, 0);
    let campaign = campaign();
    let results = results(&campaign, "xfs");
    let shown = Shown::new(&campaign, &results, None);
    let text = luc_report::text::render(&shown.document().0, false);
    let line = text
        .lines()
        .find(|line| line.contains("xfs"))
        .expect("a row");
    assert!(line.trim_end().ends_with('-'), "{line}");
}

#[test]
fn unmeasured_choices_are_counted() {
    let campaign = campaign();
    let mut results = results(&campaign, "");
    results
        .results
        .retain(|result| result.cell.machine["fs"] != "xfs");
    let rankings = Shown::new(&campaign, &results, None).rankings();
    assert_eq!((rankings[0].choices.len(), rankings[0].missing), (4, 2));
}

/// Safety, and the need of a new file system, follow from the choice.
#[test]
fn choices_say_what_they_cost() {
    let campaign = part(&["load=mail"]).expect("a part");
    let value = |conditions: &[(&str, &str)], name: &str| {
        let points = points::all(&campaign);
        let is_meant = |point: &&points::Point<'_>| {
            let defaults = [
                ("fs", "ext4"),
                ("block", "4k"),
                ("mode", "ordered"),
                ("atime", "relatime"),
                ("format", "own"),
            ];
            defaults.iter().all(|(factor, default)| {
                let asked = conditions.iter().find(|(name, _)| name == factor);
                point.value(factor) == asked.map_or(*default, |(_, value)| *value)
            })
        };
        points
            .iter()
            .find(is_meant)
            .expect("a point")
            .value(name)
            .to_owned()
    };
    for (conditions, safe, needs) in [
        (&[][..], "yes", "nothing"),
        (&[("atime", "noatime")], "yes", "remount"),
        (&[("mode", "data")], "yes", "mount"),
        (&[("mode", "writeback")], "NO, old data", "mount"),
        (&[("block", "1k")], "yes", "mkfs"),
        (&[("format", "journal-128m")], "yes", "mkfs"),
        (&[("fs", "ext2")], "NO, no journal", "mkfs"),
        (&[("fs", "ext4-nojournal")], "NO, no journal", "mkfs"),
        (&[("fs", "xfs"), ("format", "ag-8")], "yes", "mkfs"),
    ] {
        assert_eq!(value(conditions, "safe"), safe, "{conditions:?}");
        assert_eq!(value(conditions, "needs"), needs, "{conditions:?}");
    }
}

#[test]
fn choices_that_do_not_exist_are_refused_in_a_line() {
    for (values, why) in [
        (
            &["load=mail", "fs=zfs"][..],
            "fs \"zfs\": must be one of ext4",
        ),
        (&["fs=reiserfs"], "Linux has no ReiserFS since 6.13"),
        (&["block=8k"], "block is never 8k; known: 4k, 2k, 1k"),
        (&["format=inode-2k"], "did you mean inode-1k?"),
        (
            &["load=mail", "fs=xfs", "mode=data"],
            "every point is skipped (fs xfs with mode data)",
        ),
        (
            &["load=mail", "fs=btrfs", "format=ag-8"],
            "every point is skipped (format ag-8 with fs btrfs)",
        ),
        (
            &["load=mail", "disk=nvme:8M", "fs=ext4"],
            "of files, which do not fit on disk nvme:8M; give a larger disk",
        ),
        (
            &["load=mail", "disk=nvme:64M", "fs=xfs"],
            "size must be 300M",
        ),
    ] {
        let said = part(values).map(drop).expect_err("refused");
        assert!(said.contains(why) && !said.contains('\n'), "{said}");
    }
}
