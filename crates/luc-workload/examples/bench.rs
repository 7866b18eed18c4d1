//! The workloads as a program of their own: nothing else of LUC is needed to measure with them.

use std::process::ExitCode;

use clap::Parser;
use luc_workload::{Bench, Stop};

#[derive(Parser)]
#[command(about = "Measure what journal commits cost on a file system")]
struct Cli {
    #[command(subcommand)]
    bench: Bench,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = Stop::on_interrupt()
        .map_err(|e| format!("cannot catch Ctrl-C: {e}"))
        .and_then(|stop| cli.bench.run(&stop).map_err(|e| e.to_string()));
    match done {
        Ok(report) if cli.bench.json() => {
            println!("{}", serde_json::to_string(&report).expect("plain data"));
            ExitCode::SUCCESS
        }
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
