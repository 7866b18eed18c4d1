//! Kernels: the list of them, their packages and their modules.

mod archive;
pub mod debug_kernel;
pub(crate) mod fetch;
pub mod list;
mod mirror;
pub(crate) mod modules;
pub mod obtain;
pub mod own_module;
pub mod tree;
