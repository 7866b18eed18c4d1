//! `luc-lab sim fleet`

mod results;
mod text;

use std::path::PathBuf;
use std::time::Instant;

use clap::ValueHint;
use luc_campaign::places::sim::SOURCES;
use luc_sim_loads::fleet::record::Record;
use luc_sim_loads::fleet::summary::Summary;
use luc_sim_loads::fleet::table::{self, FleetTable};
use luc_sim_loads::fleet::{Arguments, Fleet};
use serde_json::json;

use super::{Knobs, energy_machine};
use luc_cli::progress::Bar;
use luc_cli::units::{count, counted};
use luc_cli::{Context, Failure, Interrupt, Verb};
use results::Results;

const SCHEMA: &str = "luc-sim-fleet/1";
/// For all programs together, because their times are kept.
const PHASES_MAX: u64 = 20_000_000;

/// Simulate many machines, with stock and with LUC, and parallel programs on groups of them
///
/// Draws the disk, processors, speed, load and threads of each machine by weight from a table.
/// Measures from the moment LUC is switched on, so the rates include all that LUC has to learn. In
/// each phase of a parallel program, every rank writes files with an fsync each, then waits for the
/// slowest of all nodes. The nodes of a group have the same kind of disk, and also run services of
/// their own. The same arguments give the same figures.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab sim fleet --nodes 500\n\
    \x20 luc-lab sim fleet --nodes 1000 --energy e3-server\n\
    \x20 luc-lab sim fleet --out fleet.jsonl --json\n\
    \x20 luc-lab sim fleet --table mine.toml --group 64 --phases 1000 --policy static")]
pub struct Args {
    /// Number of machines
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    nodes: u32,
    /// Seed of the draws from the table, and of the tasks' start times
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// File of machines and loads with their weights, instead of the built-in table
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    table: Option<PathBuf>,
    /// Print the built-in table and exit
    #[arg(long, exclusive = true)]
    print_table: bool,
    /// Number of nodes of a parallel program, 2 to 1024; several numbers give several sizes
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "16,256", value_parser = clap::value_parser!(u32).range(2..=1024))]
    group: Vec<u32>,
    /// Phases of each parallel program; 0 runs no parallel programs
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    phases: u32,
    /// Files that each rank writes per phase
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    files: u32,
    /// Print the energy that the nodes take, modelled as if each were this machine: r710,
    /// e3-server, or `r710:idle_w=50`
    #[arg(long, value_name = "MACHINE")]
    energy: Option<String>,
    #[command(flatten)]
    knobs: Knobs,
    /// Machines to simulate at the same time [default: as many as processors]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// File to save each machine's result in; a later run continues from it
    #[arg(long, short = 'o', value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        if self.print_table {
            return Ok(write!(context.out, "{}", table::BUILTIN)?);
        }
        let fleet = self
            .fleet()
            .map_err(|why| Failure::usage("sim fleet", why))?;
        if self.phases > 0 && fleet.groups().is_empty() {
            context.note("no parallel programs: no kind of disk has enough nodes for a group")?;
        }
        let header = fleet.header(SOURCES);
        let (mut file, mut records) = match &self.out {
            Some(path) => {
                let (file, records) = Results::open(path, &header)?;
                (Some(file), records)
            }
            None => (None, Vec::new()),
        };
        let before = records.len();
        let begun = Instant::now();
        simulate(&fleet, self.jobs, &mut records, file.as_mut(), context)?;
        let took_s = begun.elapsed().as_secs_f64();
        let is_whole = records.len() == fleet.tasks();
        let summary = Summary::from_records(&fleet, &records);
        if self.json {
            let found = json!({
                "schema": SCHEMA, "interrupted": !is_whole, "arguments": header, "summary": summary,
            });
            context.print_json(&found)?;
        } else {
            text::tell(&summary, context.out)?;
        }
        let fsyncs: u64 = records[before..].iter().map(Record::fsyncs).sum();
        if fsyncs > 0 {
            context.note(speed(fsyncs, took_s))?;
        }
        if is_whole {
            return Ok(());
        }
        Err(Failure::interrupted(match &self.out {
            Some(path) => format!("the same command continues from {}", path.display()),
            None => "with --out FILE the next run could continue here".to_owned(),
        }))
    }

    fn interrupt(&self) -> Interrupt {
        Interrupt::Asks
    }
}

impl Args {
    fn fleet(&self) -> Result<Fleet, String> {
        let table = match &self.table {
            None => FleetTable::read(table::BUILTIN),
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.map_err(|error| luc_host::plain(&error));
                let table = text.and_then(|text| FleetTable::read(&text));
                table.map_err(|why| format!("table {}: {why}", path.display()))
            }
        };
        let luc = self.knobs.params()?;
        let mut group_nodes = self.group.clone();
        group_nodes.sort_unstable();
        group_nodes.dedup();
        let energy = self.energy.as_deref().map(energy_machine);
        let fleet = Fleet::new(Arguments {
            energy: energy.transpose()?,
            table: table?,
            nodes: self.nodes,
            seed: self.seed,
            luc: luc.unwrap_or_default(),
            group_nodes,
            phases: self.phases,
            files: self.files,
        });
        let fleet = fleet.map_err(|error| error.to_string())?;
        let phases = fleet.groups().len() as u64 * u64::from(self.phases);
        if phases > PHASES_MAX {
            let (phases, most) = (count(phases), count(PHASES_MAX));
            return Err(format!(
                "{phases} phases in all, but at most {most} are possible; ask for fewer phases or \
                 larger groups"
            ));
        }
        Ok(fleet)
    }
}

/// Simulates what is missing, until an interrupt.
fn simulate(
    fleet: &Fleet,
    jobs: Option<u16>,
    records: &mut Vec<Record>,
    mut file: Option<&mut Results>,
    context: &Context,
) -> Result<(), Failure> {
    let bar = Bar::new();
    let before = records.len();
    // A group's program takes time in proportion to the group's nodes.
    let members = fleet.groups().iter().map(|group| group.nodes.len());
    let work: Vec<usize> = std::iter::repeat_n(1, fleet.nodes() as usize)
        .chain(members)
        .collect();
    let all: usize = work.iter().sum();
    let show = |records: &[Record]| {
        let done: usize = work[..records.len()].iter().sum();
        let nodes = records.len().min(fleet.nodes() as usize);
        let text = format!(
            "{} of {}, {} of {} simulated",
            count(nodes as u64),
            counted(fleet.nodes(), "node", "nodes"),
            count((records.len() - nodes) as u64),
            counted(fleet.groups().len() as u64, "group", "groups"),
        );
        bar.done(done, all, &text);
    };
    show(records);
    let jobs = jobs.map_or(0, usize::from);
    fleet.run(before, jobs, &context.stop, |some| {
        if let Some(file) = &mut file {
            file.append(&some)?;
        }
        records.extend(some);
        show(records);
        Ok(())
    })
}

/// Tells how fast the host simulated.
fn speed(fsyncs: u64, took_s: f64) -> String {
    format!(
        "{} simulated in {}, {} a second",
        counted(fsyncs, "fsync", "fsyncs"),
        luc_base::words::time(took_s * 1e9),
        count(luc_cli::units::rounded(fsyncs as f64 / took_s.max(1e-9))),
    )
}
