//! Errors, in one line each.

use std::io;
use std::path::{Path, PathBuf};

/// Result of measuring or rendering.
pub type Result<T> = std::result::Result<T, ReportError>;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The lab could not run a virtual machine.
    #[error("kernel {kernel} at {cpu_mips} MIPS: {source}")]
    Lab {
        /// Name in the list of kernels.
        kernel: String,
        cpu_mips: u32,
        source: luc_lab::LabError,
    },
    /// The machine ran, but a cell failed or the kernel log shows a problem.
    #[error("kernel {kernel} at {cpu_mips} MIPS: {first}{}{}", others(*.more), kept(.log.as_deref()))]
    Failed {
        /// Name in the list of kernels.
        kernel: String,
        cpu_mips: u32,
        /// The first problem.
        first: String,
        /// Number of further problems.
        more: usize,
        /// The kernel's log, if it could be kept.
        log: Option<PathBuf>,
    },
    /// A cell's output is not that of its workload.
    #[error(
        "kernel {kernel}, cell {cell}: cannot read the result: {why}; the binary in the guest must be this one"
    )]
    BadOutput {
        /// Name in the list of kernels.
        kernel: String,
        cell: String,
        why: String,
    },
    /// A file of the report could not be written or read.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// A verb.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A results file is of another kind or version.
    #[error("{} is not a results file of this version ({why}); measure again", path.display())]
    BadResults { path: PathBuf, why: String },
    /// A chart could not be drawn.
    #[error("cannot draw the chart {title:?}: {why}")]
    Chart { title: String, why: String },
}

impl ReportError {
    /// A maker of [`ReportError::File`] for `map_err`.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File {
            action,
            path,
            source,
        }
    }

    /// Whether a machine ran and its kernel or programs failed.
    pub fn is_the_guests(&self) -> bool {
        use luc_lab::LabError::{GuestPanic, HostTimeout};
        match self {
            Self::Failed { .. } | Self::BadOutput { .. } => true,
            Self::Lab { source, .. } => {
                matches!(source, GuestPanic { .. } | HostTimeout { .. })
            }
            _ => false,
        }
    }

    /// The same error, with the scenario in which it happened if the error does not name it.
    #[must_use]
    pub fn within(mut self, what: &str) -> Self {
        if let Self::Failed { first, .. } = &mut self {
            *first = format!("{what}: {first}");
        }
        self
    }
}

fn others(more: usize) -> String {
    match more {
        0 => String::new(),
        1 => " (and one more problem)".to_owned(),
        n => format!(" (and {n} more problems)"),
    }
}

fn kept(log: Option<&Path>) -> String {
    log.map(|path| format!("; the kernel's log is {}", path.display()))
        .unwrap_or_default()
}
