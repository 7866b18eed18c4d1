//! `luc-lab bench`

mod check;
mod chosen;
mod run;

use luc_workload::{Bench, BenchReport, WorkloadError};

use crate::failure;

use luc_cli::progress::Bar;
use luc_cli::{Code, Context, Failure, Interrupt, Verb};

/// Run a workload that makes a file system commit its journal
///
/// The workload does not know whether LUC is on: run it with LUC off, then on, and compare. Ctrl-C
/// ends it and prints the figures measured so far.
#[derive(Debug, clap::Subcommand)]
pub enum Verbs {
    #[command(flatten)]
    Workload(Bench),
    Check(check::Args),
    Run(run::Args),
}

impl Verb for Verbs {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        match self {
            Self::Workload(bench) => workload(bench, context),
            Self::Check(args) => args.run(context),
            Self::Run(args) => args.run(context),
        }
    }

    fn interrupt(&self) -> Interrupt {
        match self {
            // It still prints the figures measured so far.
            Self::Workload(_) => Interrupt::Asks,
            Self::Check(args) => args.interrupt(),
            Self::Run(args) => args.interrupt(),
        }
    }
}

fn workload(bench: &Bench, context: &mut Context) -> Result<(), Failure> {
    // A worker is a child process of another workload, which shows the bar.
    let shown = !matches!(bench, Bench::Worker);
    let bar = shown.then(|| Bar::wait_or_work(bench.name(), bench.length()));
    let report = bench.run(&context.stop);
    drop(bar);
    let report = report.map_err(|error| failed(bench.name(), &error))?;
    print(&report, bench.json(), context)
}

fn failed(name: &str, error: &WorkloadError) -> Failure {
    match error {
        WorkloadError::Meter(_) | WorkloadError::Missing { .. } => {
            Failure::coded(Code::LabUnavailable, format_args!("{name}: {error}"))
        }
        _ => failure::workload(name, error),
    }
}

pub fn print(report: &BenchReport, json: bool, context: &mut Context) -> Result<(), Failure> {
    if json {
        // One line per report, so that a file of reports is JSON Lines.
        serde_json::to_writer(&mut *context.out, report).map_err(std::io::Error::from)?;
        writeln!(context.out)?;
    } else {
        write!(context.out, "{report}")?;
    }
    if report.interrupted {
        return Err(Failure::interrupted(
            "the figures above cover the time until the interrupt",
        ));
    }
    Ok(())
}
