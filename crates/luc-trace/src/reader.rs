//! Reading a recording line by line.

use crate::event::{Event, Record};
use crate::header::{Header, VERSION};
use crate::parse::parse_line;
use std::io::{self, BufRead, Read};
use thiserror::Error;

/// Longest line that is read; a decision takes about 1500 bytes.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// Why a recording cannot be read on.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The source failed.
    #[error("reading line {line} of the recording: {source}")]
    Io {
        /// Number of the line, from 1.
        line: u64,
        /// What the system said.
        source: io::Error,
    },
    /// A line was not understood.
    #[error("line {line}, column {column}: {what}")]
    Syntax {
        /// Number of the line, from 1.
        line: u64,
        /// Byte within it, from 1.
        column: usize,
        /// What is wrong there.
        what: String,
    },
    /// The recording is of a version that this crate does not know.
    #[error(
        "the recording has format '{found}', this luc reads format {VERSION}; use the luc that recorded it"
    )]
    Version {
        /// Version of the recording.
        found: String,
    },
}

/// Records that the kernel dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Places where records are missing.
    pub places: u64,
    /// How many are missing, as far as the kernel knew.
    pub events: u64,
}

/// The records of a recording, in the order of its lines. A line that is not
/// understood yields an error, and reading can go on behind it.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    line_number: u64,
    header: Option<Header>,
    /// The first line, if it was no header.
    pending: Option<String>,
    losses: Losses,
    skipped: u64,
    failed: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads the first line. Without a header, as in plain `trace_pipe` output,
    /// there is just none.
    ///
    /// # Errors
    /// The source fails, or the header is of another version.
    pub fn new(source: R) -> Result<Self, TraceError> {
        let mut reader = Self {
            source,
            line_number: 0,
            header: None,
            pending: None,
            losses: Losses::default(),
            skipped: 0,
            failed: false,
        };
        // A first line that is too long is no header; its error comes up here.
        if let Some(line) = reader.next_line()? {
            if Header::starts(&line) {
                let header = Header::parse(&line).map_err(|found| TraceError::Version { found })?;
                reader.header = Some(header);
            } else {
                reader.pending = Some(line);
            }
        }
        Ok(reader)
    }

    /// The header, if the recording has one.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Records lost up to here; each place was also an [`Event::Lost`].
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Lines skipped up to here: comments, empty lines, tracepoints of others.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The next line without its end, None behind the last.
    fn next_line(&mut self) -> Result<Option<String>, TraceError> {
        let mut bytes = Vec::new();
        let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        self.line_number += 1;
        let line = self.line_number;
        let io = |source| TraceError::Io { line, source };
        self.source
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut bytes)
            .map_err(io)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        } else if bytes.len() >= LINE_BYTES_MAX {
            self.source.skip_until(b'\n').map_err(io)?;
            return Err(TraceError::Syntax {
                line,
                column: LINE_BYTES_MAX,
                what: format!("the line is longer than {LINE_BYTES_MAX} bytes"),
            });
        }
        // Names of tasks are bytes of any kind.
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            let line = match self.pending.take() {
                Some(line) => line,
                None => match self.next_line()? {
                    Some(line) => line,
                    None => return Ok(None),
                },
            };
            let Some(record) = parse_line(&line, self.line_number)? else {
                self.skipped += 1;
                continue;
            };
            if let Event::Lost { events } = &record.event {
                self.losses.places += 1;
                self.losses.events = self.losses.events.saturating_add(events.unwrap_or(0));
            }
            return Ok(Some(record));
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.next_record().transpose();
        // A source that failed once may fail the same way for ever.
        self.failed = matches!(next, Some(Err(TraceError::Io { .. })));
        next
    }
}
