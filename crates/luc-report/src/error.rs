//! Errors, each shown as one line.

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
        source: luc_vm::LabError,
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
}

impl ReportError {
    /// Whether one machine failed: its kernel, its programs, or QEMU, which may have been killed.
    /// Others may still run.
    pub fn is_the_guests(&self) -> bool {
        use luc_vm::LabError::{GuestPanic, HostTimeout, NoResults};
        match self {
            Self::Failed { .. } => true,
            Self::Lab { source, .. } => {
                matches!(
                    source,
                    GuestPanic { .. } | HostTimeout { .. } | NoResults { .. }
                )
            }
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
