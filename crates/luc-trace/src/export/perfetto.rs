//! A timeline for <https://ui.perfetto.dev>, in the JSON trace event format that
//! it and other viewers read.
//!
//! Each thread has a track with its operations, and inside them the waits and the data flush; each
//! journal has a track with its commits and their phases. An arrow leads from a sync to the commit
//! that it asked for, so that convoys and blocked writers become visible. A process stands with its
//! control group. Each commit names the one who asked for it first. A wait names the asker of the
//! commit that ran when it began, and a sync that of the commit that ran when it asked.

use super::Askers;
use crate::block::MetadataBlock;
use crate::span::{Span, SpanKind};
use crate::trace::Trace;
use luc_control::Dev;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// First of the process numbers under which journals are shown. Perfetto keeps process and thread
/// numbers in 32 bits, and Linux assigns none above 2^22 (`PID_MAX_LIMIT`).
const JOURNALS_FROM: u64 = 1 << 30;

/// Writes the timeline. Its times count from the first span.
pub fn perfetto(trace: &Trace, askers: &Askers, sink: &mut dyn Write) -> io::Result<()> {
    let spans = trace.all_spans();
    let begin_ns = spans.first().map_or(0, |first| first.begin_ns);
    let mut timeline = Timeline {
        sink,
        begin_ns,
        first: true,
        askers,
        blocks: &trace.blocks,
    };
    let header = &trace.header.pairs;
    write!(
        timeline.sink,
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{},\"traceEvents\":[",
        json!(header)
    )?;
    let journals = name_tracks(trace, &spans, &mut timeline)?;
    let commits = || spans.iter().filter(|span| span.kind == SpanKind::Commit);
    let by_begin: BTreeMap<(Dev, u64), &Span> = commits()
        .map(|span| ((span.dev, span.begin_ns), *span))
        .collect();
    let commits: BTreeMap<(Dev, u32), &Span> = commits()
        .map(|span| ((span.dev, span.tid), *span))
        .collect();
    let running = |span: &Span, at_ns: u64| {
        let before = (span.dev, 0)..=(span.dev, at_ns);
        let (_, commit) = by_begin.range(before).next_back()?;
        (commit.end_ns > at_ns).then_some(*commit)
    };
    for (number, span) in spans.iter().enumerate() {
        if span.kind == SpanKind::Commit {
            timeline.commit(span, journals[&span.dev])?;
            continue;
        }
        let behind = match span.kind {
            kind if kind.is_wait() => running(span, span.begin_ns),
            kind if kind.is_file_sync() => running(span, span.asked_ns()),
            _ => None,
        };
        timeline.operation(span, behind)?;
        let served = commits.get(&(span.dev, span.tid));
        // A sync does not wait for a transaction that was committed already.
        if let Some(commit) =
            served.filter(|_| span.kind.is_file_sync() && span.commits_ahead() > 0)
        {
            timeline.arrow(number, span, commit, journals[&span.dev])?;
        }
    }
    writeln!(timeline.sink, "]}}")
}

/// Names threads, processes and journals; returns the numbers of the journals.
fn name_tracks(
    trace: &Trace,
    spans: &[&Span],
    timeline: &mut Timeline<'_>,
) -> io::Result<BTreeMap<Dev, u64>> {
    let mut processes = BTreeSet::new();
    for (pid, task) in &trace.tasks {
        timeline.name("thread_name", task.tgid.into(), (*pid).into(), &task.name)?;
        processes.insert(task.tgid);
    }
    for tgid in processes {
        timeline.name(
            "process_name",
            tgid.into(),
            tgid.into(),
            &trace.process(tgid, tgid).to_string(),
        )?;
    }
    let devs: BTreeSet<Dev> = spans.iter().map(|span| span.dev).collect();
    let mut journals = BTreeMap::new();
    for (place, dev) in (JOURNALS_FROM..).zip(devs) {
        timeline.name("process_name", place, place, &format!("journal of {dev}"))?;
        timeline.name("thread_name", place, place, "commits")?;
        journals.insert(dev, place);
    }
    Ok(journals)
}

struct Timeline<'a> {
    blocks: &'a BTreeMap<(Dev, u64), MetadataBlock>,
    sink: &'a mut dyn Write,
    begin_ns: u64,
    first: bool,
    askers: &'a Askers,
}

impl Timeline<'_> {
    fn event(&mut self, event: &Value) -> io::Result<()> {
        let comma = if self.first { "" } else { "," };
        self.first = false;
        write!(self.sink, "{comma}\n{event}")
    }

    /// Converts a time to microseconds since the first span, the format's unit.
    fn us(&self, ns: u64) -> f64 {
        ns.saturating_sub(self.begin_ns) as f64 / 1000.0
    }

    fn name(&mut self, what: &str, process: u64, thread: u64, name: &str) -> io::Result<()> {
        self.event(&json!({
            "ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name},
        }))
    }

    fn complete(
        &mut self,
        (process, thread): (u64, u64),
        name: &str,
        (begin_ns, end_ns): (u64, u64),
        args: &Value,
    ) -> io::Result<()> {
        let duration = end_ns.saturating_sub(begin_ns) as f64 / 1000.0;
        self.event(&json!({
            "ph": "X", "name": name, "pid": process, "tid": thread, "ts": self.us(begin_ns),
            "dur": duration, "args": args,
        }))
    }

    fn asker(&self, commit: &Span) -> &str {
        let asker = self.askers.get(&(commit.dev, commit.begin_ns));
        asker.map_or("unknown", String::as_str)
    }

    /// Draws an operation or a wait; `behind` is the commit that ran when a wait began, or when a
    /// sync asked.
    fn operation(&mut self, span: &Span, behind: Option<&Span>) -> io::Result<()> {
        let place = (span.tgid.into(), span.pid.into());
        let mut args = json!({"file system": span.dev.to_string()});
        if !span.kind.is_wait() && span.kind != SpanKind::Sync {
            args["inode"] = json!(span.object);
        }
        if span.kind == SpanKind::Write {
            args["bytes"] = json!(span.amount);
        }
        if span.kind.is_file_sync() {
            args["transaction"] = json!(span.tid);
            args["commits waited for"] = json!(span.commits_ahead());
        }
        if let Some(waited) = span.waited_block() {
            args["block"] = json!(waited.1);
            let block = self.blocks.get(&waited);
            args["block holds"] = json!(block.map_or("unknown", |block| block.kind.word()));
        }
        if let Some(commit) = behind {
            args["commit"] = json!(commit.tid);
            args["commit asked for by"] = json!(self.asker(commit));
        }
        if span.result != 0 {
            args["result"] = json!(span.result);
        }
        self.complete(place, span.kind.text(), (span.begin_ns, span.end_ns), &args)?;
        match span.flush_ns() {
            Some(bounds) => self.complete(place, "data flush", bounds, &json!({})),
            None => Ok(()),
        }
    }

    fn commit(&mut self, span: &Span, place: u64) -> io::Result<()> {
        let whole = (span.begin_ns, span.end_ns);
        let name = format!("commit {}", span.tid);
        let args = json!({"transaction": span.tid, "asked for by": self.asker(span)});
        self.complete((place, place), &name, whole, &args)?;
        let [locked, flushing, logging] = span.marks_ns;
        let phases = [
            ("lock", locked, flushing),
            ("flush data", flushing, logging),
            ("log", logging, span.end_ns),
        ];
        for (phase, begin, end) in phases {
            if begin > 0 && end > begin {
                self.complete((place, place), phase, (begin, end), &json!({}))?;
            }
        }
        Ok(())
    }

    /// Draws an arrow from the moment when a sync asked to the commit that it asked for.
    fn arrow(&mut self, number: usize, sync: &Span, commit: &Span, place: u64) -> io::Result<()> {
        let from = json!({
            "ph": "s", "name": "asks for", "cat": "sync", "id": number, "pid": sync.tgid,
            "tid": sync.pid, "ts": self.us(sync.asked_ns()),
        });
        self.event(&from)?;
        // The arrow must end within the commit, and not before the sync asked for it.
        let at = commit.begin_ns.max(sync.asked_ns()).min(commit.end_ns);
        let to = json!({
            "ph": "f", "bp": "e", "name": "asks for", "cat": "sync", "id": number, "pid": place,
            "tid": place, "ts": self.us(at),
        });
        self.event(&to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockKind;

    fn events(trace: &Trace) -> Vec<Value> {
        blamed_events(trace, &Askers::new())
    }

    fn blamed_events(trace: &Trace, askers: &Askers) -> Vec<Value> {
        let mut out = Vec::new();
        perfetto(trace, askers, &mut out).unwrap();
        let value: Value = serde_json::from_slice(&out).unwrap();
        value["traceEvents"].as_array().unwrap().clone()
    }

    fn named<'a>(events: &'a [Value], ph: &str, name: &str) -> Vec<&'a Value> {
        let wanted = |event: &&Value| event["ph"] == ph && event["name"] == name;
        events.iter().filter(wanted).collect()
    }

    #[test]
    fn threads_commits_and_arrows() {
        let fsync = Span {
            marks_ns: [1_000_100, 2_000_000, 0],
            pid: 8,
            tgid: 7,
            tid: 5,
            done_tid: 3,
            ..Span::new(SpanKind::Fsync, 1_000_000, 9_000_500)
        };
        let commit = |tid, begin_ns| Span {
            marks_ns: [begin_ns + 10, begin_ns + 20, begin_ns + 30],
            tid,
            ..Span::new(SpanKind::Commit, begin_ns, begin_ns + 4_000_000)
        };
        let task = Span {
            pid: 8,
            tgid: 7,
            ..Span::default()
        };
        let trace = Trace::from_spans([
            task.with_name("db \"x\""),
            fsync,
            commit(4, 900_000),
            commit(5, 5_000_000),
        ]);
        let events = events(&trace);
        let sync = named(&events, "X", "fsync")[0];
        // Times count from the start of the first commit.
        assert_eq!(
            (sync["ts"].as_f64(), sync["dur"].as_f64()),
            (Some(100.0), Some(8000.5))
        );
        assert_eq!(sync["args"]["commits waited for"], 2);
        assert_eq!(named(&events, "X", "data flush").len(), 1);
        assert_eq!(
            named(&events, "X", "commit 5")[0]["ts"].as_f64(),
            Some(4100.0)
        );
        assert_eq!(named(&events, "X", "log").len(), 2);
        let (from, to) = (
            named(&events, "s", "asks for"),
            named(&events, "f", "asks for"),
        );
        assert_eq!((from.len(), to.len()), (1, 1));
        assert_eq!(from[0]["ts"].as_f64(), Some(1100.0));
        assert_eq!(to[0]["ts"].as_f64(), Some(4100.0));
        assert_eq!(
            named(&events, "M", "thread_name")[0]["args"]["name"],
            "db \"x\""
        );
    }

    /// The importer keeps 32 bits of process and thread numbers: larger ones would share a track.
    #[test]
    fn each_journal_has_a_track_of_its_own_among_numbers_of_32_bits() {
        let commit = |minor| Span {
            dev: Dev { major: 8, minor },
            ..Span::new(SpanKind::Commit, 10, 20)
        };
        let write = Span {
            pid: 1 << 22,
            tgid: 1 << 22,
            ..Span::new(SpanKind::Write, 0, 0)
        };
        let events = events(&Trace::from_spans([commit(1), commit(17), write]));
        let mut tracks = BTreeMap::new();
        for event in events.iter().filter(|event| event["ph"] == "X") {
            let of = |what: &str| event[what].as_u64().and_then(|id| u32::try_from(id).ok());
            let place = (of("pid").expect("32 bits"), of("tid").expect("32 bits"));
            *tracks.entry(place).or_insert(0) += 1;
        }
        assert_eq!(tracks.values().collect::<Vec<_>>(), [&1, &1, &1]);
    }

    #[test]
    fn commits_and_waits_behind_them_name_the_asker() {
        let commit = |tid, begin_ns| Span {
            tid,
            ..Span::new(SpanKind::Commit, begin_ns, begin_ns + 50)
        };
        let wait = |begin_ns| Span {
            object: 1057,
            ..Span::new(SpanKind::WaitBuffer, begin_ns, begin_ns + 20)
        };
        let sync = Span {
            pid: 7,
            tgid: 7,
            ..Span::new(SpanKind::Fsync, 130, 250)
        };
        let task = Span {
            pid: 7,
            tgid: 7,
            ..Span::default()
        };
        let mut trace = Trace::from_spans([
            task.with_name("postgres"),
            commit(4, 100),
            commit(5, 200),
            wait(120),
            sync,
            wait(160),
            wait(230),
        ]);
        trace.cgroups.insert(3, "/db".to_owned());
        trace.tasks.get_mut(&7).expect("named").cgroup = 3;
        let askers = Askers::from([((Dev::default(), 100), "etcd in \"x\"".to_owned())]);
        let directory = MetadataBlock::plain(BlockKind::Directory);
        trace.blocks.insert((Dev::default(), 1057), directory);
        let events = blamed_events(&trace, &askers);
        let asker = |name| named(&events, "X", name)[0]["args"]["asked for by"].clone();
        assert_eq!(asker("commit 4"), "etcd in \"x\"");
        assert_eq!(asker("commit 5"), "unknown");
        let waits = named(&events, "X", "wait-buffer");
        assert_eq!(waits[0]["args"]["block"], 1057);
        assert_eq!(waits[0]["args"]["block holds"], "directory");
        let behind = waits
            .iter()
            .map(|wait| wait["args"]["commit asked for by"].as_str());
        let behind: Vec<_> = behind.collect();
        let sync = named(&events, "X", "fsync")[0];
        assert_eq!(sync["args"]["commit asked for by"], "etcd in \"x\"");
        let process = named(&events, "M", "process_name")[0];
        assert_eq!(process["args"]["name"], "postgres in /db");
        // No commit runs when the second begins.
        assert_eq!(behind, [Some("etcd in \"x\""), None, Some("unknown")]);
    }

    #[test]
    fn an_empty_recording_is_an_empty_timeline() {
        assert!(events(&Trace::default()).is_empty());
    }
}
