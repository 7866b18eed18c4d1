//! The verbs, one file each, and the one definition of the command line that parsing, `--help`, man
//! pages and shell completions come from.

mod bench;
mod campaign;
mod completions;
mod control;
mod demo;
mod man;
mod promises;
mod recommend;
mod reproduce;
mod run;
mod sim;
mod stock_lab;

use std::path::PathBuf;

use clap::Parser;
use luc_cli::{Program, Verb, verbs};

verbs! {
    /// The verbs.
    Verbs:
    Demo(demo::Args),
    #[command(subcommand)]
    Bench(bench::Verbs),
    #[command(subcommand)]
    Campaign(campaign::Verbs),
    Reproduce(reproduce::Args),
    Recommend(Box<recommend::Args>),
    Run(Box<run::RunArgs>),
    Torture(Box<run::torture::Args>),
    List(run::ListArgs),
    Disks(run::disks::Args),
    Fetch(run::FetchArgs),
    Build(run::BuildArgs),
    DebugKernel(run::DebugKernelArgs),
    Clean(run::CleanArgs),
    #[command(subcommand)]
    Sim(sim::Verbs),
    #[command(subcommand)]
    Control(control::Verbs),
    #[command(subcommand, hide = true)]
    Promises(promises::Verbs),
    Completions(completions::Args),
    Man(man::Args),
}

/// Measure the effect of LUC in virtual machines, in the simulator, and on this machine
///
/// Runs stock Debian kernels in QEMU on virtual time, where every instruction takes a fixed time.
/// Simulates ext4 journals with LUC's own controllers. Runs benchmarks, campaigns of benchmarks,
/// and the published experiments.
#[derive(Debug, Parser)]
#[command(name = "luc-lab", version, disable_help_subcommand = true)]
pub struct Cli {
    /// Look for /sys, /proc and /dev below this directory
    #[arg(long, global = true, hide = true, value_name = "DIR")]
    sysroot: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verbs,
}

impl Program for Cli {
    const GROUPS: &[(&str, &[&str])] = &[
        ("Show", &["demo", "reproduce", "recommend"]),
        ("Measure", &["bench", "campaign"]),
        (
            "Virtual machines",
            &[
                "run",
                "torture",
                "list",
                "disks",
                "fetch",
                "build",
                "debug-kernel",
                "clean",
            ],
        ),
        ("Simulation and theory", &["sim", "control"]),
        ("Shell and manual", &["completions", "man"]),
    ];

    fn verb(&self) -> &dyn Verb {
        &self.verb
    }

    fn sysroot(&self) -> Option<PathBuf> {
        self.sysroot.clone()
    }
}

/// The command line as clap sees it.
fn command() -> clap::Command {
    luc_cli::command::<Cli>()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definition_is_consistent() {
        super::command().debug_assert();
        luc_cli::help::check_examples(&super::command());
    }
}
