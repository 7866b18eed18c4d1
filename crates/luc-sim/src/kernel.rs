//! The rules that differ between kernels.

use crate::named::{self, NotSimulated};

/// The kernel's scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    Eevdf,
    Cfs,
}

/// A kernel, by the rules that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    pub name: &'static str,
    pub help: &'static str,
    pub scheduler: Scheduler,
    /// Step of the scheduler, and of the coarse clock that gives files their times, ns: 1/HZ.
    pub tick_ns: u64,
    /// The governor schedutil counts tasks that wait for a processor as load (since 6.5, kernel
    /// commit 7d0583cf9ec7).
    pub schedutil_counts_tasks: bool,
    /// A write fills each of its pages within a handle of its own, although it changes no metadata
    /// there (`ext4_da_write_begin()` before 5.15, kernel commit cc883236b792): it waits while a
    /// commit locks its transaction, and a commit waits for it.
    pub write_handles: bool,
    /// Default of [`Mount::unwritten`](crate::mount::Mount::unwritten).
    pub unwritten: bool,
}

/// The first is the default.
pub const KERNELS: [Kernel; 3] = [
    Kernel {
        name: "6.12",
        help: "as Debian builds it: EEVDF, HZ=250",
        scheduler: Scheduler::Eevdf,
        tick_ns: 4_000_000,
        schedutil_counts_tasks: true,
        write_handles: false,
        unwritten: true,
    },
    Kernel {
        name: "6.1",
        help: "as Debian builds it: CFS, HZ=250; the costs are those of 6.12",
        scheduler: Scheduler::Cfs,
        tick_ns: 4_000_000,
        schedutil_counts_tasks: false,
        write_handles: false,
        unwritten: true,
    },
    Kernel {
        name: "3.4",
        help: "as in the published measurements: CFS, HZ=1000, writes fill pages within handles, \
               commits wait for new data; the costs are those of 6.12",
        scheduler: Scheduler::Cfs,
        tick_ns: 1_000_000,
        schedutil_counts_tasks: false,
        write_handles: true,
        unwritten: false,
    },
];

/// Returns the kernel with this name.
///
/// # Errors
/// There is no such kernel.
pub fn named(name: &str) -> Result<&'static Kernel, NotSimulated> {
    named::find("kernel", &KERNELS, |kernel| kernel.name, name)
}
