//! The Workload Model Language of Filebench 1.5: from text to a checked plan.
//!
//! | step | module | errors it finds |
//! |---|---|---|
//! | characters to tokens | `lexer` | unreadable characters, numbers, texts that do not end |
//! | tokens to statements | `parser` | unknown statements, flowops and attributes |
//! | statements to a [`plan::Plan`] | `resolve` | wrong values, unknown filesets and targets |
//!
//! Each step reports all errors that it finds, each with its line and column. A file with an error
//! yields no plan: nothing is written to disk for a file that could not run.
//!
//! The language is that of Filebench 1.5, with these additions: `set $a=$b` copies a value, a
//! quoted text may contain variables wherever a text may stand, `${name}` is `$name`,
//! `define randvar name=$x,...` works again, and composite flowops have their own variables. A file
//! without `run` runs nevertheless. `system` becomes steps of its own if it only syncs or drops
//! caches. Files that use several machines (`enable multi`) are refused.

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
