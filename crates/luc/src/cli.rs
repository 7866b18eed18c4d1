//! The one definition of the command line, from which parsing, `--help`, man
//! pages and shell completions come.

use std::path::PathBuf;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::exit::{Code, Failure};
use crate::{Context, cmd, help};

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
    /// Does what the command line asks for.
    pub fn run(&self, context: &mut Context) -> Result<(), Failure> {
        match self {
            Verb::Probe(args) => cmd::probe::run(args, context),
            Verb::Doctor(args) => cmd::doctor::run(args, context),
            Verb::On(args) => cmd::on::run(args, context),
            Verb::Off(args) => cmd::off::run(args, context),
            Verb::Status(args) => cmd::status::run(args, context),
            Verb::Top(args) => cmd::top::run(args, context),
            Verb::Exporter(args) => cmd::exporter::run(args, context),
            Verb::Set(args) => cmd::set::run(args, context),
            Verb::Demo(args) => cmd::demo::run(args, context),
            Verb::Bench(args) => cmd::bench::run(args, context),
            Verb::Lab(verb) => cmd::lab::run(verb, context),
            Verb::Trace(verb) => cmd::trace::run(verb, context),
            Verb::Replay(args) => cmd::replay::run(args, context),
            Verb::Control(verb) => cmd::control::run(verb, context),
            Verb::Torture(verb) => cmd::torture::run(verb, context),
            Verb::Completions(args) => cmd::completions::run(args, command(), context),
            Verb::Man(args) => cmd::man::run(args, command(), context),
        }
    }

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
    help::with_examples(Cli::command())
}

/// Takes the process' command line.
///
/// # Errors
/// It makes no sense, or asks for help.
pub fn parse() -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&command().try_get_matches()?)
}

#[cfg(test)]
mod tests {
    use crate::help;

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
            let examples = help::examples(verb);
            assert!(!examples.is_empty(), "{path} has no example");
            for line in examples {
                assert!(line.starts_with(&path), "{path}: {line}");
                let parsed = super::command().try_get_matches_from(words(&line));
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
            let mut verb = verb.clone();
            let (short, long) = (verb.render_help(), verb.render_long_help());
            for help in [short.to_string(), long.to_string()] {
                assert!(help.contains(help::EXAMPLES), "{path}: {help}");
            }
        }
    }
}
