//! The virtual machine, and the ways back from it.

pub mod channel;
pub mod lines;
pub mod log;
pub mod qemu;
