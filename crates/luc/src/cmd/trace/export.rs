//! `luc trace export`

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::ValueHint;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use luc_model::blame;
use luc_trace::export::{FORMATS, Format};

use super::failed;
use luc_cli::recordings::{note_unseen, recording};
use luc_cli::{Context, Failure, Verb};

/// Convert a recording to another program's format
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc trace export --format perfetto -o run.json run.luc\n\
    \x20 luc trace export --format csv run.luc")]
pub struct Args {
    /// A recording of `luc trace record`, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Format to convert to
    #[arg(long, value_parser = formats())]
    format: Format,
    /// File to write to [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

fn formats() -> impl TypedValueParser<Value = Format> {
    let value = |format: &Format| PossibleValue::new(format.name).help(format.help);
    PossibleValuesParser::new(FORMATS.iter().map(value)).map(|name| {
        let named = FORMATS.iter().find(|format| format.name == name);
        *named.expect("the parser knows these names alone")
    })
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let trace = recording(&self.file, context)?;
        note_unseen(&trace, &self.file, context)?;
        let askers = blame::askers_of(&trace);
        let write = |sink: &mut dyn Write| -> io::Result<()> {
            (self.format.write)(&trace, &askers, sink)?;
            sink.flush()
        };
        let Some(path) = &self.output else {
            return Ok(write(context.out)?);
        };
        let shown = path.display().to_string();
        let file = File::create(path).map_err(|error| failed(&shown, &error))?;
        write(&mut BufWriter::new(file)).map_err(|error| failed(&shown, &error))
    }
}
