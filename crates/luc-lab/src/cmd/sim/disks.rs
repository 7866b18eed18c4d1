//! `luc-lab sim disks`

use luc_sim::disk::systems::{SYSTEMS, System, system};
use luc_sim::disk::{KNOBS, LEVELS};
use serde_json::{Value, json};

use luc_cli::units::table;
use luc_cli::{Context, Failure, Verb};

const SCHEMA: &str = "luc-sim-disks/1";

/// List the disks that only the simulator has: arrays, and those of the published systems
///
/// Shows for each published system its disk, its processors and their frequencies, and how its disk
/// differs from the preset, with the source of each figure. `luc-lab disks` lists all other disks.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab sim disks\n\
    \x20 luc-lab sim disks nehalem-raid10")]
pub struct Args {
    /// Names of systems [default: all]
    #[arg(value_name = "SYSTEM")]
    systems: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let mut chosen = Vec::new();
        for name in &self.systems {
            let found = system(name).ok_or_else(|| {
                let names = SYSTEMS.map(|system| system.name).join(", ");
                Failure::usage(
                    "sim disks",
                    format!("no system is called {name}; known systems: {names}"),
                )
            })?;
            chosen.push(found);
        }
        if chosen.is_empty() {
            chosen = SYSTEMS.iter().collect();
        }
        if self.json {
            let systems: Vec<_> = chosen.into_iter().map(as_json).collect();
            return context.print_json(&json!({ "schema": SCHEMA, "systems": systems }));
        }
        if self.systems.is_empty() {
            arrays(context)?;
        }
        for system in chosen {
            tell(system, context)?;
        }
        Ok(())
    }
}

fn arrays(context: &mut Context) -> Result<(), Failure> {
    let rows = LEVELS.map(|level| {
        [
            format!("{}:MEMBERS:DISK", level.name),
            level.members(),
            level.help.to_owned(),
        ]
    });
    table(&mut context.out, ["array", "members", ""], &rows)?;
    writeln!(context.out)?;
    let rows = KNOBS.map(|knob| {
        [
            knob.name.to_owned(),
            knob.default.to_string(),
            knob.help.to_owned(),
        ]
    });
    table(&mut context.out, ["knob", "default", ""], &rows)?;
    writeln!(context.out)?;
    Ok(())
}

fn tell(system: &System, context: &mut Context) -> Result<(), Failure> {
    let System {
        name,
        called,
        about,
        disk,
        cpus,
        ..
    } = system;
    writeln!(context.out, "{name}: {called}")?;
    writeln!(context.out, "  {about}")?;
    let mhz: Vec<_> = system.mhz.iter().map(u32::to_string).collect();
    writeln!(context.out, "  {cpus} processors, MHz: {}", mhz.join(" "))?;
    writeln!(context.out, "  {disk}, with:")?;
    let rows: Vec<[String; 2]> = system
        .knobs()
        .map(|knob| [format!("    {}", knob.change), knob.source.to_owned()])
        .collect();
    table(&mut context.out, ["    knob", "from"], &rows)?;
    Ok(())
}

fn as_json(system: &System) -> Value {
    let knobs: Vec<_> = system
        .knobs()
        .map(|knob| json!({ "change": knob.change, "source": knob.source }))
        .collect();
    json!({
        "name": system.name,
        "called": system.called,
        "about": system.about,
        "cpus": system.cpus,
        "mhz": system.mhz,
        "disk": system.disk,
        "knobs": knobs,
    })
}
