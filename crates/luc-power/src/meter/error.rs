//! Errors: why this machine has no meter.

use std::io;
use std::path::PathBuf;

/// The reason why energy cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeterError {
    #[error(
        "no energy counters in {}, and no battery that discharges; load the kernel module \
         intel_rapl_msr, or give a meter (--meter COMMAND); virtual machines have no counters",
        powercap.display()
    )]
    NoCounters { powercap: PathBuf },
    /// Since Linux 5.10 (commit 949dd0104c49, CVE-2020-8694) the counters are for root.
    #[error(
        "cannot read the energy counter {}: permission denied; run it as root, or give a meter \
         (--meter COMMAND)",
        file.display()
    )]
    NotPermitted { file: PathBuf },
    #[error(
        "cannot read the energy counter {}: {source}; give a meter (--meter COMMAND)",
        file.display()
    )]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("meter {meter}: {why}")]
    External {
        meter: String,
        /// The fault and its remedy.
        why: String,
    },
    #[error(
        "cannot measure idle power: {why}; rest longer (--idle-s N), or leave it out (--idle-s 0)"
    )]
    Idle { why: String },
}

impl MeterError {
    pub(super) fn read(file: impl Into<PathBuf>, source: io::Error) -> Self {
        let file = file.into();
        if source.kind() == io::ErrorKind::PermissionDenied {
            return Self::NotPermitted { file };
        }
        Self::Unreadable { file, source }
    }
}
