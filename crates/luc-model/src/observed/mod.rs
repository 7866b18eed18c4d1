//! One file system of a trace: syncs with the commits that served them, commits with their sync
//! events, writes with the waits inside them. These are the quantities of tables 3.1 and 4.1 of the
//! dissertation, per event; [`ObservedTable`] holds the derived ones.

mod serving;
mod table;

pub use table::ObservedTable;

use luc_control::Dev;
use luc_trace::{Span, SpanKind, Trace, Unseen};
use serving::Commits;
use std::collections::BTreeMap;

/// The way in which a sync ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// This commit served it; its index in [`Observed::commits`].
    Commit(usize),
    /// Its transaction had been committed before the sync began.
    Unneeded,
    /// This commit contained its change and ended while the sync was still writing its data. Under
    /// another rule the sync might have had to wait.
    Overtaken(usize),
    /// It must have waited for a commit that the trace lacks: it began before the first, the
    /// commit's span was lost, or a fast commit served it. Never guessed.
    Unserved,
}

/// An fsync, an fdatasync, or one file system's part of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedSync {
    pub kind: SpanKind,
    pub pid: u32,
    /// Start, ns: `t(q_fsync)`.
    pub begin_ns: u64,
    /// Start of the data flush, ns: `t(q_DFLUSH)`; `asked_ns` if there was none.
    pub flush_begin_ns: u64,
    /// When it asked for its transaction, ns: after the data flush.
    pub asked_ns: u64,
    /// End, ns: `t(r_fsync)`. Not before its start.
    pub end_ns: u64,
    /// The transaction that it waits for; 0 if unknown.
    pub tid: u32,
    pub service: Service,
    /// Commits that it waited through, its own included; 0 if none served it.
    pub commits_waited: u32,
    /// From asking to the start of its commit, ns; 0 if that was already running.
    pub delay_ns: u64,
}

impl ObservedSync {
    /// `T_fsync`, ns.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }

    /// `T_DFLUSH`, ns.
    pub fn flush_ns(&self) -> u64 {
        self.asked_ns - self.flush_begin_ns
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedCommit {
    pub tid: u32,
    /// Start, ns: `t(q_JC)`.
    pub begin_ns: u64,
    /// When its transaction was locked, ns: no sync can join later. `begin_ns` if unknown.
    pub locked_ns: u64,
    /// When it began to write its log, ns; 0 if unknown.
    pub log_ns: u64,
    /// End, ns: `t(r_JC)`. Not before its start.
    pub end_ns: u64,
    /// Syncs that it served.
    pub sync_events: u32,
}

impl ObservedCommit {
    /// `T_JC`, ns.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }

    /// Returns the earliest possible end of a sync that it served, ns. A commit publishes its
    /// number once its log is written, shortly before its own end.
    fn released_by_ns(&self) -> u64 {
        let log_known = (self.begin_ns..=self.end_ns).contains(&self.log_ns);
        if log_known { self.log_ns } else { self.end_ns }
    }
}

/// Waits of one kind of operation, or of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Waits for a buffer that a commit was writing.
    pub buffer_waits: u64,
    pub buffer_ns: u64,
    /// Waits for a locked transaction, ns.
    pub locked_ns: u64,
    /// Waits for space in the journal, ns.
    pub space_ns: u64,
}

impl Waits {
    fn add(&mut self, wait: &Span) {
        let field = match wait.kind {
            SpanKind::WaitBuffer => {
                self.buffer_waits += 1;
                &mut self.buffer_ns
            }
            SpanKind::WaitLocked => &mut self.locked_ns,
            _ => &mut self.space_ns,
        };
        *field = field.saturating_add(wait.duration_ns());
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedWrite {
    pub pid: u32,
    pub inode: u64,
    /// Start, ns: `t(q_write)`.
    pub begin_ns: u64,
    /// End, ns: `t(r_write)`. Not before its start.
    pub end_ns: u64,
    /// Bytes written; 0 if it failed.
    pub bytes: u64,
    pub waits: Waits,
}

impl ObservedWrite {
    /// `T_write`, ns.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    pub dev: Dev,
    /// First start and last end, ns; `None` without a span.
    pub bounds_ns: Option<(u64, u64)>,
    /// Sorted by start.
    pub syncs: Vec<ObservedSync>,
    /// Sorted by start.
    pub commits: Vec<ObservedCommit>,
    /// Sorted by start.
    pub writes: Vec<ObservedWrite>,
    /// Waits outside of writes, by the operation that waited; [`SpanKind::Task`] for an operation
    /// that is not traced.
    pub other_waits: BTreeMap<SpanKind, Waits>,
    /// Spans of any file system that the tracer lost.
    pub spans_lost: u64,
    pub unseen: Unseen,
}

impl Observed {
    /// Extracts the file system on `dev`. O(n log n).
    pub fn from_trace(trace: &Trace, dev: Dev) -> Self {
        let mut observed = Self {
            dev,
            spans_lost: trace.spans_lost,
            unseen: trace.unseen.clone(),
            ..Self::default()
        };
        let spans = || trace.on(dev);
        for span in spans() {
            let (begin_ns, end_ns) = (span.begin_ns, end_of(span));
            let (first, last) = observed.bounds_ns.unwrap_or((begin_ns, end_ns));
            observed.bounds_ns = Some((first.min(begin_ns), last.max(end_ns)));
            if span.kind == SpanKind::Commit {
                observed.commits.push(commit(span));
            } else if span.kind == SpanKind::Write {
                observed.writes.push(write(span));
            }
        }
        // A trace that was built by hand may be unsorted.
        observed.commits.sort_by_key(|commit| commit.begin_ns);
        observed.writes.sort_by_key(|write| write.begin_ns);
        observed.match_syncs(spans().filter(|span| is_sync(span.kind)));
        observed.match_waits(spans().filter(|span| span.kind.is_wait()));
        observed
    }

    fn match_syncs<'a>(&mut self, spans: impl Iterator<Item = &'a Span>) {
        let commits = Commits::new(&self.commits);
        let mut events = vec![0_u32; self.commits.len()];
        for span in spans {
            let mut sync = sync(span);
            sync.service = commits.serve(&sync, span.commits_ahead());
            if let Service::Commit(place) = sync.service {
                let begin_ns = self.commits[place].begin_ns;
                sync.delay_ns = begin_ns.saturating_sub(sync.asked_ns);
                sync.commits_waited = commits.waited(sync.asked_ns, place);
                events[place] += 1;
            }
            self.syncs.push(sync);
        }
        for (commit, events) in self.commits.iter_mut().zip(events) {
            commit.sync_events = events;
        }
        self.syncs.sort_by_key(|sync| sync.begin_ns);
    }

    /// Assigns each wait to the write of its thread that contains it in time.
    fn match_waits<'a>(&mut self, waits: impl Iterator<Item = &'a Span>) {
        let mut of_thread: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (place, write) in self.writes.iter().enumerate() {
            of_thread.entry(write.pid).or_default().push(place);
        }
        for wait in waits {
            let places = of_thread.get(&wait.pid).map_or(&[][..], Vec::as_slice);
            let begun =
                places.partition_point(|place| self.writes[*place].begin_ns <= wait.begin_ns);
            let place = begun.checked_sub(1).map(|at| places[at]);
            let inside = place.filter(|place| {
                wait.within == SpanKind::Write && end_of(wait) <= self.writes[*place].end_ns
            });
            match inside {
                Some(place) => self.writes[place].waits.add(wait),
                None => self.other_waits.entry(wait.within).or_default().add(wait),
            }
        }
    }

    /// Returns the time from the first start to the last end, ns.
    pub fn duration_ns(&self) -> u64 {
        self.bounds_ns.map_or(0, |(begin, end)| end - begin)
    }
}

/// Tells whether this is a sync of a file or of a whole file system.
pub(crate) fn is_sync(kind: SpanKind) -> bool {
    kind.is_file_sync() || kind == SpanKind::Sync
}

/// Returns the end; the start if the clock went back.
pub(crate) fn end_of(span: &Span) -> u64 {
    span.end_ns.max(span.begin_ns)
}

fn sync(span: &Span) -> ObservedSync {
    let (begin_ns, end_ns) = (span.begin_ns, end_of(span));
    let asked_ns = span.asked_ns().clamp(begin_ns, end_ns);
    let flush_begin_ns = span.flush_ns().map_or(asked_ns, |(begin, _)| begin);
    ObservedSync {
        kind: span.kind,
        pid: span.pid,
        begin_ns,
        flush_begin_ns: flush_begin_ns.clamp(begin_ns, asked_ns),
        asked_ns,
        end_ns,
        tid: span.tid,
        service: Service::Unserved,
        commits_waited: 0,
        delay_ns: 0,
    }
}

fn commit(span: &Span) -> ObservedCommit {
    let [_, _, log_ns] = span.marks_ns;
    ObservedCommit {
        tid: span.tid,
        begin_ns: span.begin_ns,
        locked_ns: span.locked_ns(),
        log_ns,
        end_ns: end_of(span),
        sync_events: 0,
    }
}

fn write(span: &Span) -> ObservedWrite {
    ObservedWrite {
        pid: span.pid,
        inode: span.object,
        begin_ns: span.begin_ns,
        end_ns: end_of(span),
        bytes: u64::try_from(span.amount).unwrap_or(0),
        waits: Waits::default(),
    }
}
