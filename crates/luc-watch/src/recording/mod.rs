//! A recording of `luc trace record` while it is made: its sources and its file.

mod header;
mod module_events;
mod slowest;
mod tracer_spans;
mod writer;

use std::io;
use std::time::Duration;

pub use header::header;
pub use module_events::ModuleEvents;
pub use tracer_spans::TracerSpans;
pub use writer::{BUFFER_KIB_MAX, Recorded, RecordingWriter};

/// How often the buffers are emptied: often enough to keep them from filling, seldom enough to
/// disturb nothing.
pub const PAUSE: Duration = Duration::from_millis(100);

/// Where a recording comes from.
pub struct Sources {
    pub spans: Option<TracerSpans>,
    pub events: Option<ModuleEvents>,
}

impl Sources {
    /// Writes what is available.
    pub fn drain(&mut self, writer: &mut RecordingWriter) -> io::Result<()> {
        if let Some(spans) = &mut self.spans {
            spans.drain(writer)?;
        }
        if let Some(events) = &mut self.events {
            events.lines(|line| writer.line(line))?;
        }
        writer.flush()
    }

    /// Switches the sources off, and writes the rest and the losses.
    pub fn finish(self, writer: &mut RecordingWriter) -> io::Result<()> {
        if let Some(spans) = self.spans {
            spans.finish(writer)?;
        }
        if let Some(events) = self.events {
            let lost = events.end(|line| writer.line(line))?;
            writer.lines_lost(&lost)?;
        }
        Ok(())
    }
}
