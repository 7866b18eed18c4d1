//! `luc bench`

mod check;
mod chosen;
mod run;

use luc_workload::{Bench, BenchReport};

use crate::Context;
use crate::exit::Failure;
use crate::progress::Bar;

/// Run a workload that makes a file system commit its journal
///
/// The workload does not know whether LUC is on: run it with LUC off, then on,
/// and compare. Ctrl-C ends it and prints what was measured so far.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

/// The workloads, and the table of figures made with them.
#[derive(Debug, clap::Subcommand)]
enum Verb {
    #[command(flatten)]
    Workload(Bench),
    Check(check::Args),
    Run(run::Args),
    Matrix(super::demo::Matrix),
}

impl Args {
    /// True for the workloads: they print what they have when interrupted.
    pub fn minds_interrupts(&self) -> bool {
        matches!(self.verb, Verb::Workload(_) | Verb::Run(_))
    }
}

/// Runs the verb.
pub fn run(args: &Args, context: &mut Context) -> Result<(), Failure> {
    match &args.verb {
        Verb::Workload(bench) => workload(bench, context),
        Verb::Check(args) => check::run(args, context),
        Verb::Run(args) => run::run(args, context),
        Verb::Matrix(args) => super::demo::matrix(args, context),
    }
}

fn workload(bench: &Bench, context: &mut Context) -> Result<(), Failure> {
    // A worker is a process of another workload, whose bar is enough.
    let shown = !matches!(bench, Bench::Worker);
    let bar = shown.then(|| Bar::wait_or_work(bench.name(), bench.length()));
    let report = bench.run(&context.stop);
    drop(bar);
    let report = report.map_err(|error| Failure::Workload {
        what: bench.name().into(),
        why: error.to_string(),
    })?;
    print(&report, bench.json(), context)
}

/// Prints what a workload found.
fn print(report: &BenchReport, json: bool, context: &mut Context) -> Result<(), Failure> {
    if json {
        // One line, as records are kept: a file of them is JSON Lines.
        serde_json::to_writer(&mut *context.out, report).map_err(std::io::Error::from)?;
        writeln!(context.out)?;
    } else {
        write!(context.out, "{report}")?;
    }
    if report.interrupted {
        return Err(Failure::Interrupted {
            state: "the figures above cover what was done until then".into(),
        });
    }
    Ok(())
}
