//! Parquet files, read back by another library than ours.

mod common;

use common::{DEV, any_span};
use luc_trace::{Header, Span, SpanKind, Trace, export};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use proptest::prelude::*;
use std::collections::BTreeMap;

type File = SerializedFileReader<std::fs::File>;

fn exported(trace: &Trace) -> File {
    let mut file = tempfile::tempfile().unwrap();
    export::parquet(trace, &mut file).unwrap();
    SerializedFileReader::new(file).unwrap()
}

fn rows(file: &File) -> Vec<Row> {
    let rows = file.get_row_iter(None).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// As CSV shows it.
fn text(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Bool(flag) => u8::from(*flag).to_string(),
        Field::ULong(number) => number.to_string(),
        Field::UInt(number) => number.to_string(),
        Field::Long(number) => number.to_string(),
        Field::Int(number) => number.to_string(),
        other => panic!("no column is of this type: {other:?}"),
    }
}

/// A span from its row; what a kind does not have is 0 again.
fn span(row: &Row) -> Span {
    let cells: BTreeMap<&str, &Field> = row
        .get_column_iter()
        .map(|(name, field)| (name.as_str(), field))
        .collect();
    let u64 = |name: &str| match cells[name] {
        Field::ULong(number) => *number,
        Field::Null => 0,
        other => panic!("{name}: {other:?}"),
    };
    let u32 = |name: &str| match cells[name] {
        Field::UInt(number) => *number,
        Field::Null => 0,
        other => panic!("{name}: {other:?}"),
    };
    let flag = |name: &str| u32::from(*cells[name] == Field::Bool(true));
    let kind = |name: &str| {
        let text = text(cells[name]);
        let mut kinds = SpanKind::ALL.into_iter();
        kinds.find(|kind| kind.text() == text)
    };
    let kind_of_row = kind("kind").unwrap();
    let marks = if kind_of_row == SpanKind::Commit {
        ["locked_ns", "flushing_ns", "logging_ns"].map(u64)
    } else {
        [u64("flush_begin_ns"), u64("flush_end_ns"), 0]
    };
    let (major, minor) = match cells["dev"] {
        Field::Str(dev) => dev.split_once(':').unwrap(),
        other => panic!("dev: {other:?}"),
    };
    Span {
        kind: kind_of_row,
        begin_ns: u64("begin_ns"),
        end_ns: u64("end_ns"),
        object: u64("inode"),
        amount: match cells["bytes"] {
            Field::Long(bytes) => *bytes,
            _ => 0,
        },
        marks_ns: marks,
        dev: luc_control::Dev {
            major: major.parse().unwrap(),
            minor: minor.parse().unwrap(),
        },
        pid: u32("pid"),
        tgid: u32("tgid"),
        tid: u32("tid"),
        done_tid: u32("done_tid"),
        result: match cells["result"] {
            Field::Int(result) => *result,
            _ => 0,
        },
        within: kind("within").unwrap_or(SpanKind::Task),
        flags: flag("directory") | flag("created") << 1,
    }
}

/// What of a span its kind has; see the table of `abi/luc_span.h`.
fn meant(span: &Span) -> Span {
    let mut meant = Span {
        kind: span.kind,
        begin_ns: span.begin_ns,
        end_ns: span.end_ns,
        dev: span.dev,
        ..Span::default()
    };
    if span.kind == SpanKind::Commit {
        (meant.marks_ns, meant.tid) = (span.marks_ns, span.tid);
        return meant;
    }
    (meant.pid, meant.tgid) = (span.pid, span.tgid);
    if span.kind.is_wait() {
        meant.within = span.within;
        return meant;
    }
    meant.result = span.result;
    if span.kind == SpanKind::Sync {
        return meant;
    }
    meant.object = span.object;
    meant.flags = span.flags & 1;
    match span.kind {
        SpanKind::Open => meant.flags = span.flags & 3,
        SpanKind::Write => meant.amount = span.amount,
        SpanKind::Fsync | SpanKind::Fdatasync => {
            let [begin, end, _] = span.marks_ns;
            meant.marks_ns = [begin, end, 0];
            (meant.tid, meant.done_tid) = (span.tid, span.done_tid);
        }
        _ => {}
    }
    meant
}

#[test]
fn types_names_and_pairs_are_what_readers_see() {
    let task = Span {
        pid: 7,
        ..Span::default()
    };
    let write = Span {
        kind: SpanKind::Write,
        begin_ns: u64::MAX - 1,
        end_ns: u64::MAX,
        amount: -1,
        pid: 7,
        dev: DEV,
        ..Span::default()
    };
    let mut trace = Trace::of([task.with_name("bäcker"), write]);
    trace.header = Header::default().with("kernel", "6.12 \"x\"");
    trace.spans_lost = 3;
    trace.damage = Some("cut off".into());
    let file = exported(&trace);
    let meta = file.metadata().file_metadata();
    let pairs: BTreeMap<_, _> = meta
        .key_value_metadata()
        .unwrap()
        .iter()
        .map(|pair| (pair.key.as_str(), pair.value.as_deref().unwrap()))
        .collect();
    let wanted = [
        ("luc.damage", "cut off"),
        ("luc.header.kernel", "6.12 \"x\""),
        ("luc.spans_lost", "3"),
    ];
    assert_eq!(pairs, wanted.into());
    let found = rows(&file);
    assert_eq!(found.len(), 1);
    assert_eq!(span(&found[0]), meant(&write));
    let name = found[0].get_column_iter().find(|(name, _)| *name == "task");
    assert_eq!(name.unwrap().1, &Field::Str("bäcker".into()));

    let mut csv = Vec::new();
    export::csv(&trace, &mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let columns = meta.schema_descr().columns();
    let columns: Vec<&str> = columns.iter().map(|column| column.name()).collect();
    assert_eq!(columns.join(","), csv.lines().next().unwrap());
}

#[test]
fn nothing_is_a_file_without_rows() {
    let file = exported(&Trace::default());
    assert_eq!(file.num_row_groups(), 0);
    assert!(rows(&file).is_empty());
}

/// More than one row group, and the second begins where the first ended.
#[test]
fn long_recordings_are_cut_into_groups() {
    let write = |number: u64| Span {
        kind: SpanKind::Write,
        begin_ns: number,
        end_ns: number + 5,
        object: number % 3,
        dev: DEV,
        pid: 7,
        ..Span::default()
    };
    let trace = Trace::of((0..140_000).map(write));
    let file = exported(&trace);
    let sizes: Vec<i64> = (0..file.num_row_groups())
        .map(|at| file.metadata().row_group(at).num_rows())
        .collect();
    assert_eq!(sizes, [131_072, 8_928]);
    for (at, row) in file.get_row_iter(None).unwrap().enumerate() {
        assert_eq!(span(&row.unwrap()), trace.spans[at]);
    }
}

proptest! {
    /// Row by row the spans, and cell by cell what CSV has.
    #[test]
    fn any_spans_survive(spans in prop::collection::vec(any_span(), 0..40)) {
        let trace = Trace::of(spans);
        let file = exported(&trace);
        let rows = rows(&file);
        let back: Vec<Span> = rows.iter().map(span).collect();
        let expected: Vec<Span> = trace.spans.iter().map(meant).collect();
        prop_assert_eq!(back, expected);
        let mut csv = Vec::new();
        export::csv(&trace, &mut csv).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        prop_assert_eq!(csv.lines().count(), rows.len() + 1);
        for (line, row) in csv.lines().skip(1).zip(&rows) {
            let cells: Vec<String> = row.get_column_iter().map(|(_, field)| text(field)).collect();
            // Names of tasks are numbers in words here, so that nothing is quoted.
            prop_assert_eq!(line, cells.join(","));
        }
    }
}
