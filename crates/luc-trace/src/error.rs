//! Errors that stop the reading of a recording.

use crate::header::VERSION;
use std::io;
use thiserror::Error;

/// Why a recording cannot be read. Lines and columns (bytes) count from 1.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The source failed.
    #[error("reading line {line} of the recording: {source}")]
    Io { line: u64, source: io::Error },
    /// A line could not be parsed.
    #[error("line {line}, column {column}: {what}")]
    Syntax {
        line: u64,
        column: usize,
        what: String,
    },
    /// A block of spans was cut off or changed.
    #[error("line {line}, a block of {spans} spans: {what}; the records before it can be used")]
    Damaged {
        /// Number of the line that announces the block.
        line: u64,
        spans: usize,
        what: &'static str,
    },
    /// The recording is of a version that this crate does not know.
    #[error(
        "the recording has format '{found}', but this luc reads formats 1 to {VERSION}; use the \
         version that recorded it"
    )]
    Version { found: String },
}
