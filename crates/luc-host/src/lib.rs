//! All calls to this machine.
//!
//! [`System`] is the machine, or a tree of files that looks like one. The other modules ask it:
//! [`mounts`] and [`journal`] which file systems it has, [`kernel`] what runs there, [`sysfs`] and
//! [`module`] what the kernel module of LUC does, [`process`] how processes are called, [`tracefs`]
//! what the kernel traces, [`rotation`] whether a disk turns. [`preconditions`] and [`watching`] tell
//! what the machine lacks.
//!
//! Every failure is a [`HostError`]. No exit code and no argument of the command line is known
//! here.

pub mod check;
mod error;
pub mod journal;
pub mod kernel;
mod loading;
pub mod module;
pub mod mounts;
pub mod preconditions;
pub mod process;
pub mod rotation;
pub mod stack;
pub mod sysfs;
mod system;
pub mod tracefs;
pub mod watching;

/// A machine of these files, for tests.
#[cfg(test)]
fn tree<B: AsRef<[u8]>>(files: &[(&str, B)]) -> (tempfile::TempDir, Machine) {
    let tree = tempfile::tempdir().expect("a folder");
    for (path, bytes) in files {
        let path = tree.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(path, bytes).expect("written");
    }
    let machine = Machine::new(tree.path());
    (tree, machine)
}

pub use error::HostError;
pub use system::{Located, Machine, System, as_text, plain};
