//! A recording of `luc trace record` while it is made: its sources and its file.

mod header;
mod module_events;
mod slowest;
mod writer;

use std::io;
use std::time::Duration;

use luc_bpf::Tracer;
use luc_host::{System, watching};

use crate::LossCauses;
pub use header::{header, with_loops};
pub use module_events::ModuleEvents;
pub use writer::{BUFFER_KIB_MAX, Recorded, RecordingWriter};

/// How often the buffers are emptied: often enough to keep them from filling, seldom enough to
/// disturb nothing.
pub const PAUSE: Duration = Duration::from_millis(100);

/// Where a recording comes from.
pub struct Sources {
    pub tracer: Option<Tracer>,
    pub events: Option<ModuleEvents>,
}

impl Sources {
    /// Writes what is available.
    pub fn drain(&mut self, writer: &mut RecordingWriter) -> io::Result<()> {
        if let Some(tracer) = &mut self.tracer {
            spans(tracer, writer)?;
        }
        if let Some(events) = &mut self.events {
            events.lines(|line| writer.line(line))?;
        }
        writer.flush()
    }

    /// Switches the sources off, and writes the rest and the losses. `kprobes` tells whether the
    /// user asked for kprobes.
    pub fn finish(
        self,
        writer: &mut RecordingWriter,
        kprobes: bool,
        system: &dyn System,
    ) -> io::Result<()> {
        if let Some(mut tracer) = self.tracer {
            watching::detach(&mut tracer, system).map_err(io::Error::other)?;
            spans(&mut tracer, writer)?;
            let lost = tracer.lost().map_err(io::Error::other)?;
            writer.spans_lost(lost, LossCauses::from_tracer(&tracer, kprobes))?;
        }
        if let Some(events) = self.events {
            let lost = events.end(|line| writer.line(line))?;
            writer.lines_lost(&lost)?;
        }
        Ok(())
    }
}

/// Writes the available spans.
fn spans(tracer: &mut Tracer, writer: &mut RecordingWriter) -> io::Result<()> {
    let mut result = Ok(());
    tracer.poll(|spans| {
        if result.is_ok() {
            result = writer.spans(spans);
        }
    });
    result
}
