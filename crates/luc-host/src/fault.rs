//! Faults that keep a file system from taking writes.

use std::fmt;
use std::io;

use crate::system::plain;

/// Why a file system takes no writes. Its text is a clause with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An error aborted the journal.
    JournalAborted {
        /// The error, if the kernel tells it.
        errno: Option<u32>,
        /// The mount point of a file system that it lies on and that has no free space.
        full: Option<String>,
    },
    /// The file system was shut down by force.
    ShutDown,
    /// The file system refuses writes after an error.
    WritesRefused,
    /// Writers wait until device mapper resumes a device that the file system lies on.
    Suspended {
        /// The device's name in `/dev/mapper`.
        mapped: String,
    },
    /// Writers wait until a device that the file system lies on takes requests again.
    Halted {
        /// Its node.
        device: String,
        /// The kernel's word for its state.
        state: String,
    },
    /// Writers wait until the file system is thawed.
    Frozen,
    /// Its device is a file of a file system that has a fault.
    Below {
        /// That file system's mount point or device.
        place: String,
        fault: Box<Fault>,
    },
}

/// The words of each fault, for programs.
pub const FAULTS: [&str; 7] = [
    "journal_aborted",
    "shut_down",
    "writes_refused",
    "suspended",
    "halted",
    "frozen",
    "fault_below",
];

impl Fault {
    /// For programs: one of [`FAULTS`].
    pub fn word(&self) -> &'static str {
        match self {
            Self::JournalAborted { .. } => FAULTS[0],
            Self::ShutDown => FAULTS[1],
            Self::WritesRefused => FAULTS[2],
            Self::Suspended { .. } => FAULTS[3],
            Self::Halted { .. } => FAULTS[4],
            Self::Frozen => FAULTS[5],
            Self::Below { .. } => FAULTS[6],
        }
    }

    /// For a cell of a table.
    pub fn short(&self) -> &'static str {
        match self {
            Self::JournalAborted { .. } => "journal aborted",
            Self::ShutDown => "shut down",
            Self::WritesRefused => "no writes",
            Self::Suspended { .. } => "suspended",
            Self::Halted { .. } => "device halted",
            Self::Frozen => "frozen",
            Self::Below { .. } => "fault below",
        }
    }

    /// An abort with this error; 0 if the kernel does not tell it.
    pub(crate) fn aborted(errno: u32) -> Self {
        Self::JournalAborted {
            errno: (errno != 0).then_some(errno),
            full: None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const AFTER_ERROR: &str = "unmount it, run fsck, and mount it again (the kernel log tells \
                                   the cause)";
        match self {
            Self::JournalAborted { errno, full } => {
                f.write_str("it takes no writes, because its journal is aborted")?;
                if let Some(errno) = errno.and_then(|errno| i32::try_from(errno).ok()) {
                    let error = io::Error::from_raw_os_error(errno);
                    write!(f, " ({})", plain(&error))?;
                }
                match full {
                    Some(full) => write!(
                        f,
                        ", and {full}, on which it lies, has no free space; make room there, then \
                         {AFTER_ERROR}"
                    ),
                    None => write!(f, "; {AFTER_ERROR}"),
                }
            }
            Self::ShutDown => f.write_str(
                "it takes no writes, because it was shut down by force; unmount it and mount it \
                 again",
            ),
            Self::WritesRefused => {
                write!(f, "it takes no writes since an error; {AFTER_ERROR}")
            }
            Self::Suspended { mapped } => write!(
                f,
                "/dev/mapper/{mapped} is suspended, so writers wait; `dmsetup resume {mapped}` \
                 resumes it"
            ),
            Self::Halted { device, state } => write!(
                f,
                "{device} takes no requests (its state is \"{state}\"), so writers wait; look for \
                 the cause in the kernel log"
            ),
            Self::Frozen => f.write_str(
                "it is frozen, so writers wait; `fsfreeze --unfreeze` with its mount point thaws it",
            ),
            Self::Below { place, fault } => {
                write!(f, "it lies on a file of {place}, which has a fault: {fault}")
            }
        }
    }
}
