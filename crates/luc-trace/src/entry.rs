//! The entries of a recording.

use crate::event::Record;
use crate::span::Span;
use luc_control::Dev;

/// One thing of a recording, in the order in which it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A line of the module's tracepoints.
    Line(Record),
    /// A span of the tracer.
    Span(Span),
    /// Spans that found no room in the tracer's ring, since the last such note.
    SpansLost(u64),
    /// Where the control group lies that tasks name by this number.
    Cgroup {
        id: u64,
        /// Below the root of control groups.
        path: String,
    },
    /// The path of a file that was synced.
    File {
        dev: Dev,
        inode: u64,
        /// When the sync began, ns: another file may have had the inode before.
        begin_ns: u64,
        path: String,
    },
    /// The recording is complete; nothing follows.
    End,
}
