//! Recordings, read whole for the verbs that look at them.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use luc_trace::Trace;

use crate::Context;
use crate::exit::Failure;

/// A recording's file, or standard input for `-`.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path);
    let file = file.map_err(|error| unreadable(path, crate::cmd::plain(&error)))?;
    Ok(Box::new(BufReader::new(file)))
}

/// Why a recording is of no use.
pub fn unreadable(path: &Path, why: String) -> Failure {
    Failure::Trace {
        what: path.display().to_string(),
        why,
    }
}

/// Reads a recording, or standard input for `-`, as far as it can be read; says
/// what is missing.
pub fn recording(path: &Path, context: &mut Context) -> Result<Trace, Failure> {
    let shown = path.display();
    let unreadable = |why: String| unreadable(path, why);
    let source = open(path)?;
    let trace = Trace::read(source).map_err(|error| unreadable(error.to_string()))?;
    let empty = trace.spans.is_empty() && trace.lines.is_empty();
    match (&trace.damage, empty) {
        (Some(damage), true) => return Err(unreadable(damage.clone())),
        (None, true) => {
            return Err(unreadable(
                "holds no span and no decision; was it made by `luc trace record`?".into(),
            ));
        }
        (Some(damage), false) => {
            writeln!(
                context.err,
                "luc: note: {shown} is read up to its damage: {damage}"
            )?;
        }
        (None, false) => {}
    }
    let clock = trace.header.pairs.get("clock");
    if let Some(clock) = clock.filter(|clock| *clock != "monotonic") {
        writeln!(
            context.err,
            "luc: note: {shown} has times of the clock '{clock}': spans and decisions may not fit together, nor \
             times with those of other recordings"
        )?;
    }
    let lost = trace.spans_lost.saturating_add(trace.lines_lost.events);
    if lost > 0 {
        writeln!(
            context.err,
            "luc: note: {lost} records of {shown} were lost while it was made; sums are lower bounds"
        )?;
    }
    Ok(trace)
}
