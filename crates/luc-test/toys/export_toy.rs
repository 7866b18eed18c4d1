//! The number of spans.

use crate::export::Askers;
use crate::trace::Trace;
use std::io::{self, Write};

/// Writes the number of spans.
///
/// # Errors
/// Those of the sink.
pub fn toy(trace: &Trace, _: &Askers, sink: &mut dyn Write) -> io::Result<()> {
    writeln!(sink, "{} spans", trace.spans.len())
}
