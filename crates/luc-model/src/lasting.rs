//! Syncs of which the watch saw only a part: those that began before it, and those that were going
//! on at its end. Their time is a lower bound.

use luc_control::Dev;
use luc_trace::{Span, Trace};
use serde::Serialize;

use crate::observed::is_sync;

/// The syncs of a file system that the watch saw in part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LastingSyncs {
    /// Syncs that were going on at the end.
    pub going_on: u64,
    /// Syncs that began before the watch and ended in it.
    pub ended: u64,
    /// The longest of all these has taken at least this, ns.
    pub longest_ns: u64,
    #[serde(skip)]
    pub longest: Option<Span>,
    /// Their time, ns.
    #[serde(skip)]
    pub total_ns: u64,
    /// The longest sync that the watch saw whole, ns.
    #[serde(skip)]
    pub longest_whole_ns: u64,
}

impl LastingSyncs {
    /// Collects them. O(n).
    pub fn from_trace(trace: &Trace, dev: Dev) -> Self {
        let mut lasting = Self::default();
        let whole = trace.on(dev).filter(|span| is_sync(span.kind));
        lasting.longest_whole_ns = whole.map(Span::duration_ns).max().unwrap_or(0);
        let partial = trace.partial.iter().filter(|span| span.dev == dev);
        for sync in partial.filter(|span| is_sync(span.kind) && !span.is_untimed()) {
            if sync.is_unfinished() {
                lasting.going_on += 1;
            } else {
                lasting.ended += 1;
            }
            lasting.total_ns = lasting.total_ns.saturating_add(sync.duration_ns());
            if lasting.longest.is_none() || sync.duration_ns() > lasting.longest_ns {
                lasting.longest_ns = sync.duration_ns();
                lasting.longest = Some(*sync);
            }
        }
        lasting
    }

    pub fn is_empty(&self) -> bool {
        self.longest.is_none()
    }
}
