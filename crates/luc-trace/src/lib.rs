//! Recordings: spans of the tracer and lines of the module's tracepoints.
//!
//! A recording is a header line and the lines that ftrace printed; plain `trace_pipe` output
//! without a header is a recording, too. Islands of binary [spans](Span) lie among the lines:
//! operations, journal commits and waits, with start and end. The reader streams and never trusts
//! the bytes: a line that it cannot parse is an error with its place, and a loss is an entry of its
//! own. [`Trace`] is a whole recording in memory, as far as it could be read.
//!
//! The names of the fields of `luc_decision` come from `abi/` by way of the tables of
//! `luc-control`.

mod block;
mod entry;
mod error;
mod event;
pub mod export;
mod header;
mod island;
mod parse;
mod reader;
mod sight;
mod span;
mod trace;
mod writer;

pub use block::{BlockKind, MetadataBlock};
pub use entry::Entry;
pub use error::TraceError;
pub use event::{Event, Record};
pub use header::{Header, VERSION};
pub use parse::parse_line;
pub use reader::{Losses, Reader};
pub use sight::{Sight, Unseen};
pub use span::{
    CREATED, DIRECTORY, EARLIER, SPAN_BYTES, Span, SpanKind, UNFINISHED, UNTIMED, decode, encode,
};
pub use trace::{Process, Task, Trace, printable};
pub use writer::Writer;
