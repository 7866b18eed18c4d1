//! The workloads on whatever file system holds the temporary directory: counts, clean-up, errors.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use luc_test::waiting::until;
use luc_test::with_tmpfs;
use luc_workload::{Bench, BenchReport, SCHEMA, Stop, WorkloadError};
use serde_json::Value;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    bench: Bench,
}

fn bench(words: &str, dir: &Path) -> Bench {
    let dir = dir.to_str().expect("UTF-8 path");
    let argv = ["bench"].into_iter().chain(words.split_whitespace());
    Cli::try_parse_from(argv.chain([dir]))
        .expect("valid arguments")
        .bench
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).expect("readable").next().is_none()
}

fn run_in(words: &str, dir: &Path) -> Result<BenchReport, WorkloadError> {
    bench(words, dir).run(&Stop::new())
}

/// Runs a benchmark in a directory of its own; returns the report, and its JSON.
fn run(words: &str) -> (BenchReport, Value) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let report = run_in(words, dir.path()).expect("workload runs");
    assert!(is_empty(dir.path()), "{words} left something behind");
    let json = serde_json::to_string(&report).expect("serializes");
    let again: BenchReport = serde_json::from_str(&json).expect("parses");
    assert_eq!(again, report, "JSON does not carry everything");
    assert_eq!(report.schema, SCHEMA);
    assert!(!report.interrupted);
    (report, serde_json::from_str(&json).expect("parses"))
}

#[test]
fn counted_operations_are_exact() {
    for (words, ops) in [
        ("create-fsync -t 3 --ops 7 --warmup-s 0", 21),
        ("create-fsync -t 3 --ops 7 --warmup-s 0.05 --bytes 5000", 21),
        ("create-fsync -t 4 --ops 50 --own-dirs", 200),
        // Several directories per thread: starting a new one changes no count.
        ("create-fsync -t 2 --ops 40 --files-per-dir 4", 80),
        ("create-fsync -t 2 --ops 40 --own-dirs", 80),
    ] {
        let (_, found) = run(words);
        assert_eq!(found["ops"], ops, "{words}");
        assert_eq!(found["fsync"]["count"], ops, "{words}");
        let each = ops / found["args"]["threads"].as_u64().expect("a number");
        assert_eq!(found["thread_ops_min"], each, "{words}");
        assert_eq!(found["thread_ops_max"], each, "{words}");
        let above_zero = |name: &str| found[name].as_f64().expect("a number") > 0.0;
        assert!(above_zero("ops_per_s") && above_zero("file_creation_rate_per_s"));
        assert_eq!(above_zero("write_mean_ns"), found["args"]["bytes"] != 0);
    }
}

/// Files are removed before the inodes run out, and the report says how many.
#[test]
fn few_inodes_are_enough() {
    with_tmpfs("size=16m,nr_inodes=600", |dir| {
        for words in [
            "create-fsync -t 3 --ops 500",
            "create-fsync -t 3 --ops 500 --own-dirs",
        ] {
            let report = run_in(words, dir).expect("inodes suffice");
            let found = serde_json::to_value(&report).expect("serializes");
            assert_eq!(found["ops"], 1500);
            assert!(found["removed_early"].as_u64() > Some(900), "{found}");
            assert!(report.to_string().contains("removed early"), "{report}");
            assert!(is_empty(dir));
        }
    });
    let (_, found) = run("create-fsync -t 2 --ops 40");
    assert_eq!(found["removed_early"], 0);
}

/// Only one line is the throughput; every other rate says what it is a rate of.
#[test]
fn one_throughput_is_printed() {
    for words in [
        "create-fsync -t 2 --ops 5",
        "write-delay -w 2 --seconds 0.1 --warmup-s 0",
        "burst -t 2 --period-ms 5 --bursts 2",
        "write-burst -t 2 --period-ms 5 --bursts 2",
        "fsync-storm -t 2 --seconds 0.1 --warmup-s 0",
        "iozone -t 2 -T",
    ] {
        let text = run(words).0.to_string();
        let lines = text
            .lines()
            .filter(|line| line.starts_with("  throughput "));
        assert_eq!(lines.count(), 1, "{text}");
        for line in text
            .lines()
            .filter(|line| line.contains("file creation rate"))
        {
            assert!(line.contains("in the threads' mean time"), "{line}");
        }
    }
}

#[test]
fn the_directory_is_given_in_either_way() {
    let verbs = "create-fsync write-delay burst write-burst fsync-cost metarates iozone mdtest \
                 fsync-storm";
    for verb in verbs.split(' ') {
        let parse = |words: &[&str]| {
            let argv = ["bench", verb].into_iter().chain(words.iter().copied());
            Cli::try_parse_from(argv).map(|cli| cli.bench)
        };
        let positional = parse(&["/srv"]).expect("as DIR");
        assert_eq!(positional, parse(&["--dir", "/srv"]).expect("as --dir"));
        assert!(
            parse(&[]).is_err() && parse(&["/srv", "--dir", "/srv"]).is_err(),
            "{verb}"
        );
    }
}

#[test]
fn lengths_are_known_beforehand_where_time_ends_the_run() {
    let length = |words: &str| bench(words, Path::new("/srv")).length();
    for (words, expected) in [
        ("create-fsync --seconds 2 --warmup-s 0.5", 2.5),
        ("write-delay --seconds 2 --warmup-s 0", 2.0),
        ("burst --period-ms 100 --bursts 30 --warmup-bursts 5", 3.5),
    ] {
        assert_eq!(length(words), Some(Duration::from_secs_f64(expected)));
    }
    // The time that counted operations take is known only when they are done.
    assert_eq!(length("create-fsync --ops 10"), None);
    assert_eq!(length("metarates"), None);
}

#[test]
fn scaling_counts_each_number_of_threads() {
    let (_, found) = run("scaling -t 1,1 --ops 30 --warmup-s 0.01");
    let steps = found["steps"].as_array().expect("a list");
    let calls: Vec<_> = steps.iter().map(|s| (&s["threads"], &s["calls"])).collect();
    let thirty = (&Value::from(1), &Value::from(30));
    assert_eq!(calls, [thirty, thirty]);
    assert_eq!(steps[0]["to_one_thread"], 1.0);

    let (report, found) = run("scaling -t 1 --seconds 0.05 --warmup-s 0");
    assert_eq!(report.elapsed_ns, 50_000_000);
    let step = |name: &str| found["steps"][0][name].as_f64().expect("a number");
    let calls = step("thread_calls_per_s") * 0.05;
    assert!((calls - step("calls")).abs() < 1e-6);

    let error = run_in("scaling -t 60000", Path::new("/tmp")).expect_err("no such machine");
    assert!(error.to_string().contains("60000 requested"), "{error}");
}

#[test]
fn bursts_are_exact() {
    let burst = "burst -t 3 --period-ms 5 --spread-us 500 --bursts 6 --warmup-bursts 2";
    let write = "write-burst -t 3 --period-ms 5 --spread-us 500 --bursts 4 --pieces 2";
    for (words, bursts, counted) in [
        (burst, 6, ["file", "fsync"]),
        (write, 4, ["write", "create"]),
    ] {
        let (report, found) = run(words);
        assert_eq!(found["bursts"], bursts);
        for name in counted {
            assert_eq!(found[name]["count"], 3 * bursts, "{words}");
        }
        assert_eq!(report.elapsed_ns, bursts * 5_000_000);
    }
}

#[test]
fn writers_and_streams_are_told_apart() {
    let (_, found) =
        run("write-delay -w 4 --fsync-streams 2 --think-us 200 --seconds 0.3 --warmup-s 0.05");
    // 4 writers make at most one write per 200 us each. A file is truncated after 64 writes, so
    // that has happened.
    let writes = found["writes"].as_u64().expect("a number");
    assert!(writes > 4 * 64 && writes <= 4 * 1500, "{writes}");
    assert_eq!(found["fsync"]["count"], found["fsyncs"]);

    let (_, found) = run("write-delay -w 2 --fsync-streams 0 --seconds 0.1 --warmup-s 0");
    assert_eq!(found["fsyncs"], 0);
}

#[test]
fn a_thousand_threads_run() {
    let (_, found) = run("create-fsync -t 1024 --ops 1 --warmup-s 0");
    assert_eq!(found["ops"], 1024);
}

#[test]
fn files_stay_when_asked() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let words = "create-fsync -t 2 --ops 3 --warmup-s 0 --bytes 10 --own-dirs --keep";
    run_in(words, dir.path()).expect("workload runs");
    let root = fs::read_dir(dir.path()).expect("readable").next();
    let root = root.expect("kept").expect("readable").path();
    for thread in ["t0000", "t0001"] {
        let files: Vec<_> = fs::read_dir(root.join(thread).join("d0"))
            .expect("readable")
            .map(|entry| entry.expect("readable").metadata().expect("readable").len())
            .collect();
        assert_eq!(files, [10, 10, 10]);
    }
}

#[test]
fn an_interrupt_gives_the_summary_so_far() {
    for words in [
        "create-fsync -t 2 --seconds 60 --warmup-s 0",
        "create-fsync -t 2 --ops 100000000 --warmup-s 0",
        "write-delay -w 2 --seconds 60 --warmup-s 0",
        "burst -t 2 --period-ms 20 --bursts 3000 --warmup-bursts 0",
        "write-burst -t 2 --period-ms 20 --bursts 3000 --warmup-bursts 0",
    ] {
        let dir = tempfile::tempdir().expect("temporary directory");
        let stop = Stop::new();
        let begin = Instant::now();
        let report = thread::scope(|scope| {
            scope.spawn(|| {
                until("folder", || !is_empty(dir.path()));
                stop.set();
            });
            bench(words, dir.path()).run(&stop).expect("no error")
        });
        assert!(report.interrupted, "{words}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{words}");
        let text = report.to_string();
        assert!(text.contains("interrupted"), "{text}");
        assert!(report.elapsed_ns < 20_000_000_000, "{words}");
        assert!(is_empty(dir.path()));
    }
}

#[test]
fn errors_name_the_file_and_the_remedy() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let missing = dir.path().join("missing");
    let error = run_in("create-fsync --ops 1", &missing).expect_err("no such directory");
    let text = error.to_string();
    assert!(text.starts_with(&format!("cannot create directory {}", missing.display())));
    assert!(
        text.ends_with("; give an existing directory") && !text.contains('\n'),
        "{text}"
    );

    let file = dir.path().join("file");
    fs::write(&file, b"").expect("writable");
    let error = run_in("burst", &file).expect_err("not a directory");
    assert!(error.to_string().contains("Not a directory"), "{error}");
}

#[test]
fn bad_arguments_are_refused() {
    for words in [
        "create-fsync --threads 0",
        "create-fsync --threads x",
        "create-fsync --seconds 0",
        "create-fsync --seconds nan",
        "create-fsync --seconds 1e300",
        "create-fsync --warmup-s -1",
        "create-fsync --seconds 1 --ops 1",
        "create-fsync --ops 0",
        "write-delay --bytes 0",
        "burst --bursts 0",
        "burst --period-ms 0",
        "write-burst --pieces 0",
        "read-burst",
    ] {
        let argv = ["bench"].into_iter().chain(words.split_whitespace());
        assert!(
            Cli::try_parse_from(argv.chain(["/tmp"])).is_err(),
            "{words}"
        );
    }
}

#[test]
fn a_full_file_system_is_one_line_and_leaves_nothing() {
    with_tmpfs("size=256k", |dir| {
        let error = run_in("create-fsync -t 4 --seconds 30 --bytes 65536", dir);
        let error = error.expect_err("256 KiB are soon full");
        let text = error.to_string();
        assert!(text.contains("free some space"), "{text}");
        assert!(!text.contains('\n'), "{text}");
        assert!(is_empty(dir));
    });
    with_tmpfs("nr_inodes=20", |dir| {
        let error = run_in("burst -t 2 --period-ms 1 --bursts 40", dir);
        let error = error.expect_err("20 inodes are soon used");
        assert_eq!(error.raw_os_error(), Some(28), "{error}");
        assert!(is_empty(dir));
    });
}

#[test]
fn a_read_only_file_system_is_named() {
    with_tmpfs("ro", |dir| {
        let error = run_in("create-fsync", dir).expect_err("read-only");
        assert!(error.to_string().contains("mount it read-write"), "{error}");
    });
}
