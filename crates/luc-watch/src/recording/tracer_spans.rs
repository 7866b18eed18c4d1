//! The tracer as a source of a recording.

use std::io;

use luc_bpf::{Means, Tracer};
use luc_trace::Unseen;

use super::writer::RecordingWriter;
use crate::LossCauses;

pub struct TracerSpans {
    tracer: Tracer,
    /// Whether the user asked for kprobes.
    chosen: bool,
}

impl TracerSpans {
    pub fn new(tracer: Tracer, chosen: bool) -> Self {
        Self { tracer, chosen }
    }

    /// Kinds of events that the tracer cannot see, for the header.
    pub fn unseen(&self) -> Unseen {
        self.tracer.attached().unseen()
    }

    /// Means that the tracer uses, for the header.
    pub fn means(&self) -> String {
        let attached = self.tracer.attached();
        let mut means: Vec<_> = attached.hooks.iter().map(|(_, means)| *means).collect();
        means.extend(attached.sites.iter().map(|_| Means::Kprobe));
        means.sort_unstable();
        means.dedup();
        let names: Vec<_> = means.iter().map(ToString::to_string).collect();
        names.join(",")
    }

    /// Why the tracer cannot see them.
    pub fn unseen_why(&self) -> Option<String> {
        let notes = self.tracer.attached().notes();
        (!notes.is_empty()).then(|| notes.join("; "))
    }

    /// Writes the available spans to the recording.
    pub fn drain(&mut self, writer: &mut RecordingWriter) -> io::Result<()> {
        let mut result = Ok(());
        self.tracer.poll(|spans| {
            if result.is_ok() {
                result = writer.spans(spans);
            }
        });
        result
    }

    /// Detaches the tracer, and writes the rest and the losses to the recording.
    pub fn finish(mut self, writer: &mut RecordingWriter) -> io::Result<()> {
        self.tracer.detach();
        self.drain(writer)?;
        let lost = self.tracer.lost().map_err(io::Error::other)?;
        writer.spans_lost(lost, LossCauses::of(&self.tracer, self.chosen))
    }
}
