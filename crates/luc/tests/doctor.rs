//! `luc doctor` on recordings, on a fake machine.

mod common;

use std::time::Instant;

use common::{Load, Pretended, count_energy, set_energy};
use luc_test::command::{assert_begins, assert_ends, assert_holds};
use luc_trace::{Header, Span, SpanKind};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// The device of /srv/data on the fake machine.
const DEV: luc_control::Dev = luc_control::Dev {
    major: 254,
    minor: 16,
};

/// Two pairs of threads take turns: each asks for a commit while the other pair's commit runs.
fn convoys() -> Vec<Span> {
    let mut spans = Vec::new();
    let task = Span {
        pid: 40,
        tgid: 40,
        ..Span::default()
    };
    spans.push(task.with_name("mailer"));
    for tid in 2..2000_u32 {
        let begin_ns = u64::from(tid) * 4 * MS;
        let end_ns = begin_ns + 4 * MS - 10 * US;
        spans.push(Span {
            kind: SpanKind::Commit,
            begin_ns,
            end_ns,
            tid,
            marks_ns: [begin_ns + 2 * US; 3],
            pid: 1,
            dev: DEV,
            ..Span::default()
        });
        for thread in 0..2 {
            spans.push(Span {
                kind: SpanKind::Fsync,
                begin_ns: begin_ns - 4 * MS + 100 * US,
                end_ns: end_ns + 5 * US,
                tid,
                done_tid: tid - 2,
                pid: 41 + tid % 2 * 2 + thread,
                tgid: 40,
                dev: DEV,
                ..Span::default()
            });
        }
    }
    spans
}

/// A lone thread: LUC cannot help.
fn alone() -> Vec<Span> {
    let mut spans = convoys();
    spans.retain(|span| span.kind != SpanKind::Fsync || span.pid == 41);
    for span in spans.iter_mut().filter(|s| s.kind == SpanKind::Fsync) {
        span.begin_ns += 4 * MS - 150 * US;
        span.done_tid += 1;
    }
    spans
}

/// The lone thread, and another process that never syncs but waits for each commit's metadata.
fn writers() -> Vec<Span> {
    let mut spans = alone();
    let task = Span {
        pid: 70,
        tgid: 70,
        ..Span::default()
    };
    spans.push(task.with_name("unpacker"));
    let commits = spans.clone();
    let commits = commits.iter().filter(|span| span.kind == SpanKind::Commit);
    for commit in commits {
        let write = Span {
            kind: SpanKind::Write,
            begin_ns: commit.begin_ns + 100 * US,
            end_ns: commit.end_ns,
            pid: 70,
            tgid: 70,
            dev: DEV,
            ..Span::default()
        };
        spans.push(write);
        spans.push(Span {
            kind: SpanKind::WaitBuffer,
            within: SpanKind::Write,
            begin_ns: write.begin_ns + 5 * US,
            ..write
        });
    }
    spans
}

fn record(machine: &Pretended, name: &str, boot: &str, spans: &[Span]) -> String {
    let path = machine.dir.path().join(name);
    let header = Header::default().with("boot", boot);
    luc_test::command::record(&path, &header, spans.iter().copied());
    path.display().to_string()
}

/// Parses the JSON before the lines of standard error.
fn json_of(said: &str) -> serde_json::Value {
    let json = said.split("\nluc: ").next().unwrap_or_default();
    serde_json::from_str(json).expect("JSON")
}

fn machine() -> Pretended {
    let machine = Pretended::new();
    machine.put("/proc/sys/kernel/random/boot_id", "this-boot\n");
    machine
}

/// Device numbers of another machine say nothing about this one's.
#[test]
fn a_recording_from_elsewhere_is_of_no_path_here() {
    let machine = machine();
    let file = record(&machine, "elsewhere", "another-boot", &convoys());
    let said = machine.run(&["doctor", "--from", &file]);
    assert_begins(&said, "254:16: syncs wait");
    assert_holds(&said, "\n  next: luc on PATH\n");
}

#[test]
fn programs_get_names_and_numbers() {
    let machine = machine();
    let file = record(&machine, "here", "this-boot", &convoys());
    let said = machine.run(&["doctor", "--json", "--from", &file]);
    let json = json_of(&said);
    assert_eq!(json["relief"], "luc");
    let found = &json["file_systems"][0];
    assert_eq!(found["device"], "254:16");
    assert_eq!(found["verdicts"][0]["kind"], "sync_delays");
    assert_eq!(found["gain"]["trusted"], true);
    assert_eq!(found["facts"]["device"], "/dev/vdb");
    assert_eq!(found["confidence"]["level"], "high");
}

#[test]
fn what_it_refuses() {
    let machine = machine();
    for (path, code) in [
        ("/srv/xfs", "[exit 6]"),
        ("/srv/plain", "[exit 6]"),
        ("/srv/frozen", "[exit 7]"),
        ("/no/such/folder", "[exit 5]"),
    ] {
        let said = machine.run(&["doctor", path]);
        assert!(said.trim_end().ends_with(code), "{path}: {said}");
    }
    let said = machine.run(&["doctor", "--from", "/no/such/file"]);
    assert_ends(&said, "[exit 24]\n");
}

/// The complete pages that people read.
#[test]
fn what_people_read() {
    let machine = machine();
    let read = |name, spans: &[Span]| {
        let file = record(&machine, name, "this-boot", spans);
        machine.run(&["doctor", "--from", &file])
    };
    let mut once = alone();
    once.retain(|span| span.tid == 2);
    let mut commit = once.clone();
    commit.retain(|span| span.kind == SpanKind::Commit);
    let pages = [
        read("convoys", &convoys()),
        read("alone", &alone()),
        read("once", &once),
        read("commit", &commit),
        read("writers", &writers()),
    ];
    insta::assert_snapshot!(pages.join("--\n"));
}

/// Events that a recording could not see are unknown, not 0. The doctor gives the reason that the
/// recording names.
#[test]
fn what_was_not_seen_is_not_known() {
    let machine = machine();
    let path = machine.dir.path().join("blind");
    let why = "not seen here: writes, the data flush of syncs: this kernel has no kprobes";
    let header = Header::default()
        .with("boot", "this-boot")
        .with(Header::UNSEEN, "write,flush")
        .with(Header::UNSEEN_WHY, why);
    luc_test::command::record(&path, &header, convoys());
    let file = path.display().to_string();
    let said = machine.run(&["doctor", "--from", &file]);
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("at most"), "{said}");
    assert!(!words.contains("next: luc on"), "{said}");
    let sentence = why.replacen("not", "Not", 1);
    assert_eq!(words.matches(&sentence).count(), 1, "{said}");
    let json = machine.run(&["doctor", "--json", "--from", &file]);
    let json = json_of(&json);
    assert_eq!(json["unseen"], serde_json::json!(["write", "flush"]));
    let account = &json["file_systems"][0]["account"];
    assert!(account["flush_ns"].is_null() && account["sync_ns"].is_number());

    let said = machine.run(&["trace", "summary", "--json", &file]);
    assert_holds(&said, "luc: note: unknown, because not recorded in");
    let json = json_of(&said);
    let fs = &json["file_systems"][0];
    assert!(fs["counts"]["write"].is_null() && fs["counts"]["open"] == 0);
    assert!(fs["bytes_written"].is_null() && fs["table"]["writes"].is_null());
    let said = machine.run(&["trace", "summary", &file]);
    assert_holds(&said, "0 opens, - writes, ");
}

/// The doctor does not advise LUC on a kernel that loads no module.
#[test]
fn luc_is_not_advised_where_it_cannot_run() {
    let machine = machine();
    machine.put("/proc/sys/kernel/modules_disabled", "1\n");
    machine.put("/proc/cmdline", "quiet nomodule\n");
    let file = record(&machine, "here", "this-boot", &convoys());
    let said = machine.run(&["doctor", "--from", &file]);
    let line = "LUC cannot run on this machine: the kernel was booted with nomodule.";
    assert!(
        said.contains(line) && !said.contains("next: luc on"),
        "{said}"
    );
    let said = machine.run(&["on", "/srv/data"]);
    assert_holds(&said, "booted with nomodule");
    assert!(
        !said.contains("dkms") && said.ends_with("[exit 12]\n"),
        "{said}"
    );
}

/// A counter that an older module lacks is unknown, not unchanged.
#[test]
fn what_the_module_does_not_count_is_not_known() {
    let machine = machine();
    machine.run(&["on", "/srv/data"]);
    for counter in ["writes_delayed", "write_delay_ns", "copies", "held_ns"] {
        machine.remove(&format!("/sys/fs/luc/vdb/counters/{counter}"));
    }
    machine.count("vdb", &[("commits_held", 3), ("commits", 4)]);
    let said = machine.run(&["doctor", "/srv/data", "--json", "--seconds", "1"]);
    let json = json_of(&said);
    let found = &json["file_systems"][0];
    assert!(found["counts"]["writes_delayed"].is_null(), "{said}");
    assert_eq!(found["counts"]["commits"], 0, "{said}");
    let unknown = found["unknown"].as_array().expect("a list");
    let writes = "whether writes wait for commits";
    assert!(unknown.iter().any(|one| one == writes), "{said}");

    assert!(json["energy"].is_null(), "{said}");

    let said = machine.run(&["status"]);
    for line in [
        "  held       3 commits (75%) for - on average, 0 s at most",
        "  writes     0 operations, - delayed (-) for - on average, 0 s at most",
        "  copy-out   not active, - buffers copied, 0 changed meanwhile",
    ] {
        assert!(said.lines().any(|one| one == line), "{line}\n{said}");
    }
}

/// The energy of the machine is told where it has counters; nothing is said where it has none.
#[test]
fn energy_is_that_of_the_watched_time() {
    let machine = machine();
    machine.run(&["on", "/srv/data"]);
    let said = machine.run(&["doctor", "/srv/data", "--seconds", "1"]);
    assert!(!said.contains("energy"), "{said}");

    count_energy(&machine);
    let since = Instant::now();
    let _load = Load::new(machine.dir.path(), move |root| {
        set_energy(root, 40.0 * since.elapsed().as_secs_f64());
        None
    });
    let said = machine.run(&["doctor", "/srv/data", "--json", "--seconds", "1"]);
    let json = json_of(&said);
    assert_eq!(json["energy"]["boundary"]["of"], "packages", "{said}");
    let watts = json["energy"]["watts"].as_f64().expect("watts");
    assert!((20.0..80.0).contains(&watts), "{said}");
    // The module counts no sync calls.
    assert!(json["joules_per_sync"].is_null(), "{said}");
    let said = machine.run(&["doctor", "/srv/data", "--seconds", "1"]);
    assert_holds(
        &said,
        " W: 1 processor package alone, without DRAM and disks",
    );
}
