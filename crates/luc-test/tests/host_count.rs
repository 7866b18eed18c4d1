//! The tracer on this very machine, if the kernel allows it: a command's work is counted by the
//! time the command has ended.

use std::path::Path;
use std::process::Output;

use assert_cmd::cargo::cargo_bin;
use luc_test::command::program;
use serde_json::Value;

/// Exit codes on a machine that lacks privileges, ext4, or something that the tracer needs.
const LACKS: [i32; 4] = [3, 6, 12, 24];
/// Syncs of the command, by one thread, so that they follow one another.
const SYNCS: u64 = 20;

fn luc(words: &[&str]) -> Output {
    program("luc")
        .args(words)
        .output()
        .expect("the program runs")
}

/// The kernel frees a task some time after its end; counting its work must not wait for that.
#[test]
fn a_command_is_counted_to_its_last_sync() {
    const TEST: &str = "a_command_is_counted_to_its_last_sync";
    // Temporary files may lie in memory; cargo's build folder rarely does.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("temporary folder");
    let place = dir.path().to_str().expect("a path of letters");
    let tried = luc(&["trace", "count", "--seconds", "1", "--on", place]);
    let why = String::from_utf8_lossy(&tried.stderr);
    match tried.status.code() {
        Some(0) => {}
        Some(code) if LACKS.contains(&code) => {
            return luc_test::skip_expected(TEST, why.lines().last().unwrap_or("no tracer"));
        }
        _ => panic!("{why}"),
    }
    let answer = dir.path().join("count.json");
    let luc_lab = cargo_bin("luc-lab");
    let luc_lab = path(&luc_lab);
    let count = format!("trace count --json -o {} --on {place}", path(&answer));
    let work =
        format!("{luc_lab} bench create-fsync --threads 1 --ops {SYNCS} --warmup-s 0 {place}");
    let line = format!("{count} -- {work}");
    let counted = luc(&line.split(' ').collect::<Vec<_>>());
    let said = String::from_utf8_lossy(&counted.stderr);
    assert!(counted.status.success(), "{said}");
    let text = std::fs::read_to_string(&answer).expect("the answer is there");
    let count: Value = serde_json::from_str(&text).expect("JSON");
    let processes = count["processes"].as_array().into_iter().flatten();
    let syncs: Vec<_> = processes.filter_map(|one| one["syncs"].as_u64()).collect();
    // Other processes of this machine may sync meanwhile.
    assert!(syncs.contains(&SYNCS), "{syncs:?}");
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}
