//! Runs Slurm's commands and parses their output.
//!
//! Jobs are identified by names that this program draws. A name is known before the job exists, so
//! no job is lost when the answer of `sbatch` is lost.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Why a command gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The controller does not answer; it may later.
    Away(String),
    /// The command is missing, or it refused.
    Refused(String),
}

impl Trouble {
    pub fn why(&self) -> &str {
        match self {
            Self::Away(why) | Self::Refused(why) => why,
        }
    }
}

/// State of a task of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Pending, with the reason.
    Waits(String),
    Runs,
    /// Ended, with the state and the reason.
    Ended(String),
}

/// A task that the queue knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub name: String,
    pub number: u32,
    pub state: State,
}

/// The most tasks that an array can have.
pub fn array_max() -> Result<u32, Trouble> {
    let config = call("scontrol", &["show", "config"], "")?;
    let value = config.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "MaxArraySize").then(|| value.trim())
    });
    // Task numbers must be below MaxArraySize, and ours start at 1.
    match value.and_then(|value| value.parse::<u32>().ok()) {
        Some(size @ 2..) => Ok(size - 1),
        _ => Err(Trouble::Refused(format!(
            "this cluster does not run job arrays: MaxArraySize is {}",
            value.unwrap_or("not shown")
        ))),
    }
}

/// Submits a script with these arguments.
pub fn submit(arguments: &[String], script: &str) -> Result<(), Trouble> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    call("sbatch", &arguments, script).map(drop)
}

/// The tasks of the jobs with these names, including those that ended recently.
pub fn look(names: &[&str]) -> Result<Vec<Seen>, Trouble> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let names = format!("--name={}", names.join(","));
    let arguments = [
        "--noheader",
        "--array",
        "--states=all",
        "--format=%j|%K|%T|%r",
        &names,
    ];
    let told = call("squeue", &arguments, "")?;
    Ok(told.lines().filter_map(seen).collect())
}

/// Cancels the jobs with this name.
pub fn cancel(name: &str) -> Result<(), Trouble> {
    call("scancel", &[&format!("--name={name}")], "").map(drop)
}

/// Parses a line of `squeue`. An unknown state counts as running.
fn seen(line: &str) -> Option<Seen> {
    let mut fields = line.trim().splitn(4, '|');
    let name = fields.next()?.to_owned();
    let number = fields.next()?.parse().ok()?;
    let (state, reason) = (fields.next()?, fields.next()?);
    let state = match state {
        "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "SPECIAL_EXIT" => {
            State::Waits(reason.to_owned())
        }
        "BOOT_FAIL" | "CANCELLED" | "COMPLETED" | "DEADLINE" | "FAILED" | "LAUNCH_FAILED"
        | "NODE_FAIL" | "OUT_OF_MEMORY" | "PREEMPTED" | "REVOKED" | "TIMEOUT" => {
            State::Ended(match reason {
                "None" => state.to_owned(),
                reason => format!("{state}, {reason}"),
            })
        }
        _ => State::Runs,
    };
    Some(Seen {
        name,
        number,
        state,
    })
}

/// Runs a Slurm command and returns its standard output.
fn call(program: &str, arguments: &[&str], input: &str) -> Result<String, Trouble> {
    let output = run(program, arguments, input).map_err(|error| {
        Trouble::Refused(if error.kind() == std::io::ErrorKind::NotFound {
            format!(
                "no {program} in PATH; run this where jobs are submitted, or install Slurm's \
                 commands (Debian: slurm-client)"
            )
        } else {
            format!("{program} does not run: {error}")
        })
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let said = said.collect::<Vec<_>>().join("; ");
    let why = match said.as_str() {
        "" => format!("{program}: {}", output.status),
        said if said.starts_with(program) => said.to_owned(),
        said => format!("{program}: {said}"),
    };
    let is_away = ["Unable to contact", "timed out", "Connection refused"]
        .iter()
        .any(|text| why.contains(text));
    Err(if is_away {
        Trouble::Away(why)
    } else {
        Trouble::Refused(why)
    })
}

fn run(program: &str, arguments: &[&str], input: &str) -> std::io::Result<std::process::Output> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A script fits into a pipe. A command that exits without reading it says why itself.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output()
}

#[cfg(test)]
mod tests {
    use super::{State, seen};

    #[test]
    fn lines_of_the_queue() {
        let state = |line: &str| seen(line).map(|seen| seen.state);
        assert_eq!(
            state("luc-a|3|PENDING|Resources"),
            Some(State::Waits("Resources".into()))
        );
        assert_eq!(state("luc-a|3|COMPLETING|None"), Some(State::Runs));
        assert_eq!(state("luc-a|3|NEWER_STATE|None"), Some(State::Runs));
        assert_eq!(
            state("luc-a|3|COMPLETED|None"),
            Some(State::Ended("COMPLETED".into()))
        );
        assert_eq!(
            state("luc-a|3|FAILED|NonZeroExitCode"),
            Some(State::Ended("FAILED, NonZeroExitCode".into()))
        );
        // A job of another program that is not an array.
        assert_eq!(state("luc-a|N/A|RUNNING|None"), None);
        assert_eq!(state(""), None);
        let seen = seen("luc-a|12|RUNNING|None").unwrap();
        assert_eq!((seen.name.as_str(), seen.number), ("luc-a", 12));
    }
}
