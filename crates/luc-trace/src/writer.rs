//! Writing a recording.

use crate::block::MetadataBlock;
use crate::event::Record;
use crate::header::{Header, escaped};
use crate::island::{self, SPANS_MAX};
use crate::span::{SPAN_BYTES, Span};
use luc_control::Dev;
use std::io::{self, Write};

/// Writes a recording. The writer gathers spans into blocks, and lines do not wait for them: lines
/// stay in order, and so do spans, but not relative to each other. All errors are the sink's.
#[derive(Debug)]
pub struct Writer<W> {
    sink: W,
    spans: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Creates a writer and writes the header.
    pub fn new(mut sink: W, header: &Header) -> io::Result<Self> {
        writeln!(sink, "{header}")?;
        Ok(Self {
            sink,
            spans: Vec::new(),
        })
    }

    /// Writes a record as ftrace does, with microseconds.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        writeln!(self.sink, "{record}")
    }

    /// Writes a line that ftrace printed, with or without its newline.
    pub fn raw_line(&mut self, line: &[u8]) -> io::Result<()> {
        self.sink.write_all(line)?;
        if line.last() != Some(&b'\n') {
            self.sink.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Notes lost records of tracepoints; `None` if their number is unknown.
    pub fn lost(&mut self, cpu: u32, events: Option<u64>) -> io::Result<()> {
        self.record(&Record::lost(cpu, events))
    }

    pub fn span(&mut self, span: &Span) -> io::Result<()> {
        self.spans.extend_from_slice(&span.to_bytes());
        if self.spans.len() >= SPANS_MAX * SPAN_BYTES {
            self.flush_spans()?;
        }
        Ok(())
    }

    /// Writes spans as the tracer delivered them, without a copy.
    pub fn raw_spans(&mut self, spans: &[[u8; SPAN_BYTES]]) -> io::Result<()> {
        self.flush_spans()?;
        for some in spans.chunks(SPANS_MAX) {
            island(&mut self.sink, some.as_flattened())?;
        }
        Ok(())
    }

    pub fn spans_lost(&mut self, spans: u64) -> io::Result<()> {
        self.flush_spans()?;
        writeln!(self.sink, "{}{spans}", island::LOST)
    }

    /// Notes the path of the control group with this number.
    pub fn cgroup(&mut self, id: u64, path: &str) -> io::Result<()> {
        self.flush_spans()?;
        writeln!(self.sink, "{}{id} {}", island::CGROUP, escaped(path))
    }

    /// Notes the path of a synced file.
    pub fn file(&mut self, sync: &Span, path: &str) -> io::Result<()> {
        self.flush_spans()?;
        let (dev, inode, begin_ns) = (sync.dev, sync.object, sync.begin_ns);
        let path = escaped(path);
        writeln!(self.sink, "{}{dev} {inode} {begin_ns} {path}", island::FILE)
    }

    /// Notes what a block of metadata holds.
    pub fn block(&mut self, dev: Dev, number: u64, block: &MetadataBlock) -> io::Result<()> {
        self.flush_spans()?;
        writeln!(self.sink, "{}{dev} {number} {block}", island::BLOCK)
    }

    /// Writes out the gathered spans, so that a reader finds them even if nothing follows.
    pub fn flush(&mut self) -> io::Result<()> {
        self.flush_spans()?;
        self.sink.flush()
    }

    fn flush_spans(&mut self) -> io::Result<()> {
        if self.spans.is_empty() {
            return Ok(());
        }
        island(&mut self.sink, &self.spans)?;
        self.spans.clear();
        Ok(())
    }

    /// Writes the end of the recording, flushes the sink and returns it.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush_spans()?;
        writeln!(self.sink, "{}", island::END)?;
        self.sink.flush()?;
        Ok(self.sink)
    }
}

fn island(sink: &mut impl Write, records: &[u8]) -> io::Result<()> {
    sink.write_all(island::announce(records).as_bytes())?;
    sink.write_all(records)?;
    sink.write_all(b"\n")
}
