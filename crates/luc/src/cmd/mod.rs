//! The verbs, one file each, and the one definition of the command line that parsing, `--help`, man
//! pages and shell completions come from.

mod bench;
mod campaign;
mod completions;
mod control;
mod demo;
mod doctor;
mod exporter;
mod guard;
mod lab;
mod man;
mod off;
mod on;
mod probe;
mod replay;
mod reproduce;
mod service;
mod set;
mod sim;
mod status;
mod stock_lab;
mod top;
mod torture;
mod trace;
mod r#try;

use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use luc_control::{Knob, KnobKind};
use luc_host::sysfs::Attached;
use luc_host::{HostError, System, journal};

use crate::exit::{Code, Failure};
use crate::verb::{Interrupt, Verb as _, verbs};
use crate::{Context, help};

verbs! {
    /// What to do.
    Verbs:
    Probe(probe::Args),
    Doctor(doctor::Args),
    On(on::Args),
    Off(off::Args),
    Status(status::Args),
    Try(r#try::Args),
    Guard(guard::Args),
    Top(top::Args),
    Exporter(exporter::Args),
    Set(set::Args),
    Service(service::Args),
    Demo(demo::Args),
    #[command(subcommand)]
    Bench(bench::Verbs),
    #[command(subcommand)]
    Campaign(campaign::Verbs),
    Reproduce(reproduce::Args),
    #[command(subcommand)]
    Lab(lab::Verbs),
    #[command(subcommand)]
    Sim(sim::Verbs),
    #[command(subcommand)]
    Trace(trace::Verbs),
    Replay(replay::Args),
    #[command(subcommand)]
    Control(control::Verbs),
    #[command(subcommand, hide = true)]
    Torture(torture::Verbs),
    Completions(completions::Args),
    Man(man::Args),
}

/// Environment variable to use instead of `--sysroot`.
const SYSROOT: &str = "LUC_SYSROOT";

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
    #[command(subcommand)]
    verb: Verbs,
}

impl Cli {
    /// Parses the process's command line.
    ///
    /// # Errors
    /// If it is wrong or asks for help.
    pub fn read() -> Result<Self, clap::Error> {
        Self::from_arg_matches(&command().try_get_matches()?)
    }

    /// The root of the machine's file tree.
    pub fn sysroot(&self) -> PathBuf {
        let given = self.sysroot.clone();
        given
            .or_else(|| std::env::var_os(SYSROOT).map(PathBuf::from))
            .unwrap_or_else(|| PathBuf::from("/"))
    }

    /// Does what the command line asks for.
    ///
    /// # Errors
    /// Each has an exit code.
    pub fn run(&self, context: &mut Context) -> Result<(), Failure> {
        self.verb.run(context)
    }

    /// Tells what a signal does to the verb.
    pub fn interrupt(&self) -> Interrupt {
        self.verb.interrupt()
    }
}

/// The command line as clap sees it.
fn command() -> clap::Command {
    help::with_examples(Cli::command())
}

/// Writes a value as indented JSON with a newline at its end.
fn print_json(context: &mut Context, value: &impl serde::Serialize) -> Result<(), Failure> {
    serde_json::to_writer_pretty(&mut *context.out, value)
        .map_err(|error| Failure::from(std::io::Error::from(error)))?;
    writeln!(context.out)?;
    Ok(())
}

/// Sets the fields of `value` that `unknown` names to null.
fn hide(value: &mut serde_json::Value, unknown: &[&str]) {
    for field in unknown {
        if let Some(number) = value.get_mut(field) {
            *number = serde_json::Value::Null;
        }
    }
}

/// A knob's value in JSON: a word, a boolean or a number.
fn knob_json(knob: &Knob, value: i64) -> serde_json::Value {
    match knob.kind {
        KnobKind::Enum(_) => knob.format(value).into(),
        KnobKind::Bool => (value != 0).into(),
        KnobKind::Int => value.into(),
    }
}

/// Finds the file system with LUC on that a path or block device belongs to.
///
/// # Errors
/// If there is no such path, or LUC is not on for it.
fn attached_at(system: &dyn System, path: &Path, all: &[Attached]) -> Result<Attached, HostError> {
    let device = journal::device_of(system, path)?;
    all.iter()
        .find(|attached| attached.device == device)
        .cloned()
        .ok_or_else(|| HostError::NotOn {
            path: path.display().to_string(),
        })
}

#[cfg(test)]
mod tests {
    use crate::help;

    #[test]
    fn the_definition_is_consistent() {
        super::command().debug_assert();
    }

    /// Collects every verb that is not hidden, with the words that call it.
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

    /// Splits a line into words as a shell does, up to a redirection; without nested quotes.
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
