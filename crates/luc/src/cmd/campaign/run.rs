//! `luc campaign run`

use std::path::PathBuf;

use luc_campaign::backends::local::Local;
use luc_campaign::places::host::put_back_at_once;
use luc_campaign::{Store, run};

use super::chosen::{Chosen, Device, places, setup};
use super::status;
use crate::Context;
use crate::exit::{Code, Failure};
use crate::progress::Bar;
use crate::verb::{Interrupt, Verb};

/// Measure what is missing, and render the report
///
/// A cell that fails is kept with its log and stops no other; a later run leaves it alone, unless
/// --again asks for it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc campaign run bench\n\
    \x20 luc campaign run mine.toml --out out/mine --jobs 2\n\
    \x20 luc campaign run metal.toml --device /dev/sdx --erase")]
pub struct Args {
    #[command(flatten)]
    chosen: Chosen,
    /// Cells at the same time [default: as many as processors and memory allow]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Try cells again that failed
    #[arg(long)]
    again: bool,
    /// Directory that holds the sources of the module
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    #[command(flatten)]
    device: Device,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let campaign = self.chosen.campaign()?;
        let out = self.chosen.out();
        let (source, device) = (self.source.as_deref(), Some(&self.device));
        let setup = setup(places(&campaign), source, &out, device, context)?;
        let store = Store::open(&out)?;
        let bar = Bar::new();
        let local = Local { jobs: self.jobs };
        let ended = run::run(&campaign, &store, &local, &setup, self.again, &bar)?;
        drop(bar);
        let tally = status::render(&campaign, &store, Some(&setup), context)?;
        if ended.wave.failed > 0 {
            let line = format!(
                "campaign: {} failed; {} says why",
                crate::units::counted(ended.wave.failed as u64, "cell", "cells"),
                store.dir().join("failed").display()
            );
            return Err(Failure::Coded(Code::Lab, line));
        }
        status::missed(tally)
    }

    /// The cells under way are given up; all that were measured are kept.
    fn interrupt(&self) -> Interrupt {
        Interrupt::AsksThen(put_back_at_once)
    }
}
