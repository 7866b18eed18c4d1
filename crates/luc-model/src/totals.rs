//! The contents of a recording, in numbers.

use std::fmt;

use luc_base::words::counted;
use luc_trace::{Event, SpanKind};

/// The contents of a recording: `12 opens, 4 syncs, 1 journal commit`.
#[derive(Default)]
pub struct Totals {
    decisions: i64,
    commits: i64,
    write_delays: i64,
    /// Numbers of spans, by number of their kind.
    spans: [i64; SpanKind::ALL.len()],
}

impl Totals {
    /// Counts a line.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Decision { .. } => self.decisions += 1,
            Event::Commit { .. } => self.commits += 1,
            Event::WriteDelay { .. } => self.write_delays += 1,
            Event::Lost { .. } => {}
        }
    }

    /// Counts a span by the number of its kind; unknown kinds do not count.
    pub fn span(&mut self, kind: u16) {
        if let Some(total) = self.spans.get_mut(usize::from(kind)) {
            *total += 1;
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spans = |kinds: &[SpanKind]| -> i64 {
            let kinds = kinds.iter();
            kinds
                .map(|kind| self.spans[usize::from(kind.number())])
                .sum()
        };
        let syncs = [SpanKind::Fsync, SpanKind::Fdatasync, SpanKind::Sync];
        let waits = [
            SpanKind::WaitBuffer,
            SpanKind::WaitLocked,
            SpanKind::WaitSpace,
        ];
        let parts = [
            (spans(&[SpanKind::Open]), "open", "opens"),
            (spans(&[SpanKind::Write]), "write", "writes"),
            (spans(&syncs), "sync", "syncs"),
            (spans(&[SpanKind::Close]), "close", "closes"),
            (
                spans(&[SpanKind::Commit]),
                "journal commit",
                "journal commits",
            ),
            (spans(&waits), "wait", "waits"),
            (self.decisions, "decision", "decisions"),
            (self.commits, "commit under LUC", "commits under LUC"),
            (self.write_delays, "delayed write", "delayed writes"),
        ];
        let parts = parts.iter().filter(|(number, ..)| *number > 0);
        let parts: Vec<_> = parts
            .map(|(number, one, many)| counted(*number, one, many))
            .collect();
        if parts.is_empty() {
            return f.write_str("nothing happened");
        }
        f.write_str(&parts.join(", "))
    }
}
