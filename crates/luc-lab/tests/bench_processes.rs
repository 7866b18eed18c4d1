//! Workloads that start worker processes, each of which runs this program again.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use luc_test::command::{assert_begins, assert_ends, assert_holds};
use luc_test::waiting::{until, until_it_catches};
use luc_test::with_tmpfs;
use luc_workload::{BenchReport, Outcome, SCHEMA};
use rustix::process::Signal;

fn luc(words: &str, dir: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("luc-lab"));
    command.arg("bench").args(words.split_whitespace());
    command.arg("--dir").arg(dir);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn said(output: &Output) -> String {
    let code = output.status.code().unwrap_or(-1);
    format!(
        "{}{}[exit {code}]",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).expect("readable").next().is_none()
}

/// Runs a workload with `--json` and checks what holds for every report.
fn run(words: &str) -> BenchReport {
    let dir = tempfile::tempdir().expect("temporary directory");
    let output = luc(words, dir.path()).arg("--json").output().expect("runs");
    assert!(output.status.success(), "{}", said(&output));
    assert!(output.stderr.is_empty(), "{}", said(&output));
    assert!(is_empty(dir.path()), "{words} left something behind");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let report: BenchReport = serde_json::from_str(&text).expect("parses");
    let again = serde_json::to_string(&report).expect("serializes");
    assert_eq!(again, text.trim_end(), "JSON does not carry everything");
    assert_eq!(report.schema, SCHEMA);
    assert!(!report.interrupted && report.elapsed_ns > 0);
    report
}

#[test]
fn metarates_counts_every_phase() {
    for (words, phases) in [
        ("metarates --procs 3 --files 7", vec!["create"]),
        (
            "metarates --procs 3 --files 7 -U -S -C --unique-dirs",
            vec!["create", "stat", "utime"],
        ),
        ("metarates --procs 3 --files 7 -S", vec!["stat"]),
        (
            "metarates --procs 3 --files 7 --no-fsync -C",
            vec!["create"],
        ),
    ] {
        let Outcome::Metarates(result) = run(words).outcome else {
            panic!("wrong workload");
        };
        let names: Vec<_> = result.phases.iter().map(|p| p.phase.as_str()).collect();
        assert_eq!(names, phases, "{words}");
        for phase in &result.phases {
            assert_eq!((phase.ops, phase.latency.count), (21, 21), "{words}");
            assert!(phase.total_per_s > phase.total_with_barrier_per_s);
            assert!(phase.process_min_per_s <= phase.process_avg_per_s);
            assert!(phase.process_avg_per_s <= phase.process_max_per_s);
            assert!(phase.time_min_ns > 0 && phase.time_min_ns <= phase.time_max_ns);
        }
        let created = if names[0] == "create" { 21 } else { 0 };
        let synced = if words.contains("no-fsync") {
            0
        } else {
            created
        };
        assert_eq!((result.open.count, result.close.count), (created, created));
        assert_eq!(result.fsync.count, synced, "{words}");
        assert_eq!(result.unsafe_no_fsync, words.contains("no-fsync"));
        assert_eq!(result.file_creation_rate_per_s > 0.0, created > 0);
    }
}

#[test]
fn metarates_names_its_files_as_known_and_says_what_is_unsafe() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let words = "metarates --procs 2 --files 2 --no-fsync --keep";
    let output = luc(words, dir.path()).output().expect("runs");
    assert!(said(&output).contains("UNSAFE"), "{}", said(&output));
    let root = fs::read_dir(dir.path()).expect("readable").next();
    let shared = root.expect("kept").expect("readable").path().join("shared");
    let entries = fs::read_dir(shared).expect("readable");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("readable").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["n0f0", "n0f1", "n1f0", "n1f1"]);
}

#[test]
fn iozone_writes_whole_files_when_nobody_stops_it() {
    for words in [
        "iozone -t 3 -s 64k -r 4 -e -c -x",
        "iozone -t 3 -s 64 -r 4k -e -c -x -T",
    ] {
        let Outcome::Iozone(result) = run(words).outcome else {
            panic!("wrong workload");
        };
        assert_eq!((result.bytes, result.finished), (3 << 16, 3), "{words}");
        assert_eq!(result.child_min_bytes, 1 << 16);
        assert_eq!((result.write.count, result.fsync.count), (48, 3));
        assert_eq!(result.close.count, 3);
        assert!(result.children_bytes_per_s >= 3.0 * result.child_min_bytes_per_s);
        assert!(result.parent_bytes_per_s > 0.0);
        assert_eq!(result.blocked > 0, result.blocked_writes > 0);
    }
}

#[test]
fn the_first_to_finish_stops_the_clocks_of_the_others() {
    // More children than processors, and files so long that some children finish before others.
    for words in ["iozone -t 16 -s 8m -r 4k", "iozone -t 16 -s 8m -r 4k -e -c"] {
        let Outcome::Iozone(result) = run(words).outcome else {
            panic!("wrong workload");
        };
        assert!(result.finished >= 1, "{result:?}");
        assert!(result.finished < 16, "nobody was stopped: {result:?}");
        assert!(result.child_min_bytes < 8 << 20);
        // All children write their files to the end, most of them off the clock.
        assert_eq!(result.write.count, 16 << 11);
        assert!(result.bytes < result.write.count << 12);
        let on_clock = if words.contains("-e") { 16 } else { 0 };
        let counts = (result.fsync.count, result.close.count);
        assert_eq!(counts, (on_clock, on_clock), "{words}");
    }
}

#[test]
fn mdtest_fills_and_empties_its_trees() {
    for (words, dirs) in [
        ("mdtest --procs 3 -n 10", 1),
        ("mdtest --procs 3 -n 10 -z 2 -b 3 -y -w 100", 13),
        ("mdtest --procs 3 -n 10 -z 1 -b 2 -u -y", 3),
    ] {
        let Outcome::Mdtest(result) = run(words).outcome else {
            panic!("wrong workload");
        };
        assert_eq!(result.tree_dirs, dirs, "{words}");
        let phases: Vec<_> = result
            .phases
            .iter()
            .map(|p| (p.phase.as_str(), p.ops))
            .collect();
        assert_eq!(phases, [("create", 30), ("stat", 30), ("unlink", 30)]);
        assert_eq!((result.open.count, result.close.count), (30, 30));
        let written = if words.contains("-w") { 30 } else { 0 };
        let synced = if words.contains("-y") { 30 } else { 0 };
        assert_eq!((result.write.count, result.fsync.count), (written, synced));
    }
}

#[test]
fn mdtest_measures_the_phases_asked_for() {
    for (words, phases) in [
        (
            "mdtest --procs 2 -n 5 -F -C -T -r -i 1",
            "create stat unlink",
        ),
        ("mdtest --procs 2 -n 5 -F -C", "create"),
        ("mdtest --procs 2 -n 5 -T -w 10", "stat"),
        ("mdtest --procs 2 -n 5 -r -C -u", "create unlink"),
    ] {
        let Outcome::Mdtest(result) = run(words).outcome else {
            panic!("wrong workload");
        };
        let names = result.phases.iter().map(|it| it.phase.as_str());
        assert_eq!(names.collect::<Vec<_>>().join(" "), phases, "{words}");
        assert!(result.phases.iter().all(|it| it.ops == 10), "{words}");
        let created = if phases.starts_with("create") { 10 } else { 0 };
        assert_eq!(result.open.count, created, "{words}");
    }
}

#[test]
fn options_of_the_original_programs_are_taken_or_refused_by_name() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for words in [
        "iozone -i 0 -c -e -r 4k -s 16k -t 2",
        "mdtest -n 4 -F -C -T -r",
        "metarates --files 4 -C",
    ] {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("luc-lab"));
        let words = words.split_whitespace();
        command.arg("bench").args(words).arg("-d").arg(dir.path());
        let text = said(&command.output().expect("runs"));
        assert_ends(&text, "[exit 0]");
    }
    for (words, line) in [
        (
            "iozone -i 1",
            "'-i <TEST>': IOzone's other tests are not measured",
        ),
        (
            "iozone -I",
            "-I of iozone is refused: writes go through the page cache",
        ),
        (
            "iozone -f /tmp/x",
            "-f of iozone is refused: LUC makes its files in a new directory",
        ),
        ("mdtest -n 4 -i 3 -u", "'-i <N>': one call is one iteration"),
        (
            "mdtest -D",
            "-D of mdtest is refused: directories are not tested",
        ),
        (
            "mdtest -e 4096",
            "-e of mdtest is refused: files are not read",
        ),
        (
            "metarates -n 100 -C",
            "-n of metarates is refused: give --files N",
        ),
    ] {
        let text = said(&luc(words, dir.path()).output().expect("runs"));
        assert!(text.contains(line), "{words}: {text}");
        assert!(text.ends_with("[exit 2]"), "{words}: {text}");
        assert!(is_empty(dir.path()), "{words}");
    }
}

#[test]
fn a_storm_serves_what_arrives() {
    let fixed = "fsync-storm --rate-per-s 500 --gaps fixed --seconds 0.2 --warmup-s 0.1";
    let Outcome::FsyncStorm(result) = run(fixed).outcome else {
        panic!("wrong workload");
    };
    assert_eq!(
        (result.arrivals, result.served, result.unserved),
        (100, 100, 0)
    );
    assert_eq!((result.response.count, result.args.bytes), (100, 0));
    assert_eq!(result.fsync.count, 100);
    // A response is lateness and service together.
    let sum = result.lateness.mean_ns + result.service.mean_ns;
    assert!((result.response.mean_ns - sum).abs() < 1.0, "{result:?}");

    let bursts = "fsync-storm --burst 5 --period-ms 20 --seconds 0.2 --warmup-s 0 --op append \
                  --readers 2 --read-think-us 100";
    let Outcome::FsyncStorm(result) = run(bursts).outcome else {
        panic!("wrong workload");
    };
    assert_eq!((result.arrivals, result.served), (50, 50));
    assert_eq!(result.args.bytes, 1024, "an append appends something");
    assert!(result.read.count > 0 && result.reads_per_s > 0.0);
}

#[test]
fn a_storm_counts_from_the_moment_that_was_meant() {
    // One thread cannot serve two million arrivals per second: they wait, and some are never
    // served.
    let words = "fsync-storm -t 1 --rate-per-s 2e6 --gaps fixed --seconds 0.2 --warmup-s 0 \
                 --op append --drain-s 0";
    let Outcome::FsyncStorm(result) = run(words).outcome else {
        panic!("wrong workload");
    };
    assert_eq!(result.served + result.unserved, result.arrivals);
    assert!(result.served > 0 && result.unserved > 0, "{result:?}");
    assert!(result.response.max_ns > 50_000_000, "{result:?}");
    assert!(result.service.p50_ns < result.response.p50_ns, "{result:?}");
}

#[test]
fn a_thousand_processes_run() {
    let Outcome::Metarates(result) = run("metarates --procs 1024 --files 1").outcome else {
        panic!("wrong workload");
    };
    assert_eq!(result.phases[0].ops, 1024);
    let Outcome::Iozone(result) = run("iozone -T -t 1024 -s 8k -r 4k -x").outcome else {
        panic!("wrong workload");
    };
    assert_eq!(result.finished, 1024);
}

/// Waits until a process has `count` children, and returns them.
fn children(parent: &Child, count: usize) -> Vec<u32> {
    let path = format!("/proc/{0}/task/{0}/children", parent.id());
    let found = || -> Vec<u32> {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let pids = text.split_whitespace().map(str::parse);
        pids.filter_map(Result::ok).collect()
    };
    until("child", || found().len() == count);
    found()
}

fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(status.expect("kill runs").success());
}

fn exists(pid: u32) -> bool {
    // A zombie that its parent has not reaped yet counts as gone.
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").starts_with(" Z"))
}

fn wait_until_gone(pids: &[u32]) {
    until("end of all workers", || !pids.iter().copied().any(exists));
}

/// Long enough to be still running when the test acts, short enough to end if it does not.
const LONG: &str = "metarates --procs 3 --files 1000000";

#[test]
fn a_worker_that_dies_ends_the_run() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let parent = luc(LONG, dir.path()).spawn().expect("runs");
    let workers = children(&parent, 3);
    signal("-KILL", workers[1]);
    let output = parent.wait_with_output().expect("ends");
    assert_eq!(
        said(&output),
        "luc-lab: metarates: worker 2 ended early (signal: 9 (SIGKILL)); the run is void; if nobody \
         killed it, see the kernel log\n[exit 14]"
    );
    wait_until_gone(&workers);
    assert!(is_empty(dir.path()));
}

#[test]
fn workers_do_not_outlive_the_parent() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut parent = luc(LONG, dir.path()).spawn().expect("runs");
    let workers = children(&parent, 3);
    parent.kill().expect("kill works");
    parent.wait().expect("ends");
    wait_until_gone(&workers);
}

#[test]
fn an_interrupt_gives_the_summary_so_far() {
    for (words, workers) in [
        (LONG, 3),
        ("mdtest --procs 3 -n 1000000", 3),
        ("iozone -t 3 -s 64g -r 64k -x --blocked-over-ms 50", 3),
        ("fsync-storm --seconds 60", 0),
    ] {
        let dir = tempfile::tempdir().expect("temporary directory");
        let parent = luc(words, dir.path()).spawn().expect("runs");
        let pids = children(&parent, workers);
        until_it_catches(parent.id(), Signal::INT);
        until("file", || !is_empty(dir.path()));
        signal("-INT", parent.id());
        let begin = Instant::now();
        let output = parent.wait_with_output().expect("ends");
        let text = said(&output);
        assert!(
            text.contains("interrupted: the figures cover"),
            "{words}: {text}"
        );
        assert!(text.ends_with("[exit 130]"), "{words}: {text}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{words}");
        wait_until_gone(&pids);
        assert!(is_empty(dir.path()), "{words}");
    }
}

#[test]
fn errors_are_one_line_that_names_the_file() {
    let missing = Path::new("/no/such/folder");
    for name in ["metarates", "iozone", "mdtest", "fsync-storm"] {
        let text = said(&luc(name, missing).output().expect("runs"));
        let start = format!("luc-lab: {name}: cannot create directory /no/such/folder/");
        assert_begins(&text, &start);
        assert_ends(&text, "; give an existing directory\n[exit 14]");
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for (words, code, why) in [
        ("metarates --procs 0", 2, "--procs"),
        ("metarates --files 0", 2, "--files"),
        (
            "metarates --procs 1024 --files 10000000",
            14,
            "ask for fewer",
        ),
        ("iozone -s 4x", 2, "not a size"),
        ("iozone -r 0", 2, "not a size"),
        ("iozone -s 4k -r 8k", 14, "does not fit"),
        ("iozone -s 10k -r 4k", 14, "not a whole number of records"),
        ("mdtest -b 0", 2, "--branches"),
        ("mdtest -z 9 -b 9", 14, "smaller -z or -b"),
        ("fsync-storm --rate-per-s 0", 2, "expected a number"),
        (
            "fsync-storm --burst 3 --rate-per-s 3",
            2,
            "cannot be used with",
        ),
        ("fsync-storm --period-ms 3", 2, "--burst"),
        ("fsync-storm --op append --bytes 0", 14, "1 or more"),
        (
            "fsync-storm --rate-per-s 1e6 --seconds 1e6",
            14,
            "lower rate",
        ),
    ] {
        let text = said(&luc(words, dir.path()).output().expect("runs"));
        assert!(text.contains(why), "{words}: {text}");
        assert!(text.ends_with(&format!("[exit {code}]")), "{words}: {text}");
        assert!(is_empty(dir.path()), "{words}");
    }
    let mut nowhere = Command::new(assert_cmd::cargo::cargo_bin("luc-lab"));
    let output = nowhere.args(["bench", "metarates"]).output().expect("runs");
    assert!(said(&output).contains("--dir"), "{}", said(&output));
}

#[test]
fn nobody_works_by_hand() {
    let program = assert_cmd::cargo::cargo_bin("luc-lab");
    let output = Command::new(program)
        .args(["bench", "worker"])
        .stdin(Stdio::null())
        .output()
        .expect("runs");
    let text = said(&output);
    assert_holds(&text, "only a workload can start");
    assert_ends(&text, "[exit 2]");
}

#[test]
fn a_worker_names_the_file_it_failed_on() {
    for (options, words, why) in [
        (
            "nr_inodes=20",
            "metarates --procs 3 --files 1000",
            "cannot open ",
        ),
        ("size=256k", "iozone -t 3 -s 1m -r 4k -x", "cannot write "),
        (
            "size=256k",
            "iozone -t 3 -s 1m -r 4k -x -T",
            "cannot write ",
        ),
        ("nr_inodes=20", "mdtest --procs 3 -n 1000", "cannot open "),
        (
            "nr_inodes=40",
            "fsync-storm --rate-per-s 1e4",
            "cannot create ",
        ),
    ] {
        with_tmpfs(options, |dir| {
            let text = said(&luc(words, dir).output().expect("runs"));
            let start = format!(
                "luc-lab: {}: {why}{}/",
                words.split(' ').next().unwrap_or(""),
                dir.display()
            );
            assert!(text.starts_with(&start), "{words}: {text}");
            assert!(text.contains("free some space"), "{words}: {text}");
            assert!(text.ends_with("[exit 14]"), "{words}: {text}");
            assert_eq!(text.lines().count(), 2, "{words}: {text}");
            assert!(is_empty(dir), "{words}");
        });
    }
    with_tmpfs("ro", |dir| {
        let text = said(&luc("metarates", dir).output().expect("runs"));
        assert_holds(&text, "mount it read-write");
    });
}
