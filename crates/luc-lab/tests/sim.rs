//! The simulator as a shell sees it.

mod common;

use std::fs;
use std::path::Path;

use common::luc_lab;
use insta::assert_snapshot;
use luc_test::command::{assert_holds, run};
use serde_json::Value;

const CAMPAIGN: &str = r#"title = "Loops on paper"

[stop]
repeats_min = 3
repeats_max = 3

[[block]]
name = "loops"
place = "sim"
bench = "create-fsync --threads {threads} --seconds 1 --warmup-s 0.8 {dir}"
arms = ["stock", "luc"]
factors = { disk = "4ms:1", threads = [1, 4] }

[[table]]
title = "Files per second"
block = "loops"
rows = ["threads"]
columns = [
	{ heading = "stock", arm = "stock", measure = "rate" },
	{ heading = "ratio", arm = "luc", to = "stock", measure = "rate" },
]
"#;

fn sim(words: &[&str]) -> String {
    run(luc_lab().arg("sim").args(words))
}

#[test]
fn a_run_prints_what_a_benchmark_would() {
    let loops = ["--", "create-fsync", "--threads", "4", "--seconds", "1"];
    assert_snapshot!(sim(&[&["run", "--luc"], &loops[..]].concat()));
    let json = || sim(&[&["run", "--json", "--cpus", "2"], &loops[..]].concat());
    assert_eq!(json(), json(), "the same run gives the same bytes");
}

#[test]
fn what_it_does_not_have_is_refused_in_a_line() {
    let burst = ["--", "burst"];
    for words in [
        &["run", "--", "scaling"][..],
        &["run", "--", "fsync-storm"],
        &["run", "--", "create-fsync", "--thread", "4"],
        &[&["run", "--journal", "jbd3"], &burst[..]].concat(),
        &[&["run", "--journal-mib", "3"], &burst[..]].concat(),
        &[&["run", "--journal-mib", "513"], &burst[..]].concat(),
        &[&["run", "--journal", "dualfs", "--luc"], &burst[..]].concat(),
        &["run", "--", "nothing"],
        &[&["run", "--disk", "hdd"], &burst[..]].concat(),
        &[&["run", "--disk", "4ms"], &burst[..]].concat(),
        &[&["run", "--disk", "raid10:3:hdd-15k"], &burst[..]].concat(),
        &["disks", "floppy"],
        &[&["run", "--policy", "best"], &burst[..]].concat(),
        &[&["run", "--set", "delay_limit_us=-1"], &burst[..]].concat(),
        &[&["run", "--disk", "4ms:0"], &burst[..]].concat(),
        &[&["run", "--disk", "-4ms:1"], &burst[..]].concat(),
        &[&["run", "--set", "delay_limit_us=1000001"], &burst[..]].concat(),
        &[&["run", "--set", "no_knob=1"], &burst[..]].concat(),
        &[&["run", "--set", "priority_cgroup=7"], &burst[..]].concat(),
        &[&["run", "--mips", "0"], &burst[..]].concat(),
        &[&["run", "--mips", "-1000"], &burst[..]].concat(),
        &[&["run", "--mips", "NaN"], &burst[..]].concat(),
        &[&["run", "--mips", "inf"], &burst[..]].concat(),
        &[&["run", "--mips", "1e300"], &burst[..]].concat(),
        &[&["run", "--mips", ""], &burst[..]].concat(),
        &[&["run", "--cpus", "3", "--mips", "1000,2000"], &burst[..]].concat(),
        &[&["run", "--mips-at", "1500"], &burst[..]].concat(),
        &[&["run", "--mips-at", "2s=0"], &burst[..]].concat(),
        &[&["run", "--energy", "cray"], &burst[..]].concat(),
        &[&["run", "--energy", "r710:idle_w=1"], &burst[..]].concat(),
        &[&["run", "--governor", "schedutil"], &burst[..]].concat(),
        &[
            &["run", "--governor", "turbo", "--clocks", "r710"],
            &burst[..],
        ]
        .concat(),
        &[
            &["run", "--governor", "schedutil", "--clocks", "cray"],
            &burst[..],
        ]
        .concat(),
        &[
            &["run", "--governor", "schedutil", "--clocks", "r710"][..],
            &["--mips", "2000"],
            &burst[..],
        ]
        .concat(),
        &[
            &["run", "--governor", "schedutil", "--clocks", "r710"][..],
            &["--clock-latency-us", "10001"],
            &burst[..],
        ]
        .concat(),
        &[&["run", "--clock-latency-us", "1"], &burst[..]].concat(),
        &["fleet", "--nodes", "2", "--energy", "cray"],
        &[&["run", "--cpus", "0"], &burst[..]].concat(),
        &[&["run", "--cpus", "-1"], &burst[..]].concat(),
        &[&["run", "--cpus", "1025"], &burst[..]].concat(),
    ] {
        let said = sim(words);
        assert!(said.contains("[exit 2]"), "{words:?}: {said}");
        // clap reports wrong numbers in its own words, with a pointer to the help.
        let lines = said.trim().lines().filter(|line| !line.is_empty()).count();
        assert!(
            (said.trim_start().starts_with("luc-lab: ") && lines == 2) || said.contains("error: "),
            "{said}"
        );
    }
}

#[test]
fn energy_is_modelled_for_each_machine_that_is_named() {
    let words = "run --disk nvme --cpus 4 --governor schedutil --clocks r710 --energy r710 \
                 --energy e3-server:idle_w=50 --json -- create-fsync --threads 16 --seconds 1";
    let words: Vec<&str> = words.split_whitespace().collect();
    let said = sim(&words);
    let lines: Vec<Value> = said
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let [report, first, second] = &lines[..] else {
        panic!("{said}");
    };
    let elapsed_s = report["activity"]["elapsed_ns"].as_f64().expect("a time") / 1e9;
    for (line, machine, idle_w) in [(first, "r710", 89.0), (second, "e3-server:idle_w=50", 50.0)] {
        let number = |name: &str| line[name].as_f64().expect("a number");
        assert_eq!(line["machine"], machine);
        assert!(
            (number("watts") - number("joules") / elapsed_s).abs() < 1e-6,
            "{line}"
        );
        assert!((idle_w..idle_w + 40.0).contains(&number("watts")), "{line}");
        let parts = ["processors_j", "memory_j", "disks_j", "rest_j"];
        let sum: f64 = parts
            .iter()
            .map(|it| line["energy"][it].as_f64().expect("joules"))
            .sum();
        assert!((sum - number("joules")).abs() < 1e-6, "{line}");
    }
    let people = sim(&words
        .into_iter()
        .filter(|word| *word != "--json")
        .collect::<Vec<_>>());
    assert_holds(&people, "energy, modelled for r710: ");
}

#[test]
fn costs_have_sources() {
    let costs: Value = serde_json::from_slice(
        &luc_lab()
            .args(["sim", "costs", "--json"])
            .output()
            .expect("it runs")
            .stdout,
    )
    .expect("JSON");
    let costs = costs["costs"].as_array().expect("a list");
    assert!(costs.len() > 15);
    for cost in costs {
        assert!(
            cost["instructions"].as_u64().is_some_and(|n| n > 0),
            "{cost}"
        );
        assert!(
            !cost["source"].as_str().unwrap_or_default().is_empty(),
            "{cost}"
        );
    }
}

#[test]
fn disks_of_the_documents_have_sources() {
    let all = sim(&["disks"]);
    let one = sim(&["disks", "nehalem-raid10-cache"]);
    let (arrays, _) = all
        .split_once("nehalem-hdd: ")
        .expect("systems behind the arrays");
    assert_snapshot!(format!("{arrays}{one}"));
    let json: Value = serde_json::from_str(
        sim(&["disks", "--json"])
            .trim_end()
            .trim_end_matches("[exit 0]"),
    )
    .expect("JSON");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/simulator.md");
    let page = fs::read_to_string(page).expect("the page");
    for system in json["systems"].as_array().expect("a list") {
        let name = system["name"].as_str().expect("a name");
        let ran = sim(&["run", "--disk", name, "--", "burst", "--bursts", "2"]);
        assert_holds(&ran, "[exit 0]");
        let mhz = system["mhz"].as_array().expect("a list").iter();
        let mhz = mhz.map(Value::to_string).collect::<Vec<_>>().join(", ");
        let row = format!(
            "| {} | `{name}` | {} | {mhz} |",
            system["called"], system["cpus"]
        );
        let row = row.replace('"', "");
        let is_assumed = name.ends_with("-cache");
        assert!(
            page.contains(&row) || (is_assumed && page.contains(name)),
            "{row}"
        );
    }
}

/// Both as an option of `luc-lab run` and as a factor of a campaign.
#[test]
fn the_lab_refuses_what_is_only_simulated() {
    let dir = tempfile::tempdir().expect("a folder");
    for disk in ["raid10:4:hdd-15k", "raid1:1:hdd-15k", "nehalem-hdd"] {
        let lab = run(luc_lab().args(["run", "--disk", disk, "--", "true"]));
        let factors = format!("factors = {{ kernel = \"6.12\", disk = \"{disk}\"");
        let campaign = CAMPAIGN
            .replace("place = \"sim\"\n", "")
            .replace("factors = { disk = \"4ms:1\"", &factors);
        fs::write(dir.path().join("loops.toml"), campaign).expect("written");
        let mut place = luc_lab();
        place.current_dir(dir.path());
        let place = run(place.args(["campaign", "run", "loops.toml", "-o", "out"]));
        for said in [lab, place] {
            let line = format!("disk {disk}: the lab has single disks");
            assert!(said.contains(&line) && !said.contains("[exit 0]"), "{said}");
        }
    }
}

/// A campaign in the simulator, from its file to its table: no kernel is needed.
#[test]
fn campaigns_run_there() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("loops.toml"), CAMPAIGN).expect("written");
    let campaign = |words: &[&str]| {
        let mut command = luc_lab();
        command.current_dir(dir.path()).arg("campaign").args(words);
        run(&mut command)
    };
    let done = campaign(&["run", "loops.toml", "-o", "out"]);
    assert_snapshot!(done);
    let cells = || {
        fs::read_dir(dir.path().join("out/cells"))
            .expect("cells")
            .count()
    };
    assert_eq!(cells(), 6);
    campaign(&["run", "loops.toml", "-o", "out"]);
    assert_eq!(cells(), 6, "nothing is simulated twice");
}

#[test]
fn the_lab_stands_beside_it() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo-results.jsonl");
    let dir = tempfile::tempdir().expect("a folder");
    for part in ["cells", "failed"] {
        fs::create_dir(dir.path().join(part)).expect("made");
    }
    let text = fs::read_to_string(results).expect("results");
    for (number, line) in text.lines().enumerate() {
        fs::write(dir.path().join(format!("cells/{number:032}.json")), line).expect("written");
    }
    let said = sim(&["validate", &dir.path().to_string_lossy()]);
    let (_, end) = said.split_once("\n\n").expect("a table, then sums");
    assert_snapshot!(end);
    let none = sim(&["validate", "/nowhere"]);
    assert_holds(&none, "[exit 27]");
}
