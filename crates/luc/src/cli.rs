//! The one definition of the command line, from which parsing, `--help`, man
//! pages and shell completions come.

use std::path::PathBuf;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::cmd;
use crate::exit::Code;

/// Environment variable in place of `--sysroot`.
pub const SYSROOT: &str = "LUC_SYSROOT";

/// Measure, explain and remove ext4 journal-commit delays on a live system
///
/// LUC batches the journal commits of ext4 and ext3 file systems and keeps
/// writers from being blocked by them: live, on the kernel that is running,
/// without a patch and without a reboot. Switched off, the file system runs
/// exactly as the kernel would run it.
#[derive(Debug, Parser)]
#[command(name = "luc", version, after_long_help = Code::table(), disable_help_subcommand = true)]
pub struct Cli {
    /// Look for /sys, /proc and /dev below this directory
    #[arg(long, global = true, hide = true, value_name = "DIR")]
    sysroot: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

impl Cli {
    /// Where the machine's file tree starts.
    pub fn sysroot(&self) -> PathBuf {
        let given = self.sysroot.clone();
        given
            .or_else(|| std::env::var_os(SYSROOT).map(PathBuf::from))
            .unwrap_or_else(|| PathBuf::from("/"))
    }
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Tell whether this machine can run LUC, and what is missing
    Probe(cmd::probe::Args),
    /// Switch LUC on for a file system
    On(cmd::on::Args),
    /// Switch LUC off and run the file system as the kernel would
    Off(cmd::off::Args),
    /// Show what LUC does and what it has seen
    Status(cmd::status::Args),
    /// Show or change the knobs of a file system
    Set(cmd::set::Args),
    /// Work out how a set of PID gains behaves
    #[command(subcommand)]
    Control(cmd::control::Verb),
    /// Print a completion script for a shell
    Completions(cmd::completions::Args),
    /// Write the man pages
    Man(cmd::man::Args),
}

/// The command line as clap sees it.
pub fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definition_is_consistent() {
        super::command().debug_assert();
    }
}
