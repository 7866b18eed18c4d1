//! The verbs, one file each, and the one definition of the command line that parsing, `--help`, man
//! pages and shell completions come from.

mod completions;
mod doctor;
mod exporter;
mod guard;
mod man;
mod means;
mod off;
mod on;
mod power;
mod probe;
mod replay;
mod service;
mod set;
mod status;
mod top;
mod trace;
mod r#try;

use std::path::{Path, PathBuf};

use clap::Parser;
use luc_bpf::TracerError;
use luc_host::sysfs::Attached;
use luc_host::{HostError, System, journal};

use luc_cli::{Code, Context, Failure, Program, Verb, verbs};
use luc_watch::WatchError;
use luc_watch::trial::recovery;

verbs! {
    /// The verbs.
    Verbs:
    Probe(probe::Args),
    Doctor(doctor::Args),
    Top(top::Args),
    Exporter(exporter::Args),
    On(on::Args),
    Off(off::Args),
    Status(status::Args),
    Set(set::Args),
    Try(r#try::Args),
    Power(power::Args),
    Guard(guard::Args),
    Service(service::Args),
    #[command(subcommand)]
    Trace(trace::Verbs),
    Replay(replay::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// The verbs of `luc-lab` that `luc` once had, and what they are called there.
const MOVED: [(&str, &str); 8] = [
    ("demo", "demo"),
    ("bench", "bench"),
    ("campaign", "campaign"),
    ("reproduce", "reproduce"),
    ("sim", "sim"),
    ("control", "control"),
    ("torture", "promises"),
    // Its verbs are verbs of luc-lab itself.
    ("lab", ""),
];

/// Measure, explain and remove ext4 journal-commit delays on a live system
///
/// LUC batches the journal commits of ext4 and ext3 file systems and keeps commits from blocking
/// writers. It works on the running kernel, without a patch or a reboot. With LUC off, a file
/// system runs exactly as on a stock kernel.
#[derive(Debug, Parser)]
#[command(name = "luc", version, disable_help_subcommand = true)]
pub struct Cli {
    /// Look for /sys, /proc and /dev below this directory
    #[arg(long, global = true, hide = true, value_name = "DIR")]
    sysroot: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verbs,
}

impl Program for Cli {
    const GROUPS: &[(&str, &[&str])] = &[
        ("Watch", &["probe", "doctor", "top", "exporter"]),
        ("Steer", &["on", "off", "status", "set", "power"]),
        ("Keep what helps", &["try", "guard", "service"]),
        ("Record", &["trace", "replay"]),
        ("Shell and manual", &["completions", "man"]),
    ];

    fn verb(&self) -> &dyn Verb {
        &self.verb
    }

    fn sysroot(&self) -> Option<PathBuf> {
        self.sysroot.clone()
    }

    fn moved(words: &[String]) -> Option<String> {
        let at = words.iter().position(|word| !word.starts_with('-'))?;
        let (old, new) = MOVED.iter().find(|(old, _)| *old == words[at])?;
        let rest = words[at + 1..].iter().map(String::as_str);
        let now: Vec<&str> = ["luc-lab", new].into_iter().chain(rest).collect();
        let now = now.join(" ").replace("  ", " ");
        Some(format!(
            "`luc {old}` is a verb of luc-lab now; run `{}`",
            now.trim_end()
        ))
    }
}

/// The command line as clap sees it.
fn command() -> clap::Command {
    luc_cli::command::<Cli>()
}

/// Sets the fields of `value` that `unknown` names to null.
fn hide(value: &mut serde_json::Value, unknown: &[&str]) {
    for field in unknown {
        if let Some(number) = value.get_mut(field) {
            *number = serde_json::Value::Null;
        }
    }
}

/// The failure of `verb`, with its exit code.
fn failed(verb: &str) -> impl Fn(WatchError) -> Failure + Copy {
    move |error| match error {
        WatchError::Host(error) => error.into(),
        WatchError::Tracer(
            error @ (TracerError::NoCgroup { .. } | TracerError::TooMany { .. }),
        ) => Failure::usage(verb, error),
        WatchError::Tracer(_) | WatchError::Recording(_) => Failure::coded(Code::Trace, error),
        WatchError::Interrupted => Failure::coded(Code::Interrupted, error),
        WatchError::Command { command, why } => Failure::Command {
            command,
            how: why,
            status: None,
        },
    }
}

/// Restores LUC's state after trials that were killed, and notes it.
fn recover(context: &mut Context) -> Result<(), Failure> {
    for line in recovery::recover(context.system)? {
        context.note(line)?;
    }
    Ok(())
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
    use luc_cli::Program as _;

    #[test]
    fn the_definition_is_consistent() {
        super::command().debug_assert();
        luc_cli::help::check_examples(&super::command());
    }

    #[test]
    fn old_verbs_are_answered_with_the_new_ones() {
        for (old, new) in [
            ("bench run varmail /srv", "luc-lab bench run varmail /srv"),
            ("lab run -- dmesg", "luc-lab run -- dmesg"),
            ("lab", "luc-lab"),
        ] {
            let words: Vec<String> = old.split(' ').map(String::from).collect();
            let said = super::Cli::moved(&words).expect("it has moved");
            assert!(said.ends_with(&format!("run `{new}`")), "{said}");
        }
        assert_eq!(super::Cli::moved(&["fly".to_owned()]), None);
    }
}
