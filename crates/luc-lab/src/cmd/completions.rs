//! `luc-lab completions`

use clap::builder::PossibleValue;
use clap_complete::Shell;
use luc_cli::completions::script;
use luc_cli::{Context, Failure, Verb};
use luc_vm::KernelList;

/// Print a completion script for a shell
///
/// Completes verbs, options, paths, and the words that options take: policies, knobs and kernels.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab completions bash > /usr/share/bash-completion/completions/luc-lab\n\
    \x20 luc-lab completions zsh > /usr/share/zsh/vendor-completions/_luc-lab\n\
    \x20 luc-lab completions fish > /usr/share/fish/vendor_completions.d/luc-lab.fish")]
pub struct Args {
    /// Shell to complete for
    shell: Shell,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let script = script(self.shell, super::command(), words);
        context.out.write_all(&script)?;
        Ok(())
    }
}

fn words(argument: &str) -> Option<Vec<PossibleValue>> {
    matches!(argument, "kernel" | "kernels").then(kernels)
}

/// The lab's kernels. A test keeps their list complete.
fn kernels() -> Vec<PossibleValue> {
    let list = KernelList::builtin().map(|list| list.kernels);
    let names = list
        .unwrap_or_default()
        .into_iter()
        .map(|kernel| kernel.name);
    names.map(PossibleValue::new).collect()
}
