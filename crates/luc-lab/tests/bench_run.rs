//! `luc-lab bench run`: workload files from the command line.

mod common;

use std::fs;

use common::luc_lab;
use serde_json::Value;

fn run(dir: &std::path::Path, words: &str) -> std::process::Output {
    let mut command = luc_lab();
    command
        .args(["bench", "run"])
        .args(words.split_whitespace());
    command
        .arg("--dir")
        .arg(dir)
        .output()
        .expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_workload_that_comes_with_the_program() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let words = "varmail --preset paper -D nthreads=4 --ops 500 --seed 9";
    let output = run(dir.path(), words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(
        shown.contains("4 threads") && shown.contains("256 files"),
        "{shown}"
    );
    assert!(shown.contains("Per-Operation Breakdown\n"), "{shown}");
    let summary = shown.lines().find(|line| line.starts_with("IO Summary: "));
    assert!(
        summary.is_some_and(|line| line.contains(" 500 ops ")),
        "{shown}"
    );

    let output = run(dir.path(), &format!("{words} --json"));
    let value: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!(value["workload"], "wml");
    assert_eq!(
        (value["ops"].as_u64(), value["seed"].as_u64()),
        (Some(500), Some(9))
    );
    assert!(value["fsync"]["count"].as_u64() > Some(0));
    assert_eq!(value["unsafe_no_fsync"], false);
    assert_eq!(fs::read_dir(dir.path()).expect("readable").count(), 0);
}

#[test]
fn the_files_of_filebench() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let output = run(dir.path(), "varmail --filebench-generator --prepare-only");
    let shown = text(&output.stdout);
    assert!(shown.contains("1000 files (805 exist)"), "{shown}");
    assert!(shown.contains(" 14.959 MB\n"), "{shown}");
    assert!(!shown.contains("measured for"), "{shown}");
}

#[test]
fn nothing_is_made_for_a_file_that_cannot_run() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let file = dir.path().join("broken.f");
    fs::write(&file, "define fileset name=a,path=/tmp,entrys=3\nrun 1\n").expect("writes");
    let place = tempfile::tempdir().expect("temporary directory");
    let output = run(place.path(), file.to_str().expect("UTF-8"));
    assert_eq!(output.status.code(), Some(16));
    assert!(
        text(&output.stderr).contains("broken.f:1:"),
        "{}",
        text(&output.stderr)
    );
    let output = run(place.path(), "varmail -D nthreds=4");
    assert_eq!(output.status.code(), Some(16));
    let wrong = "define fileset name=a,path=/tmp,entries=3,size=1k,prealloc=100
        define process name=p { thread name=t { flowop openfile name=o,filesetname=a,fd=1 } }
        run 20
        ";
    fs::write(&file, wrong).expect("writes");
    let output = run(place.path(), file.to_str().expect("UTF-8"));
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(14), "{line}");
    assert!(
        line.contains("flowop o (line 2): fd 1 already holds an open file; close it first"),
        "{line}"
    );
    assert_eq!(fs::read_dir(place.path()).expect("readable").count(), 0);
}

#[test]
fn a_directory_that_is_not_there_is_one_line() {
    let output = run(
        std::path::Path::new("/nowhere/at/all"),
        "varmail --seconds 1",
    );
    assert_eq!(output.status.code(), Some(14));
    let line = text(&output.stderr);
    assert!(
        line.starts_with("luc-lab: varmail") && line.lines().count() == 1,
        "{line}"
    );
    assert!(
        line.contains("/nowhere/at/all") && line.contains("give an existing directory"),
        "{line}"
    );
}
