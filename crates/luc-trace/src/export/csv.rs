//! A table of spans.

use crate::span::{CREATED, DIRECTORY, Span, SpanKind};
use crate::trace::Trace;
use std::io::{self, Write};

/// A column. Names of numbers end in their unit.
struct Column {
    name: &'static str,
    /// None where a kind of span has no such field.
    value: fn(&Trace, &Span) -> Option<String>,
}

const fn column(name: &'static str, value: fn(&Trace, &Span) -> Option<String>) -> Column {
    Column { name, value }
}

/// New columns are added at the end, so that old scripts find theirs.
const COLUMNS: [Column; 20] = [
    column("kind", |_, s| Some(word(s.kind.text()))),
    column("begin_ns", |_, s| Some(s.begin_ns.to_string())),
    column("end_ns", |_, s| Some(s.end_ns.to_string())),
    column("dev", |_, s| Some(s.dev.to_string())),
    column("pid", |_, s| by_task(s).then_some(s.pid.to_string())),
    column("tgid", |_, s| by_task(s).then_some(s.tgid.to_string())),
    column("task", |trace, s| {
        by_task(s).then(|| quoted(&trace.task_name(s.pid)))
    }),
    column("inode", |_, s| of_file(s).then_some(s.object.to_string())),
    column("bytes", |_, s| {
        (s.kind == SpanKind::Write).then_some(s.amount.to_string())
    }),
    column("result", |_, s| {
        (of_file(s) || s.kind == SpanKind::Sync).then_some(s.result.to_string())
    }),
    column("tid", |_, s| {
        (s.kind.is_file_sync() || of_journal(s)).then_some(s.tid.to_string())
    }),
    column("done_tid", |_, s| {
        s.kind.is_file_sync().then_some(s.done_tid.to_string())
    }),
    column("flush_begin_ns", |_, s| mark(s, s.kind.is_file_sync(), 0)),
    column("flush_end_ns", |_, s| mark(s, s.kind.is_file_sync(), 1)),
    column("locked_ns", |_, s| mark(s, of_journal(s), 0)),
    column("flushing_ns", |_, s| mark(s, of_journal(s), 1)),
    column("logging_ns", |_, s| mark(s, of_journal(s), 2)),
    column("within", |_, s| {
        s.kind.is_wait().then(|| word(s.within.text()))
    }),
    column("directory", |_, s| {
        of_file(s).then_some(flag(s.flags & DIRECTORY))
    }),
    column("created", |_, s| {
        (s.kind == SpanKind::Open).then_some(flag(s.flags & CREATED))
    }),
];

fn word(text: &str) -> String {
    text.to_owned()
}

fn of_journal(span: &Span) -> bool {
    span.kind == SpanKind::Commit
}

fn by_task(span: &Span) -> bool {
    !of_journal(span)
}

fn of_file(span: &Span) -> bool {
    let kinds = [SpanKind::Open, SpanKind::Write, SpanKind::Close];
    span.kind.is_file_sync() || kinds.contains(&span.kind)
}

/// 0 is no moment.
fn mark(span: &Span, applies: bool, number: usize) -> Option<String> {
    let at_ns = span.marks_ns[number];
    (applies && at_ns > 0).then_some(at_ns.to_string())
}

fn flag(flags: u32) -> String {
    u8::from(flags != 0).to_string()
}

/// Writes a line for each span, by begin, below a line of headings. Fields that a kind of span does
/// not have are empty.
pub fn csv(trace: &Trace, sink: &mut dyn Write) -> io::Result<()> {
    let names = COLUMNS.map(|column| column.name);
    writeln!(sink, "{}", names.join(","))?;
    for span in &trace.spans {
        for (at, column) in COLUMNS.iter().enumerate() {
            if at > 0 {
                write!(sink, ",")?;
            }
            if let Some(value) = (column.value)(trace, span) {
                write!(sink, "{value}")?;
            }
        }
        writeln!(sink)?;
    }
    Ok(())
}

/// A field of any text, by RFC 4180.
fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::{DIRECTORY, Span, SpanKind};

    #[test]
    fn fields_are_there_where_they_mean_something() {
        let task = Span {
            pid: 7,
            ..Span::default()
        };
        let fsync = Span {
            marks_ns: [20, 30, 0],
            pid: 7,
            tgid: 6,
            object: 12,
            tid: 5,
            done_tid: 3,
            result: -5,
            flags: DIRECTORY,
            ..Span::of(SpanKind::Fsync, 10, 90)
        };
        let commit = Span {
            marks_ns: [41, 42, 43],
            tid: 5,
            ..Span::of(SpanKind::Commit, 40, 80)
        };
        let trace = Trace::of([task.with_name("a \"b\", c"), fsync, commit]);
        let mut out = Vec::new();
        csv(&trace, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "kind,begin_ns,end_ns,dev,pid,tgid,task,inode,bytes,result,tid,done_tid,flush_begin_ns,\
             flush_end_ns,locked_ns,flushing_ns,logging_ns,within,directory,created"
        );
        assert_eq!(
            lines[1],
            "fsync,10,90,0:0,7,6,\"a \"\"b\"\", c\",12,,-5,5,3,20,30,,,,,1,"
        );
        assert_eq!(lines[2], "commit,40,80,0:0,,,,,,,5,,,,41,42,43,,,");
        let fields = |line: &str| line.matches(',').count();
        assert_eq!(fields(lines[2]), fields(lines[0]));
    }
}
