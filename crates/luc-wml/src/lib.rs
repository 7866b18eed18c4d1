//! The Workload Model Language of Filebench 1.5: from text to a checked plan.
//!
//! | step | module | errors it finds |
//! |---|---|---|
//! | characters to tokens | `lexer` | unreadable characters, numbers, texts that do not end |
//! | tokens to statements | `parser` | unknown statements, flowops and attributes |
//! | statements to a [`plan::Plan`] | `resolve` | wrong values, unknown filesets and targets |
//!
//! Each step reports all it finds, every message with its line and column, and a file with a
//! message against it yields no plan: nothing is written to disk for a file that could not run.
//!
//! The language is understood as Filebench 1.5 understands it, with these additions: `set $a=$b`
//! copies a value, a quoted text may hold variables wherever a text may stand, `${name}` is
//! `$name`, `define randvar name=$x,...` works again, and the variables of composite flowops are
//! their own. A file without `run` is run all the same. Nothing runs commands (`system`) or
//! several machines (`enable multi`); files that ask for it are refused.

mod ast;
mod builtin;
mod diagnostic;
mod lexer;
mod parser;
pub mod plan;
mod resolve;
mod schema;
mod script;

pub use builtin::{BUILTINS, PRESETS, builtin, builtin_presets};
pub use diagnostic::{Diagnostic, Diagnostics};
pub use script::{LoadError, SOURCE_BYTES_MAX, Script, builtin_names, load, parse};
