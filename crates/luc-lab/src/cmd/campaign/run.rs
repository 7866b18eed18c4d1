//! `luc-lab campaign run`

use std::path::PathBuf;

use luc_campaign::backends::local::Local;
use luc_campaign::backends::slurm::Slurm;
use luc_campaign::backends::{Backend, Engine, Wishes};
use luc_campaign::places::host::put_back_at_once;
use luc_campaign::{Store, run};

use super::chosen::{Chosen, Device, places, setup};
use super::status;
use crate::bar::Bar;
use crate::failure::OrFailure as _;
use luc_cli::units::counted;
use luc_cli::{Code, Context, Failure, Interrupt, Verb};

/// Measure the missing cells and render the report
///
/// A failed cell does not stop the others. Its log is kept, and later runs skip it unless --again
/// is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab campaign run bench\n\
    \x20 luc-lab campaign run mine.toml --out out/mine --jobs 2\n\
    \x20 luc-lab campaign run metal.toml --device /dev/sdx --erase\n\
    \x20 luc-lab campaign run mine.toml --out /shared/mine --on slurm --sbatch-arg=--time=90")]
pub struct Args {
    #[command(flatten)]
    chosen: Chosen,
    /// Cells to measure at the same time [default: as many as processors and memory allow]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Retry failed cells
    #[arg(long)]
    again: bool,
    /// Directory of the module's sources
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    #[command(flatten)]
    device: Device,
    /// Place where cells run
    #[arg(long, value_name = "BACK-END", value_enum, default_value_t = On::Local)]
    on: On,
    #[command(flatten)]
    engine: Engine,
}

/// A back-end.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum On {
    /// This machine
    Local,
    /// Slurm jobs; all nodes must share the file system of the results
    Slurm,
}

/// Fails if a cell failed.
pub fn all_measured(ended: &run::Ended, store: &Store) -> Result<(), Failure> {
    if ended.wave.failed == 0 {
        return Ok(());
    }
    let failed = counted(ended.wave.failed as u64, "cell", "cells");
    let folder = store.dir().join("failed");
    let line = format!("{failed} failed; see {}", folder.display());
    Err(Failure::Coded(Code::Lab, line))
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let campaign = self.chosen.campaign()?;
        let wishes = Wishes {
            jobs: self.jobs,
            engine: self.engine.clone(),
        };
        let backend: Box<dyn Backend> = match self.on {
            On::Local => Box::new(Local::new(&wishes).or_failure()?),
            On::Slurm => Box::new(Slurm(wishes)),
        };
        let out = self.chosen.out();
        let (source, device) = (self.source.as_deref(), Some(&self.device));
        let setup = setup(places(&campaign), source, &out, device, context)?;
        let store = Store::open(&out).or_failure()?;
        let bar = Bar::new();
        let ended =
            run::run(&campaign, &store, &*backend, &setup, self.again, &bar).or_failure()?;
        drop(bar);
        let tally = status::render(&campaign, &store, Some(&setup), context)?;
        all_measured(&ended, &store)?;
        status::missed(tally)
    }

    /// An interrupt abandons the cells under way and keeps all measured ones.
    fn interrupt(&self) -> Interrupt {
        Interrupt::AsksThen(put_back_at_once)
    }
}
