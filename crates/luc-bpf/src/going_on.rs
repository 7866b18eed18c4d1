//! Syncs that are going on, and those that began before the tracer was attached. Records are those
//! of `abi/luc_tracer.h`.

use luc_control::Dev;
use luc_trace::{SPAN_BYTES, Span, SpanKind, encode};

/// Syncs that can be followed though their start was not seen: `LUC_EARLIER_MAX`.
pub const EARLIER_MAX: usize = 1024;

/// A sync that began before the tracer was attached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlierSync {
    /// The thread.
    pub pid: u32,
    /// The thread's name.
    pub name: String,
    /// The process.
    pub tgid: u32,
    pub dev: Dev,
    /// 0 if unknown.
    pub inode: u64,
    /// fsync, fdatasync or sync.
    pub kind: SpanKind,
    /// Its latest possible start, ns of the monotonic clock.
    pub begin_ns: u64,
}

impl EarlierSync {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let words = [self.begin_ns, self.inode].map(u64::to_ne_bytes);
        let kind = u32::from(self.kind.number());
        let halves = [encode(self.dev), self.tgid, kind, 0].map(u32::to_ne_bytes);
        let words = words.as_flattened().iter();
        words.chain(halves.as_flattened()).copied().collect()
    }

    /// The span that tells the thread's name.
    pub(crate) fn introduction(&self) -> [u8; SPAN_BYTES] {
        let task = Span {
            pid: self.pid,
            tgid: self.tgid,
            ..Span::new(SpanKind::Task, self.begin_ns, self.begin_ns)
        };
        task.with_name(&self.name).to_bytes()
    }
}

/// The syncs of a file system that are going on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GoingOn {
    pub syncs: u64,
    /// Latest possible start of the oldest, ns of the monotonic clock; `None` if there is none.
    pub oldest_begin_ns: Option<u64>,
}

impl GoingOn {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (syncs, rest) = bytes.split_first_chunk()?;
        let oldest_ns = u64::from_ne_bytes(*rest.first_chunk()?);
        Some(Self {
            syncs: u64::from_ne_bytes(*syncs),
            oldest_begin_ns: (oldest_ns > 0).then_some(oldest_ns),
        })
    }
}
