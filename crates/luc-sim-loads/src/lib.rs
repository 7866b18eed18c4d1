//! Simulated runs of the workloads of `luc-lab bench`, on one machine and on many.
//!
//! [`run`] takes the arguments of a workload and a machine ([`Setup`]), and returns the report that
//! `luc-lab bench` would print there.
//!
//! - [`workloads`]: programs of the benchmarks, and of workload files. [`script`]: programs as
//!   asynchronous functions.
//! - [`fleet`]: many nodes, and parallel programs that wait for the slowest.

pub mod fleet;
mod script;
pub mod workloads;

use std::sync::Arc;

use clap::Parser as _;
use luc_control::{Params, policy_text};
use luc_sim::journal::kind::Choice;
use luc_sim::recorder::Recording;
use luc_sim::{Node, Setup, SimError, one_line};
use luc_trace::{Header, Sight, Unseen};
use luc_workload::wml::{Chosen, WmlOptions};
use luc_workload::{Bench, BenchReport, JournalCounts, Observed};

pub use workloads::{FileLoad, Load};

/// The words of a benchmark's command line.
#[derive(clap::Parser)]
#[command(no_binary_name = true, name = "luc-lab sim run --")]
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
pub fn load(words: impl IntoIterator<Item: AsRef<str>>) -> Result<Load, SimError> {
    let words = words.into_iter().map(|word| word.as_ref().to_owned());
    let mut words: Vec<String> = words.collect();
    let words = Words::try_parse_from(&words)
        .or_else(|_| {
            words.extend(["--dir", "simulation"].map(String::from));
            Words::try_parse_from(&words)
        })
        .map_err(|error| SimError::Arguments(one_line(&error.to_string())))?;
    let wants_energy = match &words.command {
        Command::Bench(bench) => bench.wants_energy(),
        Command::Run(run) => run.options.energy.is_wanted(),
    };
    if wants_energy {
        let why = "the simulator has no meter; leave out --energy";
        return Err(SimError::Arguments(why.to_owned()));
    }
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

/// Also returns the machine in its final state; `before` gets it before the run that counts.
fn simulate(
    load: &Load,
    setup: &Setup,
    before: impl FnOnce(&mut Node),
) -> Result<(BenchReport, Node), SimError> {
    setup.check()?;
    let earlier = setup.seed % u64::from(setup.runs.max(1));
    // Nothing but LUC learns.
    let earlier = if setup.luc.is_some() { earlier } else { 0 };
    let mut last = None;
    for run in 1..=earlier {
        let seed = setup.seed.wrapping_add(run << EARLIER_SEED_SHIFT);
        let setup = Setup {
            seed,
            ..setup.clone()
        };
        let (_, node) = simulate_one(load, &setup, last.as_ref(), |_| {})?;
        last = Some(node);
    }
    simulate_one(load, setup, last.as_ref(), before)
}

/// Seeds of earlier runs differ from those of all runs that count.
const EARLIER_SEED_SHIFT: u32 = 48;

fn simulate_one(
    load: &Load,
    setup: &Setup,
    earlier: Option<&Node>,
    before: impl FnOnce(&mut Node),
) -> Result<(BenchReport, Node), SimError> {
    let plan = workloads::plan(load, &setup.costs, &setup.disk)?;
    let (mut node, outcome) = plan.node(setup);
    if let Some(earlier) = earlier {
        node.follow(earlier);
    }
    before(&mut node);
    node.start();
    let (from_ns, until_ns) = (node.measured.from_ns, node.measured.until_ns);
    node.run(from_ns);
    let before = node.activity();
    node.run_programs(until_ns);
    let activity = node.activity().since(&before);
    node.run(until_ns);
    let Choice { kind, mib } = setup.journal;
    if node.is_log_full {
        return Err(SimError::Full {
            name: kind.name,
            mib,
        });
    }
    let commits = node.measured.commits;
    let found = outcome(&node.measured)?;
    let observed = Observed {
        journal: Some(JournalCounts {
            commits,
            requested: commits,
        }),
        cpu_busy_ns: Some(activity.busy_ns()),
        ..Observed::default()
    };
    let mut report = BenchReport::new(luc_workload::Measured {
        found: found.outcome,
        elapsed_ns: found.elapsed_ns,
        interrupted: false,
        observed,
    });
    report.syncs_by_commits = Some(node.measured.syncs_by_commits);
    report.activity = Some(activity);
    Ok((report, node))
}

#[cfg(test)]
mod tests {
    use luc_workload::Outcome;

    use super::*;
    use luc_sim::kernel;
    use luc_sim::mount::Mount;
    use luc_sim::processors::ProcessorModel;

    pub fn setup(disk: &str, cpus: u16, mips: f64, luc: bool) -> Setup {
        Setup {
            luc: luc.then(Params::default),
            ..Setup::stock(ProcessorModel::new(cpus, mips), disk.parse().unwrap())
        }
    }

    pub fn report(text: &str, setup: &Setup) -> BenchReport {
        run(&load(text.split_whitespace()).unwrap(), setup).unwrap()
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

    /// Copy-out hears of the commit that delays a run's writes only when they have been delayed.
    #[test]
    fn copy_out_outlives_a_run() {
        // By 3.4's rules each page of a write takes a handle of its own.
        let knobs = [
            "batching=off",
            "copyout=published",
            "copyout_threshold_permille=6",
        ];
        let knobs: Vec<String> = knobs.iter().map(|it| format!("--set={it}")).collect();
        let mut machine = ProcessorModel::new(4, 1600.0);
        machine.past_ns = Some(1_000_000);
        let mut setup = Setup {
            luc: luc_sim::knobs(&knobs).unwrap(),
            mount: Mount::new(kernel::named("3.4").unwrap(), "").unwrap(),
            ..Setup::stock(machine, "sandybridge-hdd".parse().unwrap())
        };
        let words = "iozone -s 128k -r 32k -x -t 256";
        let load = load(words.split_whitespace()).unwrap();
        let blocked = |report: &BenchReport| match &report.outcome {
            Outcome::Iozone(found) => found.blocked,
            other => panic!("{other:?}"),
        };
        let (first, node) = simulate_one(&load, &setup, None, |_| {}).unwrap();
        let (second, _) = simulate_one(&load, &setup, Some(&node), |_| {}).unwrap();
        assert!(blocked(&first) > 100, "{}", blocked(&first));
        assert_eq!(blocked(&second), 0);
        // The seed draws how many runs went before: the first of three, and one after two others.
        setup.runs = 3;
        let of = |seed| {
            let setup = Setup {
                seed,
                ..setup.clone()
            };
            blocked(&run(&load, &setup).unwrap())
        };
        let alone = |seed| {
            let setup = Setup {
                seed,
                runs: 1,
                ..setup.clone()
            };
            blocked(&run(&load, &setup).unwrap())
        };
        let seeds = || 1..=30_u64;
        assert!(
            seeds()
                .filter(|seed| seed % 3 == 0)
                .all(|seed| of(seed) == alone(seed))
        );
        let total = |blocked: &dyn Fn(u64) -> u64| seeds().map(blocked).sum::<u64>();
        assert!(total(&of) < total(&alone));
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
            ("create-fsync --energy", "leave out --energy"),
            ("run varmail --energy", "leave out --energy"),
            ("", ""),
        ] {
            let error = load(text.split_whitespace()).unwrap_err().to_string();
            assert!(
                error.contains(why) && !error.contains('\n'),
                "{text}: {error}"
            );
        }
        let unknown = load(["scaling"]).unwrap();
        let error = run(&unknown, &setup("4ms:1", 1, 1000.0, false)).unwrap_err();
        assert!(error.to_string().contains("create-fsync"), "{error}");
    }
}
