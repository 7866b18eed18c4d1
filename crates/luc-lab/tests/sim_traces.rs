//! Recordings of the simulator: what `luc trace`, `luc doctor` and `luc replay` say about them,
//! compared with what the simulator knows.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{luc, luc_lab};
use luc_control::Params;
use luc_model::{Observed, fsync_model, write_model};
use luc_sim::processors::ProcessorModel;
use luc_sim::{Setup, recorder};
use luc_test::command::{assert_begins, assert_holds, outputs};
use luc_trace::{Event, Record, Span, SpanKind, Trace};
use luc_workload::Outcome;
use serde_json::Value;
use tempfile::TempDir;

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Simulates with these words; returns the report.
    fn simulate(&self, name: &str, words: &str) -> Value {
        let mut command = luc_lab();
        command.args(["sim", "run", "--json", "--record"]);
        command.arg(self.path(name)).args(words.split_whitespace());
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}: {said}");
        assert!(said.starts_with("luc-lab: ") && said.ends_with("; 0 lost\n"));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

/// Runs a verb on a recording; returns the exit code, standard output and standard error.
fn say(verb: &str, file: &Path) -> (i32, String, String) {
    let mut program = if verb.starts_with("sim ") {
        luc_lab()
    } else {
        luc()
    };
    outputs(program.args(verb.split_whitespace()).arg(file))
}

fn json(verb: &str, file: &Path) -> Value {
    let (_, out, err) = say(verb, file);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"))
}

fn count(value: &Value, pointer: &str) -> u64 {
    let count = value.pointer(pointer).and_then(Value::as_u64);
    count.unwrap_or_else(|| panic!("no {pointer} in {value:#}"))
}

fn number(value: &Value, pointer: &str) -> f64 {
    let number = value.pointer(pointer).and_then(Value::as_f64);
    number.unwrap_or_else(|| panic!("no {pointer} in {value:#}"))
}

#[test]
fn decisions_replay_with_no_difference() {
    let files = Files::new();
    for (words, polls) in [
        ("--luc -- create-fsync --threads 16 --seconds 1", true),
        (
            "--policy published --set setpoint_events=8 -- create-fsync --threads 16 --seconds 1",
            true,
        ),
        (
            "--policy static --cpus 4 --disk hdd-7200 -- metarates --procs 4 --files 16",
            true,
        ),
        ("--luc -- write-delay --writers 48 --seconds 1", false),
    ] {
        files.simulate("run.luc", words);
        let found = json("replay --json", &files.path("run.luc"));
        assert_eq!(found["passed"], true, "{words}: {found:#}");
        assert_eq!(found["mismatching"], 0);
        assert_eq!(found["chain_breaks"], 0);
        assert_eq!(
            count(&found, "/by_step/open"),
            count(&found, "/by_step/close")
        );
        assert!(count(&found, "/by_step/poll") > 0 || !polls, "{found:#}");
        assert_eq!(found["header"]["kernel"], "simulated");
    }
    // Stock makes no decision.
    files.simulate("stock.luc", "-- create-fsync --threads 4 --seconds 1");
    let (code, _, said) = say("replay", &files.path("stock.luc"));
    assert!(said.contains("holds no decision") && code == 24, "{said}");
}

/// The benchmarks have no warm-up. The recording also has the sync of their folder, with a commit
/// of its own.
#[test]
fn a_summary_counts_what_the_report_counts() {
    let files = Files::new();
    for words in [
        "--disk hdd-7200 --cpus 4 -- metarates --procs 4 --files 16",
        "--disk hdd-7200 --cpus 4 --mips 3000 -- metarates --procs 16 --files 4",
        "--luc --cpus 2 -- metarates --procs 8 --files 32",
        "--disk hdd-7200 --cpus 4 -- iozone -s 128k -r 32k -e -c -x -t 64",
        "--disk hdd-7200 --cpus 2 --mips 500 -- burst --threads 8 --bursts 10 --warmup-bursts 0",
    ] {
        let report = files.simulate("run.luc", words);
        let summary = json("trace summary --json", &files.path("run.luc"));
        let of = &summary["file_systems"][0];
        assert_eq!(
            count(&report, "/journal/commits") + 1,
            count(of, "/table/commits"),
            "{words}"
        );
        let syncs = count(&report, "/fsync/count");
        assert_eq!(syncs, count(of, "/counts/fsync"), "{words}");
        assert_eq!(syncs, count(of, "/counts/close"), "{words}");
        let by_commits: Vec<u64> = (0..4)
            .map(|at| count(&report, &format!("/syncs_by_commits/{at}")))
            .collect();
        assert_eq!(by_commits[0], count(of, "/table/syncs_unneeded"));
        assert_eq!(by_commits[3], 0);
        let (one, two) = (by_commits[1], by_commits[2]);
        assert_eq!(count(of, "/counts/sync"), 1, "{words}");
        assert_eq!(one + two, count(of, "/table/sync_events"), "{words}");
        let near = |pointer: &str, value: f64| {
            let found = number(of, pointer);
            assert!((found - value).abs() < 1e-9, "{words}: {found} {value}");
        };
        let syncs = syncs as f64;
        near("/table/two_commits_share", two as f64 / syncs);
        near("/table/commits_waited_mean", (one + 2 * two) as f64 / syncs);
        // The sync of the folder: nothing before it shows which commits there were.
        assert_eq!(count(of, "/table/syncs_unserved"), 1);
    }
}

fn trace(
    words: &str,
    disk: &str,
    machine: ProcessorModel,
    luc: Option<Params>,
) -> (luc_workload::BenchReport, Trace) {
    let setup = Setup {
        luc,
        ..Setup::stock(machine, disk.parse().expect("a disk"))
    };
    let load = luc_sim_loads::load(words.split_whitespace()).expect("a benchmark");
    let (report, recording) = luc_sim_loads::record(&load, &setup).expect("it is simulated");
    (report, recording.into_trace())
}

/// The benchmark counts a write as delayed if it took more than 1 ms; the recording and the module
/// do if it slept on metadata under commit.
#[test]
fn writes_that_are_delayed_are_those_of_the_report() {
    for luc in [None, Some(Params::default())] {
        let words = "write-delay --writers 48 --seconds 1 --warmup-s 0";
        let (report, trace) = trace(words, "4ms:1", ProcessorModel::new(1, 1000.0), luc);
        let Outcome::WriteDelay(found) = report.outcome else {
            panic!("{report:?}");
        };
        let observed = Observed::from_trace(&trace, recorder::DEV);
        let table = observed.table();
        assert_eq!(
            (found.writes, found.fsyncs),
            (table.writes, table.sync.count - 1)
        );
        let long = || {
            observed
                .writes
                .iter()
                .filter(|it| it.duration_ns() > 1_000_000)
        };
        assert_eq!(found.delayed, long().count() as u64);
        let asleep = long().filter(|it| it.waits.buffer_waits > 0).count();
        assert!(
            asleep as f64 > 0.95 * found.delayed as f64,
            "{asleep} {found:?}"
        );
        assert!(table.writes_delayed >= asleep as u64);
        assert_eq!(table.writes_delayed > 1000, luc.is_none(), "{table:?}");
        let slept = |it: &&Span| it.kind == SpanKind::WaitBuffer;
        let told = |it: &&Record| matches!(it.event, Event::WriteDelay { .. });
        let told = trace.lines.iter().filter(told).count();
        let slept = trace.spans.iter().filter(slept).count();
        assert_eq!(told, if luc.is_some() { slept } else { 0 });
    }
}

/// The model infers from times how many commits each sync waited for; the simulator knows it from
/// transactions.
#[test]
fn the_model_groups_syncs_as_the_simulator_does() {
    for (words, disk, machine, right) in [
        (
            "create-fsync --threads 16 --seconds 2",
            "4ms:1",
            ProcessorModel::new(1, 1000.0),
            1.0,
        ),
        (
            "create-fsync --threads 64 --seconds 1",
            "nvme",
            ProcessorModel::new(2, 500.0),
            0.97,
        ),
        (
            "metarates --procs 4 --files 64",
            "hdd-7200",
            ProcessorModel::new(4, 3000.0),
            0.98,
        ),
        (
            "burst --threads 8 --bursts 20 --warmup-bursts 0",
            "hdd-7200",
            ProcessorModel::new(2, 500.0),
            0.9,
        ),
        // While a commit locks its transaction, other tasks' creates join it; their fsyncs come
        // later.
        (
            "create-fsync --threads 16 --seconds 1",
            "100us:64",
            ProcessorModel::new(4, 1000.0),
            0.6,
        ),
    ] {
        let (_, mut trace) = trace(words, disk, machine, None);
        // The sync of the folder names no transaction.
        trace.spans.retain(|span| span.kind != SpanKind::Sync);
        let observed = Observed::from_trace(&trace, recorder::DEV);
        let syncs = trace.spans.iter().filter(|span| span.kind.is_file_sync());
        let known: Vec<u32> = syncs.map(Span::commits_ahead).collect();
        let found: Vec<u32> = observed
            .syncs
            .iter()
            .map(|sync| sync.commits_waited)
            .collect();
        assert!(known.len() > 100 && known == found, "{words}");
        // Algorithm 4.1 knows only when each commit and sync begins.
        let model = fsync_model(&trace, &observed);
        let same = model
            .syncs
            .iter()
            .filter(|it| it.commits_predicted == known[it.sync]);
        let same = same.count() as f64 / known.len() as f64;
        let right_share = model.accuracy.right_commit_share;
        assert!(
            same >= right && right_share >= right,
            "{words}: {same} {right_share}"
        );
    }
}

/// A writer whose sync finds a commit running and has to wait for two wrote before or during that
/// commit: Algorithm 4.2 may not call it unaffected, nor a writer that slept.
#[test]
fn the_model_finds_writers_beside_commits() {
    let own_dirs = "create-fsync --threads 32 --bytes 262144 --own-dirs --seconds 3 --warmup-s 0";
    let bursts = "write-burst --threads 16 --spread-us 5000 --bursts 20";
    for (words, disk, machine) in [
        (own_dirs, "4ms:64", ProcessorModel::new(4, 125.0)),
        (bursts, "hdd-7200", ProcessorModel::new(1, 1000.0)),
    ] {
        let (_, trace) = trace(words, disk, machine, None);
        let observed = Observed::from_trace(&trace, recorder::DEV);
        let finds_one = |sync: &&Span| {
            let mut commits = observed.commits.iter();
            commits.any(|it| it.begin_ns < sync.begin_ns && sync.begin_ns < it.end_ns)
        };
        let syncs = || trace.spans.iter().filter(|span| span.kind.is_file_sync());
        let two = syncs().filter(|sync| sync.commits_ahead() == 2);
        let two = two.filter(finds_one).count() as u64;
        let model = write_model(&trace, &observed);
        let (x, y, z) = (model.x.writers, model.y.writers, model.z.writers);
        assert_eq!(x + y + z, syncs().count() as u64, "{words}");
        assert!(two > 200 && x > 0, "{words}: {two}, {model:?}");
        assert!(y + z >= two, "{words}: {two}, {model:?}");
        assert!(model.x.blocked_mean_ns < f64::EPSILON, "{words}: {model:?}");
        assert!(model.z.blocked_mean_ns > 0.0, "{words}: {model:?}");
    }
}

/// The gain that the doctor predicts from stock is the gain that the simulator has with LUC.
#[test]
fn the_doctor_foretells_what_luc_gives() {
    let files = Files::new();
    for (words, kind) in [
        ("-- create-fsync --threads 4 --seconds 3", "sync_delays"),
        ("-- create-fsync --threads 64 --seconds 3", "sync_delays"),
        (
            "--disk hdd-7200 --cpus 4 -- create-fsync --threads 16 --seconds 5",
            "sync_delays",
        ),
        (
            "--disk nvme --cpus 4 -- create-fsync --threads 16 --seconds 2",
            "sync_delays",
        ),
        ("-- write-delay --writers 48 --seconds 3", "write_delays"),
    ] {
        let stock = files.simulate("stock.luc", words);
        let luc = files.simulate("luc.luc", &format!("--luc {words}"));
        let rate = if kind == "write_delays" {
            "/writes_per_s"
        } else {
            "/ops_per_s"
        };
        let gain = number(&luc, rate) / number(&stock, rate);
        let found = json("doctor --json --from", &files.path("stock.luc"));
        let of = &found["file_systems"][0];
        assert_eq!(of["verdicts"][0]["kind"], kind, "{words}: {of:#}");
        assert_eq!(of["gain"]["trusted"], true, "{words}: {:#}", of["gain"]);
        let foretold = number(of, "/gain/ratio");
        let off = foretold / gain - 1.0;
        assert!(off.abs() < 0.10, "{words}: {foretold} of {gain}");
        // The doctor sees that LUC was at work, and predicts nothing.
        let found = json("doctor --json --from", &files.path("luc.luc"));
        assert!(found["file_systems"][0]["gain"].is_null(), "{words}");
    }
}

/// The simulator can run on a measured machine, and unknown values are not 0.
#[test]
fn machines_are_measured_and_simulated() {
    let files = Files::new();
    let words = "--cpus 2 --mips 500 --disk 1ms:8 -- create-fsync --threads 8 --seconds 1";
    let report = files.simulate("run.luc", words);
    let (code, text, _) = say("sim calibrate", &files.path("run.luc"));
    assert_eq!(code, 0, "{text}");
    let write = text.lines().find(|line| line.starts_with("write "));
    let write: Vec<&str> = write.unwrap_or_default().split_whitespace().collect();
    assert_eq!(write[1..4], ["-", "-", "-"], "nothing wrote: {text}");
    let (_, machine, _) = say("sim calibrate --json", &files.path("run.luc"));
    fs::write(files.path("machine.json"), &machine).expect("written");
    let of: Value = serde_json::from_str(&machine).expect("JSON");
    let of = &of["recordings"][0]["file_systems"][0];
    assert_eq!(of["cpus"], 2, "{of:#}");
    assert!((number(of, "/mips") / 500.0 - 1.0).abs() < 0.05, "{of:#}");
    let parameters = of["parameters"].as_array().expect("a list");
    let value = |name: &str| {
        let found = parameters.iter().find(|it| it["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}"))["value"].clone()
    };
    let request_ns = value("request").as_f64().expect("a number");
    assert!((request_ns / 1e6 - 1.0).abs() < 0.05, "{request_ns}");
    assert!(value("write").is_null() && value("open").is_null());

    let again = |words: &str| {
        let mut command = luc_lab();
        command.args(["sim", "run", "--json", "--calibrated"]);
        command.arg(files.path("machine.json"));
        command.args(words.split_whitespace());
        let output = command.output().expect("it runs");
        let said = String::from_utf8(output.stderr).expect("text");
        (output.stdout, said, output.status.code())
    };
    let (out, said, _) = again("-- create-fsync --threads 8 --seconds 1");
    let out: Value = serde_json::from_slice(&out).unwrap_or_else(|_| panic!("{said}"));
    let share = number(&out, "/ops_per_s") / number(&report, "/ops_per_s");
    assert!((share - 1.0).abs() < 0.05, "{share}");
    let (_, said, code) = again("--disk 4ms:1 -- burst");
    assert!(
        said.contains("cannot be used with") && code == Some(2),
        "{said}"
    );
    for (text, why) in [
        ("{}", "is not output of `luc-lab sim calibrate --json`"),
        ("nothing", "is not output of `luc-lab sim calibrate --json`"),
        (
            r#"{"schema": "luc-sim-calibration/1", "recordings": []}"#,
            "must hold exactly one machine",
        ),
        (
            r#"{"schema": "luc-sim-calibration/1", "recordings": [{"file_systems": [{"disk": "4ms:1"}]}]}"#,
            "does not tell how many processors there were: give --cpus",
        ),
    ] {
        fs::write(files.path("machine.json"), text).expect("written");
        let (_, said, code) = again("-- burst");
        assert!(said.contains(why) && code == Some(2), "{text}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

/// They give one line, and the exit code of an unusable recording.
#[test]
fn recordings_that_tell_no_machine() {
    let files = Files::new();
    let file = files.path("run.luc");
    let dev = |minor| luc_control::Dev { major: 8, minor };
    let span = |kind, minor, begin_ns, end_ns| Span {
        dev: dev(minor),
        pid: 7,
        tid: 5,
        done_tid: 4,
        ..Span::new(kind, begin_ns, end_ns)
    };
    let refused = |spans: &[Span], why: &str| {
        luc_test::command::record(&file, &luc_trace::Header::default(), spans.iter().copied());
        let (code, out, said) = say("sim calibrate", &file);
        assert!(said.contains(why) && out.is_empty() && code == 24, "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    };
    refused(&[], "holds no span and no decision");
    let open = span(SpanKind::Open, 0, 10, 20);
    let commit = span(SpanKind::Commit, 0, 30, 90);
    refused(&[open], "no journal commit of 8:0");
    refused(&[commit], "no open, write, sync or close on 8:0");
    // If another file system can be measured, both are reported.
    let sync = span(SpanKind::Fsync, 1, 20, 95);
    let spans = [open, sync, span(SpanKind::Commit, 1, 30, 90)];
    luc_test::command::record(&file, &luc_trace::Header::default(), spans);
    let (code, out, said) = say("sim calibrate", &file);
    assert!(code == 0 && said.is_empty(), "{said}");
    assert_holds(&out, "8:0: the trace has no journal commit");
    assert_holds(&out, "8:1: disk ");
}

#[test]
fn recordings_are_exported() {
    let files = Files::new();
    files.simulate("run.luc", "--luc -- metarates --procs 4 --files 16");
    let (_, csv, _) = say("trace export --format csv", &files.path("run.luc"));
    let of = |kind: &str| csv.lines().filter(|line| line.starts_with(kind)).count();
    assert_eq!((of("open,"), of("fsync,"), of("close,")), (64, 64, 64));
    assert!(of("commit,") >= 16 && of("luc-decision") == 0, "{csv}");
    let perfetto = json("trace export --format perfetto", &files.path("run.luc"));
    let events = perfetto["traceEvents"].as_array().expect("a list");
    assert!(events.len() > 3 * 64, "{}", events.len());
}

/// The line is the same as for a recording of a kernel.
#[test]
fn recordings_that_are_cut_say_so() {
    let files = Files::new();
    files.simulate("run.luc", "--luc -- create-fsync --threads 16 --seconds 1");
    let whole = fs::read(files.path("run.luc")).expect("read");
    let cut = files.path("cut.luc");
    for share in [30, 60, 99] {
        fs::write(&cut, &whole[..whole.len() * share / 100]).expect("written");
        let (code, out, said) = say("trace summary", &cut);
        let line = format!(
            "luc: note: {} is damaged and was read only up to the damage: ",
            cut.display()
        );
        assert!(
            said.starts_with(&line) && said.lines().count() == 1,
            "{said}"
        );
        assert!(code == 0 && out.contains("16 threads"), "{out}");
    }
    fs::write(&cut, "# luc-trace 2 kernel=simulated\n").expect("written");
    let (code, _, said) = say("trace summary", &cut);
    assert!(
        said.contains("holds no span and no decision") && code == 24,
        "{said}"
    );
}

const CAMPAIGN: &str = r#"title = "Seen on paper"

[stop]
repeats_min = 1
repeats_max = 1

[arms.seen]
help = "stock, recorded"
around = "luc trace record -o {out} --on {dir} --"
after = "luc trace summary --json {out}"

[[block]]
name = "loops"
place = "sim"
bench = "create-fsync --threads {threads} --seconds 1 --warmup-s 0.8 {dir}"
arms = ["seen", "modelled"]
factors = { disk = "4ms:1", threads = [1, 16], seconds = 1 }

[[table]]
title = "Commits"
block = "loops"
rows = ["threads"]
columns = [
	{ heading = "two", arm = "seen", measure = "two_commits_share" },
	{ heading = "waited", arm = "seen", measure = "after:/file_systems/0/table/commits_waited_mean" },
	{ heading = "foretold", arm = "modelled", measure = "foretold_gain" },
]
"#;

#[test]
fn campaigns_have_what_recordings_show() {
    let files = Files::new();
    fs::write(files.path("seen.toml"), CAMPAIGN).expect("written");
    let mut command = luc_lab();
    let words = ["campaign", "run", "seen.toml", "-o", "out"];
    command.current_dir(files.0.path()).args(words);
    insta::assert_snapshot!(luc_test::command::run(&mut command));
}

#[test]
fn a_recording_that_cannot_be_written_is_a_line() {
    let words = ["sim", "run", "--record", "/nowhere/run.luc", "--", "burst"];
    let (code, _, said) = outputs(luc_lab().args(words));
    assert_begins(&said, "luc-lab: trace /nowhere/run.luc: ");
    assert_eq!((said.lines().count(), code), (1, 24));
}
