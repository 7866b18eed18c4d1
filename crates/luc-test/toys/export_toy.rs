//! How many spans there are.

use crate::trace::Trace;
use std::io::{self, Write};

/// Writes that number.
///
/// # Errors
/// The sink's.
pub fn toy(trace: &Trace, sink: &mut dyn Write) -> io::Result<()> {
    writeln!(sink, "{} spans", trace.spans.len())
}
