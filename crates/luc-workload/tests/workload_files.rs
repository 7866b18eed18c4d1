//! Workload files run by the engine: counts, waits, ends, errors, clean-up.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use luc_test::waiting::until;
use luc_test::with_tmpfs;
use luc_wml::plan::Plan;
use luc_workload::wml::{self, WmlOptions, WmlResult};
use luc_workload::{BenchReport, Outcome, Result, Stop};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    options: WmlOptions,
}

fn options(dir: &Path, words: &str) -> WmlOptions {
    let dir = dir.to_str().expect("UTF-8 path");
    let argv = ["run", "--dir", dir]
        .into_iter()
        .chain(words.split_whitespace());
    Cli::try_parse_from(argv).expect("valid arguments").options
}

fn planned(
    dir: &Path,
    plan: &Plan,
    overrides: &[(String, String)],
    words: &str,
    stop: &Stop,
) -> Result<BenchReport> {
    let options = options(dir, words);
    let measured = wml::run(plan, "test.f", overrides, &options, stop, &mut |_, _| ());
    measured.map(BenchReport::from)
}

fn run_in(dir: &Path, text: &str, words: &str, stop: &Stop) -> Result<BenchReport> {
    let script = luc_wml::parse("test.f", text).expect("well formed");
    planned(dir, &script.plan(&[]).expect("resolves"), &[], words, stop)
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).expect("readable").next().is_none()
}

fn holds_a_file(dir: &Path) -> bool {
    let mut entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => holds_a_file(&entry.path()),
        Ok(_) => true,
        Err(_) => false,
    })
}

fn result(report: &BenchReport) -> &WmlResult {
    match &report.outcome {
        Outcome::Wml(result) => result,
        other => panic!("{other:?}"),
    }
}

/// Runs a file in a directory of its own, which must be empty afterwards.
fn run(text: &str, words: &str) -> BenchReport {
    let dir = tempfile::tempdir().expect("temporary directory");
    let report = run_in(dir.path(), text, words, &Stop::new()).expect("runs");
    assert!(is_empty(dir.path()), "left something behind");
    let json = serde_json::to_string(&report).expect("serializes");
    let again: BenchReport = serde_json::from_str(&json).expect("parses");
    assert_eq!(again, report, "JSON does not carry everything");
    report
}

fn ops(result: &WmlResult, name: &str) -> u64 {
    let flowop = result.flowops.iter().find(|flowop| flowop.name == name);
    flowop.unwrap_or_else(|| panic!("no {name}")).ops
}

fn file(attributes: &str, threads: &str, flowops: &str) -> String {
    format!(
        "define fileset name=set,path=/tmp,{attributes}\n\
         define process name=p {{ thread name=t,{threads} {{\n{flowops}\n}} }}\n"
    )
}

const CREATE_DELETE: &str = "flowop createfile name=c,filesetname=set,fd=1\n\
     flowop fsync name=f,fd=1\nflowop closefile name=x,fd=1\n\
     flowop deletefile name=d,filesetname=set";

fn create_delete(threads: u32) -> String {
    file(
        "entries=5000,dirwidth=20,size=1k,prealloc=20",
        &format!("instances={threads}"),
        CREATE_DELETE,
    )
}

#[test]
fn an_interrupted_preparation_reports_what_it_made() {
    let text = "define fileset name=last,path=/x,entries=30,size=4k,prealloc,leafdirs=3
        define fileset name=first,path=/x,entries=20,size=2k,prealloc,paralloc
        define process name=p { thread name=t,memsize=1m {
        flowop readwholefile name=r,filesetname=first } }
        run 1";
    let script = luc_wml::parse("test.f", text).expect("well formed");
    let plan = script.plan(&[]).expect("resolves");
    let dir = tempfile::tempdir().expect("temporary directory");
    let options = options(dir.path(), "");
    let stop = Stop::new();
    // Filesets are made from the one defined last.
    let mut interrupt = |step: &str, _| {
        if step == "preparing fileset last" {
            stop.set();
        }
    };
    let report = wml::run(&plan, "test.f", &[], &options, &stop, &mut interrupt);
    let report = BenchReport::from(report.expect("an interrupt is no error"));
    assert!(report.interrupted && is_empty(dir.path()));
    let made = |it: &wml::FilesetResult| (it.files, it.preallocated, it.bytes, it.leaf_dirs);
    let made: Vec<_> = result(&report).filesets.iter().map(made).collect();
    assert_eq!(made, [(30, 0, 0, 0), (20, 20, 20 << 11, 0)]);
    assert_eq!(result(&report).filesets[0].dirs, 0);
}

#[test]
fn a_counted_run_counts_exactly() {
    for threads in [1, 7] {
        let report = run(&create_delete(threads), "--ops 1000 --settle");
        let result = result(&report);
        assert_eq!((result.ops, result.threads), (1000, u64::from(threads)));
        assert_eq!(
            result.flowops.iter().map(|flowop| flowop.ops).sum::<u64>(),
            1000
        );
        assert_eq!(result.fsync.count, ops(result, "f"));
        assert!(report.elapsed_ns > 0 && result.ops_per_s > 0.0 && !report.interrupted);
        assert!(result.settled && result.p50_ns <= result.p90_ns && result.p90_ns <= result.p99_ns);
    }
}

#[test]
fn a_timed_run_lasts_as_long_and_the_file_gives_the_time() {
    let text = create_delete(2) + "run 1\n";
    let report = run(&text, "");
    assert_eq!(report.elapsed_ns, 1_000_000_000);
    // Point 14: Filebench does not settle the file system.
    assert!(!result(&report).settled);
    let report = run(&text, "--seconds 0.2 --warmup-s 0.1");
    assert_eq!(report.elapsed_ns, 200_000_000);
}

#[test]
fn all_stock_personalities_run() {
    for (name, overrides) in [
        ("varmail", "nthreads=4"),
        ("webserver", "nthreads=8"),
        // A delete skips open files, so the number of files grows a little.
        ("fileserver", "nthreads=4 nfiles=400"),
        ("shared-files", "nthreads=4"),
        ("open-loop", "nthreads=4"),
        ("queue", "nthreads=4 compute=1000"),
        ("neighbours", "nthreads=4"),
        ("oltp", "nshadows=6 ndbwriters=2 filesize=1m logfilesize=1m"),
    ] {
        let dir = tempfile::tempdir().expect("temporary directory");
        let script = luc_wml::load(name).expect("comes with luc");
        let overrides = overrides.split(' ').filter_map(|it| it.split_once('='));
        let overrides: Vec<(String, String)> = overrides
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let plan = script.plan(&overrides).expect("resolves");
        let words = "--ops 200 --filebench-generator";
        let report = planned(dir.path(), &plan, &overrides, words, &Stop::new());
        let report = report.expect("runs");
        let result = result(&report);
        assert_eq!(result.ops, 200, "{name}: {report}");
        assert_eq!(result.seed, None);
        assert_eq!(result.overrides, overrides);
        let summary = report.to_string();
        assert!(
            summary.contains("IO Summary: ") && summary.contains(" rd/wr "),
            "{summary}"
        );
        // Asynchronous writes are timed.
        assert!(name != "oltp" || result.dsync.count > 0, "{report}");
    }
}

#[test]
fn a_thousand_threads_run() {
    let report = run(&create_delete(1024), "--ops 20000");
    let result = result(&report);
    assert_eq!((result.threads, result.ops), (1024, 20_000));
}

#[test]
fn a_thread_does_the_same_for_a_seed() {
    let text = file(
        "entries=50,dirwidth=20,size=1k,prealloc=50",
        "instances=1",
        "flowop openfile name=o,filesetname=set,fd=1\n\
         flowop appendfilerand name=a,iosize=8k,fd=1,iters=3\nflowop closefile name=c,fd=1",
    );
    let figures = |words: &str| {
        let report = run(&text, words);
        let result = result(&report);
        (result.bytes, result.filesets.clone(), result.ops)
    };
    let once = figures("--ops 500 --seed 5");
    assert_eq!(once, figures("--ops 500 --seed 5"));
    assert_ne!(once.0, figures("--ops 500 --seed 6").0);
    let as_filebench = figures("--ops 500 --filebench-generator");
    assert_eq!(as_filebench, figures("--ops 500 --filebench-generator"));
}

#[test]
fn directories_and_composites_and_everything_else() {
    let text = "set mode quit firstdone\n\
        define fileset name=set,path=/tmp,entries=20,leafdirs=10,dirwidth=4,size=2k,prealloc=50\n\
        define flowop name=visit {\n\
          flowop openfile name=open,filesetname=set,fd=1\n\
          flowop readwholefile name=all,fd=1,iosize=1k\n\
          flowop write name=seq,fd=1,iosize=1k\n\
          flowop fsyncset name=sync,filesetname=set\n\
          flowop closefile name=close,fd=1\n\
        }\n\
        define process name=p { thread name=t,memsize=1m {\n\
          flowop makedir name=make,filesetname=set\n\
          flowop listdir name=list,filesetname=set\n\
          flowop removedir name=remove,filesetname=set\n\
          flowop visit name=twice,iters=2\n\
          flowop statfile name=stat,filesetname=set\n\
          flowop hog name=hog,value=1000\n\
          flowop wakeup name=wake,target=sleep\n\
          flowop finishoncount name=end,value=200\n\
        }\n\
        thread name=other { flowop block name=sleep } }\n\
        run 30\n";
    let report = run(text, "");
    let result = result(&report);
    let loops = ops(result, "make");
    assert!(report.elapsed_ns < 20_000_000_000 && loops > 10, "{report}");
    assert_eq!(ops(result, "twice.open"), 2 * loops);
    assert_eq!(ops(result, "twice.sync"), 2 * loops);
    assert_eq!(result.fsync.count, 2 * loops);
    for name in ["list", "remove", "stat", "hog", "wake"] {
        assert_eq!(ops(result, name), loops, "{name}");
    }
    // A flowop without I/O does not count in the total.
    assert!(ops(result, "end") > 0 && result.ops >= 200);
    assert_eq!(result.ops, loops * 14);
}

#[test]
fn limits_end_runs_and_events_pace_them() {
    let flowops = "flowop openfile name=o,filesetname=set,fd=1\nflowop closefile name=c,fd=1\n";
    let with = |prelude: &str, last: &str| {
        let body = file(
            "entries=10,dirwidth=9,size=64k,prealloc=100",
            "instances=2",
            &format!("{flowops}{last}"),
        );
        format!("{prelude}\n{body}")
    };
    let first = "set mode quit firstdone";
    let count = "flowop finishoncount name=e,value=50,target=o";
    let opens = ops(result(&run(&with(first, count), "")), "o");
    assert!((50..=100).contains(&opens), "{opens}");

    let report = run(&with("set mode quit alldone", count), "");
    assert_eq!(ops(result(&report), "o"), 100);

    let bytes = "flowop read name=r,filesetname=set,fd=2,iosize=1k,random\n\
                 flowop finishonbytes name=e,value=100k";
    let report = run(&with(first, bytes), "");
    let read = result(&report).bytes;
    assert!((101 << 10..120 << 10).contains(&read), "{read}");

    for (limit, per_loop) in [
        ("flowop eventlimit name=e", 1),
        // Both threads pay for the operations of both, as in Filebench.
        ("flowop opslimit name=e", 4),
        ("flowop opslimit name=e,target=o", 1),
    ] {
        let report = run(&with("eventgen rate=400", limit), "--seconds 1");
        let opens = ops(result(&report), "o");
        // 400 events in a second, and a few first operations that need none.
        let expected = 400 / per_loop;
        // A busy machine makes fewer.
        let range = expected / 4..=expected * 12 / 10;
        assert!(range.contains(&opens), "{limit}: {opens}");
    }
    let text = with("eventgen rate=0", "flowop eventlimit name=e");
    let report = run(&text, "--seconds 0.2");
    // That rate gives 80.
    assert!(ops(result(&report), "o") > 200, "no rate, no wait");
}

#[test]
fn a_run_without_files_left_is_an_error() {
    let text = file(
        "entries=5,dirwidth=9,size=1k,prealloc=0",
        "instances=1",
        "flowop createfile name=c,filesetname=set,fd=1\nflowop closefile name=x,fd=1",
    );
    let dir = tempfile::tempdir().expect("temporary directory");
    let error = run_in(dir.path(), &text, "--seconds 5", &Stop::new()).expect_err("no more files");
    let line = error.to_string();
    assert!(
        line.starts_with("flowop c: all 5 files of fileset set exist; "),
        "{line}"
    );
    assert!(is_empty(dir.path()));
    let report = run(&format!("set mode quit firstdone\n{text}"), "--seconds 5");
    assert_eq!(ops(result(&report), "c"), 5);
}

/// Files of public reports about Filebench, which crashed or hung on them.
#[test]
fn published_files_end_in_reports_or_in_one_line() {
    // The tree is trusted to be there, and is not.
    let missing = "define file name=one,path=\"~/nowhere\",reuse,readonly,trusttree
        define process name=p { thread name=t { flowop readwholefile name=r,filename=one } }";
    let directories = "define fileset name=set,path=/tmp,size=0,leafdirs=30,dirwidth=5
        define process name=p { thread name=t,instances=4 { flowop makedir name=m,filesetname=set } }";
    for (text, line) in [
        (
            missing,
            "flowop r: none of the 1 files of fileset one exists; ",
        ),
        (
            directories,
            "flowop m: all 30 leaf directories of fileset set exist; ",
        ),
    ] {
        let dir = tempfile::tempdir().expect("temporary directory");
        let error = run_in(dir.path(), text, "--seconds 5", &Stop::new()).expect_err("it ends");
        assert!(error.to_string().starts_with(line), "{error}");
        assert!(is_empty(dir.path()));
    }
    // Whole files are read without an open; the default width holds any number of files.
    let whole = file(
        "entries=50,size=16k,prealloc",
        "instances=1",
        "flowop readwholefile name=r,filesetname=set",
    );
    let report = run(&whole, "--ops 200");
    let reads = result(&report)
        .flowops
        .iter()
        .find(|flowop| flowop.name == "r");
    let reads = reads.expect("it reads");
    // As in Filebench, the open that the first read needs counts as an operation.
    assert_eq!(reads.bytes, (reads.ops - 1) * (16 << 10), "{reads:?}");
    // One directory has room for millions of files.
    let many = file(
        "entries=4000000,dirgamma=0,dirwidth=4000000",
        "instances=1",
        "flowop createfile name=c,filesetname=set\nflowop writewholefile name=w,filesetname=set\n\
         flowop closefile name=x",
    );
    assert!(ops(result(&run(&many, "--ops 60")), "c") >= 20);
}

#[test]
fn an_interrupt_ends_waiting_threads_and_reports() {
    let text = "define fileset name=set,path=/tmp,entries=1000,dirwidth=9,size=1k,prealloc=0\n\
        define process name=p {\n\
          thread name=a { flowop createfile name=o,filesetname=set,fd=1\nflowop closefile name=c,fd=1\n\
            flowop delay name=pause,value=1 }\n\
          thread name=b { flowop semblock name=never,value=1,highwater=1 }\n\
          thread name=d { flowop delay name=long,value=1000 }\n\
          thread name=e { flowop block name=asleep }\n\
          thread name=f { flowop sempost name=rare,value=1,target=never,blocking\n flowop delay name=l2,value=1000 }\n\
        }\nrun 600\n";
    let dir = tempfile::tempdir().expect("temporary directory");
    let stop = Stop::new();
    let started = Instant::now();
    let report = thread::scope(|scope| {
        scope.spawn(|| {
            until("file", || holds_a_file(dir.path()));
            stop.set();
        });
        run_in(dir.path(), text, "", &stop).expect("an interrupt is no error")
    });
    assert!(started.elapsed() < Duration::from_secs(10));
    assert!(report.interrupted && result(&report).ops > 0);
    assert!(report.elapsed_ns < 5_000_000_000, "{}", report.elapsed_ns);
    assert!(is_empty(dir.path()));
}

#[test]
fn keeping_and_preparing_only() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let words = "--prepare-only --keep";
    let report = run_in(dir.path(), &create_delete(1), words, &Stop::new()).expect("prepares");
    let fileset = &result(&report).filesets[0];
    let made = format!("luc-bench.{}/set", std::process::id());
    let found = Command::new("find")
        .arg(dir.path().join(made))
        .args(["-type", "f", "-size", "1024c"])
        .output()
        .expect("find runs");
    let count = String::from_utf8_lossy(&found.stdout).lines().count();
    assert_eq!(count as u64, fileset.preallocated);
    assert!(
        (850..1150).contains(&count),
        "a fifth of 5000, by a draw each: {count}"
    );
}

#[test]
fn unsafe_runs_say_so() {
    let report = run(&create_delete(2), "--ops 100 --no-fsync");
    let result = result(&report);
    assert!(result.unsafe_no_fsync && ops(result, "f") > 0);
    assert_eq!(result.fsync.count, 0);
    assert!(report.to_string().contains("UNSAFE"));
}

#[test]
fn a_file_system_that_goes_away_is_one_line() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            let made = dir.path().join(format!("luc-bench.{}", std::process::id()));
            until("file", || holds_a_file(&made));
            // Threads go on making files while the directory is removed.
            while fs::remove_dir_all(&made).is_err() && made.exists() {}
        });
        run_in(dir.path(), &create_delete(4), "--seconds 20", &Stop::new()).expect_err("gone")
    });
    let line = error.to_string();
    assert!(
        line.contains("luc-bench.") && !line.contains('\n'),
        "{line}"
    );
    assert_eq!(error.raw_os_error(), Some(2), "{line}");
}

#[test]
fn no_such_directory_is_one_line() {
    let error = run_in(
        Path::new("/nowhere/at/all"),
        &create_delete(1),
        "",
        &Stop::new(),
    );
    let line = error.expect_err("no directory").to_string();
    assert!(
        line.contains("/nowhere/at/all") && line.contains("give an existing directory"),
        "{line}"
    );
}

#[test]
fn a_full_disk_is_one_line_and_leaves_nothing() {
    let preparing = file(
        "entries=9,dirwidth=9,size=1m,prealloc=100",
        "instances=1",
        CREATE_DELETE,
    );
    let running = file(
        "entries=2,dirwidth=9,size=1k,prealloc=100",
        "instances=2",
        "flowop appendfile name=a,filesetname=set,fd=1,iosize=16k",
    );
    let writing = file(
        "entries=2,dirwidth=9,size=900k,prealloc=100",
        "instances=1",
        "flowop aiowrite name=w,filesetname=set,fd=1,iosize=64k,random\nflowop aiowait name=x",
    );
    with_tmpfs("size=1m", |dir| {
        for text in [preparing, running, writing] {
            let error = run_in(dir, &text, "--seconds 20", &Stop::new());
            let line = error.expect_err("too small").to_string();
            assert!(
                line.contains("free some space") && line.contains("/set/"),
                "{line}"
            );
            assert!(is_empty(dir));
        }
    });
}

#[test]
fn a_fileset_does_not_lead_out_of_the_runs_directory() {
    for name in ["..", "../x", "/x", "."] {
        let text = format!(
            "define fileset name=\"{name}\",path=/tmp,entries=1,size=1k,prealloc=100\n\
             define process name=p {{ thread name=t {{\n\
             flowop statfile name=s,filesetname=\"{name}\"\n}} }}\n"
        );
        let Ok(script) = luc_wml::parse("test.f", &text) else {
            continue;
        };
        let Ok(plan) = script.plan(&[]) else {
            continue;
        };
        let dir = tempfile::tempdir().expect("temporary directory");
        let error = planned(dir.path(), &plan, &[], "--seconds 1", &Stop::new());
        let line = error.expect_err(name).to_string();
        assert!(line.contains("is not a valid directory name"), "{line}");
        assert!(is_empty(dir.path()));
    }
}
