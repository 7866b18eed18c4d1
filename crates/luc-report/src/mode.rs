//! How far LUC, or something instead of it, is involved in a cell.

use serde::{Deserialize, Serialize};

/// How far LUC is involved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The module is not loaded.
    Stock,
    /// The module is loaded but attached to nothing.
    Loaded,
    /// `luc on` of another file system.
    Elsewhere,
    /// Attached; decides and records but changes nothing.
    Observe,
    /// Stock, while `luc trace count` counts.
    Counted,
    /// Stock, while `luc trace record` records.
    Traced,
    /// The same; `luc trace model` then says of the recording what LUC would give.
    Modelled,
    /// Policy `static`.
    Static,
    /// Policy `pid`.
    Pid,
    /// Policy `copyout`.
    Copyout,
    /// As `luc on` leaves it: policy `luc`, automatic set point, no knob touched.
    Luc,
    /// Stock without fsync and synchronous writes. UNSAFE: nothing is durable.
    Nofsync,
    /// Stock on ext4 without a journal. UNSAFE: a crash damages the file system.
    Nojc,
    /// Stock with the kernel's own batching, see [`Mode::mount_options`].
    #[serde(rename = "kernel-batching")]
    KernelBatching,
}

/// Policies that can be measured beside stock and LUC, in the order of their columns.
pub const POLICIES: [Mode; 6] = [
    Mode::Static,
    Mode::Pid,
    Mode::Copyout,
    Mode::KernelBatching,
    Mode::Nofsync,
    Mode::Nojc,
];

impl Mode {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Loaded => "loaded",
            Self::Elsewhere => "elsewhere",
            Self::Observe => "observe",
            Self::Counted => "counted",
            Self::Traced => "traced",
            Self::Modelled => "modelled",
            Self::Static => "static",
            Self::Pid => "pid",
            Self::Copyout => "copyout",
            Self::Luc => "LUC",
            Self::Nofsync => "nofsync",
            Self::Nojc => "nojc",
            Self::KernelBatching => "kernel-batching",
        }
    }

    /// Its name where it must not be mistaken for something to use.
    pub fn warning_name(self) -> String {
        if matches!(self, Self::Nofsync | Self::Nojc) {
            format!("{} (UNSAFE)", self.name())
        } else {
            self.name().to_owned()
        }
    }

    /// Whether it is only there to show what is at stake.
    pub fn is_bound(self) -> bool {
        matches!(self, Self::Nofsync | Self::Nojc | Self::KernelBatching)
    }

    /// Whether LUC is attached to a file system.
    pub fn attached(self) -> bool {
        matches!(
            self,
            Self::Elsewhere | Self::Observe | Self::Static | Self::Pid | Self::Copyout | Self::Luc
        )
    }

    /// Mount options, empty for the defaults.
    ///
    /// jbd2 batches by itself only where a handle is synchronous: its owner then sleeps for the
    /// mean duration of a commit, within the bounds `min_batch_time` and `max_batch_time`, before
    /// it asks for the commit. ext4 makes such handles for changes of a directory that is
    /// `dirsync`: creating and removing a file wait for their commit, batched. They hold the
    /// directory's lock meanwhile, so that only files of different directories share a commit. An
    /// fsync never batches; that of a file just created finds everything durable and returns.
    pub fn mount_options(self) -> &'static str {
        if self == Self::KernelBatching {
            // The kernel's own bounds, said aloud: 0 and 15 ms.
            "dirsync,min_batch_time=0,max_batch_time=15000"
        } else {
            ""
        }
    }
}
