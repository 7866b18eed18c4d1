//! `luc-lab bench run`: workload files from the command line.

mod common;

use std::fs;
use std::path::Path;

use common::luc_lab;
use luc_test::command::{assert_holds, outputs};
use serde_json::Value;

/// The exit code, standard output and standard error of a run.
fn run(dir: &Path, words: &str) -> (i32, String, String) {
    let mut command = luc_lab();
    let words = words.split_whitespace();
    outputs(
        command
            .args(["bench", "run"])
            .args(words)
            .arg("--dir")
            .arg(dir),
    )
}

#[test]
fn a_workload_that_comes_with_the_program() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let words = "varmail --preset paper -D nthreads=4 --ops 500 --seed 9";
    let (code, shown, said) = run(dir.path(), words);
    assert_eq!(code, 0, "{said}");
    assert_holds(&shown, "4 threads");
    assert_holds(&shown, "256 files");
    assert_holds(&shown, "Per-Operation Breakdown\n");
    let summary = shown.lines().find(|line| line.starts_with("IO Summary: "));
    assert!(
        summary.is_some_and(|line| line.contains(" 500 ops ")),
        "{shown}"
    );

    let (_, json, _) = run(dir.path(), &format!("{words} --json"));
    let value: Value = serde_json::from_str(&json).expect("one line of JSON");
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
    let (_, shown, _) = run(dir.path(), "varmail --filebench-generator --prepare-only");
    assert_holds(&shown, "1000 files (805 exist)");
    assert_holds(&shown, " 14.959 MB\n");
    assert!(!shown.contains("measured for"), "{shown}");
}

#[test]
fn nothing_is_made_for_a_file_that_cannot_run() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let file = dir.path().join("broken.f");
    fs::write(&file, "define fileset name=a,path=/tmp,entrys=3\nrun 1\n").expect("writes");
    let place = tempfile::tempdir().expect("temporary directory");
    let (code, _, line) = run(place.path(), file.to_str().expect("UTF-8"));
    assert_eq!(code, 16);
    assert_holds(&line, "broken.f:1:");
    assert_eq!(run(place.path(), "varmail -D nthreds=4").0, 16);
    let wrong = "define fileset name=a,path=/tmp,entries=3,size=1k,prealloc=100
        define process name=p { thread name=t { flowop openfile name=o,filesetname=a,fd=1 } }
        run 20
        ";
    fs::write(&file, wrong).expect("writes");
    let (code, _, line) = run(place.path(), file.to_str().expect("UTF-8"));
    assert_eq!(code, 14, "{line}");
    assert_holds(
        &line,
        "flowop o (line 2): fd 1 already holds an open file; close it first",
    );
    assert_eq!(fs::read_dir(place.path()).expect("readable").count(), 0);
}

#[test]
fn attributes_that_filebench_ignores_are_named_in_the_report() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let file = dir.path().join("close.f");
    let text = "define fileset name=a,path=/x,entries=100,size=4k
        define process name=p { thread name=t,memsize=4k {
        flowop createfile name=c,filesetname=a
        flowop writewholefile name=w,filesetname=a
        flowop closefile name=x,filesetname=a,indexed=2 } }
        run 1
        ";
    fs::write(&file, text).expect("writes");
    let place = tempfile::tempdir().expect("temporary directory");
    let words = format!("{} --ops 90", file.display());
    let (code, shown, said) = run(place.path(), &words);
    assert_eq!(code, 0, "{said}");
    for (column, name) in [(33, "filesetname"), (47, "indexed")] {
        let note = format!("close.f:5:{column}: closefile ignores `{name}`, as in Filebench 1.5\n");
        assert_holds(&shown, &note);
    }
    let (_, json, _) = run(place.path(), &format!("{words} --json"));
    let value: Value = serde_json::from_str(&json).expect("one line of JSON");
    assert_eq!(value["notes"].as_array().map(Vec::len), Some(2), "{json}");
}

/// A file whose commands count the files in `dir` into `log`, before and after they are made.
fn counting(dir: &Path, log: &Path) -> String {
    let (dir, log) = (dir.display(), log.display());
    let count = format!("system \"find {dir} -type f | wc -l >> {log}\"");
    format!(
        "define fileset name=a,path=/x,entries=5,size=4k,prealloc
        define process name=p {{ thread name=t,memsize=1m {{
        flowop readwholefile name=r,filesetname=a }} }}
        {count}
        create files
        system \"sync\"
        {count}
        system \"echo to standard output; exit 3\"
        psrun -10 1
        "
    )
}

#[test]
fn a_file_gives_the_shell_commands_only_if_allowed() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let (file, log) = (dir.path().join("count.f"), dir.path().join("log"));
    let place = tempfile::tempdir().expect("temporary directory");
    fs::write(&file, counting(place.path(), &log)).expect("writes");
    let words = format!("{} --ops 5 --json", file.display());

    let (code, _, line) = run(place.path(), &words);
    assert_eq!(code, 14, "{line}");
    assert_holds(&line, "line 4 gives the shell a command, \"find ");
    assert_holds(&line, "--allow-system");
    assert!(!log.exists());
    assert_eq!(fs::read_dir(place.path()).expect("readable").count(), 0);

    let (code, json, said) = run(place.path(), &format!("{words} --allow-system"));
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read_to_string(&log).expect("written"), "0\n5\n");
    let value: Value = serde_json::from_str(&json).expect("one line of JSON");
    let notes = value["notes"].as_array().expect("notes");
    let mut notes = notes.iter().filter_map(Value::as_str);
    assert_holds(notes.next().expect("of psrun"), "none every 10 s");
    assert_holds(
        notes.next().expect("of the command"),
        "line 8: the command \"echo to standard output; exit 3\" failed",
    );
    assert_holds(&said, "to standard output");
}

#[test]
fn oltp_runs_with_a_low_hard_limit_of_open_files() {
    let dir = tempfile::tempdir().expect("temporary directory");
    // Root could raise the limit again.
    let bound = if rustix::process::getuid().is_root() {
        "setpriv --bounding-set=-sys_resource"
    } else {
        ""
    };
    let run = format!(
        "ulimit -Sn 1024; ulimit -Hn 4096; exec {bound} {} bench run oltp --ops 3000 -D filesize=1m \
         -D usermode=100 --json --dir {}",
        env!("CARGO_BIN_EXE_luc-lab"),
        dir.path().display()
    );
    let (code, json, said) = outputs(assert_cmd::Command::new("/bin/sh").args(["-c", &run]));
    assert_eq!(code, 0, "{said}");
    let value: Value = serde_json::from_str(&json).expect("one line of JSON");
    assert_eq!(value["threads"], 211);
}

#[test]
fn a_directory_that_is_not_there_is_one_line() {
    let (code, _, line) = run(Path::new("/nowhere/at/all"), "varmail --seconds 1");
    assert_eq!(code, 14);
    assert!(
        line.starts_with("luc-lab: varmail") && line.lines().count() == 1,
        "{line}"
    );
    assert_holds(&line, "/nowhere/at/all");
    assert_holds(&line, "give an existing directory");
}
