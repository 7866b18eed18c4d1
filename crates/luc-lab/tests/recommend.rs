//! `luc-lab recommend` as a shell sees it, without a virtual machine.

mod common;

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use common::luc_lab;
use luc_campaign::cell::Versions;
use luc_campaign::result::{ArmResult, Measured};
use luc_campaign::{Cell, Part, Store, campaigns, points};
use luc_test::command::{assert_ends, assert_holds, run};

const PRINTED: &str = include_str!("../../luc-campaign/tests/data/create-fsync.json");

fn recommend(dir: &Path) -> Command {
    let mut command = luc_lab();
    command.current_dir(dir).arg("recommend");
    command
}

#[test]
fn what_cannot_be_recommended_is_refused_in_a_line() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("bad.f"), "define fileset\n").expect("written");
    for (words, line, code) in [
        (
            &["mial"][..],
            "no load or workload file mial; did you mean mail?; known: web, file, mail, database",
            2,
        ),
        (&["bad.f"], "bad.f:2:1: expected an attribute", 27),
        (&["mail", "--machine", "cray"], "no machine cray", 2),
        (&["mail", "--by", "price"], "'price'", 2),
        (
            &["mail", "--set", "fs=zfs"],
            "fs \"zfs\": must be one of ext4",
            27,
        ),
        (
            &["mail", "--set", "fs=xfs", "--set", "mode=data"],
            "every point is skipped (fs xfs with mode data)",
            27,
        ),
        (
            &["mail", "--set", "disk=nvme:8M", "--set", "fs=ext4"],
            "do not fit on disk nvme:8M",
            27,
        ),
        (&["mail", "--from-results"], "no results of a campaign", 27),
        (
            &["mail", "--device", "/dev/no-such", "--machine", "r710"],
            "'--device <DEVICE>' cannot be used with '--machine <MACHINE>'",
            2,
        ),
    ] {
        let said = run(recommend(dir.path()).args(words));
        assert_holds(&said, line);
        assert_ends(&said, &format!("[exit {code}]\n"));
    }
    assert!(!dir.path().join("out").exists(), "nothing was begun");
}

/// Keeps a result of the cell: each arm has this rate, and a busy processor for half of a second.
fn keep(store: &Store, cell: &Cell, rate: f64) {
    let mut report: serde_json::Value = serde_json::from_str(PRINTED).expect("JSON");
    report["ops_per_s"] = rate.into();
    report["activity"] = serde_json::json!({
        "elapsed_ns": 1_000_000_000,
        "processors": [{ "busy": [{ "kips": 1_000_000, "busy_ns": 500_000_000 }], "idle": [] }],
        "disks": { "disks": 1, "busy_ns": 0, "read_bytes": 0, "written_bytes": 0, "flushes": 0 },
    });
    let arm = |named: &luc_campaign::cell::NamedArm| ArmResult {
        arm: named.name.clone(),
        report: serde_json::from_value(report.clone()).expect("a report"),
        counters: [].into(),
        after: None,
    };
    let measured = Measured {
        kernel_release: "6.12".to_owned(),
        arms: cell.arms.iter().map(arm).collect(),
    };
    store
        .keep(cell, &Versions::new(), measured, 1.0)
        .expect("kept");
}

/// Results are ranked without a lab; a workload file is a load like the four.
#[test]
fn kept_results_are_ranked() {
    let dir = tempfile::tempdir().expect("a folder");
    let load = dir.path().join("mine.f");
    fs::write(&load, "define process name=p { thread name=t, memsize=1m { flowop hog name=h, value=1 } }\nrun 1\n").expect("written");
    let load = load.canonicalize().expect("a path");
    let choices = [
        "fs=ext4,xfs",
        "block=4k",
        "mode=ordered",
        "atime=relatime",
        "format=own",
    ];
    let mut part = Part {
        values: choices.map(String::from).into(),
        ..Part::default()
    };
    part.values.push(format!("load={}", load.display()));
    let campaign = part
        .narrow(campaigns::load("recommend").expect("sound"))
        .expect("a part");
    let store = Store::open(&dir.path().join("out")).expect("a folder");
    for point in points::all(&campaign) {
        let rate = if point.value("fs") == "xfs" {
            200.0
        } else {
            100.0
        };
        for repeat in 1..=3 {
            keep(&store, &point.cell(repeat), rate + f64::from(repeat));
        }
    }
    let words = |more: &[&str]| {
        let mut command = recommend(dir.path());
        command.args(["mine.f", "--from-results", "-o", "out"]);
        for choice in choices {
            command.args(["--set", choice]);
        }
        run(command.args(more))
    };
    let said = words(&["--by", "speed"]);
    assert_holds(&said, "By ops/s.");
    let rank = |name: &str| {
        said.lines()
            .position(|line| line.trim_start().starts_with(name))
    };
    assert!(rank("xfs") < rank("ext4"), "{said}");
    assert_holds(&said, "mine.f, nvme:2G");
    let read = |said: &str| -> serde_json::Value {
        let json = said.strip_suffix("[exit 0]\n").unwrap_or(said);
        serde_json::from_str(json).expect("JSON")
    };
    let one = |machine: &str| {
        let found = read(&words(&["--json", "--machine", machine]));
        let choices = found["rankings"][0]["choices"]
            .as_array()
            .expect("choices")
            .clone();
        assert_eq!(choices.len(), 3, "ext4 with LUC and without, XFS without");
        assert_eq!(choices[0]["values"]["needs"], "mkfs");
        choices[0]["figures"]["ops/J"]["mean"]
            .as_f64()
            .expect("known")
    };
    assert!(
        one("e3-server:idle_w=200") < one("e3-server"),
        "the machine's watts count"
    );
}
