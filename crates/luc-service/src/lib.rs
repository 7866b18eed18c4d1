//! Persistent settings: what an administrator wants LUC to do, across boots.
//!
//! [`config`] parses them. [`keep`] decides what to do next, as a function of the configuration, of
//! the state of the machine, and of what was done before. Nothing here reads a file or switches
//! anything; `luc service` does that.

pub mod config;
pub mod keep;

pub use config::{Config, ConfigError, Entry, Names, Source};
pub use keep::{Action, Attached, Memory, Mounted, Seen, next, stop};
