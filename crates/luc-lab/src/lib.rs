//! Stock Debian kernels in QEMU on virtual time.
//!
//! The lab fetches kernels as packages ([`kernels`], [`mirror`], [`obtain`]),
//! builds a module against their headers ([`module`]), makes a guest image
//! that holds the caller's own binary ([`image`]), boots it under QEMU's
//! instruction counter ([`qemu`]) and brings back outputs, files and the
//! kernel log ([`run()`]). The same crate is the guest's process 1 ([`guest`]).
//!
//! The lab knows nothing of what it runs: steps are opaque commands.

mod archive;
pub mod cache;
pub mod channel;
pub mod cpio;
pub mod debug_kernel;
pub mod disk;
pub mod error;
mod fetch;
pub mod guest;
pub mod image;
pub mod kernels;
pub mod lines;
pub mod log;
pub mod mirror;
pub mod module;
pub mod modules;
pub mod obtain;
pub mod plan;
pub mod progress;
pub mod qemu;
pub mod run;
mod tools;
pub mod tree;

pub use disk::{DiskSpec, FsType};
pub use error::LabError;
pub use image::{Content, GuestFile};
pub use kernels::{KernelList, KernelSpec, KernelStatus};
pub use lines::{LineGroup, MovingLine};
pub use log::{AllowList, LogProblem};
pub use module::{DISK_MODULE, ModuleSource, build_disk_module, build_module, build_module_of};
pub use plan::{Cell, CellResult, GuestReport, Plan, Status, Step, StepResult};
pub use progress::{Progress, Silent};
pub use run::{RunResult, RunSpec, run};
