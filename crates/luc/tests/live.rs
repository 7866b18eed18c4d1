//! `luc top --once`, `luc exporter --once` and `luc status --live` against a
//! fake kernel, which has a module but nothing to trace.

mod common;

use std::time::Instant;

use common::{Load, Pretended, count_energy, set_energy};
use luc_test::command::{assert_ends, assert_holds};

/// A machine with LUC on for /srv/data.
fn working() -> Pretended {
    let machine = Pretended::new();
    machine.run(&["on", "/srv/data"]);
    machine.count(
        "vdb",
        &[("commits", 10), ("sync_events", 80), ("held_ns", 5_000_000)],
    );
    machine
}

#[test]
fn without_tracer_the_module_is_asked() {
    let said = working().run(&["top", "--once", "--interval", "0.2"]);
    assert_holds(&said, "note: nothing is traced: ");
    assert_holds(&said, "LUC on for 1 of 3");
    let row = said.lines().find(|line| line.starts_with("/srv/data "));
    assert!(row.is_some_and(|row| row.ends_with("luc")), "{said}");
    // A file system without a journal, or with one that never commits, is left out.
    assert!(
        !said.contains("/srv/plain") && !said.contains("/srv/frozen"),
        "{said}"
    );
}

#[test]
fn without_both_there_is_a_failure() {
    let said = Pretended::new().run(&["top", "--once"]);
    assert_holds(&said, "not a tree of files");
    assert_ends(&said, "[exit 24]\n");
}

/// A failed scrape gives no reason; a page that says 0 can raise an alert.
#[test]
fn without_both_a_page_says_so() {
    let said = Pretended::new().run(&["exporter", "--once"]);
    for means in ["tracepoint", "fentry", "kprobe"] {
        let series = format!("luc_tracer_attached{{means=\"{means}\"}} 0");
        assert!(said.lines().any(|line| line == series), "{series}\n{said}");
    }
    assert!(
        said.contains("note: nothing is traced: ") && !said.contains("[exit"),
        "{said}"
    );
}

#[test]
fn snapshots_are_for_programs_too() {
    let said = working().run(&["top", "--once", "--json", "--interval", "0.2"]);
    let snapshot: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(snapshot["tracing"], false);
    let journals = snapshot["journals"].as_array().expect("journals");
    let data = journals.iter().find(|one| one["name"] == "vdb");
    let data = data.expect("/srv/data");
    assert_eq!(data["luc"]["policy"], "luc");
    assert_eq!(data["luc"]["rates"]["commits_per_s"], 0.0);
    assert!(data["traced"].is_null());
}

#[test]
fn a_page_is_printed_or_written() {
    let machine = working();
    let said = machine.run(&["exporter", "--once"]);
    for line in [
        "luc_tracer_attached{means=\"tracepoint\"} 0",
        "luc_commits_total{device=\"vdb\",mountpoint=\"/srv/data\"} 10",
        "luc_held_seconds_total{device=\"vdb\",mountpoint=\"/srv/data\"} 0.005",
    ] {
        assert!(said.lines().any(|one| one == line), "{line}\n{said}");
    }
    let file = machine.dir.path().join("luc.prom");
    let shown = file.to_str().expect("a name");
    let said = machine.run(&["exporter", "--once", "--textfile", shown]);
    assert!(!said.contains("[exit"), "{said}");
    let page = std::fs::read_to_string(&file).expect("the file stays");
    assert_holds(&page, "luc_sync_events_total");
    // An interrupt ends the exporter, and no old numbers stay.
    let stop = luc_base::Stop::new();
    stop.set();
    machine.run_until(&["exporter", "--textfile", shown], stop);
    assert!(!file.exists());
}

/// A page without the series that were asked for would look like a page of a quiet machine.
#[test]
fn blame_that_cannot_be_watched_is_a_failure() {
    let machine = working();
    let said = machine.run(&["exporter", "--blame", "/srv/data"]);
    assert_holds(&said, "not a tree of files");
    assert_ends(&said, "[exit 24]\n");
    let said = machine.run(&["exporter", "--blame", "/srv/none"]);
    assert_holds(&said, "/srv/none: no such file");
    assert_ends(&said, "[exit 5]\n");
}

#[test]
fn status_adds_an_interval_where_it_is_asked_for() {
    let machine = working();
    let plain = machine.run(&["status"]);
    let live = machine.run(&["status", "--live=0.2", "/srv/data"]);
    assert!(live.starts_with(plain.trim_end()), "{live}");
    assert_holds(&live, "commits/s");
    let json = machine.run(&["status", "--json", "--live=0.2"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["live"]["schema"], 1);
    assert!(json["live"]["energy"]["unknown"].is_string(), "{json}");
    assert_holds(&live, "\nenergy: unknown: ");
    count_energy(&machine);
    let since = Instant::now();
    let _load = Load::new(machine.dir.path(), move |root| {
        set_energy(root, 40.0 * since.elapsed().as_secs_f64());
        None
    });
    let live = machine.run(&["status", "--live=0.5", "/srv/data"]);
    assert_holds(
        &live,
        " W: 1 processor package alone, without DRAM and disks",
    );
    let off = Pretended::new().run(&["status", "--live"]);
    assert!(
        off.contains("no live numbers: ") && !off.contains("[exit"),
        "{off}"
    );
}

#[test]
fn a_view_needs_a_terminal() {
    let output = common::luc().arg("top").output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_holds(&said, "luc status");
    assert_holds(&said, "luc trace count");
}
