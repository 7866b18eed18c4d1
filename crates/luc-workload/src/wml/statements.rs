//! The statements of a file around the preparation of its filesets, in their order.

use std::fs;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use luc_wml::plan::{Action, Plan, Position};

use super::prepare::Say;
use crate::clock::{NS_PER_S, now_ns, sleep_until};
use crate::scratch::Scratch;
use crate::{Result, Stop, WorkloadError};

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Returns the statements before the filesets are made, and those between this and the run.
pub fn around_preparation(plan: &Plan) -> (&[Action], &[Action]) {
    let makes = |action: &Action| matches!(action, Action::CreateFiles | Action::Run { .. });
    let at = plan.actions.iter().position(makes);
    plan.actions.split_at(at.unwrap_or(plan.actions.len()))
}

/// Returns the commands that need the shell, each with its position.
pub fn commands(plan: &Plan) -> impl Iterator<Item = (&str, Position)> {
    plan.actions.iter().filter_map(|action| match action {
        Action::Command { command, at } => Some((command.as_str(), *at)),
        _ => None,
    })
}

/// # Errors
/// If the file has a command that the user has not allowed.
pub fn refuse_commands(plan: &Plan) -> Result<()> {
    match commands(plan).next() {
        None => Ok(()),
        Some((command, at)) => Err(WorkloadError::Plan {
            why: format!(
                "line {} gives the shell a command, {command:?}; allow such commands with \
                 --allow-system, or delete the line",
                at.line
            ),
        }),
    }
}

/// Carries out statements. `notes` gets those that failed: like Filebench, the run goes on.
///
/// # Errors
/// If the file system cannot be synced.
pub fn carry_out(
    actions: &[Action],
    scratch: &Scratch,
    stop: &Stop,
    say: &mut Say<'_>,
    notes: &mut Vec<String>,
) -> Result<()> {
    for action in actions {
        if stop.is_set() {
            break;
        }
        match action {
            Action::Sleep(seconds) => {
                say(
                    "waiting, as the file asks",
                    Some(Duration::from_secs(*seconds)),
                );
                let pause_ns = seconds.saturating_mul(NS_PER_S);
                sleep_until(now_ns().saturating_add(pause_ns), stop);
            }
            Action::Sync => {
                say("syncing, as the file asks", None);
                scratch.sync()?;
            }
            Action::DropCaches(level) => notes.extend(drop_caches(*level, DROP_CACHES)),
            Action::Command { command, at } => {
                say(&format!("running {command:?}, as the file asks"), None);
                notes.extend(shell(command).map(|why| format!("line {}: {why}", at.line)));
            }
            Action::Echo(_) | Action::CreateFiles | Action::Run { .. } => {}
        }
    }
    Ok(())
}

/// Returns a note if the caches stay as they are.
fn drop_caches(level: u8, path: &str) -> Option<String> {
    let error = fs::write(path, level.to_string()).err()?;
    let fix = match error.kind() {
        io::ErrorKind::PermissionDenied => "; run as root",
        _ => "",
    };
    Some(format!(
        "the caches were not dropped, so reads may find data in memory: cannot write {path}: \
         {error}{fix}"
    ))
}

/// Runs a command; returns a note if it fails. What it prints goes to standard error, because
/// standard output holds the report.
fn shell(command: &str) -> Option<String> {
    let mut shell = Command::new("/bin/sh");
    let ended = shell
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .status();
    match ended {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("the command {command:?} failed ({status})")),
        Err(error) => Some(format!("cannot start /bin/sh for {command:?}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caches_are_dropped_or_a_note_says_why_not() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let file = dir.path().join("drop_caches");
        let path = file.to_str().expect("UTF-8");
        assert_eq!(drop_caches(3, path), None);
        assert_eq!(fs::read_to_string(path).expect("readable"), "3");

        let missing = dir.path().join("none/drop_caches");
        let path = missing.to_str().expect("UTF-8");
        let note = drop_caches(1, path).expect("a note");
        assert!(
            note.contains("were not dropped") && note.contains(path),
            "{note}"
        );
    }
}
