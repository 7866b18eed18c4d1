//! The demonstration and the figures table, driven by any `luc` binary: for trying a change of
//! one without rebuilding the other.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use luc_report::{DemoArgs, MatrixArgs, Progress, StockLab, text};

#[derive(Parser)]
#[command(about = "Measure and show what LUC gives")]
struct Cli {
    /// The statically linked `luc` that runs in the guest
    #[arg(long, value_name = "FILE")]
    luc: PathBuf,
    /// Directory that holds kmod, control and abi
    #[arg(long, value_name = "DIR", default_value = ".")]
    source: PathBuf,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The demonstration
    Demo(DemoArgs),
    /// The figures table
    Matrix(MatrixArgs),
}

struct Lines;

impl Progress for Lines {
    fn step(&self, done: usize, total: usize, now: &str) {
        eprintln!("{done}/{total} {now}");
    }

    fn note(&self, text: &str) {
        eprintln!("note: {text}");
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let lab = StockLab {
        binary: Some(cli.luc),
        source: cli.source,
    };
    let outcome = match &cli.what {
        What::Demo(args) => luc_report::demo(args, &lab, &Lines),
        What::Matrix(args) => luc_report::matrix(args, &lab, &Lines),
    };
    match outcome {
        Ok(outcome) => {
            print!("{}", text::render(&outcome.document, false));
            ExitCode::from(u8::from(outcome.missed > 0))
        }
        Err(error) => {
            eprintln!("report: {error}");
            ExitCode::from(2)
        }
    }
}
