//! Campaigns that draw their points, as a shell sees them.

mod common;

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use common::luc_lab;
use luc_test::command::{assert_holds, run};
use serde_json::Value;

const WORST: &str = r#"title = "Worst"

[stop]
repeats_min = 1
repeats_max = 1

[arms.published]
help = "as published"
on = "--policy published --set setpoint_events={threads}"

[[block]]
name = "bursts"
place = "sim"
draw = 6
bench = "burst --threads {threads} --bursts 5 --seed {seed} --dir {dir}"
arms = ["stock", "published"]
factors = { disk = ["hdd-7200", "nvme"], threads = [2, 4, 8], vcpus = [1, 4], journal_mib = ["own", 16] }

[[table]]
title = "Worst"
block = "bursts"
rows = ["disk", "threads", "vcpus"]
worst = 2
columns = [
	{ heading = "ratio", arm = "published", to = "stock", measure = "rate", at_least = 1000 },
	{ heading = "stock", arm = "stock", measure = "rate" },
	{ heading = "published", arm = "published", measure = "rate" },
]
"#;

fn campaign(dir: &Path, words: &[&str]) -> String {
    fs::write(dir.join("worst.toml"), WORST).expect("written");
    let mut command = luc_lab();
    run(command.current_dir(dir).args(["campaign"]).args(words))
}

/// The table's column under a heading.
fn rates(dir: &Path, heading: &str) -> Vec<f64> {
    let sheet = fs::read_to_string(dir.join("out/worst/tables/1.csv")).expect("a table");
    let mut lines = sheet
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let headings = lines.next().expect("headings");
    let at = headings.iter().position(|it| *it == heading);
    let at = at.expect(heading);
    lines
        .map(|row| row[at].parse().expect("a number"))
        .collect()
}

/// The commands, copied into a shell, give the figures of the table.
#[test]
fn the_worst_points_come_with_commands_that_measure_them_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let said = campaign(dir.path(), &["run", "worst.toml"]);
    assert_holds(&said, "0 of 6 figures reached their bounds; missed: 6");
    assert_holds(&said, "[exit 15]");
    let program = luc_lab().get_program().to_string_lossy().into_owned();
    let joined = said.replace(" \\\n    ", " ");
    let lines = joined.lines();
    let commands: Vec<&str> = lines
        .filter_map(|line| line.strip_prefix("luc-lab sim run "))
        .collect();
    assert_eq!(commands.len(), 4, "two arms of two points: {said}");
    for (at, command) in commands.into_iter().enumerate() {
        let line = format!("'{program}' sim run --json {command}");
        let output = Command::new("sh")
            .args(["-c", &line])
            .output()
            .expect("a shell");
        let report: Value = serde_json::from_slice(&output.stdout).expect(command);
        let rate = report["file_creation_rate_per_s"].as_f64().expect("a rate");
        let heading = ["stock", "published"][at % 2];
        let known = rates(dir.path(), heading);
        assert!(
            known.iter().any(|known| (known / rate - 1.0).abs() < 1e-9),
            "{command}: {rate}, and {heading} has {known:?}"
        );
    }
}

#[test]
fn halves_and_draws_go_on_from_each_other() {
    let dir = tempfile::tempdir().expect("a folder");
    let cells = || {
        fs::read_dir(dir.path().join("out/worst/cells"))
            .expect("cells")
            .count()
    };
    campaign(dir.path(), &["run", "worst.toml", "--half", "even"]);
    let even = cells();
    campaign(dir.path(), &["run", "worst.toml", "--half", "odd"]);
    assert_eq!(cells(), 6, "{even} are even");
    campaign(dir.path(), &["run", "worst.toml", "--draw", "9"]);
    assert_eq!(cells(), 9);
    campaign(dir.path(), &["run", "worst.toml", "--draw", "all"]);
    assert_eq!(cells(), 24);
    campaign(dir.path(), &["run", "worst.toml", "--seed", "2"]);
    assert_eq!(cells(), 30, "other seeds");
    for words in [
        ["--draw", "0"],
        ["--draw", "none"],
        ["--half", "third"],
        ["--seed", "-1"],
    ] {
        let said = campaign(dir.path(), &[&["run", "worst.toml"], &words[..]].concat());
        assert_holds(&said, "[exit 2]");
    }
}

#[test]
fn the_ablation_finds_each_part_that_it_takes_out() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/ablation.sh");
    Command::new("bash")
        .args([script, "--check"])
        .assert()
        .success();
}
