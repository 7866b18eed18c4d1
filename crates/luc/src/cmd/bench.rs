//! `luc bench`

use luc_workload::Bench;

use crate::Context;
use crate::exit::Failure;

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
    Matrix(super::demo::Matrix),
}

impl Args {
    /// True for the workloads: they print what they have when interrupted.
    pub fn minds_interrupts(&self) -> bool {
        matches!(self.verb, Verb::Workload(_))
    }
}

/// Runs the verb.
pub fn run(args: &Args, context: &mut Context) -> Result<(), Failure> {
    match &args.verb {
        Verb::Workload(bench) => workload(bench, context),
        Verb::Matrix(args) => super::demo::matrix(args, context),
    }
}

fn workload(bench: &Bench, context: &mut Context) -> Result<(), Failure> {
    let report = bench
        .run(&context.stop)
        .map_err(|error| Failure::Workload {
            what: name(bench).into(),
            why: error.to_string(),
        })?;
    if bench.json() {
        // One line, as records are kept: a file of them is JSON Lines.
        serde_json::to_writer(&mut *context.out, &report).map_err(std::io::Error::from)?;
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

fn name(bench: &Bench) -> &'static str {
    match bench {
        Bench::CreateFsync(_) => "create-fsync",
        Bench::WriteDelay(_) => "write-delay",
        Bench::Burst(_) => "burst",
        Bench::WriteBurst(_) => "write-burst",
    }
}
