//! A whole recording in memory.

use crate::block::MetadataBlock;
use crate::entry::Entry;
use crate::error::TraceError;
use crate::event::Record;
use crate::header::Header;
use crate::reader::{Losses, Reader};
use crate::sight::{Sight, Unseen};
use crate::span::{Span, SpanKind};
use luc_control::Dev;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::BufRead;

/// Name, process and control group of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Its name when it was last seen.
    pub name: String,
    pub tgid: u32,
    /// Its control group's number.
    pub cgroup: u64,
}

/// A process: its name for people, and its control group.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// Name of the main thread; if that is unknown, of another thread, or else the process number
    /// as `an unnamed task (29)`. It holds no character that acts on a terminal.
    pub name: String,
    /// `None` if it is unknown.
    pub cgroup: Option<String>,
}

/// `etcd in /system.slice/etcd.service`, or the name alone.
impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cgroup {
            Some(cgroup) => write!(f, "{} in {cgroup}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Replaces characters that act on a terminal, because any user may choose the name of a task.
pub fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '?' } else { c };
    text.chars().map(shown).collect()
}

/// A recording, as far as it could be read.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub header: Header,
    /// Spans in the order of their start, longer ones first if that is equal. Without tasks.
    pub spans: Vec<Span>,
    /// Operations that the watch saw in part, because they began before it or were going on at its
    /// end, in the order of their start.
    pub partial: Vec<Span>,
    /// Threads by their number.
    pub tasks: BTreeMap<u32, Task>,
    /// Paths of control groups by their number.
    pub cgroups: BTreeMap<u64, String>,
    /// Known paths of synced files, by file system, inode and start of the sync.
    pub files: BTreeMap<(Dev, u64, u64), String>,
    /// Blocks of metadata on which tasks waited, by file system and number, as far as known.
    pub blocks: BTreeMap<(Dev, u64), MetadataBlock>,
    /// Kinds of events that the tracer could not see: their absence says nothing.
    pub unseen: Unseen,
    /// Lines of the module's tracepoints.
    pub lines: Vec<Record>,
    /// Number of spans that the tracer lost.
    pub spans_lost: u64,
    /// Records that ftrace lost.
    pub lines_lost: Losses,
    /// Where reading ended early and why; `None` if the recording is complete.
    pub damage: Option<String>,
}

impl Trace {
    /// Reads a recording up to its end or the first damage.
    ///
    /// # Errors
    /// [`TraceError::Version`], or the source fails at its first line.
    pub fn read<R: BufRead>(source: R) -> Result<Self, TraceError> {
        let mut reader = Reader::new(source)?;
        let mut trace = Self::default();
        for entry in reader.by_ref() {
            match entry {
                Ok(Entry::Span(span)) => trace.take(&span),
                Ok(Entry::Line(line)) => trace.lines.push(line),
                Ok(Entry::Cgroup { id, path }) => {
                    trace.cgroups.insert(id, path);
                }
                Ok(Entry::File {
                    dev,
                    inode,
                    begin_ns,
                    path,
                }) => {
                    trace.files.insert((dev, inode, begin_ns), path);
                }
                Ok(Entry::Block { dev, number, block }) => {
                    trace.blocks.insert((dev, number), block);
                }
                Ok(Entry::SpansLost(_) | Entry::End) => {}
                Err(error) => {
                    trace.damage = Some(error.to_string());
                    break;
                }
            }
        }
        trace.header = reader.header().cloned().unwrap_or_default();
        let unseen = trace.header.pairs.get(Header::UNSEEN);
        trace.unseen = unseen.map_or_else(Unseen::new, |words| Sight::parse(words));
        trace.spans_lost = reader.spans_lost();
        trace.lines_lost = reader.losses();
        if trace.damage.is_none() && !reader.ended() && trace.each_span().next().is_some() {
            trace.damage = Some("the recording was cut off: its end is missing".to_owned());
        }
        trace.settle();
        trace.sort();
        Ok(trace)
    }

    /// Creates a recording from these spans, which may include tasks; for simulators and tests.
    pub fn from_spans(spans: impl IntoIterator<Item = Span>) -> Self {
        let mut trace = Self::default();
        for span in spans {
            trace.take(&span);
        }
        trace.settle();
        trace.sort();
        trace
    }

    fn take(&mut self, span: &Span) {
        if span.kind == SpanKind::Task {
            self.meet(span);
        } else if span.is_whole() {
            self.spans.push(*span);
        } else {
            self.partial.push(*span);
        }
    }

    fn meet(&mut self, span: &Span) {
        let task = Task {
            name: span.name(),
            tgid: span.tgid,
            cgroup: span.object,
        };
        self.tasks.insert(span.pid, task);
    }

    /// Keeps only what began in the last `seconds`, counted from the last end of a span, or from
    /// the last line if there is no span.
    pub fn keep_last(&mut self, seconds: f64) {
        let ends_ns = self.spans.iter().map(|span| span.end_ns);
        let lines_ns = self.lines.iter().map(|line| line.time_ns);
        let last_ns = ends_ns.max().or(lines_ns.max()).unwrap_or(0);
        // A cast of a float saturates.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let from_ns = last_ns.saturating_sub((seconds * 1e9).round() as u64);
        self.spans.retain(|span| span.begin_ns >= from_ns);
        self.partial.retain(|span| span.end_ns >= from_ns);
        self.lines.retain(|line| line.time_ns >= from_ns);
    }

    /// Drops operations that were going on when the tracer reported them, and ended before it was
    /// gone: it saw their ends, too.
    fn settle(&mut self) {
        let partial = std::mem::take(&mut self.partial);
        let name = |span: &Span| (span.pid, span.kind, span.begin_ns);
        let unfinished = partial.iter().filter(|span| span.is_unfinished());
        let unfinished: BTreeSet<_> = unfinished.map(name).collect();
        let ended = self.spans.iter().chain(&partial);
        let ended = ended.filter(|span| !span.is_unfinished()).map(name);
        let ended: BTreeSet<_> = ended.filter(|it| unfinished.contains(it)).collect();
        let stays = |span: &Span| !span.is_unfinished() || !ended.contains(&name(span));
        self.partial = partial.into_iter().filter(stays).collect();
    }

    /// Sorts the spans: the tracer writes them in the order of their end, for each processor
    /// separately.
    fn sort(&mut self) {
        for spans in [&mut self.spans, &mut self.partial] {
            spans.sort_by_key(|span| (span.begin_ns, u64::MAX - span.end_ns));
        }
    }

    /// Returns whole spans, then partial ones.
    pub fn each_span(&self) -> impl Iterator<Item = &Span> {
        self.spans.iter().chain(&self.partial)
    }

    /// Returns whole and partial spans in the order of their start.
    pub fn all_spans(&self) -> Vec<&Span> {
        let mut all: Vec<&Span> = self.each_span().collect();
        all.sort_by_key(|span| span.begin_ns);
        all
    }

    /// Returns the spans of a file system.
    pub fn on(&self, dev: Dev) -> impl Iterator<Item = &Span> {
        self.spans.iter().filter(move |span| span.dev == dev)
    }

    /// Returns the blocks of metadata on which tasks waited, by file system and number.
    pub fn waited_blocks(&self) -> BTreeSet<(Dev, u64)> {
        let waits = self.each_span().filter_map(Span::waited_block);
        waits.collect()
    }

    /// Start of the first span and the last end, ns; `None` if there is no span.
    pub fn bounds_ns(&self) -> Option<(u64, u64)> {
        let begin = self.spans.first()?.begin_ns;
        let end = self.spans.iter().map(|span| span.end_ns).max()?;
        Some((begin, end))
    }

    /// Returns the process with this number; `thread` is one of its threads.
    pub fn process(&self, tgid: u32, thread: u32) -> Process {
        let tasks = [tgid, thread].map(|task| self.tasks.get(&task));
        let named = |task: &&Task| !task.name.is_empty();
        let named = tasks.into_iter().flatten().find(named);
        // Threads of one process may be in several control groups; the main thread's counts.
        let cgroup = tasks.into_iter().flatten().find_map(|task| {
            let path = self.cgroups.get(&task.cgroup)?;
            Some(printable(path))
        });
        Process {
            name: named.map_or_else(|| unnamed(tgid), |task| printable(&task.name)),
            cgroup,
        }
    }

    /// Returns the name of a thread, or `an unnamed task` with its number.
    pub fn task_name(&self, pid: u32) -> String {
        let known = self.tasks.get(&pid).filter(|task| !task.name.is_empty());
        known.map_or_else(|| unnamed(pid), |task| task.name.clone())
    }
}

/// A task whose name was lost, or that had ended before its name could be read.
fn unnamed(number: u32) -> String {
    format!("an unnamed task ({number})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::{EARLIER, UNFINISHED};

    #[test]
    fn an_operation_counts_once() {
        let sync = |pid, begin_ns, end_ns, flags| Span {
            pid,
            flags,
            ..Span::new(SpanKind::Fsync, begin_ns, end_ns)
        };
        let whole = sync(1, 10, 35, 0);
        let earlier = sync(2, 5, 34, EARLIER);
        let going_on = sync(3, 20, 30, UNFINISHED);
        let trace = Trace::from_spans([
            sync(1, 10, 30, UNFINISHED),
            sync(2, 5, 30, EARLIER | UNFINISHED),
            going_on,
            whole,
            earlier,
        ]);
        assert_eq!(trace.spans, [whole]);
        assert_eq!(trace.partial, [earlier, going_on]);
    }
}
