//! A table of spans.

use super::Askers;
use crate::span::{CREATED, DIRECTORY, EARLIER, Span, SpanKind, UNFINISHED, UNTIMED};
use crate::trace::Trace;
use std::io::{self, Write};

/// A column. Names of quantities end in their unit.
struct Column {
    name: &'static str,
    /// Value in a span's row; `None` if its kind has no such field.
    value: fn(&Trace, &Span) -> Option<String>,
}

const fn column(name: &'static str, value: fn(&Trace, &Span) -> Option<String>) -> Column {
    Column { name, value }
}

/// New columns go at the end, so that old scripts still find theirs.
const COLUMNS: [Column; 25] = [
    column("kind", |_, s| shown(&s.kind.text(), true)),
    column("begin_ns", |_, s| shown(&s.begin_ns, true)),
    column("end_ns", |_, s| shown(&s.end_ns, true)),
    column("dev", |_, s| shown(&s.dev, true)),
    column("pid", |_, s| shown(&s.pid, by_task(s))),
    column("tgid", |_, s| shown(&s.tgid, by_task(s))),
    column("task", |t, s| {
        shown(&quoted(&t.task_name(s.pid)), by_task(s))
    }),
    column("inode", |_, s| shown(&s.object, of_file(s))),
    column("bytes", |_, s| shown(&s.amount, s.kind == SpanKind::Write)),
    column("result", |_, s| shown(&s.result, has_result(s))),
    column("tid", |_, s| shown(&s.tid, syncs(s) || of_journal(s))),
    column("done_tid", |_, s| shown(&s.done_tid, syncs(s))),
    column("flush_begin_ns", |_, s| mark(s, syncs(s), 0)),
    column("flush_end_ns", |_, s| mark(s, syncs(s), 1)),
    column("locked_ns", |_, s| mark(s, of_journal(s), 0)),
    column("flushing_ns", |_, s| mark(s, of_journal(s), 1)),
    column("logging_ns", |_, s| mark(s, of_journal(s), 2)),
    column("within", |_, s| shown(&s.within.text(), s.kind.is_wait())),
    column("directory", |_, s| flag(s, of_file(s), DIRECTORY)),
    column("created", |_, s| flag(s, s.kind == SpanKind::Open, CREATED)),
    column("earlier", |_, s| flag(s, true, EARLIER)),
    column("unfinished", |_, s| flag(s, true, UNFINISHED)),
    column("untimed", |_, s| flag(s, true, UNTIMED)),
    column("block", |_, s| {
        s.waited_block().map(|(_, number)| number.to_string())
    }),
    column("block_holds", |t, s| {
        let block = t.blocks.get(&s.waited_block()?)?;
        Some(block.kind.word().to_owned())
    }),
];

/// Formats a field, if the kind of span has it.
fn shown(value: &dyn ToString, applies: bool) -> Option<String> {
    applies.then(|| value.to_string())
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

fn syncs(span: &Span) -> bool {
    span.kind.is_file_sync()
}

fn has_result(span: &Span) -> bool {
    of_file(span) || span.kind == SpanKind::Sync
}

/// Formats a mark; 0 means that the moment is unknown.
fn mark(span: &Span, applies: bool, number: usize) -> Option<String> {
    let at_ns = span.marks_ns[number];
    shown(&at_ns, applies && at_ns > 0)
}

fn flag(span: &Span, applies: bool, flag: u32) -> Option<String> {
    shown(&u8::from(span.flags & flag != 0), applies)
}

/// Writes a line of headings, then a line for each span, in the order of their start. Fields that a
/// kind of span does not have are empty.
pub fn csv(trace: &Trace, _: &Askers, sink: &mut dyn Write) -> io::Result<()> {
    let names = COLUMNS.map(|column| column.name);
    writeln!(sink, "{}", names.join(","))?;
    for span in trace.all_spans() {
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

/// Quotes a text by RFC 4180, if necessary.
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
    use crate::block::{BlockKind, MetadataBlock};
    use crate::span::{DIRECTORY, Span, SpanKind};
    use luc_control::Dev;

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
            ..Span::new(SpanKind::Fsync, 10, 90)
        };
        let commit = Span {
            marks_ns: [41, 42, 43],
            tid: 5,
            flags: UNFINISHED,
            ..Span::new(SpanKind::Commit, 40, 80)
        };
        let wait = Span {
            object: 1057,
            pid: 7,
            tgid: 6,
            ..Span::new(SpanKind::WaitBuffer, 50, 60)
        };
        let spans = [task.with_name("a \"b\", c"), fsync, commit, wait];
        let mut trace = Trace::from_spans(spans);
        let directory = MetadataBlock::plain(BlockKind::Directory);
        trace.blocks.insert((Dev::default(), 1057), directory);
        let mut out = Vec::new();
        csv(&trace, &Askers::new(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "kind,begin_ns,end_ns,dev,pid,tgid,task,inode,bytes,result,tid,done_tid,flush_begin_ns,\
             flush_end_ns,locked_ns,flushing_ns,logging_ns,within,directory,created,\
             earlier,unfinished,untimed,block,block_holds"
        );
        assert_eq!(
            lines[1],
            "fsync,10,90,0:0,7,6,\"a \"\"b\"\", c\",12,,-5,5,3,20,30,,,,,1,,0,0,0,,"
        );
        assert_eq!(lines[2], "commit,40,80,0:0,,,,,,,5,,,,41,42,43,,,,0,1,0,,");
        assert!(
            lines[3].ends_with(",task,,,0,0,0,1057,directory"),
            "{}",
            lines[3]
        );
        let fields = |line: &str| line.matches(',').count();
        assert_eq!(fields(lines[2]), fields(lines[0]));
    }
}
