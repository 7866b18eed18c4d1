//! `luc-lab bench check`: what a workload file would do, and its errors.

mod common;

use std::fs;

use assert_cmd::Command;
use common::luc_lab;
use insta::assert_snapshot;
use luc_test::command::{assert_begins, assert_ends, assert_holds, run};

fn check() -> Command {
    let mut command = luc_lab();
    command.args(["bench", "check"]);
    command
}

const BROKEN: &str = "set $nfiles=1K
define fileset name=files,path=/tmp,entrys=$nfiles
run 60
";

#[test]
fn workloads_that_come_with_the_program() {
    let changed = ["oltp", "--preset", "paper", "-D", "runtime=10"];
    assert_snapshot!(run(check().arg("varmail")) + &run(check().args(changed)));
    for name in [
        "webserver",
        "fileserver",
        "shared-files",
        "open-loop",
        "queue",
        "neighbours",
    ] {
        check().arg(name).assert().code(0);
    }
}

#[test]
fn files_are_told_line_by_line_what_is_wrong() {
    let dir = tempfile::tempdir().expect("temporary folder");
    fs::write(dir.path().join("broken.f"), BROKEN).expect("temporary file");
    let broken = run(check().arg("broken.f").current_dir(dir.path()));
    let said = run(check().args(["varmail", "-D", "nthread=4", "-D", "nfiles=0"]));
    assert_snapshot!(broken + &said);
    // The check leaves nothing beside the file.
    assert_eq!(fs::read_dir(dir.path()).expect("folder").count(), 1);
}

#[test]
fn a_check_tells_what_system_does() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let text = "define fileset name=a,path=/x,entries=1\ncreate files\n\
        system \"sync\"\nsystem \"echo 3 > /proc/sys/vm/drop_caches\"\n\
        system \"mount /mnt\"\n";
    fs::write(dir.path().join("system.f"), text).expect("temporary file");
    let said = run(check().arg("system.f").current_dir(dir.path()));
    assert_ends(&said, "[exit 0]\n");
    for line in [
        "  syncs the file system\n",
        "  drops the caches (level 3)\n",
        "  gives the shell \"mount /mnt\", with --allow-system only\n",
    ] {
        assert_holds(&said, line);
    }
}

#[test]
fn files_that_are_not_there() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let said = run(check().arg("varmial").current_dir(dir.path()));
    assert_ends(&said, "[exit 5]\n");
    assert_holds(&said, "`varmail`, `oltp`");
    let said = run(check().arg(".").current_dir(dir.path()));
    assert_ends(&said, "[exit 14]\n");
    assert_begins(&said, "luc-lab: .: cannot read it");
}

#[test]
fn wrong_command_lines() {
    let lines: [&[&str]; 5] = [
        &[],
        &["varmail", "-D", "nfiles"],
        &["varmail", "-D", "=4"],
        &["varmail", "--preset", "book"],
        &["webserver", "--preset", "paper"],
    ];
    for line in lines {
        check().args(line).assert().code(2);
    }
}

#[test]
fn programs_get_json() {
    let output = check()
        .args(["varmail", "--json", "--preset", "paper", "-D", "nthreads=3"])
        .output()
        .expect("the program runs");
    assert!(output.status.success());
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["schema"], "luc-bench-check/1");
    assert_eq!(said["accepted"], true);
    let threads = &said["plan"]["processes"][0]["threads"][0];
    assert_eq!(threads["instances"], 3, "-D has the last word");
    assert_eq!(threads["flowops"].as_array().map(Vec::len), Some(13));
    let value = |name: &str| {
        let variables = said["variables"].as_array().expect("a list");
        let found = variables.iter().find(|variable| variable["name"] == name);
        found.expect(name)["value"].clone()
    };
    assert_eq!(value("nthreads"), "3");
    assert_eq!(value("nfiles"), "256");
    assert_eq!(value("dir"), "/tmp");

    let dir = tempfile::tempdir().expect("temporary folder");
    fs::write(dir.path().join("broken.f"), BROKEN).expect("temporary file");
    let output = check()
        .args(["broken.f", "--json"])
        .current_dir(dir.path())
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(16));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["accepted"], false);
    assert_eq!(said["errors"][0]["at"]["line"], 1);
    assert_eq!(said["errors"][1]["at"]["line"], 2);
}
