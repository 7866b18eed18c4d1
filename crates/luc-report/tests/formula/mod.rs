//! A lab that answers from a formula: as a guest would, with figures that depend on the cell alone.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use clap::Parser;
use luc_lab::{CellResult, Status, StepResult};
use luc_report::Record;
use luc_report::error::Result;
use luc_report::measure::lab::{Lab, record};
use luc_report::plan::arm::Arm;
use luc_report::plan::load::{Job, Load, Measurement};
use luc_workload::Bench;
use luc_workload::wml::WmlOptions;
use serde_json::json;

#[derive(Parser)]
struct Guest {
    #[command(subcommand)]
    bench: Bench,
}

/// `luc bench run`, as far as the lab uses it.
#[derive(Parser)]
struct RunFile {
    file: String,
    #[arg(short = 'D')]
    define: Vec<String>,
    #[arg(long)]
    preset: Option<String>,
    #[command(flatten)]
    options: WmlOptions,
}

/// The workload's name and arguments, read from the command as the guest would read it.
pub fn asked(cell: &Measurement) -> (&'static str, serde_json::Value) {
    let (steps, bench) = cell.steps();
    // The tracer's command stands before the workload's.
    let words = steps[bench].as_slice();
    let own = words.iter().position(|word| word == "--");
    let words = own.map_or(words, |at| &words[at + 1..]);
    if words[2] == "run" {
        let run = RunFile::try_parse_from(&words[2..]).expect("run takes its arguments");
        let published = !matches!(cell.load, Load::SharedFiles { .. });
        assert_eq!(run.preset.as_deref(), published.then_some("paper"));
        assert_eq!(
            run.options.no_fsync,
            cell.arm == Arm::Nofsync,
            "{}",
            cell.name()
        );
        let define = run.define.join(" ");
        let expected = match &cell.load {
            Load::Varmail { threads, .. } => ("varmail", format!("nthreads={threads}")),
            Load::Oltp { readers, .. } => ("oltp", format!("nshadows={readers} ")),
            Load::SharedFiles { threads, .. } => ("shared-files", format!("nthreads={threads}")),
            other => panic!("{other:?} is no workload file"),
        };
        assert_eq!(run.file, expected.0);
        assert!(define.starts_with(&expected.1), "{define}");
        return ("wml", json!(null));
    }
    let command = Guest::try_parse_from(&words[1..]).expect("the workload takes its arguments");
    let (name, args) = match &command.bench {
        Bench::CreateFsync(args) => ("create-fsync", serde_json::to_value(args)),
        Bench::WriteDelay(args) => ("write-delay", serde_json::to_value(args)),
        Bench::Burst(args) => ("burst", serde_json::to_value(args)),
        Bench::WriteBurst(args) => ("write-burst", serde_json::to_value(args)),
        Bench::FsyncCost(args) => ("fsync-cost", serde_json::to_value(args)),
        Bench::Scaling(args) => ("scaling", serde_json::to_value(args)),
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
    arm: Arm,
    gain: f64,
    latency: impl Fn(f64, f64) -> serde_json::Value,
) -> (serde_json::Value, f64) {
    let unsafe_no_fsync = arm == Arm::Nofsync;
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
                "write": latency(0.2, n * 4.0), "fsync": latency(1800.0, n / 100.0), "close": latency(0.01, n),
                "blocked_writes": 12, "blocked": 12, "blocked_share": 0.047});
            (body, n)
        }
        Load::Varmail { .. } | Load::Oltp { .. } | Load::SharedFiles { .. } => {
            let (threads, oltp) = match load {
                Load::Oltp {
                    readers,
                    db_writers,
                    ..
                } => (readers + db_writers + 1, true),
                Load::Varmail { threads, .. } | Load::SharedFiles { threads, .. } => {
                    (*threads, false)
                }
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

/// Fsyncs without a commit on two processors of the host, whatever the guest has.
fn scaling(arm: Arm, jitter: f64) -> (serde_json::Value, f64) {
    let slower = if arm == Arm::Luc { 0.98 } else { 1.0 };
    let step = |threads: u32| {
        let to_one = 2.0 / f64::from(threads.max(2));
        let each = 1e5 * slower * jitter * to_one;
        json!({"threads": threads, "calls": 40_000, "calls_per_s": each * f64::from(threads),
            "thread_calls_per_s": each, "thread_calls_per_s_min": each, "thread_calls_per_s_max": each,
            "to_one_thread": to_one})
    };
    let steps = [1, 2, 4, 8].map(step);
    (json!({"steps": steps}), 160_000.0)
}

/// Answers as a guest would, with figures that depend on the cell alone.
#[derive(Default)]
pub struct Formula {
    /// Added to LUC's gain, percent.
    pub gain: f64,
    pub measured: AtomicUsize,
}

impl Formula {
    fn stdout(&self, job: &Job, cell: &Measurement) -> String {
        let mips = f64::from(job.cpu_mips);
        let gain = |full: f64| match cell.arm {
            Arm::Stock | Arm::Counted | Arm::Traced | Arm::Modelled => 1.0,
            Arm::Loaded | Arm::Elsewhere => 0.9995,
            Arm::Observe => 0.998,
            Arm::Static => 0.9,
            Arm::Pid => full * 0.98,
            Arm::Copyout => 1.01,
            Arm::KernelBatching => 1.2,
            Arm::Nofsync => 30.0,
            Arm::Nojc => 20.0,
            Arm::Luc => full * (1.0 + self.gain / 100.0),
        };
        let copies = matches!(cell.arm, Arm::Copyout | Arm::Luc);
        let jitter = 1.0 + f64::from(cell.repeat) / 1000.0;
        let latency = |ms: f64, count: f64| {
            let ns = |factor: f64| whole(ms * factor * 1e6);
            // Enough for a p99, but of iozone.
            json!({"count": whole(count * 20.0), "mean_ns": ms * 1e6, "p50_ns": ns(1.0), "p99_ns": ns(1.1), "max_ns": ns(1.2)})
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
                let luc = cell.arm == Arm::Luc;
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
                let luc = cell.arm == Arm::Luc;
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
            Load::FsyncCost { buffers, .. } => {
                let extra = match cell.arm {
                    Arm::Stock => 0.0,
                    Arm::Elsewhere => 50.0,
                    _ => 149.0,
                };
                let times = |ns: f64| json!({"count": 200, "usual_ns": ns, "median_ns": whole(ns)});
                let of_buffers = f64::from(buffers - 1) * (5000.0 + extra / 10.0);
                let body = json!({"clean": times(1200.0 + extra), "committed": times(6e4 + extra * 4.0),
                    "commit": times(5e4 + extra * 2.0), "commit_buffers": times(5e4 + extra * 2.0 + of_buffers)});
                (body, 800.0)
            }
            Load::Scaling { .. } => scaling(cell.arm, jitter),
            load => real_workload(load, cell.arm, gain(1.26) * jitter, latency),
        };
        let commits = fsyncs
            / if matches!(cell.arm, Arm::Luc | Arm::Pid) {
                4.0
            } else {
                2.0
            };
        let busy_ns = fsyncs * if cell.arm == Arm::Stock { 300e3 } else { 302e3 } + commits * 50e3;
        let (workload, args) = asked(cell);
        let common = json!({"schema": "luc-bench/1", "workload": workload, "args": args, "interrupted": false,
            "elapsed_ns": 1_000_000_000, "journal": {"commits": whole(commits), "requested": whole(commits)},
            "fsyncs_per_commit": fsyncs / commits, "cpu_busy_ns": whole(busy_ns)});
        let common = common.as_object().expect("an object").clone();
        body.as_object_mut().expect("an object").extend(common);
        body.to_string()
    }

    pub fn cell(&self, job: &Job, cell: &Measurement) -> CellResult {
        let (steps, bench) = cell.steps();
        let answer = |(index, argv): (usize, Vec<String>)| StepResult {
            stdout: match index {
                i if i == bench => self.stdout(job, cell),
                i if i == bench + 1 && cell.arm == Arm::Modelled => model(cell),
                i if i == bench + 1 && cell.arm.attached() => {
                    "commits 10\nhandles 1000\nwrites_delayed 7\n".to_owned()
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

/// The output of `luc trace model`: the gain of the formula, but for writers 20% too much.
fn model(cell: &Measurement) -> String {
    let gain = match cell.load {
        Load::CreateFsync { threads: 1, .. } => 1.0,
        Load::CreateFsync { .. } => 1.96,
        _ => 1.26,
    };
    let watched = cell.steps().0[1].join(" ");
    assert!(watched.starts_with("luc trace model --json /tmp/watched --last-s "));
    let times = json!({"count": 900, "mean_ns": 1.0, "p50_ns": 1, "p99_ns": 1, "max_ns": 1});
    let luc = json!({"gain": gain, "syncs_gain": gain, "writes_gain": 1.36 * 1.2});
    json!({"schema": 1, "spans_lost": 0, "damage": null, "file_systems": [{"device": "254:0",
        "fsync": {"measured": times, "predicted": times, "unpredicted": 0, "error_median_share": 0.031, "amended_error_median_share": 0.021,
            "error_p90_share": 0.2, "right_commit_share": 0.98},
        "what_if": {"stock_error_share": 0.012, "luc": luc}, "what_if_refused": null}]})
    .to_string()
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
