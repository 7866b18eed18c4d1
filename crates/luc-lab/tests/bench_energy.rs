//! `luc-lab bench --energy`: joules from the command line.

mod common;

use std::fs;
use std::path::Path;

use common::luc_lab;
use luc_test::command::outputs;
use luc_test::skip_expected;
use serde_json::Value;

/// Gives 40 W, a hundred times a second.
const METER: &str = "while echo 40; do sleep 0.01; done";

/// The exit code, standard output and standard error of a benchmark with `--energy`. It leaves
/// nothing behind.
fn bench(words: &str, meter: Option<&str>) -> (i32, String, String) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut command = luc_lab();
    command.arg("bench").args(words.split_whitespace());
    command.arg("--energy").arg("--dir").arg(dir.path());
    if let Some(meter) = meter {
        command.args(["--meter", meter]);
    }
    let done = outputs(&mut command);
    assert_eq!(fs::read_dir(dir.path()).expect("readable").count(), 0);
    done
}

fn json(words: &str, meter: &str) -> Value {
    let (code, text, said) = bench(&format!("{words} --json"), Some(meter));
    assert_eq!((code, said.as_str()), (0, ""));
    serde_json::from_str(&text).expect("one line of JSON")
}

fn about(value: &Value, expected: f64) {
    let number = value.as_f64().unwrap_or(f64::NAN);
    assert!(
        (number / expected - 1.0).abs() < 1e-3,
        "{value} is not {expected}"
    );
}

#[test]
fn a_machine_without_counters_is_told_before_the_load() {
    let counters = Path::new("/sys/class/powercap/intel-rapl:0");
    if counters.exists() || Path::new("/sys/class/power_supply/BAT0").exists() {
        skip_expected(
            "bench_energy",
            "this machine has an energy counter or a battery",
        );
        return;
    }
    let (code, shown, line) = bench("create-fsync", None);
    assert_eq!((code, shown.as_str()), (19, ""), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    let expected = "luc-lab: create-fsync: no energy counters in /sys/class/powercap, ";
    assert!(line.starts_with(expected), "{line}");
    for words in ["intel_rapl_msr", "virtual machines", "--meter COMMAND"] {
        assert!(line.contains(words), "{words}: {line}");
    }
}

#[test]
fn joules_by_an_external_meter() {
    let report = json("create-fsync --threads 2 --seconds 1 --idle-s 1", METER);
    let energy = &report["energy"];
    assert_eq!(energy["boundary"]["of"], "external_meter");
    about(&energy["watts"], 40.0);
    about(&energy["idle_watts"], 40.0);
    let seconds = energy["elapsed_ns"].as_f64().expect("a time") / 1e9;
    let joules = energy["joules"].as_f64().expect("a number");
    about(&energy["joules"], seconds * 40.0);
    let ops = report["ops"].as_f64().expect("a count");
    about(&report["ops_per_joule"], ops / joules);
}

#[test]
fn the_energy_of_phases_and_steps_is_added() {
    let report = json("metarates --procs 2 --files 2000 -C -S --idle-s 0", METER);
    about(&report["energy"]["watts"], 40.0);
    assert_eq!(report["energy"]["idle_watts"], Value::Null);
    let joules = report["energy"]["joules"].as_f64().expect("a number");
    about(&report["ops_per_joule"], 8000.0 / joules);
    let report = json("scaling --threads 1,2 --seconds 0.5 --idle-s 0", METER);
    about(&report["energy"]["watts"], 40.0);
}

#[test]
fn workload_files_measure_energy() {
    let words = "run varmail -D nthreads=2 --seconds 1 --idle-s 0";
    let (code, shown, said) = bench(words, Some(METER));
    assert_eq!(code, 0, "{said}");
    assert!(
        shown.contains(" 40.00 W: the whole machine, by an external meter\n"),
        "{shown}"
    );
    assert!(shown.contains("\n  operations per joule "), "{shown}");
    assert!(!shown.contains("idle power"), "{shown}");
}

#[test]
fn a_meter_that_ends_leaves_the_energy_unknown() {
    let report = json("create-fsync --seconds 0.5 --idle-s 0", "echo 40");
    assert_eq!(report["energy"]["unknown"], "meter `echo 40`: it ended");
    assert_eq!(report["energy"]["joules"], Value::Null);
    assert_eq!(report["ops_per_joule"], Value::Null);
}

#[test]
fn a_meter_that_is_none_is_told_before_the_load() {
    let (code, shown, line) = bench("create-fsync", Some("echo hello"));
    assert_eq!((code, shown.as_str()), (19, ""), "{line}");
    let expected =
        "luc-lab: create-fsync: meter `echo hello`: it gave \"hello\", which is no number";
    assert!(line.starts_with(expected), "{line}");
}
