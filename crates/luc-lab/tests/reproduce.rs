//! `luc-lab reproduce` as a shell sees it, without a virtual machine.

mod common;

use std::path::Path;
use std::process::Command;

use common::luc_lab;
use insta::assert_snapshot;
use luc_test::command::{assert_ends, assert_holds, run};

#[test]
fn figures_are_listed() {
    assert_snapshot!(run(luc_lab().args(["reproduce", "--list"])));
}

#[test]
fn what_is_no_figure_is_refused_in_a_line() {
    let unknown = run(luc_lab().args(["reproduce", "D5.88", "--list"]));
    assert_eq!(
        unknown,
        "luc-lab: no figure D5.88; did you mean D5.8?; see `luc-lab reproduce --help`\n[exit 2]\n"
    );
    for line in [
        &["reproduce", "--list", "--quick"][..],
        &["reproduce", "--jobs", "0"],
        &["reproduce", "--list", "--markdown", "x.md"],
    ] {
        luc_lab().args(line).assert().code(2);
    }
    let dir = tempfile::tempdir().expect("temporary folder");
    let nothing = run(luc_lab()
        .args(["reproduce", "D5.8", "--from-results", "--out"])
        .arg(dir.path()));
    assert_ends(&nothing, "[exit 27]\n");
    assert_eq!(nothing.trim_end().lines().count(), 2, "{nothing}");
}

/// Poles need no measurement.
#[test]
fn poles_are_computed() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let page = dir.path().join("page.md");
    let said = run(luc_lab()
        .args(["reproduce", "D5.6", "--markdown"])
        .arg(&page)
        .current_dir(dir.path()));
    assert_holds(&said, "1 figure: 1 reproduced");
    let wide = said.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "a terminal has 80 columns");
    let read = |path: &str| std::fs::read_to_string(dir.path().join(path)).expect("a page");
    assert_holds(&read("page.md"), "[The appendix](figures/page.md)");
    assert_holds(
        &read("figures/page.md"),
        "all poles lie inside the unit circle |  | 0.74 |  |  | reproduced |",
    );
    assert!(!dir.path().join("out").exists());
}

/// Without results a figure's verdict is `unknown`.
#[test]
fn nothing_measured_is_no_success() {
    let dir = tempfile::tempdir().expect("temporary folder");
    std::fs::create_dir_all(dir.path().join("cells")).expect("a folder");
    let output = luc_lab()
        .args([
            "reproduce",
            "D5.8",
            "DS3.3",
            "--from-results",
            "--json",
            "--out",
        ])
        .arg(dir.path())
        .output()
        .expect("the program runs");
    assert!(output.status.success());
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let verdicts = answer["figures"].as_array().expect("figures");
    let verdicts: Vec<_> = verdicts.iter().map(|it| it["verdict"].as_str()).collect();
    assert_eq!(verdicts, [Some("unknown"), Some("unknown")]);
}

/// A result that this version cannot judge is named, not counted.
#[test]
fn results_of_another_version_are_named() {
    let dir = tempfile::tempdir().expect("temporary folder");
    std::fs::create_dir_all(dir.path().join("cells")).expect("a folder");
    std::fs::write(
        dir.path().join("cells/future.json"),
        r#"{"schema":"luc-cell/2"}"#,
    )
    .expect("a cell");
    let said = run(luc_lab()
        .args(["reproduce", "D5.8", "--from-results", "--out"])
        .arg(dir.path()));
    assert_holds(&said, "cells/future.json is left out");
    assert_holds(&said, "1 figure: 1 unknown");
}

/// Poles have no points, simulated or not.
#[test]
fn what_is_not_simulated_is_refused_in_a_line() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let said = run(luc_lab()
        .args(["reproduce", "DS3.3", "--simulated", "--out"])
        .arg(dir.path()));
    assert_holds(&said, "none of these figures has a simulated point");
    assert_ends(&said, "[exit 2]\n");
}

/// The page in docs/ and its appendix are what the kept cells give by the current rules. `make
/// reproduction` makes all of them.
#[test]
fn the_page_is_made_of_the_kept_cells() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let dir = tempfile::tempdir().expect("temporary folder");
    std::fs::create_dir(dir.path().join("failed")).expect("a folder");
    let unpacked = Command::new("tar")
        .arg("-xJf")
        .arg(docs.join("reproduction-cells.tar.xz"))
        .arg("-C")
        .arg(dir.path())
        .status();
    assert!(unpacked.expect("tar runs").success());
    let page = dir.path().join("reproduction.md");
    let said = run(luc_lab()
        .args(["reproduce", "--from-results", "-o"])
        .arg(dir.path())
        .arg("--markdown")
        .arg(&page));
    assert_holds(&said, "figures:");
    let read = |path: &Path| std::fs::read_to_string(path).expect("a file of the page");
    for name in ["reproduction.md", "figures/reproduction.md"] {
        let (kept, made) = (read(&docs.join(name)), read(&dir.path().join(name)));
        let other = kept
            .lines()
            .zip(made.lines())
            .find(|(kept, made)| kept != made);
        assert_eq!(
            other, None,
            "{name}: the first line that differs, kept and made"
        );
        assert_eq!(kept.lines().count(), made.lines().count(), "{name}");
    }
    let made = read(&page);
    for plot in 1..=5 {
        let name = format!("reproduction-{plot}.svg");
        assert!(made.contains(&name), "the page shows {name}");
        let is_same = read(&docs.join(&name)) == read(&dir.path().join(&name));
        assert!(is_same, "{name} is not what the kept cells give");
    }
}
