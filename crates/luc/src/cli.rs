//! The one definition of the command line, from which parsing, `--help`, man
//! pages and shell completions come.

use std::path::PathBuf;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use luc_control::{Enumerator, Knob, KnobKind, counters, knobs, policies};

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

/// The verbs. Their help is the documentation of their arguments.
#[allow(missing_docs)] // a line here would replace that help
#[derive(Debug, Subcommand)]
pub enum Verb {
    #[command(after_help = "Examples:\n\
        \x20 luc probe\n\
        \x20 luc probe --json")]
    Probe(cmd::probe::Args),
    #[command(after_help = "Examples:\n\
        \x20 luc doctor /srv/data\n\
        \x20 luc doctor --seconds 30 /srv/data\n\
        \x20 luc doctor --from run.luc")]
    Doctor(cmd::doctor::Args),
    #[command(after_help = "Examples:\n\
        \x20 luc on /srv/data\n\
        \x20 luc on --observe /srv/data\n\
        \x20 luc on --policy pid --set delay_limit_us=5000 /srv/data")]
    On(cmd::on::Args),
    Off(cmd::off::Args),
    Status(cmd::status::Args),
    Top(cmd::top::Args),
    Exporter(cmd::exporter::Args),
    Set(cmd::set::Args),
    Demo(cmd::demo::Args),
    Bench(cmd::bench::Args),
    #[command(subcommand)]
    Lab(cmd::lab::Verb),
    #[command(subcommand)]
    Trace(cmd::trace::Verb),
    Replay(cmd::replay::Args),
    #[command(subcommand)]
    Control(cmd::control::Verb),
    #[command(subcommand, hide = true)]
    Torture(cmd::torture::Verb),
    Completions(cmd::completions::Args),
    Man(cmd::man::Args),
}

impl Verb {
    /// True if an interrupt must not end the process at once.
    pub fn minds_interrupts(&self) -> bool {
        match self {
            Verb::On(_)
            | Verb::Off(_)
            | Verb::Doctor(_)
            | Verb::Top(_)
            | Verb::Exporter(_)
            | Verb::Trace(_) => true,
            Verb::Bench(args) => args.minds_interrupts(),
            _ => false,
        }
    }

    /// Whether it runs a command that must get its signals as if it ran alone.
    pub fn runs_a_command(&self) -> bool {
        matches!(self, Verb::Trace(verb) if verb.runs_a_command())
    }

    /// Whether it changes the terminal, which must be given back whatever ends it.
    pub fn takes_the_terminal(&self) -> bool {
        matches!(self, Verb::Top(args) if args.takes_the_terminal())
    }
}

/// The command line as clap sees it.
pub fn command() -> clap::Command {
    with_examples(Cli::command())
}

/// Takes the process' command line.
///
/// # Errors
/// It makes no sense, or asks for help.
pub fn parse() -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&command().try_get_matches()?)
}

/// First line of a verb's examples; its declaration has them as `after_help`.
const EXAMPLES: &str = "Examples:";

/// The examples of a verb, a command line each.
pub fn examples(command: &clap::Command) -> Vec<String> {
    let text = command.get_after_help().map(ToString::to_string);
    let text = text.unwrap_or_default();
    let lines = text.lines().skip_while(|line| *line != EXAMPLES).skip(1);
    lines.map(|line| line.trim().to_owned()).collect()
}

/// A verb that holds others takes the first example of each; and the long help has them, too, before
/// the tables that some verbs end with.
fn with_examples(command: clap::Command) -> clap::Command {
    let mut command = command.mut_subcommands(with_examples);
    if command.has_subcommands() {
        let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let firsts = verbs.filter_map(|verb| examples(verb).into_iter().next());
        let lines: Vec<String> = std::iter::once(EXAMPLES.to_owned()).chain(firsts).collect();
        command = command.after_help(lines.join("\n  "));
    }
    let (Some(short), Some(long)) = (command.get_after_help(), command.get_after_long_help())
    else {
        return command;
    };
    let both = format!("{short}\n\n{long}");
    command.after_long_help(both)
}

/// Which values a knob takes: `stock|static|pid`, or `0 to 1000`.
pub fn range(min: i64, max: i64, words: &[&str]) -> String {
    if words.is_empty() {
        format!("{min} to {max}")
    } else {
        words.join("|")
    }
}

/// What `policy` means, wherever knobs are listed.
pub const POLICY_HELP: &str = "batching and copyout by one name; custom if they have none";

/// The knobs that choose a controller, with their words.
pub fn controllers() -> impl Iterator<Item = (&'static Knob, &'static [Enumerator])> {
    knobs().iter().filter_map(|knob| match knob.kind {
        KnobKind::Enum(words) if words.iter().any(|word| !word.knobs.is_empty()) => {
            Some((knob, words))
        }
        _ => None,
    })
}

/// A controller's help, with the knobs that it reads beside those that all share.
pub fn word_help(word: &Enumerator) -> String {
    let knobs: Vec<_> = word.knobs.split_whitespace().collect();
    if knobs.is_empty() {
        return word.help.to_owned();
    }
    format!("{} (knobs: {})", word.help, knobs.join(", "))
}

/// The policies and knobs as text, for `--help`.
pub fn knob_table() -> String {
    let named = policies()
        .iter()
        .map(|policy| (policy.text, policy.help.to_owned()));
    let rows = knobs().iter().map(|knob| {
        let range = range(knob.min, knob.max, &knob.words());
        let default = knob.format(knob.default);
        (
            knob.name,
            format!("{} ({range}; default {default})", knob.help),
        )
    });
    let mut lists = vec![list("Policies:", named), list("Knobs:", rows)];
    for (knob, words) in controllers() {
        let words = words.iter().map(|word| (word.text, word_help(word)));
        lists.push(list(&format!("Words of {}:", knob.name), words));
    }
    lists.join("\n\n")
}

/// The counters as text, for `--help`.
pub fn counter_table() -> String {
    let rows = counters()
        .iter()
        .map(|counter| (counter.name, counter.help.to_owned()));
    list("Counters:", rows)
}

fn list(title: &str, rows: impl Iterator<Item = (&'static str, String)>) -> String {
    let head = std::iter::once(title.to_owned());
    let rows = rows.map(|(name, help)| format!("  {name}\n          {help}"));
    head.chain(rows).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definition_is_consistent() {
        super::command().debug_assert();
    }

    /// Every verb that is not hidden, by its words.
    fn verbs<'a>(
        command: &'a clap::Command,
        path: &str,
        found: &mut Vec<(String, &'a clap::Command)>,
    ) {
        found.push((path.to_owned(), command));
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            verbs(verb, &format!("{path} {}", verb.get_name()), found);
        }
    }

    /// The words of a line without quotes inside of quotes, up to where a shell would redirect.
    fn words(line: &str) -> Vec<String> {
        let line = line.split(" > ").next().unwrap_or(line);
        let quoted = line.split('\'').enumerate();
        let words = quoted.flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        });
        words.collect()
    }

    #[test]
    fn every_verb_has_examples_that_parse() {
        let command = super::command();
        let mut all = Vec::new();
        verbs(&command, "luc", &mut all);
        for (path, verb) in all {
            let examples = super::examples(verb);
            assert!(!examples.is_empty(), "{path} has no example");
            for line in examples {
                assert!(line.starts_with(&path), "{path}: {line}");
                let parsed = super::command().try_get_matches_from(words(&line));
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
            let mut verb = verb.clone();
            let (short, long) = (verb.render_help(), verb.render_long_help());
            for help in [short.to_string(), long.to_string()] {
                assert!(help.contains(super::EXAMPLES), "{path}: {help}");
            }
        }
    }
}
