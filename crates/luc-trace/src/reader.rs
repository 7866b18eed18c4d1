//! Reading a recording line by line.

use crate::block::MetadataBlock;
use crate::entry::Entry;
use crate::error::TraceError;
use crate::event::Event;
use crate::header::{Header, unescape};
use crate::island;
use crate::parse::parse_line;
use crate::span::{SPAN_BYTES, Span};
use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

/// Length of the longest accepted line; a decision takes about 1500 bytes.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Records of tracepoints that the kernel dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Number of places where records are missing.
    pub places: u64,
    /// Number of missing records, as far as the kernel knew.
    pub events: u64,
}

/// Iterator over the entries of a recording, in their order. A line that cannot be parsed yields an
/// error, and reading can continue after it. The end of a damaged block of spans is unknown, so
/// reading stops there.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    line_number: u64,
    header: Option<Header>,
    /// The first line, if it was not a header.
    pending: Option<String>,
    /// Spans of the current block that were not returned yet.
    spans: VecDeque<Span>,
    losses: Losses,
    spans_lost: u64,
    ended: bool,
    failed: bool,
}

impl<R: BufRead> Reader<R> {
    /// Creates a reader and reads the first line. Plain `trace_pipe` output has no header.
    ///
    /// # Errors
    /// The source fails, or the header has an unknown version.
    pub fn new(source: R) -> Result<Self, TraceError> {
        let mut reader = Self {
            source,
            line_number: 0,
            header: None,
            pending: None,
            spans: VecDeque::new(),
            losses: Losses::default(),
            spans_lost: 0,
            ended: false,
            failed: false,
        };
        // A first line that is too long is not a header; its error is returned here.
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

    /// Records lost up to here; each place was also returned as an [`Event::Lost`].
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Number of spans that the tracer lost, up to here.
    pub fn spans_lost(&self) -> u64 {
        self.spans_lost
    }

    /// Tells whether the end was read. A recording of format 2 without an end was cut off.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Reads the next line without its newline; `None` after the last.
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
        // Task names may contain any bytes.
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, TraceError> {
        loop {
            if let Some(span) = self.spans.pop_front() {
                return Ok(Some(Entry::Span(span)));
            }
            let line = match self.pending.take() {
                Some(line) => line,
                None => match self.next_line()? {
                    Some(line) => line,
                    None => return Ok(None),
                },
            };
            if line.starts_with(island::SPANS) {
                self.read_spans(&line)?;
            } else if let Some(count) = line.strip_prefix(island::LOST) {
                let lost = count.parse().map_err(|_| self.senseless(&line))?;
                self.spans_lost = self.spans_lost.saturating_add(lost);
                return Ok(Some(Entry::SpansLost(lost)));
            } else if let Some(found) = line.strip_prefix(island::CGROUP) {
                return cgroup(found).ok_or_else(|| self.senseless(&line)).map(Some);
            } else if let Some(found) = line.strip_prefix(island::FILE) {
                return file(found).ok_or_else(|| self.senseless(&line)).map(Some);
            } else if let Some(found) = line.strip_prefix(island::BLOCK) {
                return block(found).ok_or_else(|| self.senseless(&line)).map(Some);
            } else if line == island::END {
                self.ended = true;
                return Ok(Some(Entry::End));
            } else if let Some(record) = parse_line(&line, self.line_number)? {
                if let Event::Lost { events } = &record.event {
                    self.losses.places += 1;
                    self.losses.events = self.losses.events.saturating_add(events.unwrap_or(0));
                }
                return Ok(Some(Entry::Line(record)));
            }
        }
    }

    fn senseless(&self, line: &str) -> TraceError {
        let shown: String = line.chars().take(40).collect();
        TraceError::Syntax {
            line: self.line_number,
            column: 1,
            what: format!("'{shown}' cannot be parsed"),
        }
    }

    /// Reads the block that this line announces.
    fn read_spans(&mut self, announcement: &str) -> Result<(), TraceError> {
        let Some((spans, crc)) = island::announced(announcement) else {
            self.failed = true;
            return Err(self.senseless(announcement));
        };
        let line = self.line_number;
        let damaged = |what| TraceError::Damaged { line, spans, what };
        let mut bytes = vec![0; spans * SPAN_BYTES + 1];
        if let Err(source) = self.source.read_exact(&mut bytes) {
            self.failed = true;
            return Err(match source.kind() {
                io::ErrorKind::UnexpectedEof => damaged("the recording ends within"),
                _ => TraceError::Io { line, source },
            });
        }
        let (records, newline) = bytes.split_at(spans * SPAN_BYTES);
        if crc32fast::hash(records) != crc || newline != b"\n" {
            self.failed = true;
            return Err(damaged("its checksum is wrong"));
        }
        let (records, _) = records.as_chunks::<SPAN_BYTES>();
        // Later versions may have more kinds of spans.
        self.spans = records.iter().filter_map(Span::from_bytes).collect();
        Ok(())
    }
}

/// Parses `4711 /system.slice/mailer.service`, with the path as one word.
fn cgroup(text: &str) -> Option<Entry> {
    let (id, path) = text.split_once(' ')?;
    let id = id.parse().ok()?;
    let path = unescape(path);
    Some(Entry::Cgroup { id, path })
}

/// Parses `254:16 4711 1000000 /srv/data/log`, with the path as one word.
fn file(text: &str) -> Option<Entry> {
    let mut words = text.splitn(4, ' ');
    Some(Entry::File {
        dev: words.next()?.parse().ok()?,
        inode: words.next()?.parse().ok()?,
        begin_ns: words.next()?.parse().ok()?,
        path: unescape(words.next()?),
    })
}

/// Parses `254:16 1057 inode-table 129 16`.
fn block(text: &str) -> Option<Entry> {
    let mut words = text.splitn(3, ' ');
    Some(Entry::Block {
        dev: words.next()?.parse().ok()?,
        number: words.next()?.parse().ok()?,
        block: MetadataBlock::parse(words.next()?)?,
    })
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Entry, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.ended {
            return None;
        }
        let next = self.next_entry().transpose();
        // A source may fail forever.
        self.failed |= matches!(next, Some(Err(TraceError::Io { .. })));
        next
    }
}
