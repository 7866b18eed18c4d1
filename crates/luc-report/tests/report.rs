//! Planning, keeping and rendering, with a lab that answers from a formula.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use clap::Parser;
use luc_lab::{CellResult, Status, StepResult};
use luc_report::error::{ReportError, Result};
use luc_report::lab::{Lab, record};
use luc_report::load::{Job, Load, Measurement, Mode};
use luc_report::{DemoArgs, MatrixArgs, Outcome, Progress, Quiet, Record, html, text};
use luc_workload::Bench;
use luc_workload::wml::WmlOptions;
use serde_json::json;

#[derive(Parser)]
struct Demo {
    #[command(flatten)]
    args: DemoArgs,
}

#[derive(Parser)]
struct Guest {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Parser)]
struct Matrix {
    #[command(flatten)]
    args: MatrixArgs,
}

fn demo_args(out: &Path, words: &str) -> DemoArgs {
    let out = out.to_str().expect("UTF-8 path");
    let argv = ["demo", "--out", out]
        .into_iter()
        .chain(words.split_whitespace());
    Demo::try_parse_from(argv).expect("valid arguments").args
}

fn matrix_args(out: &Path, words: &str) -> MatrixArgs {
    let out = out.to_str().expect("UTF-8 path");
    let argv = ["matrix", "--out", out]
        .into_iter()
        .chain(words.split_whitespace());
    Matrix::try_parse_from(argv).expect("valid arguments").args
}

/// `luc bench run`, as far as the lab uses it.
#[derive(Parser)]
struct RunFile {
    file: String,
    #[arg(short = 'D')]
    define: Vec<String>,
    #[arg(long)]
    preset: String,
    #[command(flatten)]
    options: WmlOptions,
}

/// The workload's name and arguments, read from the command as the guest would read it.
fn asked(cell: &Measurement) -> (&'static str, serde_json::Value) {
    let (steps, bench) = cell.steps();
    if steps[bench][2] == "run" {
        let run = RunFile::try_parse_from(&steps[bench][2..]).expect("run takes its arguments");
        assert_eq!(run.preset, "paper");
        assert_eq!(
            run.options.no_fsync,
            cell.mode == Mode::Nofsync,
            "{}",
            cell.name()
        );
        let define = run.define.join(" ");
        let expected = match &cell.load {
            Load::Varmail { threads, .. } => ("varmail", format!("nthreads={threads}")),
            Load::Oltp { readers, .. } => ("oltp", format!("nshadows={readers} ")),
            other => panic!("{other:?} is no workload file"),
        };
        assert_eq!(run.file, expected.0);
        assert!(define.starts_with(&expected.1), "{define}");
        return ("wml", json!(null));
    }
    let command =
        Guest::try_parse_from(&steps[bench][1..]).expect("the workload takes its arguments");
    let (name, args) = match &command.bench {
        Bench::CreateFsync(args) => ("create-fsync", serde_json::to_value(args)),
        Bench::WriteDelay(args) => ("write-delay", serde_json::to_value(args)),
        Bench::Burst(args) => ("burst", serde_json::to_value(args)),
        Bench::WriteBurst(args) => ("write-burst", serde_json::to_value(args)),
        Bench::Metarates(args) => ("metarates", serde_json::to_value(args)),
        Bench::Iozone(args) => ("iozone", serde_json::to_value(args)),
        other => panic!("the lab does not measure {other:?}"),
    };
    (name, args.expect("plain data"))
}

/// A figure as the integer it is in a result. All of them are small and positive.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// The body of a real workload's answer, and how many fsyncs it tells of.
fn real_workload(
    load: &Load,
    mode: Mode,
    gain: f64,
    latency: impl Fn(f64, f64) -> serde_json::Value,
) -> (serde_json::Value, f64) {
    let unsafe_no_fsync = mode == Mode::Nofsync;
    let none = latency(0.0, 0.0);
    match load {
        Load::Metarates { procs, .. } => {
            let n = f64::from(*procs);
            let rate = n * 60.0 * gain;
            let body = json!({"unsafe_no_fsync": unsafe_no_fsync, "phases": [], "file_creation_rate_per_s": rate,
                "open": latency(0.1, rate), "fsync": latency(n * 1e3 / rate, rate), "close": latency(0.01, rate)});
            (body, rate)
        }
        Load::Iozone { threads } => {
            let n = f64::from(*threads);
            let rate = n * 65_536.0 * gain;
            let body = json!({"children_bytes_per_s": rate, "parent_bytes_per_s": rate / 2.0,
                "child_min_bytes_per_s": 1e3, "child_max_bytes_per_s": 1e6, "child_avg_bytes_per_s": rate / n,
                "child_min_bytes": 131_072, "bytes": 131_072 * threads, "finished": threads,
                "write": latency(0.2, n * 4.0), "fsync": latency(1800.0, n), "close": latency(0.01, n),
                "blocked_writes": 12, "blocked": 12, "blocked_share": 0.047});
            (body, n)
        }
        Load::Varmail { .. } | Load::Oltp { .. } => {
            let (threads, oltp) = match load {
                Load::Oltp {
                    readers,
                    db_writers,
                    ..
                } => (readers + db_writers + 1, true),
                Load::Varmail { threads, .. } => (*threads, false),
                _ => unreachable!("matched above"),
            };
            let n = f64::from(threads);
            let rate = n * 200.0 * gain;
            let syncs = rate / 6.5;
            let sync = latency(n * 1e3 / syncs, syncs);
            let (fsync, dsync) = if oltp { (none, sync) } else { (sync, none) };
            let body = json!({"source": "a.f", "dir": "/mnt/0", "overrides": [], "seed": 1, "ops_wanted": null,
                "warmup_s": 0.5, "unsafe_no_fsync": unsafe_no_fsync, "settled": true, "filesets": [],
                "threads": threads, "loops": 10, "ops": whole(rate), "ops_per_s": rate, "reads_per_s": 1.0,
                "writes_per_s": 1.0, "bytes": 1, "mib_per_s": 1.0, "mean_ns": 1.0, "p50_ns": 1, "p90_ns": 1,
                "p99_ns": 1, "fsync": fsync, "dsync": dsync, "flowops": []});
            (body, syncs)
        }
        other => unreachable!("{other:?} has its own arm"),
    }
}

/// Answers as a guest would, with figures that depend on the cell alone.
#[derive(Default)]
struct Formula {
    /// Added to what LUC gains, percent.
    gain: f64,
    measured: AtomicUsize,
}

impl Formula {
    fn stdout(&self, job: &Job, cell: &Measurement) -> String {
        let mips = f64::from(job.cpu_mips);
        let gain = |full: f64| match cell.mode {
            Mode::Stock => 1.0,
            Mode::Loaded => 0.9995,
            Mode::Observe => 0.998,
            Mode::Static => 0.9,
            Mode::Pid => full * 0.98,
            Mode::Copyout => 1.01,
            Mode::KernelBatching => 1.2,
            Mode::Nofsync => 30.0,
            Mode::Nojc => 20.0,
            Mode::Luc => full * (1.0 + self.gain / 100.0),
        };
        let copies = matches!(cell.mode, Mode::Copyout | Mode::Luc);
        let jitter = 1.0 + f64::from(cell.repeat) / 1000.0;
        let latency = |ms: f64, count: f64| {
            let ns = |factor: f64| whole(ms * factor * 1e6);
            json!({"count": whole(count), "mean_ns": ms * 1e6, "p50_ns": ns(1.0), "p99_ns": ns(1.1), "max_ns": ns(1.2)})
        };
        let (mut body, fsyncs) = match &cell.load {
            Load::CreateFsync { threads, .. } => {
                let n = f64::from(*threads);
                let full = if *threads == 1 { 1.0 } else { 1.96 };
                let rate = n * 60.0 * gain(full) * jitter;
                let body = json!({"ops": whole(rate), "ops_per_s": rate, "file_creation_rate_per_s": rate,
                    "thread_ops_min": 1, "thread_ops_max": 2, "fsync": latency(n * 1e3 / rate, rate),
                    "create_mean_ns": 1e5, "write_mean_ns": 0.0, "close_mean_ns": 1e3});
                (body, rate)
            }
            Load::WriteDelay { .. } => {
                let rate = 17_000.0 * if copies { 1.36 } else { 1.0 } * jitter;
                let share = if copies { 0.001 } else { 0.213 };
                let body = json!({"writes": 17000, "writes_per_s": rate, "delayed": 1, "delayed_share": share,
                    "write": latency(0.7, 17e3), "fsyncs": 120, "fsyncs_per_s": 120.0, "fsync": latency(8.2, 120.0)});
                (body, 120.0)
            }
            Load::Burst { threads, .. } => {
                let n = f64::from(*threads);
                let luc = cell.mode == Mode::Luc;
                let rate =
                    n * if luc {
                        96.0 + mips / 33.0
                    } else {
                        93.0 - mips / 66.0
                    } * jitter;
                let share = if luc { 0.0 } else { mips / 1400.0 };
                let time = latency(n * 1e3 / rate, n * 40.0);
                let body = json!({"bursts": 40, "file_creation_rate_per_s": rate, "file_creation_rate_sd_per_s": 1.0,
                    "file": time, "fsync": time, "commit_ns": 8e6, "two_commits_share": share});
                (body, n * 40.0)
            }
            Load::WriteBurst { .. } => {
                let luc = cell.mode == Mode::Luc;
                let ms = if luc {
                    49.0 / mips
                } else {
                    0.2 + mips / 4000.0
                } * jitter;
                let share = if luc { 0.0 } else { mips / 10_000.0 };
                let body = json!({"bursts": 40, "write": latency(ms, 640.0), "blocked": 0, "blocked_share": share,
                    "create": latency(0.06, 640.0), "fsync": latency(20.0, 640.0)});
                (body, 640.0)
            }
            load => real_workload(load, cell.mode, gain(1.26) * jitter, latency),
        };
        let commits = fsyncs
            / if matches!(cell.mode, Mode::Luc | Mode::Pid) {
                4.0
            } else {
                2.0
            };
        let busy_ns = fsyncs
            * if cell.mode == Mode::Stock {
                300e3
            } else {
                302e3
            }
            + commits * 50e3;
        let (workload, args) = asked(cell);
        let common = json!({"schema": "luc-bench/1", "workload": workload, "args": args, "interrupted": false,
            "elapsed_ns": 1_000_000_000, "journal": {"commits": whole(commits), "requested": whole(commits)},
            "fsyncs_per_commit": fsyncs / commits, "cpu_busy_ns": whole(busy_ns)});
        let common = common.as_object().expect("an object").clone();
        body.as_object_mut().expect("an object").extend(common);
        body.to_string()
    }

    fn cell(&self, job: &Job, cell: &Measurement) -> CellResult {
        let (steps, bench) = cell.steps();
        let answer = |(index, argv): (usize, Vec<String>)| StepResult {
            stdout: match index {
                i if i == bench => self.stdout(job, cell),
                i if i == bench + 1 && cell.mode.attached() => {
                    "commits 10\nwrites 1000\nwrites_delayed 7\n".to_owned()
                }
                _ => String::new(),
            },
            argv,
            status: Status::Exited(0),
            begin_ns: 0,
            end_ns: 1,
            stderr: String::new(),
            dropped_bytes: 0,
            allow_failure: false,
        };
        CellResult {
            name: cell.name(),
            error: None,
            steps: steps.into_iter().enumerate().map(answer).collect(),
        }
    }
}

impl Lab for Formula {
    fn measure(&self, job: &Job, progress: &mut dyn luc_lab::Progress) -> Result<Vec<Record>> {
        // Later jobs end earlier: results must come back in the plan's order all the same.
        let turn = self.measured.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(8_u64.saturating_sub(turn as u64)));
        progress.guest(1, 1, "cell: step");
        let records = job.cells.iter();
        let records = records.map(|cell| record(job, cell, &self.cell(job, cell), "6.12.95-test"));
        records.collect()
    }
}

fn formula(gain: f64) -> Formula {
    Formula {
        gain,
        ..Formula::default()
    }
}

fn tidy(outcome: &Outcome) -> String {
    text::render(&outcome.document, false)
}

#[test]
fn the_demonstration_reads_well() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let args = demo_args(dir.path(), "");
    let outcome = luc_report::demo(&args, &formula(0.0), &Quiet).expect("rendered");
    insta::assert_snapshot!("demo", tidy(&outcome));
    let verdict = tidy(&outcome);
    let last = verdict
        .trim_end()
        .rsplit("\n\n")
        .next()
        .expect("has a last paragraph");
    assert!(last.starts_with("With LUC switched on, "), "{last}");
}

#[test]
fn the_figures_table_reads_well() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let args = matrix_args(
        dir.path(),
        "--kernels 6.12,7.2 --policies static,pid --repeats 2 \
         --only create-fsync,write-delay,burst,write-burst,overhead",
    );
    let outcome = luc_report::matrix(&args, &formula(0.0), &Quiet).expect("rendered");
    insta::assert_snapshot!("matrix", tidy(&outcome));
    assert!(outcome.reached > 0 && outcome.missed == 0);
}

#[test]
fn the_workloads_table_reads_well() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let args = matrix_args(
        dir.path(),
        "--kernels 6.12 --only workloads --policies kernel-batching,nofsync,nojc --repeats 1",
    );
    let outcome = luc_report::matrix(&args, &formula(0.0), &Quiet).expect("rendered");
    insta::assert_snapshot!("workloads", tidy(&outcome));
    // Ten rows on each of five disks, and the best of varmail and oltp.
    assert_eq!((outcome.reached, outcome.missed), (52, 0));
}

#[test]
fn the_best_cell_is_judged_once_and_only_where_there_is_one() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let words = "--kernels 6.12 --only workloads --repeats 1";
    let args = matrix_args(dir.path(), words);
    // 1.26 less two hundredths is 1.235: enough for varmail, not for oltp.
    let outcome = luc_report::matrix(&args, &formula(-2.0), &Quiet).expect("rendered");
    assert_eq!((outcome.reached, outcome.missed), (51, 1));
    let mut records = outcome.records.clone();
    let file = |load: &Load| matches!(load, Load::Varmail { .. } | Load::Oltp { .. });
    records.records.retain(|record| !file(&record.cell.load));
    let (document, tally) = luc_report::matrix::document(&records);
    assert_eq!((tally.reached, tally.missed), (20, 0));
    assert!(!text::render(&document, false).contains("best varmail  "));
}

#[test]
fn unknown_policies_are_refused_with_their_names() {
    let words = ["matrix", "--policies", "static,fast"];
    let Err(refused) = Matrix::try_parse_from(words) else {
        panic!("accepted");
    };
    let text = refused.to_string();
    assert!(text.contains("kernel-batching, nofsync, nojc"), "{text}");
}

#[test]
fn missed_figures_are_counted_and_named() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let args = matrix_args(dir.path(), "--kernels 6.12 --only create-fsync --repeats 1");
    let outcome = luc_report::matrix(&args, &formula(-10.0), &Quiet).expect("rendered");
    // 1.96 less a tenth is 1.76: all single-thread figures and those above 1.76 are missed.
    assert_eq!((outcome.reached, outcome.missed), (9, 7));
    let report = tidy(&outcome);
    assert!(report.contains("MISSED"));
    assert!(
        report.ends_with("9 of 16 figures were reached; missed: 7.\n"),
        "{report}"
    );
}

#[test]
fn the_page_needs_nothing_else() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let args = demo_args(dir.path(), "--jobs 1");
    let outcome = luc_report::demo(&args, &formula(0.0), &Quiet).expect("rendered");
    let page = std::fs::read_to_string(&outcome.html).expect("written");
    assert_eq!(page, html::render(&outcome.document).expect("renders"));
    for external in ["http-equiv", "<script", "<link", "<img", "url(", "@import"] {
        assert!(!page.contains(external), "{external}");
    }
    // The only address is the name of the SVG language.
    let addresses = page.matches("://").count();
    assert_eq!(
        addresses,
        page.matches("http://www.w3.org/2000/svg").count()
    );
    assert_eq!(page.matches("<svg").count(), 3);
    // No colour of a drawing is fixed.
    let drawings = page
        .split("<svg")
        .skip(1)
        .map(|part| part.split("</svg>").next().expect("closed"));
    for drawing in drawings {
        assert!(
            !drawing.contains("fill=\"#") && !drawing.contains("stroke=\"#"),
            "{drawing}"
        );
    }
    for tag in ["section", "table", "tbody", "figure", "svg"] {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn kept_results_render_the_same_again() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let first =
        luc_report::demo(&demo_args(dir.path(), "-j 7"), &formula(0.0), &Quiet).expect("rendered");
    let again = demo_args(dir.path(), "--from-results");
    let second = luc_report::demo(&again, &Refusing, &Quiet).expect("rendered without measuring");
    assert_eq!(first.document, second.document);
    assert_eq!(first.records, second.records);
    // However many machines ran, the order is the plan's.
    let other = tempfile::tempdir().expect("temporary directory");
    let third = luc_report::demo(&demo_args(other.path(), "-j 1"), &formula(0.0), &Quiet)
        .expect("rendered");
    assert_eq!(first.records, third.records);
}

/// A lab that must not be asked.
struct Refusing;

impl Lab for Refusing {
    fn measure(&self, job: &Job, _: &mut dyn luc_lab::Progress) -> Result<Vec<Record>> {
        Err(ReportError::Failed {
            kernel: job.kernel.clone(),
            cpu_mips: job.cpu_mips,
            first: "cell x: \"luc on\" Exited(9)".to_owned(),
            more: 2,
        })
    }
}

#[test]
fn a_failed_cell_fails_the_report_and_leaves_none() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let out = dir.path().join("new");
    let error = luc_report::demo(&demo_args(&out, ""), &Refusing, &Quiet).expect_err("refused");
    let line = error.to_string();
    assert!(
        line.ends_with("(and 2 more problems)") && !line.contains('\n'),
        "{line}"
    );
    assert!(!out.exists());
}

#[test]
fn results_of_another_kind_are_refused() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let missing = luc_report::render_demo(dir.path()).expect_err("nothing there");
    assert!(missing.to_string().contains("results.json"), "{missing}");
    std::fs::write(dir.path().join("results.json"), "{}").expect("writable");
    let damaged = luc_report::render_demo(dir.path()).expect_err("not results");
    assert!(damaged.to_string().contains("measure again"), "{damaged}");
    luc_report::demo(&demo_args(dir.path(), ""), &formula(0.0), &Quiet).expect("rendered");
    let other = luc_report::render_matrix(dir.path()).expect_err("a demonstration");
    assert!(other.to_string().contains("luc-matrix"), "{other}");
}

#[test]
fn holes_in_the_results_are_dashes() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let outcome =
        luc_report::demo(&demo_args(dir.path(), ""), &formula(0.0), &Quiet).expect("rendered");
    for keep_every in [2, 3, 50, 1000] {
        let mut records = outcome.records.clone();
        let mut index = 0;
        records.records.retain(|_| {
            index += 1;
            index % keep_every == 0
        });
        for record in &mut records.records {
            record.report.journal = None;
            record.report.fsyncs_per_commit = None;
            record.counters = BTreeMap::new();
        }
        let document = luc_report::demo::document(&records);
        assert!(text::render(&document, true).contains(" - "));
        html::render(&document).expect("renders");
    }
}

#[test]
fn damaged_answers_name_the_cell() {
    let job = &luc_report::demo::plan(&demo_args(Path::new("out"), ""))[0];
    let cell = &job.cells[1];
    let lab = formula(0.0);
    let good = lab.cell(job, cell);
    record(job, cell, &good, "x").expect("good");
    let mut no_json = good.clone();
    no_json.steps[1].stdout = "luc: cannot".to_owned();
    let mut short = good.clone();
    short.steps.pop();
    let mut counter = good.clone();
    counter.steps[2].stdout = "commits many\n".to_owned();
    for bad in [no_json, short, counter] {
        let line = record(job, cell, &bad, "x")
            .expect_err("damaged")
            .to_string();
        assert!(
            line.contains(&cell.name()) && !line.contains('\n'),
            "{line}"
        );
    }
}

#[test]
fn plans_are_sound() {
    let demo = luc_report::demo::plan(&demo_args(Path::new("out"), ""));
    let all = "--policies static,pid,copyout,kernel-batching,nofsync,nojc --kernels 6.1,6.12,7.2";
    let matrix = luc_report::matrix::plan(&matrix_args(Path::new("out"), all));
    for jobs in [&demo, &matrix] {
        for job in jobs {
            let mut names: Vec<String> = job.cells.iter().map(Measurement::name).collect();
            // The first cell is stock: nothing has touched the machine before it.
            assert_eq!(job.cells[0].mode, Mode::Stock);
            names.sort();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "a name twice in {}", job.kernel);
            for cell in &job.cells {
                let disk = cell.disk_spec().expect("a disk");
                let journal = disk.fs_type == luc_lab::FsType::Ext4;
                assert_eq!(journal, cell.mode != Mode::Nojc, "{}", cell.name());
                let batching = disk.mount_opts.contains("max_batch_time");
                assert_eq!(batching, cell.mode == Mode::KernelBatching);
                // Whatever else is asked for, the guest understands it.
                asked(cell);
                // What is compared with stock has its stock in the same boot.
                let stock = |other: &Measurement| {
                    other.mode == Mode::Stock
                        && (&other.load, &other.disk, other.repeat)
                            == (&cell.load, &cell.disk, cell.repeat)
                };
                assert!(job.cells.iter().any(stock), "{}", cell.name());
            }
        }
    }
    let none =
        luc_report::matrix::plan(&matrix_args(Path::new("out"), "--kernels 6.1 --only burst"));
    assert!(none.is_empty(), "bursts are asked of 6.12 only");
}

#[test]
fn progress_reaches_the_end() {
    struct Last(std::sync::Mutex<(usize, usize)>);
    impl Progress for Last {
        fn step(&self, done: usize, total: usize, now: &str) {
            assert!(done <= total && now.contains("MIPS"));
            let mut last = self.0.lock().expect("not poisoned");
            *last = (last.0.max(done), total);
        }
    }
    let dir = tempfile::tempdir().expect("temporary directory");
    let last = Last(std::sync::Mutex::default());
    luc_report::demo(&demo_args(dir.path(), "-j 3"), &formula(0.0), &last).expect("rendered");
    let (done, total) = *last.0.lock().expect("not poisoned");
    assert!(total > 0 && done == total, "{done} of {total}");
}
