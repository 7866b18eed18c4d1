//! The arms of a comparison.

use serde::{Deserialize, Serialize};

/// An arm of a comparison: how far LUC, or something in its place, is active in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arm {
    /// The module is not loaded.
    Stock,
    /// The module is loaded but attached to nothing.
    Loaded,
    /// LUC is attached to another file system.
    Elsewhere,
    /// Attached; LUC decides and records but changes nothing.
    Observe,
    /// Stock, while `luc trace count` counts.
    Counted,
    /// Stock, while `luc trace record` records.
    Traced,
    /// As traced; `luc trace model` then predicts from the recording what LUC would give.
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
    /// Stock with the kernel's own batching, see [`Arm::mount_options`].
    #[serde(rename = "kernel-batching")]
    KernelBatching,
}

/// Policies that can be measured beside stock and LUC, in the order of their columns.
pub const POLICIES: [Arm; 6] = [
    Arm::Static,
    Arm::Pid,
    Arm::Copyout,
    Arm::KernelBatching,
    Arm::Nofsync,
    Arm::Nojc,
];

impl Arm {
    /// Name in tables.
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

    /// Name, with a warning where the arm is unsafe.
    pub fn warning_name(self) -> &'static str {
        match self {
            Self::Nofsync => "nofsync (UNSAFE)",
            Self::Nojc => "nojc (UNSAFE)",
            other => other.name(),
        }
    }

    /// Whether it is only there as a bound.
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
    /// jbd2 batches by itself only where a handle is synchronous: the task that owns the handle then
    /// sleeps for the mean duration of a commit, within the bounds `min_batch_time` and
    /// `max_batch_time`, before it asks for the commit. ext4 makes such handles for changes of a
    /// directory that is `dirsync`: a task that creates or removes a file waits for the commit,
    /// batched. It holds the directory's lock meanwhile, so that only files of different
    /// directories share a commit. An fsync never batches; the fsync of a file just created finds
    /// everything durable and returns.
    pub fn mount_options(self) -> &'static str {
        if self == Self::KernelBatching {
            // The kernel's own bounds, written out: 0 and 15 ms.
            "dirsync,min_batch_time=0,max_batch_time=15000"
        } else {
            ""
        }
    }
}
