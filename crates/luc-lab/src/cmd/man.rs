//! `luc-lab man`

use std::path::PathBuf;

use luc_cli::man::pages;
use luc_cli::{Context, Failure, Verb};

/// Write the man pages
///
/// Writes one page for luc-lab and one for each verb, from the definition that parses the command
/// line.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab man --out man")]
pub struct Args {
    /// Directory to write to; created if absent
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        pages(super::command(), &self.out, context)
    }
}
