//! The columns of a table of spans, the same in every format.

use crate::span::{CREATED, DIRECTORY, Span, SpanKind};
use crate::trace::Trace;
use std::borrow::Cow;

/// A value of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(Cow<'static, str>),
    U64(u64),
    I64(i64),
    U32(u32),
    I32(i32),
    Flag(bool),
}

/// Which of the values a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    U64,
    I64,
    U32,
    I32,
    Flag,
}

/// A column. Names of numbers end in their unit.
pub(super) struct Column {
    pub name: &'static str,
    pub of_type: Type,
    /// None where a kind of span has no such field.
    pub value: fn(&Trace, &Span) -> Option<Value>,
}

const fn column(
    name: &'static str,
    of_type: Type,
    value: fn(&Trace, &Span) -> Option<Value>,
) -> Column {
    Column {
        name,
        of_type,
        value,
    }
}

/// From left to right. New ones are added at the end, so that old scripts find theirs.
pub(super) const COLUMNS: [Column; 20] = [
    column("kind", Type::Text, |_, s| Some(word(s.kind.text()))),
    column("begin_ns", Type::U64, |_, s| Some(Value::U64(s.begin_ns))),
    column("end_ns", Type::U64, |_, s| Some(Value::U64(s.end_ns))),
    column("dev", Type::Text, |_, s| {
        Some(Value::Text(s.dev.to_string().into()))
    }),
    column("pid", Type::U32, |_, s| {
        by_task(s).then_some(Value::U32(s.pid))
    }),
    column("tgid", Type::U32, |_, s| {
        by_task(s).then_some(Value::U32(s.tgid))
    }),
    column("task", Type::Text, |trace, s| {
        by_task(s).then(|| Value::Text(trace.task_name(s.pid).into()))
    }),
    column("inode", Type::U64, |_, s| {
        of_file(s).then_some(Value::U64(s.object))
    }),
    column("bytes", Type::I64, |_, s| {
        (s.kind == SpanKind::Write).then_some(Value::I64(s.amount))
    }),
    column("result", Type::I32, |_, s| {
        (of_file(s) || s.kind == SpanKind::Sync).then_some(Value::I32(s.result))
    }),
    column("tid", Type::U32, |_, s| {
        (s.kind.is_file_sync() || of_journal(s)).then_some(Value::U32(s.tid))
    }),
    column("done_tid", Type::U32, |_, s| {
        s.kind.is_file_sync().then_some(Value::U32(s.done_tid))
    }),
    column("flush_begin_ns", Type::U64, |_, s| {
        mark(s, s.kind.is_file_sync(), 0)
    }),
    column("flush_end_ns", Type::U64, |_, s| {
        mark(s, s.kind.is_file_sync(), 1)
    }),
    column("locked_ns", Type::U64, |_, s| mark(s, of_journal(s), 0)),
    column("flushing_ns", Type::U64, |_, s| mark(s, of_journal(s), 1)),
    column("logging_ns", Type::U64, |_, s| mark(s, of_journal(s), 2)),
    column("within", Type::Text, |_, s| {
        s.kind.is_wait().then(|| word(s.within.text()))
    }),
    column("directory", Type::Flag, |_, s| {
        of_file(s).then_some(Value::Flag(s.flags & DIRECTORY != 0))
    }),
    column("created", Type::Flag, |_, s| {
        (s.kind == SpanKind::Open).then_some(Value::Flag(s.flags & CREATED != 0))
    }),
];

fn word(text: &'static str) -> Value {
    Value::Text(text.into())
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
fn mark(span: &Span, applies: bool, number: usize) -> Option<Value> {
    let at_ns = span.marks_ns[number];
    (applies && at_ns > 0).then_some(Value::U64(at_ns))
}
