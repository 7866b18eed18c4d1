//! Why a file system cannot be watched.

use std::fmt::Display;
use std::io;

use luc_bpf::TracerError;
use luc_host::{HostError, System, plain, sysfs, watching};

/// A failure to watch. Its text is one line.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The machine refuses or lacks something.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The tracer cannot be attached or read.
    #[error("trace recording: {0}")]
    Tracer(TracerError),
    /// A recording, or a source of it, cannot be read or written.
    #[error("{0}")]
    Recording(String),
    /// An interrupt came before the command, so it was not started.
    #[error("interrupted: the command was not started")]
    Interrupted,
    /// The command during which to watch cannot be started.
    #[error("command {command}: {why}")]
    Command { command: String, why: String },
}

impl WatchError {
    /// The failure of a caller that cannot do without the tracer. If BPF is refused, it tells what
    /// to do.
    pub fn untraceable(error: TracerError, system: &dyn System) -> Self {
        let TracerError::Denied { why } = error else {
            return Self::Tracer(error);
        };
        let fix = if watching::may_trace(system) {
            "this process has the privileges, so the kernel or a container forbids BPF altogether; \
             `luc probe` tells more"
        } else {
            "run it as root, or with CAP_BPF and CAP_PERFMON, on the host rather than in a container"
        };
        Self::Host(HostError::NotPermitted {
            what: format!("trace with BPF ({why})"),
            fix: fix.into(),
        })
    }

    /// The failure of a system call while a recording was made.
    pub fn recording(what: impl Display, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::PermissionDenied {
            return sysfs::denied("record a trace").into();
        }
        Self::trace(what, plain(error))
    }

    /// The failure to read or record a trace.
    pub fn trace(what: impl Display, why: impl Display) -> Self {
        Self::Recording(format!("trace {what}: {why}"))
    }
}

impl From<io::Error> for WatchError {
    fn from(error: io::Error) -> Self {
        Self::Host(error.into())
    }
}
