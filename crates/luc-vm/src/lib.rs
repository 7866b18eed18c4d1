//! Stock Debian kernels in QEMU on virtual time.
//!
//! The lab fetches kernels as packages and builds a module against their headers ([`kernels`]),
//! makes a guest image that holds the caller's own binary ([`image`]), boots it under QEMU's
//! instruction counter ([`machine`]) and brings back outputs, files and the kernel log ([`run()`]).
//! The same crate is the guest's process 1 ([`guest`]).
//!
//! The lab does not know the meaning of its steps: they are opaque commands.

pub mod cache;
pub mod disk;
pub mod error;
pub mod guest;
pub mod image;
pub mod kernels;
pub mod machine;
pub mod plan;
pub mod progress;
pub mod run;
pub mod server;
mod tools;

pub use disk::{DiskSpec, FsType};
pub use error::LabError;
pub use image::{Content, GuestFile};
pub use kernels::list::{KernelList, KernelSpec, KernelStatus};
pub use kernels::own_module::{
    DISK_MODULE, ModuleSource, build_disk_module, build_module, build_module_of, module_digest,
};
pub use kernels::{debug_kernel, obtain, tree};
pub use machine::lines::{LineGroup, MovingLine};
pub use machine::log::{self, AllowList, LogProblem};
pub use plan::{Cell, CellResult, GuestReport, Plan, Status, Step, StepResult};
pub use progress::{Progress, Silent};
pub use run::{RunResult, RunSpec, run};
pub use tools::tail;
