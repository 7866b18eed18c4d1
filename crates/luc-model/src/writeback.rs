//! Kernel threads that write data back. They work for the processes that wrote the data, so their
//! waits are those processes' waits.
//!
//! A wait does not show which file it is for. So a thread is attributed to the process that wrote
//! most of the file system's data, if there is one. A thread that writes or syncs by itself works
//! for a loop device, if one lies on the file system.

use std::collections::{BTreeMap, BTreeSet};

use luc_control::Dev;
use luc_trace::{Process, SpanKind, Trace};

use crate::observed::is_sync;
use crate::stats::share;

/// More than this share of the data is more than that of all others together.
const MOST_SHARE: f64 = 0.5;
/// The names of threads that write data back begin with one of these.
const THREADS: [&str; 3] = ["kworker/", "flush-", "jbd2/"];
/// Stands before the name of the process that a thread works for.
const FOR: &str = "writeback for ";

/// Names the processes of a file system's threads.
pub(crate) struct Names<'a> {
    trace: &'a Trace,
    /// The processes that write or sync by themselves.
    acting: BTreeSet<u32>,
    writer: Option<Process>,
    /// The name for threads that work for a loop device; `None` if none lies on the file system.
    of_loop: Option<String>,
}

impl<'a> Names<'a> {
    /// O(n log n).
    pub fn from_trace(trace: &'a Trace, dev: Dev) -> Self {
        let acts = |span: &&luc_trace::Span| span.kind == SpanKind::Write || is_sync(span.kind);
        let acting = trace.on(dev).filter(acts).map(|span| span.tgid);
        let mut bytes: BTreeMap<Process, u64> = BTreeMap::new();
        let mut all: u64 = 0;
        for write in trace.on(dev).filter(|span| span.kind == SpanKind::Write) {
            let written = u64::try_from(write.amount).unwrap_or(0);
            let of_process = bytes.entry(trace.process(write.tgid, write.pid));
            let of_process = of_process.or_default();
            *of_process = of_process.saturating_add(written);
            all = all.saturating_add(written);
        }
        let most = bytes.into_iter().max_by_key(|(_, bytes)| *bytes);
        let most = most.filter(|(_, bytes)| share(*bytes as f64, all as f64) > MOST_SHARE);
        let loops: Vec<&str> = trace.header.loops(dev).collect();
        Self {
            trace,
            of_loop: (!loops.is_empty()).then(|| loops.join(" or ")),
            acting: acting.collect(),
            writer: most.map(|(process, _)| process),
        }
    }

    /// Returns the process of a thread; for a thread that writes back, the process it works for.
    pub fn process(&self, tgid: u32, thread: u32) -> Process {
        let process = self.trace.process(tgid, thread);
        let writes_back = THREADS.iter().any(|name| process.name.starts_with(name));
        if !writes_back {
            return process;
        }
        if self.acting.contains(&tgid) {
            let name = self.of_loop.clone().unwrap_or(process.name);
            return Process { name, ..process };
        }
        match &self.writer {
            Some(writer) => Process {
                name: format!("{FOR}{}", writer.name),
                cgroup: writer.cgroup.clone(),
            },
            None => Process {
                name: "writeback on behalf of others (unknown)".into(),
                cgroup: None,
            },
        }
    }
}

/// Returns the name of the process that the work is for.
pub(crate) fn worked_for(name: &str) -> &str {
    name.strip_prefix(FOR).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blame::{By, blame};
    use crate::observed::Observed;
    use luc_trace::{Span, Task};

    /// Process 20 is `dd`, 30 is `app`; thread 29 waits for a buffer while a commit runs.
    fn trace(bytes: [i64; 2], more: &[Span]) -> Trace {
        let of = |pid, kind, begin_ns, end_ns| Span {
            pid,
            tgid: pid,
            ..Span::new(kind, begin_ns, end_ns)
        };
        let write = |pid, amount| Span {
            amount,
            ..of(pid, SpanKind::Write, 1, 2)
        };
        let spans = [
            write(20, bytes[0]),
            write(30, bytes[1]),
            of(1, SpanKind::Commit, 100, 180),
            of(29, SpanKind::WaitBuffer, 110, 160),
        ];
        let mut trace = Trace::from_spans(spans.into_iter().chain(more.iter().copied()));
        for (pid, name) in [(20, "dd"), (30, "app"), (29, "kworker/u8:3")] {
            let task = Task {
                name: name.into(),
                tgid: pid,
                cgroup: u64::from(pid),
            };
            trace.tasks.insert(pid, task);
        }
        trace.cgroups.insert(20, "/bulk".into());
        trace
    }

    #[test]
    fn a_thread_that_writes_back_is_led_to_the_writer() {
        let name = |trace: &Trace| Names::from_trace(trace, Dev::default()).process(29, 29);
        let known = trace([900, 100], &[]);
        let process = name(&known);
        assert_eq!(process.name, "writeback for dd");
        assert_eq!(process.cgroup.as_deref(), Some("/bulk"));
        assert_eq!(worked_for(&process.name), "dd");
        let blamed = blame(
            &known,
            &Observed::from_trace(&known, Dev::default()),
            By::Process,
        );
        let waiters = blamed.waiters;
        let waits = waiters.iter().find(|it| it.write_delay_ns > 0.0);
        assert_eq!(waits.expect("it waits").name, "writeback for dd");
        // Nobody wrote most of the data.
        for bytes in [[500, 500], [0, 0]] {
            let unknown = name(&trace(bytes, &[])).name;
            assert_eq!(unknown, "writeback on behalf of others (unknown)");
        }
        // The worker of a loop device writes and syncs by itself.
        let sync = Span {
            pid: 29,
            tgid: 29,
            ..Span::new(SpanKind::Fsync, 200, 300)
        };
        let mut lower = trace([900, 100], &[sync]);
        assert_eq!(name(&lower).name, "kworker/u8:3");
        let loops = ["loop0".to_owned(), "loop3".to_owned()];
        lower.header = lower.header.with_loops(Dev::default(), &loops);
        assert_eq!(name(&lower).name, "loop0 or loop3");
        let other = Names::from_trace(&known, Dev::default()).process(30, 30);
        assert_eq!(other.name, "app");
    }
}
