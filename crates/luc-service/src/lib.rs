//! What an administrator wants LUC to do, from boot to boot.
//!
//! [`config`] reads it from files. [`keep`] says what is to be done next: a function of the
//! configuration, of what the machine looks like, and of what was done before. No file is read and
//! nothing is switched here; `luc service` does that.

pub mod config;
pub mod keep;

pub use config::{Config, ConfigError, Entry, Names, Source};
pub use keep::{Action, Attached, Memory, Mounted, Seen, next, stop};
