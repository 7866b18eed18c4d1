//! What can go wrong, in one line each.

use std::path::{Path, PathBuf};

/// Result of measuring or rendering.
pub type Result<T> = std::result::Result<T, ReportError>;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The lab could not run a virtual machine.
    #[error("kernel {kernel} at {cpu_mips} MIPS: {source}")]
    Lab {
        /// Kernel by its name in the list.
        kernel: String,
        /// Speed.
        cpu_mips: u32,
        /// Why.
        source: luc_lab::LabError,
    },
    /// The machine ran, but a cell failed or the kernel log shows a problem.
    #[error("kernel {kernel} at {cpu_mips} MIPS: {first}{}{}", others(*.more), kept(.log.as_deref()))]
    Failed {
        /// Kernel by its name in the list.
        kernel: String,
        /// Speed.
        cpu_mips: u32,
        /// The first problem.
        first: String,
        /// How many more there were.
        more: usize,
        /// The kernel's log, where it could be kept.
        log: Option<PathBuf>,
    },
    /// A cell's output is not what its workload prints.
    #[error(
        "kernel {kernel}, cell {cell}: cannot read the result: {why}; the binary in the guest must be this one"
    )]
    BadOutput {
        /// Kernel by its name in the list.
        kernel: String,
        /// The cell.
        cell: String,
        /// What is wrong.
        why: String,
    },
    /// A file of the report could not be written or read.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A results file is of another kind or version.
    #[error("{} is not a results file of this version ({why}); measure again", path.display())]
    BadResults {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A chart could not be drawn.
    #[error("cannot draw the chart {title:?}: {why}")]
    Chart {
        /// Its heading.
        title: String,
        /// Why.
        why: String,
    },
}

impl ReportError {
    /// Whether a machine was run and its kernel or programs are what failed.
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

    /// The same, and in what it happened, where the error does not tell by itself.
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
