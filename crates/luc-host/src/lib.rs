//! All access to this machine.
//!
//! [`System`] is the machine, or a tree of files that looks like one. The other modules query it:
//! [`mounts`] and [`journal`] its file systems, [`health`] whether they take writes,
//! [`steerable`] those that LUC can steer, [`kernel`] the running kernel, [`sysfs`] and [`module`]
//! LUC's kernel module, [`process`] the names of processes, [`tracefs`] the kernel's
//! tracing, [`rotation`] whether a disk rotates, [`cpufreq`] the processors' clock. [`settings`]
//! puts back what is changed for a while, [`cgroup`] knows the control groups of knobs.
//! [`preconditions`] and [`watching`] tell what the machine lacks.
//!
//! A failure that names its remedy is a [`HostError`]. Nothing here knows exit codes or command
//! line arguments.

pub mod arrays;
pub mod cgroup;
pub mod check;
pub mod cpufreq;
pub mod disk_work;
mod disks;
mod error;
mod fault;
pub mod going_on;
mod halted;
pub mod health;
pub mod io_limits;
pub mod io_shares;
pub mod journal;
pub mod kernel;
pub mod layout;
mod loading;
pub mod mapped;
pub mod module;
pub mod mounts;
pub mod preconditions;
pub mod process;
pub mod processor_waits;
pub mod rotation;
pub mod settings;
pub mod stack;
pub mod steerable;
mod superblock;
pub mod sysfs;
mod system;
pub mod tracefs;
pub mod watching;

/// Creates a machine with these files, for tests.
#[cfg(test)]
fn tree<B: AsRef<[u8]>>(files: &[(&str, B)]) -> (tempfile::TempDir, Machine) {
    // In memory where that is possible: ten thousand folders take half a minute on a slow disk.
    let tree = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let tree = tree.expect("a folder");
    for (path, bytes) in files {
        let path = tree.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(path, bytes).expect("written");
    }
    let machine = Machine::new(tree.path());
    (tree, machine)
}

pub use error::HostError;
pub use fault::{FAULTS, Fault};
pub use system::{Located, Machine, System, as_text, plain};
