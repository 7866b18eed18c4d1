//! `luc-lab recommend`

use std::path::{Path, PathBuf};

use luc_base::nearest_name;
use luc_campaign::backends::local::Local;
use luc_campaign::places::host::put_back_at_once;
use luc_campaign::show::Shown;
use luc_campaign::{Campaign, Part, Store, campaigns, run};
use luc_host::kernel;
use luc_power::machine::PowerModel;
use serde_json::json;

use super::campaign::{Device, all_measured, places, render, setup};
use crate::bar::Bar;
use crate::failure::OrFailure as _;
use luc_cli::{Context, Failure, Interrupt, Verb};

const SCHEMA: &str = "luc-recommend/1";
/// The campaign, its factor that names the load, and its block for a device of this machine.
const CAMPAIGN: &str = "recommend";
const LOAD: &str = "load";
const ON_DEVICE: &str = "device";
/// The value of that block's factor that measures energy.
const METER: &str = "meter=--energy";
/// The arm that needs the module.
const LUC: &str = "luc";

/// Rank file systems, their formats and mount options for a load, by speed and by energy
///
/// Measures each choice in the lab, as `luc-lab campaign run recommend` does: ext4 with LUC and
/// without it, ext4 without a journal, ext3, ext2, XFS, btrfs and f2fs; blocks of 1, 2 and 4 KiB,
/// journal modes, noatime, sizes of inodes and journals, block groups and allocation groups. Prints
/// each choice's rate and operations per joule with their intervals, the best first, whether it is
/// safe, and whether it needs a new file system. Energy is that of a model.
///
/// With --device, measures on this machine and that device instead, with loads of the study's
/// sizes: file systems, journal modes and noatime, and the blocks and formats that --set names.
/// Energy is what the processors' counters show.
///
/// After an interruption, the same command continues.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab recommend mail\n\
    \x20 luc-lab recommend mail --set fs=ext4,xfs --set format=own --by energy\n\
    \x20 luc-lab recommend /srv/my-load.f --set disk=hdd-7200:2G --repeats 5\n\
    \x20 luc-lab recommend mail --from-results\n\
    \x20 luc-lab recommend mail --device /dev/sdx --erase")]
pub struct Args {
    /// web, file, mail or database, or a workload file of Filebench 1.5 [default: these four]
    #[arg(value_name = "LOAD", value_hint = clap::ValueHint::FilePath)]
    load: Option<String>,
    /// Figure that decides; `both` takes the geometric mean of the two [default: both; speed with
    /// --device]
    #[arg(long, value_enum)]
    by: Option<By>,
    /// Machine of the energy model, changed as in `luc-lab sim run --energy`
    #[arg(
        long,
        value_name = "MACHINE",
        default_value = "e3-server",
        conflicts_with = "device"
    )]
    machine: String,
    #[command(flatten)]
    device: Device,
    #[command(flatten)]
    part: Part,
    /// Directory for the results; created if absent
    #[arg(long, short = 'o', value_name = "DIR", default_value = "out/recommend", value_hint = clap::ValueHint::DirPath)]
    out: PathBuf,
    /// Cells to measure at the same time [default: as many as processors and memory allow]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Rank existing results; measure nothing
    #[arg(long)]
    from_results: bool,
    /// Directory of the module's sources
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The figures that decide between two choices.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum By {
    /// Operations per second
    Speed,
    /// Operations per joule
    Energy,
    /// The geometric mean of both
    Both,
}

impl By {
    /// The deciding columns of the campaign's table.
    fn headings(self) -> Vec<String> {
        let headings: &[&str] = match self {
            Self::Speed => &["ops/s"],
            Self::Energy => &["ops/J"],
            Self::Both => &["ops/s", "ops/J"],
        };
        headings.iter().map(ToString::to_string).collect()
    }
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let campaign = self.campaign(context)?;
        if self.from_results {
            let store = Store::existing(&self.out).or_failure()?;
            return self.tell(&campaign, &store, None, context);
        }
        let (source, device) = (self.source.as_deref(), Some(&self.device));
        let setup = setup(places(&campaign), source, &self.out, device, context)?;
        let store = Store::open(&self.out).or_failure()?;
        let bar = Bar::new();
        let local = Local { jobs: self.jobs };
        let ended = run::run(&campaign, &store, &local, &setup, false, &bar).or_failure()?;
        drop(bar);
        self.tell(&campaign, &store, Some(&setup), context)?;
        all_measured(&ended, &store)
    }

    /// An interrupt abandons the cells under way and keeps all measured ones.
    fn interrupt(&self) -> Interrupt {
        Interrupt::AsksThen(put_back_at_once)
    }
}

impl Args {
    fn campaign(&self, context: &mut Context) -> Result<Campaign, Failure> {
        let usage = |why: String| Failure::usage("recommend", why);
        let machine: Result<PowerModel, _> = self.machine.parse();
        machine.map_err(|error| usage(error.to_string()))?;
        let whole = campaigns::load(CAMPAIGN).or_failure()?;
        let mut part = self.part.clone();
        if let Some(load) = &self.load {
            let load = found(load, &whole).map_err(usage)?;
            part.values.push(format!("{LOAD}={load}"));
        }
        let on_device = self.device.is_named();
        // Without counters of energy, both figures would leave each choice without a score.
        let usual = if on_device { By::Speed } else { By::Both };
        let by = self.by.unwrap_or(usual);
        if on_device {
            part.blocks.push(ON_DEVICE.to_owned());
        }
        if on_device && !matches!(by, By::Speed) {
            part.values.push(METER.to_owned());
        }
        let mut campaign = part.narrow(whole).or_failure()?;
        campaign.model_machine(&self.machine);
        let release = kernel::release(context.system).unwrap_or_default();
        if on_device && kernel::installed(context.system, &release).is_none() {
            let without = format!("LUC is left out: luc.ko is not installed for kernel {release}");
            context.note(&without)?;
            campaign.leave_out(LUC);
        }
        let tables = campaign.tables.iter_mut();
        for ranked in tables.filter_map(|table| table.ranked.as_mut()) {
            ranked.by = by.headings();
        }
        Ok(campaign)
    }

    fn tell(
        &self,
        campaign: &Campaign,
        store: &Store,
        setup: Option<&luc_campaign::places::Setup>,
        context: &mut Context,
    ) -> Result<(), Failure> {
        if !self.json {
            return render(campaign, store, setup, context).map(drop);
        }
        let results = store.read().or_failure()?;
        let rankings = Shown::new(campaign, &results, setup).rankings();
        context.print_json(&json!({
            "schema": SCHEMA,
            "machine": self.machine,
            "rankings": rankings,
        }))
    }
}

/// The load's value of the factor: a name of the campaign, or a workload by name or absolute path.
fn found(load: &str, campaign: &Campaign) -> Result<String, String> {
    let known = campaign.values_of(LOAD);
    if known.contains(&load) || luc_wml::builtin(load).is_some() {
        return Ok(load.to_owned());
    }
    if Path::new(load).is_file() {
        let path = Path::new(load).canonicalize();
        return path
            .map(|path| path.to_string_lossy().into_owned())
            .map_err(|error| format!("cannot find {load}: {error}"));
    }
    let near = nearest_name(load, known.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    Err(format!(
        "no load or workload file {load}{near}; known: {}",
        known.join(", ")
    ))
}
