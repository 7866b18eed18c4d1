//! Writing a recording.

use crate::event::Record;
use crate::header::Header;
use std::io::{self, Write};

/// Writes a recording: the header at once, then what it is given.
#[derive(Debug)]
pub struct Writer<W> {
    sink: W,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// The sink's.
    pub fn new(mut sink: W, header: &Header) -> io::Result<Self> {
        writeln!(sink, "{header}")?;
        Ok(Self { sink })
    }

    /// Writes a record in the form of ftrace. Its time stamp keeps the
    /// microseconds.
    ///
    /// # Errors
    /// The sink's.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        writeln!(self.sink, "{record}")
    }

    /// Passes a line through as ftrace printed it, with or without its end.
    ///
    /// # Errors
    /// The sink's.
    pub fn raw_line(&mut self, line: &[u8]) -> io::Result<()> {
        self.sink.write_all(line)?;
        if line.last() != Some(&b'\n') {
            self.sink.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Notes records that were lost, such as the overruns that a CPU's `stats`
    /// show after a recording; None: an unknown number.
    ///
    /// # Errors
    /// The sink's.
    pub fn lost(&mut self, cpu: u32, events: Option<u64>) -> io::Result<()> {
        self.record(&Record::lost(cpu, events))
    }

    /// Flushes and returns the sink.
    ///
    /// # Errors
    /// The sink's.
    pub fn finish(mut self) -> io::Result<W> {
        self.sink.flush()?;
        Ok(self.sink)
    }
}
