//! How long syncs took: a histogram, and the slowest of them with their files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use luc_control::Dev;
use luc_model::Table;
use luc_trace::{Span, SpanKind, Trace, printable};
use serde::Serialize;

use crate::units::{count, duration, known, table};

/// Syncs that are listed: as many as a screen has room for beside the rest.
const SLOWEST: usize = 10;
/// Longest bar of the histogram, characters.
const BAR: u64 = 40;

/// Syncs that took at least `from_ns` and less than twice as long.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Bucket {
    from_ns: u64,
    syncs: u64,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Slow {
    /// Begin, from that of the recording.
    at_ns: u64,
    duration_ns: u64,
    kind: &'static str,
    process: String,
    pid: u32,
    /// The file; None of a sync of the whole file system.
    inode: Option<u64>,
    /// How the file was called; None where that is not known.
    file: Option<String>,
    /// None where that could not be seen.
    commits_waited: Option<u32>,
}

/// The slowest syncs of files so far, while they are recorded.
#[derive(Debug, Default)]
pub struct Slowest {
    /// Duration and begin of each, ns.
    by_dev: BTreeMap<Dev, BTreeSet<(u64, u64)>>,
    new: Vec<Span>,
}

impl Slowest {
    pub fn meet(&mut self, sync: &Span) {
        let slowest = self.by_dev.entry(sync.dev).or_default();
        let this = (sync.duration_ns(), sync.begin_ns);
        if slowest.len() < SLOWEST || slowest.first().is_some_and(|least| *least < this) {
            slowest.insert(this);
            self.new.push(*sync);
        }
        if slowest.len() > SLOWEST {
            slowest.pop_first();
        }
    }

    /// The syncs since the last call that are still among the slowest.
    pub fn take(&mut self) -> impl Iterator<Item = Span> + use<'_> {
        let by_dev = &self.by_dev;
        let slow = |sync: &Span| {
            let slowest = by_dev.get(&sync.dev);
            slowest.is_some_and(|all| all.contains(&(sync.duration_ns(), sync.begin_ns)))
        };
        self.new.drain(..).filter(slow)
    }
}

/// How long the syncs of a file system took.
#[derive(Debug, Serialize)]
pub struct Slowness {
    sync_histogram: Vec<Bucket>,
    slowest_syncs: Vec<Slow>,
}

impl Slowness {
    /// The syncs of one file system in a recording.
    pub fn of(trace: &Trace, dev: Dev) -> Self {
        let begin_ns = trace.bounds_ns().map_or(0, |(begin, _)| begin);
        let is_sync = |span: &&Span| span.kind.is_file_sync() || span.kind == SpanKind::Sync;
        let mut syncs: Vec<&Span> = trace.on(dev).filter(is_sync).collect();
        let histogram = histogram(syncs.iter().map(|span| span.duration_ns()));
        // Of two equally long syncs, the earlier one first.
        syncs.sort_by_key(|span| (std::cmp::Reverse(span.duration_ns()), span.begin_ns));
        let waits_known = !Table::unknown(&trace.unseen).contains(&"commits_waited_mean");
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

    /// Prints both; nothing where there was no sync.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(most) = self.sync_histogram.iter().map(|one| one.syncs).max() else {
            return Ok(());
        };
        writeln!(out, "  sync times, from")?;
        for bucket in &self.sync_histogram {
            // A bucket that is not empty has a bar.
            let length = (bucket.syncs * BAR / most).max(u64::from(bucket.syncs > 0));
            let bar = "#".repeat(usize::try_from(length).unwrap_or(0));
            let from = duration(bucket.from_ns);
            let syncs = count(bucket.syncs);
            let line = format!("    {from:>9} {syncs:>9}  {bar}");
            writeln!(out, "{}", line.trim_end())?;
        }
        writeln!(out, "  slowest syncs")?;
        let rows: Vec<_> = self.slowest_syncs.iter().map(Slow::row).collect();
        let heads = [
            "    at s", "took", "call", "commits", "inode", "pid", "process", "file",
        ];
        table(out, heads, &rows)
    }
}

impl Slow {
    fn row(&self) -> [String; 8] {
        let inode = self.inode.map(|inode| inode.to_string());
        [
            format!("    {:.3}", self.at_ns as f64 / 1e9),
            duration(self.duration_ns),
            self.kind.to_owned(),
            known(self.commits_waited.map(|commits| commits.to_string())),
            inode.unwrap_or_else(|| "all".into()),
            self.pid.to_string(),
            self.process.clone(),
            known(self.file.clone()),
        ]
    }
}

/// A bucket for each power of two from the shortest to the longest.
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

    fn fsync(begin_ns: u64, took_ns: u64, inode: u64) -> Span {
        Span {
            kind: SpanKind::Fsync,
            begin_ns,
            end_ns: begin_ns + took_ns,
            object: inode,
            pid: 7,
            tgid: 7,
            tid: 5,
            done_tid: 3,
            ..Span::default()
        }
    }

    #[test]
    fn the_slowest_syncs_come_first_with_their_files() {
        let mut spans: Vec<Span> = (1..=20).map(|n| fsync(n * 1000, n * 100, n)).collect();
        spans.push(Span {
            kind: SpanKind::Sync,
            begin_ns: 500,
            end_ns: 2_000_500,
            ..Span::default()
        });
        let mut trace = Trace::of(spans);
        let names = [(20, "/srv/data/a log\u{7}"), (18, "/srv/data/index")];
        for (inode, path) in names {
            trace
                .files
                .insert((Dev::default(), inode, inode * 1000), path.to_owned());
        }
        // Of another file, which had the inode before.
        trace
            .files
            .insert((Dev::default(), 19, 1), "/srv/data/gone".to_owned());
        let slow = Slowness::of(&trace, Dev::default());
        let files: Vec<_> = slow.slowest_syncs.iter().map(|one| one.inode).collect();
        let expected = [None].into_iter().chain((12..=20).rev().map(Some));
        assert_eq!(files, expected.collect::<Vec<_>>());
        assert_eq!(slow.slowest_syncs[1].at_ns, 20_000 - 500);
        assert_eq!(slow.slowest_syncs[1].commits_waited, Some(2));
        let mut text = Vec::new();
        slow.print(&mut text).expect("printed");
        insta::assert_snapshot!(String::from_utf8_lossy(&text));
    }

    #[test]
    fn what_is_no_longer_among_the_slowest_is_not_looked_for() {
        let mut slowest = Slowest::default();
        (1..=15).for_each(|n| slowest.meet(&fsync(n, n * 100, n)));
        let inodes = |slowest: &mut Slowest| -> Vec<u64> {
            slowest.take().map(|sync| sync.object).collect()
        };
        assert_eq!(inodes(&mut slowest), (6..=15).collect::<Vec<_>>());
        slowest.meet(&fsync(20, 500, 20));
        slowest.meet(&fsync(21, 650, 21));
        assert_eq!(inodes(&mut slowest), [21]);
        // Each file system has its own.
        let mut other = fsync(22, 1, 22);
        other.dev.minor = 7;
        slowest.meet(&other);
        assert_eq!(inodes(&mut slowest), [22]);
    }

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

    #[test]
    fn without_syncs_nothing_is_printed() {
        let mut text = Vec::new();
        let slow = Slowness::of(&Trace::default(), Dev::default());
        slow.print(&mut text).expect("printed");
        assert!(text.is_empty());
    }
}
