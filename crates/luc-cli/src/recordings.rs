//! Reads whole recordings for the verbs that analyse them.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use luc_trace::{Sight, Trace};

use crate::Context;
use crate::Failure;
use crate::progress::Bar;
use crate::units::counted;

pub fn open(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path);
    let file = file.map_err(|error| unreadable(path, luc_host::plain(&error)))?;
    let bytes = file.metadata()?.len();
    let what = format!("reading {}", path.display());
    let file = Bar::reading(&what, bytes, file);
    Ok(Box::new(BufReader::new(file)))
}

/// The failure of an unusable recording.
pub fn unreadable(path: &Path, why: String) -> Failure {
    Failure::trace(path.display(), why)
}

/// Parses how many seconds at the end of a recording to look at.
pub fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err("must be more than 0".to_owned())
    }
}

/// Keeps only what began in the last `seconds`. Fails if nothing did.
pub fn keep_last(trace: &mut Trace, seconds: f64, path: &Path) -> Result<(), Failure> {
    trace.keep_last(seconds);
    if trace.spans.is_empty() && trace.lines.is_empty() {
        let why = format!("no event began in its last {seconds} s; give more seconds");
        return Err(unreadable(path, why));
    }
    Ok(())
}

/// Notes what a recording could not see.
pub fn note_unseen(trace: &Trace, path: &Path, context: &mut Context) -> io::Result<()> {
    if trace.unseen.is_empty() {
        return Ok(());
    }
    let (shown, texts) = (path.display(), Sight::texts(&trace.unseen));
    context.note(format_args!(
        "unknown, because not recorded in {shown}: {texts}"
    ))
}

/// Reads a recording, or standard input for `-`, as far as it can be read, and
/// notes what is missing.
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
            context.note(format_args!(
                "{shown} is damaged and was read only up to the damage: {damage}"
            ))?;
        }
        (None, false) => {}
    }
    let clock = trace.header.pairs.get("clock");
    if let Some(clock) = clock.filter(|clock| *clock != "monotonic") {
        context.note(format_args!(
            "{shown} was recorded with the clock '{clock}': its spans, its decisions and other \
             recordings may be on different time scales"
        ))?;
    }
    let lost = trace.spans_lost.saturating_add(trace.lines_lost.events);
    if lost > 0 {
        context.note(format_args!(
            "when {shown} was recorded, {} lost; sums are lower bounds",
            counted(lost, "record was", "records were")
        ))?;
    }
    Ok(trace)
}
