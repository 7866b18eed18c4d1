//! `luc-lab campaign export`

use std::path::PathBuf;

use luc_campaign::exports::{Export, lines, parallel, snakemake};
use luc_campaign::store::Results;
use luc_campaign::{Store, run};

use super::chosen::{Chosen, places, setup};
use crate::failure::OrFailure as _;
use luc_cli::units::counted;
use luc_cli::{Context, Failure, Verb};

/// Print the missing cells as commands for another program
///
/// Exports the missing cells that are known so far. If confidence intervals are still wide after
/// these, the next export holds more cells. It is empty when the campaign is done.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab campaign export bench --format parallel\n\
    \x20 luc-lab campaign export mine.toml --out out/mine --format snakemake")]
pub struct Args {
    #[command(flatten)]
    chosen: Chosen,
    /// Format of the commands
    #[arg(long, value_enum)]
    format: Format,
    /// Include cells that failed
    #[arg(long)]
    again: bool,
    /// Path of luc-lab for the commands [default: the path of this program]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::ExecutablePath)]
    program: Option<PathBuf>,
    /// Directory of the module's sources
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// One shell command per line and cell: `xargs -d '\n' -n 1 -P 2 sh -c < FILE`
    Lines,
    /// A script for GNU parallel (not the one of moreutils): `sh FILE --jobs 2`
    Parallel,
    /// A Snakefile with one rule per cell: `snakemake -s FILE --cores all --keep-going`
    Snakemake,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let campaign = self.chosen.campaign()?;
        let dir = std::path::absolute(self.chosen.out())?;
        let source = self.source.as_deref();
        let mut setup = setup(places(&campaign), source, &dir, None, context)?;
        // The other program may run in another folder.
        if !setup.source.as_os_str().is_empty() {
            setup.source = std::path::absolute(&setup.source)?;
        }
        let results = if dir.exists() {
            Store::existing(&dir).or_failure()?.read().or_failure()?
        } else {
            Results::default()
        };
        let wave = run::state(&campaign, &results, &setup, |_| !self.again).or_failure()?;
        let program = match &self.program {
            Some(program) => program.clone(),
            None => std::env::current_exe()?,
        };
        let export = Export::new(&campaign, &wave.cells, &setup, &program, &dir).or_failure()?;
        let text = match self.format {
            Format::Lines => lines::text(&export),
            Format::Parallel => parallel::text(&export),
            Format::Snakemake => snakemake::text(&export),
        };
        context.out.write_all(text.or_failure()?.as_bytes())?;
        context.out.flush()?;
        if wave.cells.is_empty() {
            let failed = counted(wave.failed as u64, "cell", "cells");
            writeln!(context.err, "no cell is missing; {failed} failed")?;
        }
        Ok(())
    }
}
