//! A table of spans.

use super::columns::{COLUMNS, Value};
use crate::trace::Trace;
use std::borrow::Cow;
use std::io::{self, Write};

/// Writes a line for each span, by begin, below a line of headings. Fields that
/// a kind of span does not have are empty.
///
/// # Errors
/// The sink's.
pub fn csv(trace: &Trace, sink: &mut dyn Write) -> io::Result<()> {
    let names = COLUMNS.map(|column| column.name);
    writeln!(sink, "{}", names.join(","))?;
    for span in &trace.spans {
        for (at, column) in COLUMNS.iter().enumerate() {
            if at > 0 {
                write!(sink, ",")?;
            }
            match (column.value)(trace, span) {
                None => {}
                Some(Value::Text(text)) => write!(sink, "{}", quoted(&text))?,
                Some(Value::U64(number)) => write!(sink, "{number}")?,
                Some(Value::I64(number)) => write!(sink, "{number}")?,
                Some(Value::U32(number)) => write!(sink, "{number}")?,
                Some(Value::I32(number)) => write!(sink, "{number}")?,
                Some(Value::Flag(flag)) => write!(sink, "{}", u8::from(flag))?,
            }
        }
        writeln!(sink)?;
    }
    Ok(())
}

/// A field that may hold anything, as RFC 4180 wants it.
fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
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
            kind: SpanKind::Fsync,
            begin_ns: 10,
            end_ns: 90,
            marks_ns: [20, 30, 0],
            pid: 7,
            tgid: 6,
            object: 12,
            tid: 5,
            done_tid: 3,
            result: -5,
            flags: DIRECTORY,
            ..Span::default()
        };
        let commit = Span {
            kind: SpanKind::Commit,
            begin_ns: 40,
            end_ns: 80,
            marks_ns: [41, 42, 43],
            tid: 5,
            ..Span::default()
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
