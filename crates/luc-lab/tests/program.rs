//! The program as a shell sees it: help, exit codes, pages, completions, and
//! the verbs that need no kernel.

mod common;

use std::fs;

use common::luc_lab;
use insta::assert_snapshot;
use luc_test::command::{assert_begins, assert_ends, dense, run};
use luc_test::{completions, pages};

#[test]
fn help_is_one_page() {
    assert_snapshot!(run(luc_lab().arg("--help")));
}

#[test]
fn wrong_command_lines_exit_with_2() {
    let lines: [&[&str]; 3] = [
        &[],
        &["fly"],
        &["bench", "create-fsync", "--threads", "none", "/tmp"],
    ];
    for line in lines {
        luc_lab().args(line).assert().code(2);
    }
}

/// Every page exists, and `man` renders it without a warning.
#[test]
fn man_pages_render() {
    let dir = pages::written("luc-lab");
    let page = |name: &str| fs::read_to_string(dir.path().join(name)).expect(name);
    assert!(page("luc-lab.1").contains("luc\\-lab\\-bench"));
    assert!(page("luc-lab-bench-create-fsync.1").contains("threads"));
    pages::assert_they_render(dir.path());
}

#[test]
fn completions_know_verbs_workloads_and_kernels() {
    for shell in ["bash", "zsh", "fish"] {
        let script = completions::script("luc-lab", shell);
        for word in ["reproduce", "create-fsync", "allow-log", "6.12-full"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    completions::assert_shells_read_them("luc-lab");
    let words = ["luc-lab", "run", "--kernel", "6.12-"];
    completions::assert_bash_offers(&words, &["6.12-full", "6.12-debug"]);
    let patched = ["7.2-upstream", "7.2-upstream-debug", "7.2-upstream-races"];
    completions::assert_fish_offers("luc-lab fetch 6.12 7.2-", &patched);
}

#[test]
fn poles_of_gains() {
    let poles = |words: &[&str]| run(luc_lab().args(["control", "poles"]).args(words));
    let json = poles(&["--json"]);
    let json = dense(json.trim_end_matches("[exit 0]\n"));
    let others = [&["--kp", "4", "--ki", "0"][..], &["--kp", "-1"]].map(poles);
    assert_snapshot!(poles(&[]) + &others.concat() + &json);
}

#[test]
fn benches_print_json_and_name_what_failed() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let words = "bench create-fsync --threads 2 --ops 3 --warmup-s 0 --json";
    let said = run(luc_lab().args(words.split(' ')).arg(dir.path()));
    let line = said.lines().next().expect("a line");
    let report: serde_json::Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(report["workload"], "create-fsync");
    assert!(said.ends_with("[exit 0]\n"));
    let said = run(luc_lab().args(["bench", "burst", "/no/such/folder"]));
    assert_begins(
        &said,
        "luc-lab: burst: cannot create directory /no/such/folder/",
    );
    assert_ends(&said, "[exit 14]\n");
}

#[test]
fn the_lab_refuses_nonsense_before_it_starts() {
    let unknown = run(luc_lab().args(["run", "--kernel", "1.0", "--no-module", "--", "true"]));
    assert_begins(
        &unknown,
        "luc-lab: no kernel named \"1.0\"; known kernels: ",
    );
    assert_ends(&unknown, "[exit 20]\n");
    let lines: [&[&str]; 3] = [
        &["--cpu-mips", "333", "--no-module", "--", "true"],
        &["--file", "here", "--", "true"],
        &["--source", "/no/such/folder", "--", "true"],
    ];
    let mut said = String::new();
    for line in lines {
        said += &run(luc_lab().args(["run"]).args(line));
    }
    said += &run(luc_lab().args(["run", "--disk", "fast", "--", "true"]));
    assert_snapshot!(said);
}

#[test]
fn disks_are_listed_with_their_sources() {
    let disks = |words: &[&str]| run(luc_lab().args(["disks"]).args(words));
    let all = disks(&[]);
    for preset in luc_disk::presets() {
        assert!(all.contains(&format!("\n{}: {}\n", preset.name, preset.about)));
    }
    let (summary, _) = all.split_once("\n\n").expect("a table of all");
    let (one, unknown) = (disks(&["hdd-7200"]), disks(&["nvme-plp", "floppy"]));
    assert_snapshot!(format!("{summary}\n{one}{unknown}"));
    let output = luc_lab().args(["disks", "--json", "nvme"]).output();
    let json = output.expect("the program runs").stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let preset = &json["presets"][0];
    assert_eq!(preset["name"], "nvme");
    let knobs = preset["knobs"].as_array().expect("a list");
    assert_eq!(knobs.len(), luc_disk::knobs().len());
    let flush = knobs.iter().find(|knob| knob["name"] == "flush_ns");
    let flush = flush.expect("the knob is there");
    assert_eq!(flush["value"], 3_400_000);
    assert!(
        flush["source"]
            .as_str()
            .is_some_and(|from| from.contains("Percona"))
    );
}
