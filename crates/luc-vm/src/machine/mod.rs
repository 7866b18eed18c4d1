//! The virtual machine, and the channels for its results.

pub mod channel;
pub mod lines;
pub mod log;
pub mod qemu;
