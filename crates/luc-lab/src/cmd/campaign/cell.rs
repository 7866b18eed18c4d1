//! `luc-lab campaign cell`

use std::path::PathBuf;

use luc_campaign::places::host::put_back_at_once;
use luc_campaign::{Cell, Store, cell_of_key, keys, measure};

use super::chosen::{Device, setup};
use crate::failure::OrFailure as _;
use luc_cli::{Code, Context, Failure, Interrupt, Verb};

/// Measure one cell
///
/// The key holds everything that determines the result. Writes one file atomically; its name comes
/// from the key and the versions of the software. Does nothing if the file exists.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab campaign cell \"$KEY\" --out out/mine\n\
    \x20 luc-lab campaign cell --from keys --nth 3 --out out/mine")]
pub struct Args {
    /// Key of the cell, a line of JSON
    #[arg(
        value_name = "KEY",
        required_unless_present = "from",
        conflicts_with = "from"
    )]
    key: Option<String>,
    /// File of keys, one per line
    #[arg(long, value_name = "FILE", requires = "nth", value_hint = clap::ValueHint::FilePath)]
    from: Option<PathBuf>,
    /// Line number of the key in that file, from 1
    #[arg(long, value_name = "N", requires = "from", value_parser = clap::value_parser!(u32).range(1..))]
    nth: Option<u32>,
    /// Directory for the results; created if absent
    #[arg(long, short = 'o', value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: PathBuf,
    /// Directory of the module's sources
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    #[command(flatten)]
    device: Device,
}

impl Args {
    fn cell(&self) -> Result<Cell, Failure> {
        // The parser accepts either a key, or a file and a number.
        Ok(match (&self.from, self.nth) {
            (Some(file), Some(number)) => keys::nth(file, number).or_failure()?,
            _ => cell_of_key(self.key.as_deref().unwrap_or_default()).or_failure()?,
        })
    }
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let cell = self.cell()?;
        let place = [cell.place.as_str()];
        let (source, device) = (self.source.as_deref(), Some(&self.device));
        let setup = setup(place, source, &self.out, device, context)?;
        let store = Store::open(&self.out).or_failure()?;
        if measure::measure_cell(&cell, &store, &setup, &mut luc_vm::Silent).or_failure()? {
            return Ok(());
        }
        let line = format!("the cell failed; see {}", self.out.join("failed").display());
        Err(Failure::Coded(Code::Lab, line))
    }

    fn interrupt(&self) -> Interrupt {
        Interrupt::AsksThen(put_back_at_once)
    }
}
