//! Recordings of the module's tracepoints.
//!
//! A recording is a header line and the lines that ftrace printed, as they
//! were: `trace_pipe` saved behind a header is a recording, and so is plain
//! `trace_pipe` output without one. Reading is streaming and never trusts the
//! text: a line that cannot be understood is an error with line and column,
//! and records that the kernel lost are events of their own.
//!
//! The names of the fields of `luc_decision` come from `abi/` by way of the
//! tables of `luc-control`; this crate uses nothing else of it but the record
//! types, and runs no controller.

mod event;
mod header;
mod parse;
mod reader;
mod writer;

pub use event::{Event, Record};
pub use header::{Header, VERSION};
pub use parse::parse_line;
pub use reader::{LINE_BYTES_MAX, Losses, Reader, TraceError};
pub use writer::Writer;
