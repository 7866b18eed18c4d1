//! Simulates the journal, the processors and the disks, with the real controllers inside.
//!
//! A deterministic discrete-event simulator: a [`Node`] is a machine ([`Setup`]) with a program for
//! each task. The crate `luc-sim-loads` has the programs of `luc-lab bench`; [`replayed`] runs the
//! operations of a recording again.
//!
//! - [`calendar`]: the events to come, by time. There is one thread and no host clock: the same
//!   input gives the same report, byte for byte.
//! - [`processors`]: work is instructions; how long they take depends on the processor's speed
//!   ([`speeds`]). [`kernel`]: the scheduler, and other rules that differ between kernels.
//! - [`disk`]: the lab's disks, by the lab's own model. [`files`]: inodes, blocks and dirty pages,
//!   on a mounted file system ([`mount`]).
//! - [`journal`]: transactions, buffers and the log's space, for jbd2 and possible replacements.
//!   [`node`]: the paths through them, and the journal's thread. [`costs`]: what each part costs,
//!   with its source.
//! - [`recorder`]: turns a run into a recording for `luc trace` and `luc replay`.
//! - [`runtime`]: what LUC's module does around the controllers, which are the real ones.
//!
//! [`node`] lists what the simulator leaves out; `luc-lab sim validate` shows how well it agrees
//! with the lab.

pub mod calendar;
pub mod costs;
pub mod disk;
pub mod files;
pub mod journal;
pub mod kernel;
pub mod measured;
pub mod mount;
pub mod named;
pub mod node;
pub mod processors;
pub mod program;
pub mod random;
pub mod recorder;
pub mod replayed;
pub mod runtime;
pub mod speeds;
mod units;

use clap::Parser as _;
use luc_control::{KnobKind, Params, policy};
use thiserror::Error;

pub use node::{Node, RUNS_MAX, Setup};

/// Why nothing can be simulated.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SimError {
    #[error("{0}")]
    Arguments(String),
    #[error("the simulator has no {name}; it has {has}")]
    Unknown { name: &'static str, has: String },
    #[error("LUC steers only jbd2: turn it off, or use jbd2 instead of {name}")]
    NotSteered { name: &'static str },
    #[error(
        "the log of {name} is full: all {mib} MiB are in use; give it more space, or run for less \
         time"
    )]
    Full { name: &'static str, mib: u32 },
}

impl Setup {
    /// # Errors
    /// LUC is on, but cannot steer this journal.
    pub fn check(&self) -> Result<(), SimError> {
        let kind = self.journal.kind;
        if self.luc.is_some() && !kind.takes_luc {
            return Err(SimError::NotSteered { name: kind.name });
        }
        Ok(())
    }
}

/// Parses the options of `luc on`: a policy, then knobs. `None` if LUC only observes, which changes
/// nothing here.
///
/// # Errors
/// An option is unknown, or its value is invalid.
pub fn knobs(options: &[String]) -> Result<Option<Params>, SimError> {
    let options = Options::try_parse_from(options)
        .map_err(|error| SimError::Arguments(one_line(&error.to_string())))?;
    let bad = |error: luc_control::KnobError| SimError::Arguments(error.to_string());
    let mut params = Params::default();
    if let Some(name) = &options.policy {
        for (knob, value) in &policy(name).map_err(bad)?.settings {
            params.set(knob.name, *value);
        }
    }
    for setting in &options.set {
        let (name, text) = setting
            .split_once('=')
            .ok_or_else(|| SimError::Arguments(format!("--set {setting}: give KNOB=VALUE")))?;
        let knob = luc_control::knob(name).map_err(bad)?;
        if knob.kind == KnobKind::Cgroup {
            return Err(SimError::Arguments(format!(
                "--set {name}: the simulator has no control groups"
            )));
        }
        params.set(knob.name, knob.parse(text).map_err(bad)?);
    }
    Ok((!options.observe).then_some(params))
}

#[derive(clap::Parser)]
#[command(no_binary_name = true)]
struct Options {
    #[arg(long)]
    policy: Option<String>,
    #[arg(long)]
    set: Vec<String>,
    #[arg(long)]
    observe: bool,
}

/// Returns the first line of clap's message, without the usage.
pub fn one_line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn options_that_are_none_are_refused() {
        let knobs = |text: &str| {
            let words: Vec<String> = text.split_whitespace().map(String::from).collect();
            super::knobs(&words)
        };
        for options in ["--policy x", "--set setpoint_events", "--set x=1", "--bad"] {
            assert!(knobs(options).is_err(), "{options}");
        }
        assert_eq!(knobs("--observe").unwrap(), None);
        let published = knobs("--policy published --set setpoint_events=8").unwrap();
        assert_eq!(published.unwrap().setpoint_events, 8);
    }
}
