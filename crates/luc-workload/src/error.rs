//! Errors: one line each, which names the call and the file.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

pub type Result<T> = std::result::Result<T, WorkloadError>;

/// The reason why a workload could not run or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A system call failed.
    #[error("cannot {call} {}: {source}{}", path.display(), hint(source))]
    Call {
        /// The call, as a verb.
        call: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A write stored fewer bytes than it was given, which a regular file does only when space is
    /// short.
    #[error("cannot write {}: only {done} of {wanted} bytes were stored; free some space", path.display())]
    ShortWrite {
        path: PathBuf,
        done: usize,
        wanted: usize,
    },
    /// The system refuses more threads or processes.
    #[error(
        "cannot start {what} {number} of {wanted}: {source}; ask for fewer {} or raise the limit (ulimit -u)",
        if *what == "process" { "processes" } else { "threads" }
    )]
    Start {
        /// `thread` or `process`.
        what: &'static str,
        /// Its number, from 1.
        number: usize,
        wanted: usize,
        source: io::Error,
    },
    /// A flowop of a workload file asks for something that cannot be done.
    #[error("flowop {flowop} (line {line}): {why}")]
    Flowop {
        flowop: String,
        /// Its line in the workload file.
        line: u32,
        /// The fault and its remedy.
        why: String,
    },
    /// A flowop found no file or directory to work on.
    #[error(
        "{what}; give the fileset more entries, run for a shorter time, or let the file end the \
         run at that point (set mode quit firstdone)"
    )]
    NoEntry { what: String },
    /// A fileset cannot be laid out.
    #[error("cannot lay out fileset {fileset}: {why}")]
    Tree {
        fileset: String,
        /// The reason, and the remedy.
        why: String,
    },
    /// A workload file as a whole asks for something that cannot be done.
    #[error("cannot run this workload file: {why}")]
    Plan {
        /// The fault and its remedy.
        why: String,
    },
    #[error("{text}")]
    Worker {
        /// The worker's own error, in one line, which names the call and the file.
        text: String,
        /// The error number of its system call, if one failed.
        errno: Option<i32>,
    },
    /// A worker ended before its work was done.
    #[error(
        "worker {number} ended early ({how}); the run is void; if nobody killed it, see the kernel \
         log"
    )]
    WorkerEnded {
        /// Number of the worker, from 1.
        number: usize,
        /// Its exit status, or how its connection ended.
        how: String,
    },
    /// This machine's energy cannot be measured.
    #[error(transparent)]
    Meter(#[from] luc_power::meter::MeterError),
    /// A real program could not be measured.
    #[error("{why}")]
    App {
        /// The program, the fault and its remedy.
        why: String,
    },
    /// A real program is not installed.
    #[error(
        "{app}: no program {program}; install the package {package}, or name a root that has it with --root"
    )]
    Missing {
        app: String,
        program: String,
        package: String,
    },
    /// Arguments that make no sense together.
    #[error("{0}")]
    Arguments(String),
    /// Too few file descriptors for one open file per thread.
    #[error(
        "{threads} threads need {needed} open files but the hard limit is {limit}; ask for fewer threads or raise it (ulimit -Hn)"
    )]
    OpenFiles {
        threads: usize,
        needed: u64,
        limit: u64,
    },
}

impl WorkloadError {
    /// Returns the error number of the system call behind this error, if one failed.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Call { source, .. } | Self::Start { source, .. } => source.raw_os_error(),
            Self::Worker { errno, .. } => *errno,
            _ => None,
        }
    }

    pub(crate) fn flowop(flowop: &luc_wml::plan::Flowop, why: impl Into<String>) -> Self {
        Self::Flowop {
            flowop: flowop.name.clone(),
            line: flowop.at.line,
            why: why.into(),
        }
    }

    pub(crate) fn call(
        call: &'static str,
        path: impl AsRef<Path>,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::Call {
            call,
            path: path.as_ref().to_owned(),
            source: source.into(),
        }
    }
}

fn hint(source: &io::Error) -> &'static str {
    match source.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC) => {
            "; free some space or inodes, ask for fewer files, or give another directory"
        }
        Some(Errno::DQUOT) => "; raise the quota or give another directory",
        Some(Errno::ROFS) => "; mount it read-write or give another directory",
        Some(Errno::NOENT | Errno::NOTDIR) => "; give an existing directory",
        Some(Errno::ACCESS | Errno::PERM) => "; give a directory that you may write to",
        Some(Errno::IO) => "; see the kernel log for the device's error",
        _ => "",
    }
}
