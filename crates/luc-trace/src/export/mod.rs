//! Recordings in other programs' formats: a file each, and a row here.

mod csv;
mod perfetto;

use crate::trace::Trace;
use std::io::{self, Write};

pub use csv::csv;
pub use perfetto::perfetto;

/// A format of another program.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Its name, a word.
    pub name: &'static str,
    /// What it is for, in a line.
    pub help: &'static str,
    /// Writes a recording; its errors are the sink's.
    pub write: fn(&Trace, &mut dyn Write) -> io::Result<()>,
}

/// All of them.
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
