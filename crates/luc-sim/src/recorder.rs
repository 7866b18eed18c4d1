//! A recording of a run, as `luc trace record` would have written it.
//!
//! The node and the runtime tell a [`Recorder`] about each moment that the tracer or a tracepoint
//! of the module sees; it turns them into spans and lines. A recorder that is off does nothing. It
//! sees everything and loses nothing.

use std::collections::{BTreeMap, BTreeSet};

use luc_control::Dev;
use luc_trace::{CREATED, Entry, Event, Header, MetadataBlock, Record, Span, SpanKind, Trace};

use crate::journal::{BufferId, Journal, buffers};
use crate::processors::{CpuId, TaskId};
use crate::program::{Op, Went};

/// The only disk.
pub const DEV: Dev = Dev { major: 8, minor: 0 };

/// The name of the journal's thread in lines.
const JOURNAL_THREAD: &str = "jbd2/sim-8";
/// The name of the kernel threads that serve tasks.
const WORKER: &str = "kworker";

/// The phase that a commit reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It locks its transaction; for the tracer, the commit begins here.
    Locks,
    /// It switches to a new running transaction and flushes data.
    Flushes,
    /// It shadows its buffers and writes the log.
    Logs,
    Ends,
}

/// The object that a task sleeps on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    Buffer(BufferId),
    Locked,
    /// The log has no space.
    Space,
}

/// The recorded spans and decisions, in the order in which they ended.
#[derive(Debug, Default)]
pub struct Recording {
    pub header: Header,
    pub entries: Vec<Entry>,
}

impl Recording {
    /// Returns only its spans, in the order in which they ended.
    pub fn into_spans(self) -> Vec<Span> {
        let spans = self.entries.into_iter().filter_map(|entry| match entry {
            Entry::Span(span) if span.kind != SpanKind::Task => Some(span),
            _ => None,
        });
        spans.collect()
    }

    /// Returns it as a trace that was read from a file.
    pub fn into_trace(self) -> Trace {
        let mut lines = Vec::new();
        let mut blocks = BTreeMap::new();
        let spans = self.entries.into_iter().filter_map(|entry| match entry {
            Entry::Span(span) => Some(span),
            Entry::Line(line) => {
                lines.push(line);
                None
            }
            Entry::Block { dev, number, block } => {
                blocks.insert((dev, number), block);
                None
            }
            _ => None,
        });
        let trace = Trace::from_spans(spans);
        Trace {
            header: self.header,
            lines,
            blocks,
            ..trace
        }
    }
}

/// Records a run, or does nothing.
#[derive(Debug, Default)]
pub struct Recorder(Option<Box<Tape>>);

#[derive(Debug)]
struct Tape {
    recording: Recording,
    /// The name of the tasks that run programs, and their number.
    name: &'static str,
    tasks: TaskId,
    journal: TaskId,
    /// Sleeps of tasks: spans that have not ended.
    sleeps: BTreeMap<TaskId, (Span, Sleep)>,
    /// Buffers on which tasks slept.
    buffers: BTreeSet<BufferId>,
    /// Commits under way.
    commits: Vec<Span>,
    /// Whether it records lines of the module, too.
    has_luc: bool,
    cpu: CpuId,
}

impl Recorder {
    /// Records what `tasks` tasks of this name do, and what the kernel's threads do.
    pub fn on(
        header: Header,
        name: &'static str,
        tasks: usize,
        journal: TaskId,
        has_luc: bool,
    ) -> Self {
        let tasks = TaskId::try_from(tasks).unwrap_or(TaskId::MAX);
        let known = (0..tasks).map(|task| {
            let span = Span {
                dev: Dev::default(),
                ..of_task(SpanKind::Task, task, 0, 0)
            };
            Entry::Span(span.with_name(name))
        });
        let recording = Recording {
            header,
            entries: known.collect(),
        };
        Self(Some(Box::new(Tape {
            recording,
            name,
            tasks,
            journal,
            sleeps: BTreeMap::new(),
            buffers: BTreeSet::new(),
            commits: Vec::new(),
            has_luc,
            cpu: 0,
        })))
    }

    /// Returns the recording.
    pub fn finish(self) -> Recording {
        self.0.map(|tape| tape.recording).unwrap_or_default()
    }

    /// Notes which processor works now.
    pub fn runs_on(&mut self, cpu: CpuId) {
        if let Some(tape) = &mut self.0 {
            tape.cpu = cpu;
        }
    }

    /// Records an operation that has ended.
    pub fn ended(&mut self, task: TaskId, op: &Op, went: &Went, inode: impl FnOnce() -> u64) {
        let Some(tape) = &mut self.0 else {
            return;
        };
        let kind = kind(op);
        if kind == SpanKind::Task {
            return;
        }
        let mut span = of_task(kind, task, went.begun_ns, went.ended_ns);
        span.object = inode();
        match op {
            Op::Create { .. } => span.flags = CREATED,
            Op::Write { bytes } | Op::WriteAt { bytes, .. } => span.amount = i64::from(*bytes),
            Op::Fsync | Op::SyncRange { .. } | Op::SyncAs(_) => {
                // The data flush lasts from the start of the sync until it asks.
                span.marks_ns = [went.begun_ns, went.asked_ns, 0];
                (span.tid, span.done_tid) = (went.tid, went.done_tid);
            }
            _ => {}
        }
        if matches!(op, Op::SyncRange { .. }) {
            tape.stretch_write(span.pid, span.end_ns);
        }
        tape.span(span);
    }

    /// Records that the first task made the benchmark's folder durable, from the start of the run
    /// to now.
    pub fn syncfs(&mut self, now_ns: u64) {
        if let Some(tape) = &mut self.0 {
            tape.span(of_task(SpanKind::Sync, 0, 0, now_ns));
        }
    }

    /// Notes that a task goes to sleep on the journal, within an operation.
    pub fn sleeps(&mut self, task: TaskId, op: &Op, sleep: Sleep, now_ns: u64) {
        let Some(tape) = &mut self.0 else {
            return;
        };
        let wait = match sleep {
            Sleep::Buffer(_) => SpanKind::WaitBuffer,
            Sleep::Locked => SpanKind::WaitLocked,
            Sleep::Space => SpanKind::WaitSpace,
        };
        let mut span = Span {
            within: kind(op),
            ..of_task(wait, task, now_ns, now_ns)
        };
        if let Sleep::Buffer(buffer) = sleep {
            span.object = u64::from(buffer);
            if tape.buffers.insert(buffer) {
                tape.recording.entries.push(Entry::Block {
                    dev: DEV,
                    number: span.object,
                    block: MetadataBlock::plain(buffers::kind(buffer)),
                });
            }
        }
        tape.sleeps.insert(task, (span, sleep));
    }

    /// Notes that a task has a processor; if it slept on the journal, that sleep is over.
    pub fn woke(&mut self, task: TaskId, now_ns: u64) {
        let Some(tape) = &mut self.0 else {
            return;
        };
        let Some((mut span, sleep)) = tape.sleeps.remove(&task) else {
            return;
        };
        span.end_ns = now_ns;
        tape.span(span);
        if let Sleep::Buffer(buffer) = sleep
            && tape.has_luc
        {
            let delay_ns = i64::try_from(span.duration_ns()).unwrap_or(i64::MAX);
            let event = Event::WriteDelay {
                dev: DEV,
                block: u64::from(buffer),
                delay_ns,
            };
            let is_program = task < tape.tasks;
            let name = if is_program { tape.name } else { WORKER };
            tape.line(name, pid(task), now_ns, event);
        }
    }

    /// Notes that a commit has reached a phase.
    pub fn commit(&mut self, phase: Phase, journal: &Journal, now_ns: u64) {
        let Some(tape) = &mut self.0 else {
            return;
        };
        if phase == Phase::Locks {
            let tid = journal.running.as_ref().map_or(0, |running| running.tid);
            tape.commits.push(Span {
                tid,
                marks_ns: [now_ns, 0, 0],
                pid: pid(tape.journal),
                tgid: pid(tape.journal),
                dev: DEV,
                ..Span::new(SpanKind::Commit, now_ns, now_ns)
            });
            return;
        }
        // A commit begins after those in flight; the oldest of them is the one that ends.
        let commit = if phase == Phase::Ends {
            journal.committing.front()
        } else {
            journal.committing.back()
        };
        let tid = commit.map_or(0, |it| it.tid);
        let Some(at) = tape.commits.iter().position(|commit| commit.tid == tid) else {
            return;
        };
        match phase {
            Phase::Locks | Phase::Flushes => tape.commits[at].marks_ns[1] = now_ns,
            Phase::Logs => tape.commits[at].marks_ns[2] = now_ns,
            Phase::Ends => {
                let mut span = tape.commits.remove(at);
                span.end_ns = now_ns;
                tape.span(span);
            }
        }
    }

    /// Records that the journal's thread passes a tracepoint of the module.
    pub fn line(&mut self, now_ns: u64, event: impl FnOnce() -> Event) {
        if let Some(tape) = self.0.as_mut().filter(|tape| tape.has_luc) {
            tape.line(JOURNAL_THREAD, pid(tape.journal), now_ns, event());
        }
    }
}

impl Tape {
    fn span(&mut self, span: Span) {
        self.recording.entries.push(Entry::Span(span));
    }

    fn line(&mut self, task: &str, pid: u32, time_ns: u64, event: Event) {
        self.recording.entries.push(Entry::Line(Record {
            task: task.to_owned(),
            pid: i64::from(pid),
            cpu: u32::from(self.cpu),
            time_ns,
            event,
        }));
    }

    /// Extends a write with `O_SYNC` to the end of its own sync.
    fn stretch_write(&mut self, pid: u32, end_ns: u64) {
        let spans = self.recording.entries.iter_mut().rev();
        let mut own = spans.filter_map(|entry| match entry {
            Entry::Span(span) if span.pid == pid && span.kind == SpanKind::Write => Some(span),
            _ => None,
        });
        if let Some(write) = own.next() {
            write.end_ns = end_ns;
        }
    }
}

/// Returns the process number of a task; 0 is not one.
pub fn pid(task: TaskId) -> u32 {
    task + 1
}

/// Returns a span of a task; each task is a process of its own.
fn of_task(kind: SpanKind, task: TaskId, begin_ns: u64, end_ns: u64) -> Span {
    Span {
        dev: DEV,
        pid: pid(task),
        tgid: pid(task),
        ..Span::new(kind, begin_ns, end_ns)
    }
}

/// Returns the tracer's kind of an operation; [`SpanKind::Task`] if it does not trace it.
fn kind(op: &Op) -> SpanKind {
    match op {
        Op::Create { .. } | Op::Open => SpanKind::Open,
        Op::Write { .. } | Op::WriteAt { .. } => SpanKind::Write,
        Op::Fsync | Op::SyncRange { .. } | Op::SyncAs(_) => SpanKind::Fsync,
        Op::Close => SpanKind::Close,
        Op::SleepUntil(_)
        | Op::Compute(_)
        | Op::Park
        | Op::Wake(_)
        | Op::Use(_)
        | Op::MakeDir { .. }
        | Op::Stat
        | Op::Utime
        | Op::Unlink
        | Op::Read { .. }
        | Op::End => SpanKind::Task,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_synchronous_write_lasts_until_its_sync_ends() {
        let mut recorder = Recorder::on(Header::default(), "test", 2, 9, false);
        let went = |begun_ns, ended_ns| Went {
            begun_ns,
            ended_ns,
            ..Went::default()
        };
        let write = Op::WriteAt { at: 0, bytes: 512 };
        for (task, op, went) in [
            (0, write, went(10, 20)),
            (1, write, went(15, 25)),
            (1, Op::Fsync, went(25, 30)),
            (0, Op::SyncRange { at: 0, bytes: 512 }, went(20, 40)),
        ] {
            recorder.ended(task, &op, &went, || 7);
        }
        let trace = recorder.finish().into_trace();
        let spans = trace
            .spans
            .iter()
            .map(|it| (it.kind, it.begin_ns, it.end_ns));
        let expected = [
            (SpanKind::Write, 10, 40),
            (SpanKind::Write, 15, 25),
            (SpanKind::Fsync, 20, 40),
            (SpanKind::Fsync, 25, 30),
        ];
        assert_eq!(spans.collect::<Vec<_>>(), expected);
    }
}
