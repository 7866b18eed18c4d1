//! Recordings: what the tracer saw and what the module's tracepoints said.
//!
//! A recording is a header line and the lines that ftrace printed, as they
//! were: `trace_pipe` saved behind a header is a recording, and so is plain
//! `trace_pipe` output without one. Among them lie islands of binary
//! [spans](Span): operations, journal commits and waits, with begin and end. Reading
//! is streaming and never trusts the bytes: what cannot be understood is an
//! error with its place, and what the kernel lost is an entry of its own.
//! [`Trace`] is a whole recording in memory, as far as it could be read.
//!
//! The names of the fields of `luc_decision` come from `abi/` by way of the
//! tables of `luc-control`; this crate uses nothing else of it but the record
//! types, and runs no controller.

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

pub use entry::Entry;
pub use error::TraceError;
pub use event::{Event, Record};
pub use header::{Header, VERSION};
pub use parse::parse_line;
pub use reader::{LINE_BYTES_MAX, Losses, Reader};
pub use sight::{Sight, Unseen};
pub use span::{CREATED, DIRECTORY, SPAN_BYTES, Span, SpanKind, decode, encode};
pub use trace::{Process, Task, Trace, printable};
pub use writer::Writer;
