//! `luc completions`

use clap_complete::Shell;
use luc_cli::completions::script;
use luc_cli::{Context, Failure, Verb};

/// Print a completion script for a shell
///
/// Completes verbs, options, paths, and the words that options take: policies and knobs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc completions bash > /usr/share/bash-completion/completions/luc\n\
    \x20 luc completions zsh > /usr/share/zsh/vendor-completions/_luc\n\
    \x20 luc completions fish > /usr/share/fish/vendor_completions.d/luc.fish")]
pub struct Args {
    /// Shell to complete for
    shell: Shell,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let script = script(self.shell, super::command(), |_| None);
        context.out.write_all(&script)?;
        Ok(())
    }
}
