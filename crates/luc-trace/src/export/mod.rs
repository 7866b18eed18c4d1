//! Exports of recordings to other programs' formats; each has a file, and a row here.

mod csv;
mod perfetto;

use crate::trace::Trace;
use luc_control::Dev;
use std::collections::BTreeMap;
use std::io::{self, Write};

pub use csv::csv;
pub use perfetto::perfetto;

/// The name of the one who asked for a commit, by file system and start of the commit. An analysis
/// finds it; without an entry it is unknown.
pub type Askers = BTreeMap<(Dev, u64), String>;

#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Name, one word.
    pub name: &'static str,
    /// Description, one line.
    pub help: &'static str,
    /// Writes a recording; its errors are the sink's.
    pub write: fn(&Trace, &Askers, &mut dyn Write) -> io::Result<()>,
}

pub const FORMATS: &[Format] = &[
    Format {
        name: "perfetto",
        help: "Timeline for ui.perfetto.dev and other viewers of trace events",
        write: perfetto,
    },
    Format {
        name: "csv",
        help: "Table of spans, as text",
        write: csv,
    },
];
