//! The tracer as a source of a recording.

use std::io;

use luc_bpf::{Means, Tracer};

use super::tape::Tape;

/// The tracer, being read.
pub struct Spans(pub Tracer);

impl Spans {
    /// Which means it uses, for the header.
    pub fn means(&self) -> String {
        let attached = self.0.attached();
        let mut means: Vec<_> = attached.hooks.iter().map(|(_, means)| *means).collect();
        means.extend(attached.sites.iter().map(|_| Means::Kprobe));
        means.sort_unstable();
        means.dedup();
        let names: Vec<_> = means.iter().map(ToString::to_string).collect();
        names.join(",")
    }

    /// Puts on the tape what is there.
    pub fn drain(&mut self, tape: &mut Tape) -> io::Result<()> {
        let mut result = Ok(());
        let polled = self.0.poll(|span| {
            if result.is_ok() {
                result = tape.span(span);
            }
        });
        polled.map_err(io::Error::other)?;
        result
    }

    /// Detaches and takes the rest and what was lost.
    pub fn finish(mut self, tape: &mut Tape) -> io::Result<()> {
        self.0.detach();
        self.drain(tape)?;
        tape.spans_lost(self.0.lost().map_err(io::Error::other)?)
    }
}
