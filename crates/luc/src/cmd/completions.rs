//! `luc completions`

use clap_complete::Shell;

use crate::Context;
use crate::cli;
use crate::exit::Failure;

/// Print a completion script for a shell
///
/// For example: luc completions bash > /usr/share/bash-completion/completions/luc
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Runs the verb.
pub fn run(args: &Args, context: &mut Context) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "luc", &mut script);
    context.out.write_all(&script)?;
    Ok(())
}
