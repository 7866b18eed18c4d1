//! Completion scripts, from the definition that parses the command line.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap_complete::Shell;
use luc_control::{Knob, KnobKind, knobs, policies};

use crate::help;

/// The words that an argument takes though clap does not check them; `None` if it is free.
pub type Words = fn(argument: &str) -> Option<Vec<PossibleValue>>;

/// Returns the script of a program; `words` adds to the words of policies and knobs.
pub fn script(shell: Shell, command: clap::Command, words: Words) -> Vec<u8> {
    let mut script = Vec::new();
    let mut command = with_words(command, words);
    let name = command.get_name().to_owned();
    if shell == Shell::Bash {
        return bash(command, &name);
    }
    clap_complete::generate(shell, &mut command, &name, &mut script);
    if shell == Shell::Fish {
        let mut rules = Vec::new();
        fish_rules(&command, &name, "", &mut rules);
        script.extend(FISH_BEHIND.replace("NAME", &function(&name)).into_bytes());
        script.extend(rules.concat().into_bytes());
    }
    script
}

/// For bash, `clap_complete` mixes a hyphen in a program's name up with the space before a verb,
/// and then completes no verb. So it is told a name without one.
fn bash(command: clap::Command, name: &str) -> Vec<u8> {
    let plain = function(name);
    let mut script = Vec::new();
    let mut command = command.name(plain.clone()).bin_name(plain.clone());
    clap_complete::generate(Shell::Bash, &mut command, &plain, &mut script);
    let script = String::from_utf8_lossy(&script);
    script
        .replace(&format!("default {plain}\n"), &format!("default {name}\n"))
        .into_bytes()
}

/// The name of a program as `clap_complete` has it in names of functions.
fn function(name: &str) -> String {
    name.replace('-', "_")
}

/// For fish, `clap_complete` leaves out the values of positional arguments. This function counts
/// the words after the verbs, and with them values of options other than --sysroot.
const FISH_BEHIND: &str = r#"
# Tells whether the words from the third argument on are the verbs, with at least $argv[1] and at
# most $argv[2] words after them.
function __fish_NAME_behind
    set -l least $argv[1]
    set -l most $argv[2]
    set -l verbs $argv[3..]
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -i (__fish_NAME_global_optspecs) -- $cmd 2>/dev/null
    or return
    set -l words (string match -v -- '-*' $argv)
    set -l behind (math (count $words) - (count $verbs))
    test "$words[1..$(count $verbs)]" = "$verbs" -a $behind -ge $least -a $behind -le $most
end

"#;

/// Adds a rule for each positional argument that takes words from a list.
fn fish_rules(command: &clap::Command, name: &str, verbs: &str, rules: &mut Vec<String>) {
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
        let function = function(name);
        rules.push(format!(
            "complete -c {name} -n \"__fish_{function}_behind {place} {most}{verbs}\" -f -a \"{words}\"\n"
        ));
    }
    for verb in command.get_subcommands() {
        fish_rules(verb, name, &format!("{verbs} {}", verb.get_name()), rules);
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
fn with_words(command: clap::Command, more: Words) -> clap::Command {
    let command = command.mut_subcommands(|verb| with_words(verb, more));
    let all = |argument: &str| words(argument).or_else(|| more(argument));
    command.mut_args(|arg| match all(arg.get_id().as_str()) {
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
        _ => return None,
    })
}

fn words_of(knob: &Knob) -> Vec<&'static str> {
    match knob.kind {
        KnobKind::Int | KnobKind::Cgroup => Vec::new(),
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
