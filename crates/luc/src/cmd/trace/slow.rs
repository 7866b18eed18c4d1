//! How long syncs took: a histogram, and the slowest of them with their files.

use std::io::{self, Write};

use luc_model::summary::{Slow, Slowness};

use luc_cli::units::{count, duration, known, table};

/// Longest bar of the histogram, characters.
const BAR: u64 = 40;

/// Prints the histogram and the slowest syncs; nothing if there was no sync.
pub fn print(slowness: &Slowness, out: &mut dyn Write) -> io::Result<()> {
    let Some(most) = slowness.sync_histogram.iter().map(|one| one.syncs).max() else {
        return Ok(());
    };
    writeln!(out, "  sync times, at least")?;
    for bucket in &slowness.sync_histogram {
        // A bucket that is not empty has a bar.
        let length = (bucket.syncs * BAR / most).max(u64::from(bucket.syncs > 0));
        let bar = "#".repeat(usize::try_from(length).unwrap_or(0));
        let from = duration(bucket.from_ns);
        let syncs = count(bucket.syncs);
        let line = format!("    {from:>9} {syncs:>9}  {bar}");
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out, "  slowest syncs")?;
    let rows: Vec<_> = slowness.slowest_syncs.iter().map(row).collect();
    let heads = [
        "    at s", "took", "call", "commits", "inode", "pid", "process", "file",
    ];
    table(out, heads, &rows)
}

fn row(slow: &Slow) -> [String; 8] {
    let inode = slow.inode.map(|inode| inode.to_string());
    [
        format!("    {:.3}", slow.at_ns as f64 / 1e9),
        duration(slow.duration_ns),
        slow.kind.to_owned(),
        known(slow.commits_waited.map(|commits| commits.to_string())),
        inode.unwrap_or_else(|| "all".into()),
        slow.pid.to_string(),
        slow.process.clone(),
        known(slow.file.clone()),
    ]
}

#[cfg(test)]
mod tests {
    use luc_control::Dev;
    use luc_trace::{Span, SpanKind, Trace};

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
        let mut trace = Trace::from_spans(spans);
        let names = [(20, "/srv/data/a log\u{7}"), (18, "/srv/data/index")];
        for (inode, path) in names {
            trace
                .files
                .insert((Dev::default(), inode, inode * 1000), path.to_owned());
        }
        // Another file, which had the inode before.
        trace
            .files
            .insert((Dev::default(), 19, 1), "/srv/data/gone".to_owned());
        let slow = Slowness::from_trace(&trace, Dev::default());
        let files: Vec<_> = slow.slowest_syncs.iter().map(|one| one.inode).collect();
        let expected = [None].into_iter().chain((12..=20).rev().map(Some));
        assert_eq!(files, expected.collect::<Vec<_>>());
        assert_eq!(slow.slowest_syncs[1].at_ns, 20_000 - 500);
        assert_eq!(slow.slowest_syncs[1].commits_waited, Some(2));
        let mut text = Vec::new();
        print(&slow, &mut text).expect("printed");
        insta::assert_snapshot!(String::from_utf8_lossy(&text));
    }

    #[test]
    fn without_syncs_nothing_is_printed() {
        let mut text = Vec::new();
        let slow = Slowness::from_trace(&Trace::default(), Dev::default());
        print(&slow, &mut text).expect("printed");
        assert!(text.is_empty());
    }
}
