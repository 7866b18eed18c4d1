//! Fleets of simulated machines as a shell sees them.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::luc_lab;
use luc_test::command::{assert_begins, assert_ends, assert_holds, run};
use luc_test::waiting::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// A table that is quick to simulate.
const TABLE: &str = r#"
disk = [
	{ spec = "1ms:4", weight = 3, seconds = 0.2 },
	{ spec = "hdd-7200", weight = 1, seconds = 0.5 },
]
machine = [{ name = "small", cpus = 2, mips = [500, 1500], weight = 1 }]
load = [
	{ name = "files", bench = "create-fsync --threads {threads} --warmup-s 0 --seconds {seconds}", threads = [1, 4], weight = 2 },
	{ name = "bursts", bench = "burst --threads {threads} --bursts 5 --warmup-bursts 0", threads = [4], weight = 1 },
]
service = [{ name = "a log", period_ms = 20, weight = 1 }]
program = { ranks_max = 2, bytes = 4096, compute_ms = 10, leave_us = 50 }
"#;

const PROGRAMS: [&str; 4] = ["--group", "3", "--phases", "4"];

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("table.toml"), TABLE).expect("written");
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Both outputs and the exit code of a run.
    fn fleet(&self, words: &[&str]) -> String {
        let mut command = luc_lab();
        command.current_dir(self.0.path()).args(["sim", "fleet"]);
        run(command.args(words))
    }

    fn small(&self, words: &[&str]) -> String {
        let nodes = ["--table", "table.toml", "--nodes", "20"];
        self.fleet(&[&nodes[..], &PROGRAMS, words].concat())
    }
}

/// The output without the note about the host's speed.
fn answer(said: &str) -> String {
    let lines = said
        .lines()
        .filter(|line| !line.starts_with("luc-lab: note: "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_fleet_fits_a_terminal_and_is_the_same_every_time() {
    let place = Place::new();
    let said = place.small(&[]);
    assert_ends(&said, "[exit 0]\n");
    for part in [
        "LUC/stock, 20 nodes,",
        "holding stays",
        "Median LUC/stock by load and disk",
        "Phases of parallel programs",
        "fsyncs simulated in",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let command = said
        .lines()
        .find(|line| line.starts_with("  luc-lab sim run"));
    for line in said.lines().filter(|line| Some(*line) != command) {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert_eq!(answer(&said), answer(&place.small(&["--jobs", "3"])));
    assert_ne!(answer(&said), answer(&place.small(&["--seed", "2"])));
    let json = |words: &[&str]| {
        let few = ["--table", "table.toml", "--nodes", "20", "--json"];
        let said = place.fleet(&[&few[..], words].concat());
        let text = said.split("luc-lab: note: ").next().unwrap_or_default();
        serde_json::from_str::<Value>(text).expect("JSON")
    };
    let found = json(&PROGRAMS);
    assert_eq!(found["schema"], "luc-sim-fleet/1");
    assert_eq!(found["interrupted"], false);
    assert_eq!(found["summary"]["gains"]["nodes"], 20);
    assert_eq!(found["arguments"]["seed"], 1);
    // The published controller gives other figures.
    let published = json(&[&PROGRAMS[..], &["--policy", "published"]].concat());
    assert_ne!(found["summary"]["gains"], published["summary"]["gains"]);
    let no_programs = json(&["--phases", "0"]);
    assert_eq!(no_programs["summary"]["barriers"], Value::Array(Vec::new()));
}

/// The command that the summary gives for the worst node simulates that node.
#[test]
fn a_node_can_be_simulated_again() {
    let place = Place::new();
    let kept = place.small(&["--out", "out.jsonl"]);
    assert_ends(&kept, "[exit 0]\n");
    let Some(command) = kept
        .lines()
        .find(|line| line.starts_with("  luc-lab sim run"))
    else {
        return;
    };
    let node = kept
        .lines()
        .find_map(|line| line.strip_prefix("Worst node: "));
    let (node, _) = node.expect("a node").split_once(',').expect("a gain");
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let report = run(luc_lab().args(&words[..2]).arg("--json").args(&words[2..]));
    let text = fs::read_to_string(place.path("out.jsonl")).expect("kept");
    let begin = format!("{{\"node\":{node},");
    let line = text.lines().find(|line| line.starts_with(&begin));
    let record: Value = serde_json::from_str(line.expect("its line")).expect("JSON");
    let commits = record["stock"]["commits"].to_string();
    assert!(
        report
            .replace(' ', "")
            .contains(&format!("\"commits\":{commits},")),
        "{report} {record}"
    );
}

#[test]
fn a_run_goes_on_where_one_was_cut_off() {
    let place = Place::new();
    let whole = place.small(&["--out", "out.jsonl"]);
    let out = place.path("out.jsonl");
    let bytes = fs::read(&out).expect("kept");
    let header = bytes.iter().position(|byte| *byte == b'\n').expect("lines") + 1;
    let cuts = [
        0,
        header / 2,
        header,
        header + 1,
        bytes.len() / 2,
        bytes.len() - 1,
        bytes.len(),
    ];
    for end in cuts {
        fs::write(&out, &bytes[..end]).expect("cut");
        let again = place.small(&["--out", "out.jsonl"]);
        assert_eq!(answer(&again), answer(&whole), "cut at {end}");
        assert_eq!(fs::read(&out).expect("kept"), bytes, "cut at {end}");
    }
    // Nothing was left to do.
    assert!(
        !place
            .small(&["--out", "out.jsonl"])
            .contains("simulated in")
    );
    // A last line that is not text.
    fs::write(&out, [&bytes[..bytes.len() - 9], &[0xff, 0xfe]].concat()).expect("damaged");
    place.small(&["--out", "out.jsonl"]);
    assert_eq!(fs::read(&out).expect("kept"), bytes);
}

#[test]
fn files_of_others_are_refused_in_a_line() {
    let place = Place::new();
    place.small(&["--out", "out.jsonl"]);
    let bytes = fs::read(place.path("out.jsonl")).expect("kept");
    let text = String::from_utf8(bytes.clone()).expect("text");
    fs::write(place.path("notes.txt"), "mine\n").expect("written");
    fs::write(place.path("short.txt"), "m").expect("written");
    let middle = text.replacen("\"node\":3", "\"nod\":3", 1);
    fs::write(place.path("middle.jsonl"), middle).expect("written");
    let older = text.replacen("\"sources\":\"", "\"sources\":\"0", 1);
    fs::write(place.path("older.jsonl"), older).expect("written");
    let other = TABLE.replace("period_ms = 20", "period_ms = 30");
    fs::write(place.path("other.toml"), other).expect("written");
    for (words, why) in [
        (
            &["--out", "out.jsonl", "--seed", "2"][..],
            "out.jsonl: from a run with seed 1",
        ),
        (
            &["--out", "out.jsonl", "--files", "5"],
            "from a run with files 4",
        ),
        (
            &["--out", "out.jsonl", "--policy", "static"],
            "from a run that differs in knobs",
        ),
        (
            &["--out", "notes.txt"],
            "notes.txt: not a file of fleet records",
        ),
        (&["--out", "short.txt"], "not a file of fleet records"),
        (&["--out", "middle.jsonl"], "line 5 is damaged"),
        (
            &["--out", "older.jsonl"],
            "another version of the simulator",
        ),
        (&["--out", "none/out.jsonl"], "none/out.jsonl: No such file"),
    ] {
        refused(&place.small(words), why);
    }
    let other = [
        "--nodes",
        "20",
        "--table",
        "other.toml",
        "--out",
        "out.jsonl",
    ];
    let other = [&other[..], &PROGRAMS].concat();
    refused(&place.fleet(&other), "from a run that differs in table");
    assert_eq!(fs::read(place.path("out.jsonl")).expect("kept"), bytes);
    assert_eq!(fs::read(place.path("notes.txt")).expect("kept"), b"mine\n");
}

fn refused(said: &str, why: &str) {
    assert!(
        said.starts_with("luc-lab: ") && said.contains(why),
        "{why}: {said}"
    );
    assert!(
        said.ends_with("[exit 2]\n") && said.lines().count() == 2,
        "{said}"
    );
}

#[test]
fn fleets_that_are_none_are_refused_in_a_line() {
    let place = Place::new();
    let table = |name: &str, from: &str, to: &str| {
        let text = TABLE.replace(from, to);
        assert_ne!(text, TABLE, "{from}");
        fs::write(place.path(name), text).expect("written");
    };
    table("load.toml", "create-fsync --th", "scaling --th");
    table("disk.toml", "1ms:4", "1ms:0");
    table("speed.toml", "[500, 1500]", "[0, 1500]");
    for (words, why) in [
        (&["--table", "load.toml"][..], "load files: "),
        (
            &["--table", "disk.toml"],
            "table disk.toml: disk 1ms:0: channels",
        ),
        (&["--table", "speed.toml"], "machine small: mips"),
        (&["--table", "none.toml"], "table none.toml: No such file"),
        (&["--policy", "best"], "best"),
        (&["--set", "kp_milli=-1"], "kp_milli"),
        (
            &["--nodes", "100000", "--group", "2", "--phases", "1000000"],
            "phases in all",
        ),
    ] {
        refused(&place.fleet(words), why);
    }
    for words in [
        ["--nodes", "0"],
        ["--group", "1"],
        ["--files", "0"],
        ["--jobs", "0"],
    ] {
        let said = place.fleet(&words);
        assert_begins(&said, "error: ");
        assert_ends(&said, "[exit 2]\n");
    }
    let printed = place.fleet(&["--print-table"]);
    fs::write(
        place.path("printed.toml"),
        printed.replace("[exit 0]\n", ""),
    )
    .expect("written");
    let again = place.fleet(&["--table", "printed.toml", "--nodes", "1", "--phases", "0"]);
    assert_ends(&again, "[exit 0]\n");
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

#[test]
fn an_interrupt_tells_what_is_done_so_far() {
    let place = Place::new();
    let out = place.path("out.jsonl");
    let child = Command::new(assert_cmd::cargo::cargo_bin("luc-lab"))
        .current_dir(place.0.path())
        .args(["sim", "fleet", "--table", "table.toml", "--nodes", "900000"])
        .args(["--phases", "0", "--out", "out.jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    until("line of a second node", || lines(&out) >= 3);
    let locked = place.fleet(&["--out", "out.jsonl"]);
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("not 0");
    kill_process(pid, Signal::INT).expect("sent");
    let output = child.wait_with_output().expect("it ends");
    refused(&locked, "another run is writing to it");
    assert_eq!(output.status.code(), Some(130));
    let said = String::from_utf8_lossy(&output.stdout);
    let nodes = luc_base::words::count(lines(&out) as i128 - 1);
    assert_begins(&said, &format!("LUC/stock, {nodes} of 900,000 nodes"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert_holds(
        &told,
        "luc-lab: interrupted: the same command continues from out.jsonl",
    );
}
