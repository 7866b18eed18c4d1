//! Operations other than the sync of a file that wait for a commit: changes of files and
//! directories that are marked synchronous, and inodes that NFS writes. Their number is known, but
//! not their time.

use std::collections::BTreeMap;

use luc_control::Dev;
use luc_trace::{Process, Trace};
use serde::Serialize;

/// Such operations on a file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UntimedSyncs {
    pub count: u64,
    /// The process with most of them.
    #[serde(skip)]
    pub most_by: Process,
}

impl UntimedSyncs {
    /// Counts them. O(n).
    pub fn from_trace(trace: &Trace, dev: Dev) -> Self {
        let mut by_process: BTreeMap<Process, u64> = BTreeMap::new();
        let untimed = trace
            .partial
            .iter()
            .filter(|span| span.dev == dev && span.is_untimed());
        for span in untimed {
            *by_process
                .entry(trace.process(span.tgid, span.pid))
                .or_default() += 1;
        }
        let count = by_process.values().sum();
        let most = by_process.into_iter().max_by_key(|(_, count)| *count);
        Self {
            count,
            most_by: most.map_or_else(Process::default, |(process, _)| process),
        }
    }
}
