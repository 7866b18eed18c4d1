//! `luc completions`

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap_complete::Shell;
use luc_control::{Knob, KnobKind, knobs, policies};
use luc_vm::KernelList;

use crate::Context;
use crate::exit::Failure;
use crate::help;
use crate::verb::Verb;

/// Print a completion script for a shell
///
/// Completes verbs, options, paths, and the words that options take: policies, knobs and kernels.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc completions bash > /usr/share/bash-completion/completions/luc\n\
    \x20 luc completions zsh > /usr/share/zsh/vendor-completions/_luc\n\
    \x20 luc completions fish > /usr/share/fish/vendor_completions.d/luc.fish")]
pub struct Args {
    /// The shell
    shell: Shell,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let mut script = Vec::new();
        let mut command = with_words(super::command());
        clap_complete::generate(self.shell, &mut command, "luc", &mut script);
        context.out.write_all(&script)?;
        if self.shell == Shell::Fish {
            let mut rules = Vec::new();
            fish_rules(&command, "", &mut rules);
            write!(context.out, "{FISH_BEHIND}{}", rules.concat())?;
        }
        Ok(())
    }
}

/// For fish, `clap_complete` leaves out the values of positional arguments. This function counts
/// the words after the verbs, and with them values of options other than --sysroot.
const FISH_BEHIND: &str = r#"
# Tells whether the words from the third argument on are the verbs, with at least $argv[1] and at most $argv[2] words after them.
function __fish_luc_behind
    set -l least $argv[1]
    set -l most $argv[2]
    set -l verbs $argv[3..]
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -i (__fish_luc_global_optspecs) -- $cmd 2>/dev/null
    or return
    set -l words (string match -v -- '-*' $argv)
    set -l behind (math (count $words) - (count $verbs))
    test "$words[1..$(count $verbs)]" = "$verbs" -a $behind -ge $least -a $behind -le $most
end

"#;

/// Adds a rule for each positional argument that takes words from a list.
fn fish_rules(command: &clap::Command, verbs: &str, rules: &mut Vec<String>) {
    for (place, arg) in command.get_positionals().enumerate() {
        let words: Vec<String> = arg.get_possible_values().iter().map(fish_word).collect();
        if words.is_empty() {
            continue;
        }
        let many = arg
            .get_num_args()
            .is_some_and(|range| range.max_values() > 1);
        let most = if many { usize::from(u8::MAX) } else { place };
        let words = words.join("\n");
        rules.push(format!(
            "complete -c luc -n \"__fish_luc_behind {place} {most}{verbs}\" -f -a \"{words}\"\n"
        ));
    }
    for verb in command.get_subcommands() {
        fish_rules(verb, &format!("{verbs} {}", verb.get_name()), rules);
    }
}

/// A word and its help as fish wants them inside double quotes.
fn fish_word(word: &PossibleValue) -> String {
    let help = word.get_help().map(ToString::to_string).unwrap_or_default();
    let help = help.replace('\'', "\\'").replace(['"', '$', '\n'], " ");
    format!("{}\\t'{help}'", word.get_name())
}

/// Adds the words of arguments that clap does not check: LUC parses them itself, to explain a wrong
/// one better.
fn with_words(command: clap::Command) -> clap::Command {
    let command = command.mut_subcommands(with_words);
    command.mut_args(|arg| match words(arg.get_id().as_str()) {
        Some(words) => arg.value_parser(PossibleValuesParser::new(words)),
        None => arg,
    })
}

/// The words that an argument of this name takes, whichever verb it belongs to.
fn words(argument: &str) -> Option<Vec<PossibleValue>> {
    let policies = || policies().iter();
    Some(match argument {
        "policy" => policies()
            .map(|policy| PossibleValue::new(policy.text).help(policy.help))
            .collect(),
        "knob" => {
            let policy = PossibleValue::new(luc_control::POLICY).help(help::POLICY_HELP);
            let knobs = knobs().iter();
            let knobs = knobs.map(|knob| PossibleValue::new(knob.name).help(knob.help));
            std::iter::once(policy).chain(knobs).collect()
        }
        // Words of all policies and knobs: the chosen knob refuses those of others.
        "value" => {
            let mut all: Vec<&str> = policies().map(|policy| policy.text).collect();
            all.extend(knobs().iter().flat_map(words_of));
            all.sort_unstable();
            all.dedup();
            all.into_iter().map(PossibleValue::new).collect()
        }
        "settings" => knobs().iter().flat_map(settings).collect(),
        "kernel" | "kernels" => kernels(),
        _ => return None,
    })
}

fn words_of(knob: &Knob) -> Vec<&'static str> {
    match knob.kind {
        KnobKind::Int => Vec::new(),
        KnobKind::Bool => vec!["0", "1"],
        KnobKind::Enum(_) => knob.words(),
    }
}

/// `KNOB=WORD` for each word; `KNOB=` if a number follows.
fn settings(knob: &Knob) -> Vec<PossibleValue> {
    let words = match words_of(knob) {
        none if none.is_empty() => vec![""],
        words => words,
    };
    let setting = |word| PossibleValue::new(format!("{}={word}", knob.name)).help(knob.help);
    words.into_iter().map(setting).collect()
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
