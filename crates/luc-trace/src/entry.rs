//! The entries of a recording.

use crate::block::MetadataBlock;
use crate::event::Record;
use crate::span::Span;
use luc_control::Dev;

/// One entry of a recording; entries come in the order in which they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A line of the module's tracepoints.
    Line(Record),
    /// A span of the tracer.
    Span(Span),
    /// Number of spans that found no room in the tracer's ring since the last such entry.
    SpansLost(u64),
    /// The path of the control group that tasks name by this number.
    Cgroup {
        id: u64,
        /// Path below the root of the control groups.
        path: String,
    },
    /// The path of a file that was synced.
    File {
        dev: Dev,
        inode: u64,
        /// When the sync began, ns: another file may have had the inode number before.
        begin_ns: u64,
        path: String,
    },
    /// A block of metadata on which a task waited.
    Block {
        dev: Dev,
        number: u64,
        block: MetadataBlock,
    },
    /// The recording is complete; nothing follows.
    End,
}
