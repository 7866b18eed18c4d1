//! What can go wrong with a recording.

use crate::header::VERSION;
use std::io;
use thiserror::Error;

/// Why a recording cannot be read on.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The source failed.
    #[error("reading line {line} of the recording: {source}")]
    Io {
        /// Number of the line, from 1.
        line: u64,
        /// What the system said.
        source: io::Error,
    },
    /// A line was not understood.
    #[error("line {line}, column {column}: {what}")]
    Syntax {
        /// Number of the line, from 1.
        line: u64,
        /// Byte within it, from 1.
        column: usize,
        /// What is wrong there.
        what: String,
    },
    /// A block of spans is cut off or was changed.
    #[error("line {line}, a block of {spans} spans: {what}; what stands before it can be used")]
    Damaged {
        /// Number of the line that announces the block, from 1.
        line: u64,
        /// Spans that it announces.
        spans: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// The recording is of a version that this crate does not know.
    #[error(
        "the recording has format '{found}', this luc reads formats 1 to {VERSION}; use the luc that recorded it"
    )]
    Version {
        /// Version of the recording.
        found: String,
    },
}
