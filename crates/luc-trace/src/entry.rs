//! What a recording holds.

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
    /// Spans that found no place in the tracer's buffer, since the last such note.
    SpansLost(u64),
    /// Where a control group lies, by the number that tasks name.
    Cgroup {
        /// Its number.
        id: u64,
        /// Its path below the root of control groups.
        path: String,
    },
    /// How the file of a sync is called.
    File {
        /// The file system.
        dev: Dev,
        /// Its inode.
        inode: u64,
        /// When the sync began, ns: another file may have had the inode before.
        begin_ns: u64,
        /// Its path.
        path: String,
    },
    /// The recording was ended in order; nothing follows.
    End,
}
