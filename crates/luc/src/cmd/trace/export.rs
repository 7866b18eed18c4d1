//! `luc trace export`

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::ValueHint;
use luc_trace::export;

use super::failed;
use super::read::{note_unseen, recording};
use crate::Context;
use crate::exit::Failure;

/// A format of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Timeline for ui.perfetto.dev and other viewers of trace events
    Perfetto,
    /// Table of spans, as text
    Csv,
}

/// Arguments of `luc trace export`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A recording of `luc trace record`, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The format
    #[arg(long, value_enum)]
    format: Format,
    /// Where to put it [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: &Args, context: &mut Context) -> Result<(), Failure> {
    let trace = recording(&args.file, context)?;
    note_unseen(&trace, &args.file, context)?;
    let write = |sink: &mut dyn Write| -> io::Result<()> {
        match args.format {
            Format::Perfetto => export::perfetto(&trace, sink)?,
            Format::Csv => export::csv(&trace, sink)?,
        }
        sink.flush()
    };
    let Some(path) = &args.output else {
        return Ok(write(context.out)?);
    };
    let shown = path.display().to_string();
    let file = File::create(path).map_err(|error| failed(&shown, &error))?;
    write(&mut BufWriter::new(file)).map_err(|error| failed(&shown, &error))
}
