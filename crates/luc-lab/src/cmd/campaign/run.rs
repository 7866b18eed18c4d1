//! `luc-lab campaign run`

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use luc_campaign::backends::{self, BackendRow, Engine, Wishes};
use luc_campaign::places::host::put_back_at_once;
use luc_campaign::{Store, run};

use super::chosen::{Chosen, Device, places, setup};
use super::status;
use crate::bar::Bar;
use crate::failure::OrFailure as _;
use luc_cli::Context;
use luc_cli::exit::{Code, Failure};
use luc_cli::verb::{Interrupt, Verb};

/// Measure what is missing, and render the report
///
/// A failed cell is kept with its log and does not stop others; a later run skips it unless --again
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
    /// Directory that holds the sources of the module
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    #[command(flatten)]
    device: Device,
    /// Where cells are measured
    #[arg(long, value_name = "BACK-END", default_value = backends::ALL[0].name, value_parser = rows())]
    on: Choice,
    #[command(flatten)]
    engine: EngineArgs,
}

/// The chosen back-end.
#[derive(Clone, Copy)]
struct Choice(&'static BackendRow);

impl std::fmt::Debug for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name)
    }
}

fn rows() -> impl TypedValueParser<Value = Choice> {
    let value = |row: &BackendRow| PossibleValue::new(row.name).help(row.help);
    PossibleValuesParser::new(backends::ALL.iter().map(value)).map(|name| {
        let named = backends::ALL.iter().find(|row| row.name == name);
        Choice(named.expect("the parser knows these names alone"))
    })
}

/// For a cluster
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "For a cluster")]
struct EngineArgs {
    /// Partition to submit the jobs to
    #[arg(long, value_name = "NAME")]
    partition: Option<String>,
    /// Argument for sbatch; overrides LUC's own; may be repeated
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    sbatch_arg: Vec<String>,
    /// Path of the program on the nodes [default: this one]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::ExecutablePath)]
    program: Option<PathBuf>,
    /// Seconds between two looks at the queue [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    poll_s: Option<u32>,
}

impl EngineArgs {
    /// Returns `None` if no such option was given.
    fn wishes(&self) -> Option<Engine> {
        let is_said = self.partition.is_some()
            || !self.sbatch_arg.is_empty()
            || self.program.is_some()
            || self.poll_s.is_some();
        is_said.then(|| Engine {
            partition: self.partition.clone(),
            submit_args: self.sbatch_arg.clone(),
            program: self.program.clone(),
            poll_s: self.poll_s,
        })
    }
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let campaign = self.chosen.campaign()?;
        let backend = (self.on.0.make)(&Wishes {
            jobs: self.jobs,
            engine: self.engine.wishes(),
        })
        .or_failure()?;
        let out = self.chosen.out();
        let (source, device) = (self.source.as_deref(), Some(&self.device));
        let setup = setup(places(&campaign), source, &out, device, context)?;
        let store = Store::open(&out).or_failure()?;
        let bar = Bar::new();
        let ended =
            run::run(&campaign, &store, &*backend, &setup, self.again, &bar).or_failure()?;
        drop(bar);
        let tally = status::render(&campaign, &store, Some(&setup), context)?;
        if ended.wave.failed > 0 {
            let line = format!(
                "campaign: {} failed; see {}",
                luc_cli::units::counted(ended.wave.failed as u64, "cell", "cells"),
                store.dir().join("failed").display()
            );
            return Err(Failure::Coded(Code::Lab, line));
        }
        status::missed(tally)
    }

    /// An interrupt abandons the cells under way and keeps all measured ones.
    fn interrupt(&self) -> Interrupt {
        Interrupt::AsksThen(put_back_at_once)
    }
}
