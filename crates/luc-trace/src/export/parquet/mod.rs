//! A table of spans for data frames: Apache Parquet, as pandas, Polars, R, `DuckDB`
//! and Spark read it.
//!
//! Of the format this uses what every reader has known from its beginning: one
//! page a column and row group, plain values, gzip. It is written here and not by a
//! library because the one there is, Apache Arrow's, is under a licence that may
//! not be joined with GPL-2.0-only; tests read with it what is written here.

mod page;
mod thrift;

use super::columns::{COLUMNS, Column, Type};
use crate::span::Span;
use crate::trace::Trace;
use page::{GZIP, PLAIN, RUNS, page};
use std::io::{self, Write};
use thrift::Struct;

/// What a file begins and ends with.
const MAGIC: &[u8; 4] = b"PAR1";
/// Spans of a row group: some MB unpacked, which is what readers handle at a time.
const GROUP_SPANS: usize = 1 << 17;

// Numbers of the format for types, as they are stored.
const BOOLEAN: i32 = 0;
const INT32: i32 = 1;
const INT64: i32 = 2;
const BYTE_ARRAY: i32 = 6;

/// Where a column of a row group lies, and how long it is there.
struct Chunk {
    column: &'static Column,
    rows: i64,
    at: i64,
    stored_bytes: i64,
    plain_bytes: i64,
}

/// A row group.
struct Group {
    rows: i64,
    chunks: Vec<Chunk>,
}

/// Writes a row for each span, by begin. The columns are those of [`super::csv`]; fields
/// that a kind of span does not have are null. Where the recording comes from, and what
/// it lacks, stands in the file's own pairs of keys and values.
///
/// # Errors
/// The sink's.
pub fn parquet(trace: &Trace, sink: &mut dyn Write) -> io::Result<()> {
    sink.write_all(MAGIC)?;
    let mut at = MAGIC.len();
    let mut groups = Vec::new();
    for spans in trace.spans.chunks(GROUP_SPANS) {
        groups.push(group(trace, spans, &mut at, sink)?);
    }
    let footer = footer(trace, &groups)?;
    sink.write_all(&footer)?;
    let footer_bytes = u32::try_from(footer.len()).map_err(io::Error::other)?;
    sink.write_all(&footer_bytes.to_le_bytes())?;
    sink.write_all(MAGIC)
}

fn group(trace: &Trace, spans: &[Span], at: &mut usize, sink: &mut dyn Write) -> io::Result<Group> {
    let rows = signed(spans.len())?;
    let mut chunks = Vec::new();
    for column in &COLUMNS {
        let page = page(trace, column, spans)?;
        sink.write_all(&page.bytes)?;
        chunks.push(Chunk {
            column,
            rows,
            at: signed(*at)?,
            stored_bytes: signed(page.bytes.len())?,
            plain_bytes: signed(page.plain_bytes)?,
        });
        *at += page.bytes.len();
    }
    Ok(Group { rows, chunks })
}

fn signed(number: usize) -> io::Result<i64> {
    i64::try_from(number).map_err(io::Error::other)
}

/// The pairs: the header's, and what is missing.
fn pairs(trace: &Trace) -> Vec<(String, String)> {
    let header = trace.header.pairs.iter();
    let mut pairs: Vec<_> = header
        .map(|(key, value)| (format!("luc.header.{key}"), value.clone()))
        .collect();
    let mut pair = |key: &str, value: String| pairs.push((format!("luc.{key}"), value));
    pair("spans_lost", trace.spans_lost.to_string());
    if let Some(damage) = &trace.damage {
        pair("damage", damage.clone());
    }
    pairs
}

fn footer(trace: &Trace, groups: &[Group]) -> io::Result<Vec<u8>> {
    let rows = signed(trace.spans.len())?;
    let (columns, pairs) = (COLUMNS.iter().map(Some), pairs(trace));
    // The root stands before its columns.
    let schema: Vec<Option<&Column>> = std::iter::once(None).chain(columns).collect();
    Ok(thrift::message(|file| {
        file.i32(1, 1)
            .structs(2, &schema, |element, column| describe(element, *column))
            .i64(3, rows)
            .structs(4, groups, row_group)
            .structs(5, &pairs, |pair, (key, value)| {
                pair.text(1, key).text(2, value);
            })
            .text(6, concat!("luc version ", env!("CARGO_PKG_VERSION")));
    }))
}

fn row_group(fields: &mut Struct<'_>, group: &Group) {
    fields
        .structs(1, &group.chunks, chunk)
        .i64(2, group.chunks.iter().map(|chunk| chunk.plain_bytes).sum())
        .i64(3, group.rows);
}

fn chunk(fields: &mut Struct<'_>, chunk: &Chunk) {
    fields.i64(2, chunk.at).nested(3, |data| {
        data.i32(1, stored(chunk.column.of_type))
            .numbers(2, &[PLAIN, RUNS])
            .texts(3, &[chunk.column.name])
            .i32(4, GZIP)
            .i64(5, chunk.rows)
            .i64(6, chunk.plain_bytes)
            .i64(7, chunk.stored_bytes)
            .i64(9, chunk.at);
    });
}

fn stored(of_type: Type) -> i32 {
    match of_type {
        Type::Text => BYTE_ARRAY,
        Type::U64 | Type::I64 => INT64,
        Type::U32 | Type::I32 => INT32,
        Type::Flag => BOOLEAN,
    }
}

/// A row of the schema; None is the root. What a stored type means stands there in an older and
/// a newer way, for readers of either.
fn describe(fields: &mut Struct<'_>, column: Option<&Column>) {
    let Some(column) = column else {
        let children = i32::try_from(COLUMNS.len()).unwrap_or(i32::MAX);
        fields.text(4, "spans").i32(5, children);
        return;
    };
    fields
        .i32(1, stored(column.of_type))
        .i32(3, 1) // may be null
        .text(4, column.name);
    let unsigned = |fields: &mut Struct<'_>, older: i32, bits: u8| {
        fields.i32(6, older).nested(10, |meaning| {
            meaning.nested(10, |integer| {
                integer.byte(1, bits).bool(2, false);
            });
        });
    };
    match column.of_type {
        Type::Text => {
            fields.i32(6, 0).nested(10, |meaning| {
                meaning.nested(1, |_| {});
            });
        }
        Type::U64 => unsigned(fields, 14, 64),
        Type::U32 => unsigned(fields, 13, 32),
        // These mean what they are stored as.
        Type::I64 | Type::I32 | Type::Flag => {}
    }
}
