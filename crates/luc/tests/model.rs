//! Recordings and the model: `luc trace model`, and `luc trace summary` of a part of a recording.

mod common;

use std::path::Path;

use assert_cmd::Command;
use common::luc;
use luc_test::command::{assert_begins, assert_ends, assert_holds, run};

/// Records twelve rounds of 10 ms. Two threads create a file, write 8 KiB and sync it; the second
/// is late, so that it also waits for the rest of the commit under way. A third creates no file:
/// its write sleeps until the commit under way has written a buffer, then it syncs. Without
/// `synced` no thread syncs what it writes: two create and sync empty files, the third never syncs.
fn writers(file: &Path, synced: bool) {
    use luc_trace::{CREATED, Header, Span, SpanKind};
    const US: u64 = 1_000;
    let dev = "254:16".parse().expect("a device");
    let mut spans = Vec::new();
    let mut put = |pid: u32, kind: SpanKind, (begin_us, end_us): (u64, u64), more: Span| {
        spans.push(Span {
            kind,
            begin_ns: begin_us * US,
            end_ns: end_us * US,
            pid,
            tgid: 100,
            object: u64::from(pid),
            dev,
            ..more
        });
    };
    let none = Span::default();
    let write = Span {
        amount: 8192,
        ..none
    };
    for round in 1..=12_u32 {
        let at_us = u64::from(round) * 10_000;
        let tid = 2 * round;
        for (tid, begin_us) in [(tid, at_us + 100), (tid + 1, at_us + 4100)] {
            let commit = Span { tid, ..none };
            put(1, SpanKind::Commit, (begin_us, begin_us + 4000), commit);
        }
        let sync = |tid| Span {
            tid,
            done_tid: 2 * round - 1,
            ..none
        };
        // The first thread's sync begins before the first commit, the second thread's after it.
        for (pid, late_us, end_us) in [(101, 0, 4110), (102, 1000, 8110)] {
            let (at_us, end_us) = (at_us + late_us, at_us + end_us);
            let created = Span {
                flags: CREATED,
                ..none
            };
            put(pid, SpanKind::Open, (at_us, at_us + 20), created);
            if synced {
                put(pid, SpanKind::Write, (at_us + 30, at_us + 40), write);
            }
            let sync = sync(tid + u32::from(late_us > 0));
            put(pid, SpanKind::Fsync, (at_us + 50, end_us), sync);
            put(pid, SpanKind::Close, (end_us, end_us + 5), none);
        }
        let slept = Span {
            within: SpanKind::Write,
            ..none
        };
        let slept_us = (at_us + 2010, at_us + 4000);
        put(103, SpanKind::WaitBuffer, slept_us, slept);
        put(103, SpanKind::Write, (at_us + 2000, at_us + 4010), write);
        if synced {
            let sync_us = (at_us + 4050, at_us + 8120);
            put(103, SpanKind::Fsync, sync_us, sync(tid + 1));
        }
    }
    luc_test::command::record(file, &Header::default().with("kernel", "6.12"), spans);
}

fn luc_trace(dir: &Path, verb: &str, words: &[&str]) -> Command {
    let mut command = luc();
    command.args(["trace", verb]).args(words).current_dir(dir);
    command
}

#[test]
fn recordings_meet_the_model() {
    let dir = tempfile::tempdir().expect("temporary folder");
    writers(&dir.path().join("run"), true);
    let model = |words: &[&str]| luc_trace(dir.path(), "model", words);
    let text = run(&mut model(&["run"]));
    for line in [
        "254:16, 118 ms, 3 threads",
        "fsync time, p50              4.07 ms   4.05 ms",
        "of 36 fsyncs: median error 0.2%, 90th percentile 0.5%; the right commit for 100.0%",
        "amended: median error 0.2%, 90th percentile 0.5%; the right commit for 100.0%",
        "X, not affected       12      10.0 us   10.0 us    0.00 ns",
        "Z, partially blocked  24      1.01 ms   2.60 ms    995 us",
        "[exit 0]",
    ] {
        assert!(text.lines().any(|it| it == line), "no {line:?} in {text}");
    }
    for rule in [
        "as it is, simulated  ",
        "after 1.00 ms without a sync  ",
        "LUC  ",
    ] {
        assert!(text.lines().any(|it| it.starts_with(rule)), "{text}");
    }
    // Errors of throughput, median and tail: a correct mean can hide a wrong tail.
    let simulated = text
        .lines()
        .find(|it| it.starts_with("the simulation of the recording"));
    let simulated = simulated.unwrap_or_default();
    for of in ["% in operations/s, ", "% in fsync p50, ", "% in p99"] {
        assert!(simulated.contains(of), "{text}");
    }
    let json = |words: &[&str]| -> serde_json::Value {
        let output = model(words).output().expect("the program runs");
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let whole = json(&["run", "--json", "--delay-us", "50"]);
    let fs = &whole["file_systems"][0];
    assert_eq!(fs["device"], "254:16");
    assert_eq!(fs["fsync"]["measured"]["count"], 36);
    assert_eq!(fs["writes"]["z"]["writers"], 12 + 12);
    assert_eq!(fs["writes"]["z"]["blocked_mean_ns"], 995_000.0);
    assert_eq!(fs["what_if"]["delay"]["rule"]["delay"]["idle_ns"], 50_000);
    let gain = |rule: &str| fs["what_if"][rule]["gain"].as_f64().expect("a number");
    assert!(gain("luc") > 0.0 && gain("no_blocked_writes") > 0.0 && gain("best_batching") > 0.0);
    assert_eq!(fs["what_if"]["machine"][0]["name"], "processors");
    assert!(fs["what_if"]["machine"][0]["value"].is_null(), "{fs}");
    // The last three rounds, begun in the last 28.2 ms.
    let last = json(&["run", "--json", "--last-s", "0.0282"]);
    assert_eq!(last["file_systems"][0]["fsync"]["measured"]["count"], 9);
    // Only a close, so nothing to simulate.
    let few = json(&["run", "--json", "--last-s", "0.000015"]);
    assert!(few["file_systems"][0]["what_if"].is_null());
    let why = few["file_systems"][0]["what_if_refused"].as_str();
    assert!(
        why.is_some_and(|why| why.contains("no journal commit")),
        "{few}"
    );
    for (words, why, code) in [
        (&["absent"][..], "luc: trace absent: ", 24),
        (
            &["run", "--last-s", "1e-9"],
            "luc: trace run: no event began in its last 0.000000001 s",
            24,
        ),
        (&["run", "--last-s", "0"], "must be more than 0", 2),
        (&["run", "--delay-us", "2000000"], "2000000 is not in", 2),
    ] {
        let said = run(&mut model(words));
        assert_holds(&said, why);
        assert_ends(&said, &format!("[exit {code}]\n"));
    }
}

/// Algorithm 4.2 finds writers by their syncs; without any, delayed writes are still reported.
#[test]
fn writers_that_never_sync_are_told_of() {
    let dir = tempfile::tempdir().expect("temporary folder");
    writers(&dir.path().join("run"), false);
    let model = |words: &[&str]| run(&mut luc_trace(dir.path(), "model", words));
    let said = "\nno table of writers, because no thread synced a file that it wrote; of 12 writes, \
                12 (100.0%) waited for a commit, 1.99 ms each\n";
    let text = model(&["run"]);
    assert_holds(&text, said);
    let text = model(&["run", "--last-s", "0.0282"]);
    assert_holds(&text, "of 3 writes, 3 (100.0%) waited");
    let json = model(&["run", "--json"]);
    assert_holds(&json, "\"delayed\": 12,");
    // A thread that syncs what it writes is in the table instead.
    writers(&dir.path().join("run"), true);
    let text = model(&["run"]);
    assert!(!text.contains("no table of writers"), "{text}");
}

#[test]
fn a_summary_of_the_end() {
    let dir = tempfile::tempdir().expect("temporary folder");
    writers(&dir.path().join("run"), true);
    let summary = |words: &[&str]| run(&mut luc_trace(dir.path(), "summary", words));
    for (words, counts) in [
        (&["run"][..], "24 opens, 36 writes, 36 syncs, 24 closes\n"),
        (
            &["run", "--last-s", "0.0282"],
            "6 opens, 9 writes, 9 syncs, 6 closes\n",
        ),
    ] {
        let text = summary(words);
        assert_holds(&text, counts);
    }
    let text = summary(&["run", "--last-s", "1e-9"]);
    assert_begins(&text, "luc: trace run: no event began");
    assert_ends(&text, "[exit 24]\n");
}

/// A statistic over nothing is unknown, or none; it is never 0.
#[test]
fn a_summary_of_nothing_has_no_zeros() {
    use luc_trace::{Header, Span, SpanKind};
    let dir = tempfile::tempdir().expect("temporary folder");
    let file = dir.path().join("quiet.luc");
    let dev = "7:0".parse().expect("a device");
    let open = Span {
        kind: SpanKind::Open,
        begin_ns: 1,
        end_ns: 2_000_000_000,
        dev,
        ..Span::default()
    };
    let header = Header::default().with_mount_point(dev, "/srv/data");
    luc_test::command::record(&file, &header, vec![open]);
    let said = run(&mut luc_trace(dir.path(), "summary", &["quiet.luc"]));
    assert_begins(&said, "/srv/data (7:0), 2.00 s, ");
    for line in [
        "  commits        0, - syncs each; none",
        "  syncs          none",
        "  data flushes   mean -",
        "  writes         none",
        "  the model      predicts fsyncs with a median error of -",
    ] {
        assert!(said.lines().any(|one| one == line), "{line}\n{said}");
    }
    let said = run(&mut luc_trace(
        dir.path(),
        "summary",
        &["--json", "quiet.luc"],
    ));
    let said = said.trim_end_matches("[exit 0]\n");
    let json: serde_json::Value = serde_json::from_str(said).expect("JSON");
    let one = &json["file_systems"][0];
    assert_eq!(one["mount_point"], "/srv/data");
    for field in [
        "commit",
        "sync",
        "write",
        "two_commits_share",
        "write_delay_mean_ns",
    ] {
        assert!(one["table"][field].is_null(), "{field}\n{said}");
    }
    assert!(one["fsync_model"]["error_median_share"].is_null(), "{said}");
}
