//! The times of syncs: a histogram, and the slowest of them with their files.

use std::collections::BTreeMap;

use luc_control::Dev;
use luc_trace::{Span, SpanKind, Trace, printable};
use serde::Serialize;

use crate::observed::ObservedTable;

/// Number of syncs listed: as many as fit on a screen beside the rest.
pub const SLOWEST: usize = 10;

/// Syncs that took at least `from_ns` and less than twice as long.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Bucket {
    pub from_ns: u64,
    pub syncs: u64,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Slow {
    /// Start, relative to the start of the recording.
    pub at_ns: u64,
    pub duration_ns: u64,
    pub kind: &'static str,
    pub process: String,
    pub pid: u32,
    /// The file; `None` for a sync of the whole file system.
    pub inode: Option<u64>,
    /// The file's name; `None` if unknown.
    pub file: Option<String>,
    /// `None` if that could not be seen.
    pub commits_waited: Option<u32>,
}

/// The times of the syncs of a file system.
#[derive(Debug, Serialize)]
pub struct Slowness {
    pub sync_histogram: Vec<Bucket>,
    pub slowest_syncs: Vec<Slow>,
}

impl Slowness {
    /// Summarises the syncs of one file system in a recording.
    pub fn from_trace(trace: &Trace, dev: Dev) -> Self {
        let begin_ns = trace.bounds_ns().map_or(0, |(begin, _)| begin);
        let is_sync = |span: &&Span| span.kind.is_file_sync() || span.kind == SpanKind::Sync;
        let mut syncs: Vec<&Span> = trace.on(dev).filter(is_sync).collect();
        let histogram = histogram(syncs.iter().map(|span| span.duration_ns()));
        // Among equally long syncs, the earlier one comes first.
        syncs.sort_by_key(|span| (std::cmp::Reverse(span.duration_ns()), span.begin_ns));
        let waits_known = !ObservedTable::unknown(&trace.unseen).contains(&"commits_waited_mean");
        let slow = |span: &&Span| Slow {
            at_ns: span.begin_ns.saturating_sub(begin_ns),
            duration_ns: span.duration_ns(),
            kind: span.kind.text(),
            process: trace.process(span.tgid, span.pid).name,
            pid: span.pid,
            inode: span.kind.is_file_sync().then_some(span.object),
            file: trace
                .files
                .get(&(dev, span.object, span.begin_ns))
                .map(|path| printable(path)),
            commits_waited: waits_known.then(|| span.commits_ahead()),
        };
        Self {
            sync_histogram: histogram,
            slowest_syncs: syncs.iter().take(SLOWEST).map(slow).collect(),
        }
    }
}

/// Makes a bucket for each power of two from the shortest to the longest.
fn histogram(durations_ns: impl Iterator<Item = u64>) -> Vec<Bucket> {
    let mut by_log2 = BTreeMap::new();
    for ns in durations_ns {
        *by_log2.entry(ns.max(1).ilog2()).or_insert(0) += 1;
    }
    let bounds = by_log2
        .keys()
        .next()
        .copied()
        .zip(by_log2.keys().last().copied());
    let all = bounds.map(|(first, last)| first..=last);
    all.into_iter()
        .flatten()
        .map(|log2| Bucket {
            from_ns: 1 << log2,
            syncs: by_log2.get(&log2).copied().unwrap_or(0),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_no_gaps() {
        let syncs = |durations: &[u64]| -> Vec<_> {
            let buckets = histogram(durations.iter().copied());
            buckets
                .into_iter()
                .map(|one| (one.from_ns, one.syncs))
                .collect()
        };
        assert_eq!(syncs(&[4, 7, 16]), [(4, 2), (8, 0), (16, 1)]);
        assert_eq!(syncs(&[0]), [(1, 1)]);
        assert_eq!(syncs(&[]), []);
    }
}
