//! Simulates the journal, the processors and the disks, with the real controllers inside.
//!
//! A deterministic discrete-event simulator: [`run`] takes the arguments of a `luc bench` workload
//! and a machine ([`Setup`]), and returns the report that `luc bench` would print there.
//!
//! - [`calendar`]: the events to come, by time. There is one thread and no host clock: the same
//!   input gives the same report, byte by byte.
//! - [`processors`]: work is instructions; how long they take depends on the processor's speed
//!   ([`speeds`]). [`kernel`]: the scheduler, and other rules that differ between kernels.
//! - [`disk`]: the lab's disks, by the lab's own model. [`files`]: inodes, blocks and dirty pages,
//!   on a mounted file system ([`mount`]).
//! - [`journal`]: transactions, buffers and the log's space, for jbd2 and possible replacements.
//!   [`node`]: the paths through them, and the journal's thread. [`costs`]: what each part costs,
//!   with its source.
//! - [`recorder`]: turns a run into a recording for `luc trace` and `luc replay` ([`record`]).
//! - [`runtime`]: what LUC's module does around the controllers, which are the real ones.
//! - [`workloads`]: programs of the benchmarks, and of workload files.
//! - [`fleet`]: many nodes, and parallel programs that wait for the slowest.
//!
//! [`node`] lists what the simulator leaves out; `luc sim validate` shows how well it agrees with
//! the lab.

pub mod calendar;
pub mod costs;
pub mod disk;
pub mod files;
pub mod fleet;
pub mod journal;
pub mod kernel;
pub mod measured;
pub mod mount;
pub mod node;
pub mod processors;
pub mod program;
mod random;
pub mod recorder;
pub mod replayed;
pub mod runtime;
mod script;
pub mod speeds;
mod units;
pub mod workloads;

use std::sync::Arc;

use clap::Parser as _;
use luc_control::{Params, policy, policy_text};
use luc_trace::{Header, Sight, Unseen};
use luc_workload::wml::{Chosen, WmlOptions};
use luc_workload::{Bench, BenchReport, JournalCounts, Observed};
use thiserror::Error;

pub use node::{Node, Setup};
use recorder::Recording;
pub use workloads::{FileLoad, Load};

/// Why nothing can be simulated.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SimError {
    #[error("{0}")]
    Arguments(String),
    #[error("the simulator has no {name}; it has {}", workloads::KNOWN.join(", "))]
    Unknown { name: &'static str },
    #[error("LUC steers only jbd2: turn it off, or use jbd2 instead of {name}")]
    NotSteered { name: &'static str },
    #[error(
        "the log of {name} is full: all {mib} MiB are in use; give it more space, or run for less \
         time"
    )]
    Full { name: &'static str, mib: u32 },
}

impl Setup {
    /// # Errors
    /// LUC is on, but cannot steer this journal.
    pub fn check(&self) -> Result<(), SimError> {
        let kind = self.journal.kind;
        if self.luc.is_some() && !kind.takes_luc {
            return Err(SimError::NotSteered { name: kind.name });
        }
        Ok(())
    }
}

/// The words of a benchmark's command line.
#[derive(clap::Parser)]
#[command(no_binary_name = true, name = "luc sim run --")]
struct Words {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    #[command(flatten)]
    Bench(Bench),
    Run(RunFile),
}

#[derive(clap::Args)]
struct RunFile {
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    options: WmlOptions,
}

/// Parses the words of a benchmark's command line; the folder may be omitted, as it is not used.
///
/// # Errors
/// The words do not describe a benchmark, or the workload file is invalid.
pub fn load(words: &[String]) -> Result<Load, SimError> {
    let dir = ["--dir".to_owned(), "simulation".to_owned()];
    let words = Words::try_parse_from(words)
        .or_else(|_| Words::try_parse_from(words.iter().chain(&dir)))
        .map_err(|error| SimError::Arguments(one_line(&error.to_string())))?;
    match words.command {
        Command::Bench(bench) => Ok(Load::Bench(bench)),
        Command::Run(run) => file(run),
    }
}

fn file(run: RunFile) -> Result<Load, SimError> {
    let said = |why: String| SimError::Arguments(one_line(&why));
    let overrides = run.chosen.overrides();
    let overrides = overrides.map_err(|error| said(error.to_string()))?;
    let script = run.chosen.script();
    let script = script.map_err(|error| said(error.to_string()))?;
    let plan = script.plan(&overrides);
    Ok(Load::File(FileLoad {
        plan: Arc::new(plan.map_err(|error| said(error.to_string()))?),
        source: script.source_name().to_owned(),
        overrides,
        options: run.options,
    }))
}

/// Parses the options of `luc on`: a policy, then knobs. `None` if LUC only observes, which changes
/// nothing here.
///
/// # Errors
/// An option is unknown, or its value is invalid.
pub fn knobs(options: &[String]) -> Result<Option<Params>, SimError> {
    let options = Options::try_parse_from(options)
        .map_err(|error| SimError::Arguments(one_line(&error.to_string())))?;
    let bad = |error: luc_control::KnobError| SimError::Arguments(error.to_string());
    let mut params = Params::default();
    if let Some(name) = &options.policy {
        for (knob, value) in &policy(name).map_err(bad)?.settings {
            params.set(knob.name, *value);
        }
    }
    for setting in &options.set {
        let (name, text) = setting
            .split_once('=')
            .ok_or_else(|| SimError::Arguments(format!("--set {setting}: give KNOB=VALUE")))?;
        let knob = luc_control::knob(name).map_err(bad)?;
        params.set(knob.name, knob.parse(text).map_err(bad)?);
    }
    Ok((!options.observe).then_some(params))
}

#[derive(clap::Parser)]
#[command(no_binary_name = true)]
struct Options {
    #[arg(long)]
    policy: Option<String>,
    #[arg(long)]
    set: Vec<String>,
    #[arg(long)]
    observe: bool,
}

/// Returns the first line of clap's message, without the usage.
fn one_line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches("error: ").to_owned()
}

/// Simulates a benchmark.
///
/// # Errors
/// The simulator does not have this benchmark, or does not take its arguments.
pub fn run(load: &Load, setup: &Setup) -> Result<BenchReport, SimError> {
    simulate(load, setup, |_| {}).map(|(report, _)| report)
}

/// Does as [`run`], and also records everything, the warm-up included.
///
/// # Errors
/// As [`run`].
pub fn record(load: &Load, setup: &Setup) -> Result<(BenchReport, Recording), SimError> {
    let name = match load {
        Load::Bench(bench) => bench.name(),
        Load::File(_) => "run",
    };
    let record = |node: &mut Node| node.record(header(setup), name);
    simulate(load, setup, record).map(|(report, node)| (report, node.recording()))
}

/// Returns the header of a recording, which tells its origin.
fn header(setup: &Setup) -> Header {
    let mut mips: Vec<String> = setup.machine.mips.iter().map(f64::to_string).collect();
    let cpus = mips.len();
    mips.dedup();
    let header = Header::default()
        .with("luc", env!("CARGO_PKG_VERSION"))
        .with("clock", "monotonic")
        .with("kernel", "simulated")
        .with("tracer", "simulated")
        .with(Header::UNSEEN, &Sight::words(&Unseen::new()))
        .with("cpus", &cpus.to_string())
        .with("mips", &mips.join(","))
        .with("seed", &setup.seed.to_string());
    let Some(params) = &setup.luc else {
        return header;
    };
    let changed = luc_control::knobs().iter().filter_map(|knob| {
        let value = params.get(knob.name)?;
        let is_changed = Params::default().get(knob.name) != Some(value);
        is_changed.then(|| format!("{}={}", knob.name, knob.format(value)))
    });
    let changed: Vec<String> = changed.collect();
    let policy = policy_text(|knob| params.get(knob.name));
    let header = header.with("module", "simulated").with("policy", policy);
    if changed.is_empty() {
        return header;
    }
    header.with("knobs", &changed.join(","))
}

/// Also returns the machine in its final state; `before` gets it before the run.
fn simulate(
    load: &Load,
    setup: &Setup,
    before: impl FnOnce(&mut Node),
) -> Result<(BenchReport, Node), SimError> {
    setup.check()?;
    let plan = workloads::plan(load, &setup.costs, &setup.disk)?;
    let (mut node, outcome) = Node::new(setup, plan);
    before(&mut node);
    node.start();
    let (from_ns, until_ns) = (node.measured.from_ns, node.measured.until_ns);
    node.run(from_ns);
    let before_ns = node.busy_ns();
    node.run(until_ns);
    let journal::kind::Choice { kind, mib } = setup.journal;
    if node.is_log_full {
        return Err(SimError::Full {
            name: kind.name,
            mib,
        });
    }
    let busy_ns = node.busy_ns() - before_ns;
    let commits = node.measured.commits;
    let found = outcome(&node.measured)?;
    let observed = Observed {
        journal: Some(JournalCounts {
            commits,
            requested: commits,
        }),
        cpu_busy_ns: Some(busy_ns),
        ..Observed::default()
    };
    let mut report = BenchReport::new(luc_workload::Measured {
        found: found.outcome,
        elapsed_ns: found.elapsed_ns,
        interrupted: false,
        observed,
    });
    report.syncs_by_commits = Some(node.measured.syncs_by_commits);
    Ok((report, node))
}

#[cfg(test)]
mod tests {
    use luc_workload::Outcome;

    use super::*;
    use crate::costs::Costs;
    use crate::mount::Mount;
    use crate::processors::Machine;

    fn setup(disk: &str, cpus: u16, mips: f64, luc: bool) -> Setup {
        Setup {
            machine: Machine::new(cpus, mips),
            disk: disk.parse().unwrap(),
            journal: journal::kind::Choice::default(),
            costs: Costs::default(),
            mount: Mount::default(),
            luc: luc.then(Params::default),
            seed: 1,
        }
    }

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    fn report(text: &str, setup: &Setup) -> BenchReport {
        run(&load(&words(text)).unwrap(), setup).unwrap()
    }

    fn files_per_s(report: &BenchReport) -> f64 {
        match &report.outcome {
            Outcome::CreateFsync(found) => found.ops_per_s,
            other => panic!("{other:?}"),
        }
    }

    /// The lab's figures: two convoys on stock, one with LUC, and no change for a lone task.
    #[test]
    fn luc_merges_the_convoys() {
        for (threads, gain) in [(1, 1.00), (4, 1.98), (16, 1.92), (64, 1.67)] {
            let text = format!("create-fsync --threads {threads} --seconds 2 --warmup-s 0.8");
            let rate = |luc| files_per_s(&report(&text, &setup("4ms:1", 1, 1000.0, luc)));
            let found = rate(true) / rate(false);
            assert!((found / gain - 1.0).abs() < 0.05, "{threads}: {found}");
        }
    }

    #[test]
    fn copies_spare_writers() {
        let share = |luc| {
            let text = "write-delay --writers 48 --seconds 1 --warmup-s 0.5";
            match report(text, &setup("4ms:1", 1, 1000.0, luc)).outcome {
                Outcome::WriteDelay(found) => found.delayed_share,
                other => panic!("{other:?}"),
            }
        };
        assert!(share(false) > 0.15, "{}", share(false));
        assert!(share(true) < 0.01, "{}", share(true));
    }

    #[test]
    fn what_is_no_benchmark_is_refused() {
        for (text, why) in [
            ("create", "unrecognized subcommand"),
            ("create-fsync --threads many", "invalid value"),
            ("", ""),
        ] {
            let error = load(&words(text)).unwrap_err().to_string();
            assert!(
                error.contains(why) && !error.contains('\n'),
                "{text}: {error}"
            );
        }
        let unknown = load(&words("scaling")).unwrap();
        let error = run(&unknown, &setup("4ms:1", 1, 1000.0, false)).unwrap_err();
        assert!(error.to_string().contains("create-fsync"), "{error}");
        for options in ["--policy x", "--set setpoint_events", "--set x=1", "--bad"] {
            assert!(knobs(&words(options)).is_err(), "{options}");
        }
        assert_eq!(knobs(&words("--observe")).unwrap(), None);
        let published = knobs(&words("--policy published --set setpoint_events=8")).unwrap();
        assert_eq!(published.unwrap().setpoint_events, 8);
    }
}
