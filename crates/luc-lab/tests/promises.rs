//! `luc-lab promises` as a shell sees it: exit codes, and one line per error.

mod common;

use std::fs;
use std::path::PathBuf;

use common::luc_lab;
use luc_test::command::{assert_begins, assert_holds, outputs};

struct Ground {
    top: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        let top = tempfile::tempdir().expect("temporary folder");
        fs::create_dir(top.path().join("tree")).expect("folder");
        Self { top }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    /// Exit code, standard output and standard error of a verb.
    fn promises(&self, verb: &str, more: &[&str]) -> (i32, String, String) {
        outputs(
            luc_lab()
                .args(["promises", verb, "--dir"])
                .arg(self.path("tree"))
                .arg("--acks")
                .arg(self.path("marks"))
                .args(more),
        )
    }

    fn worked() -> Self {
        let ground = Self::new();
        let work = "--processes 2 --threads 2 --ops 150 --seed 5 --sync-at-end";
        let (code, out, err) = ground.promises("work", &work.split(' ').collect::<Vec<_>>());
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        assert_holds(&out, "syncs acknowledged");
        ground
    }

    /// Exit code of a verb that fails, and its only line on standard error.
    fn refused(&self, verb: &str, more: &[&str]) -> (i32, String) {
        let (code, _, err) = self.promises(verb, more);
        assert_eq!(err.lines().count(), 1, "{err}");
        assert_begins(&err, "luc-lab: ");
        (code, err)
    }

    /// Finds a file with at least a sector of data, and its name below the top.
    fn some_file(&self) -> (PathBuf, String) {
        for dir in ["t1", "t2", "t3", "t4", "common"] {
            for entry in fs::read_dir(self.path("tree").join(dir)).expect("folder") {
                let path = entry.expect("entry").path();
                let data = if path.is_file() {
                    fs::read(&path).expect("data")
                } else {
                    vec![]
                };
                if data.len() > 512 && data[..8] == *b"LUCsectr" {
                    let name = path.file_name().expect("name").to_string_lossy();
                    let name = format!("{dir}/{name}");
                    return (path, name);
                }
            }
        }
        panic!("no file with data");
    }
}

#[test]
fn a_clean_tree_is_0_and_a_broken_promise_25() {
    let ground = Ground::worked();
    let (code, out, err) = ground.promises("verify", &[]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert_holds(&out, "0 broken promises");
    let (path, name) = ground.some_file();
    let mut data = fs::read(&path).expect("data");
    data[100] ^= 1;
    fs::write(&path, data).expect("changed");
    let (code, out, err) = ground.promises("verify", &[]);
    assert_eq!(code, 25);
    let line = format!("garbage: {name} sector 0: expected version ");
    assert_begins(&out, &line);
    assert_holds(&out, "acknowledged by mark");
    assert_holds(&err, "1 promise broken; first: garbage");
    let (code, out, _) = ground.promises("verify", &["--json"]);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(
        (code, &report["violations"][0]["kind"]),
        (25, &"garbage".into())
    );
    assert_eq!(report["schema"], 1);
    fs::remove_file(&path).expect("removed");
    assert_eq!(ground.refused("verify", &[]).0, 25);
}

#[test]
fn marks_up_to_a_place_leave_the_rest_unexplained() {
    let ground = Ground::worked();
    let (code, out, _) = ground.promises("verify", &["--until", "0"]);
    assert_eq!(code, 25);
    assert_begins(&out, "unexplained: ");
}

#[test]
fn bad_input_is_one_line() {
    let ground = Ground::worked();
    let marks = fs::read(ground.path("marks")).expect("marks");
    for (bytes, said) in [
        (&marks[..marks.len() - 1], "is truncated"),
        (&b"rubbish"[..], "contains no marks"),
        (&marks[1..], "contains no marks"),
        (&[marks.clone(), marks.clone()].concat(), "a second start"),
    ] {
        fs::write(ground.path("marks"), bytes).expect("marks");
        let (code, line) = ground.refused("verify", &[]);
        assert_eq!(code, 24, "{line}");
        assert_holds(&line, said);
    }
    fs::remove_file(ground.path("marks")).expect("removed");
    assert_eq!(ground.refused("verify", &[]).0, 5);
    fs::write(ground.path("marks"), &marks).expect("marks");
    fs::remove_dir_all(ground.path("tree")).expect("removed");
    assert_eq!(ground.refused("verify", &[]).0, 5);
    fs::remove_file(ground.path("marks")).expect("removed");
    assert_eq!(ground.refused("work", &[]).0, 5);
    fs::create_dir(ground.path("tree")).expect("folder");
    assert_eq!(ground.refused("work", &["--threads", "0"]).0, 14);
    fs::write(ground.path("tree").join("mine"), "x").expect("file");
    let (code, line) = ground.refused("work", &[]);
    assert_eq!(code, 14);
    assert_holds(&line, "is not empty");
}
