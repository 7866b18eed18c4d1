//! `luc-lab disks`

use luc_disk::{Figures, Preset, knobs, preset, presets};
use serde_json::{Value, json};

use luc_cli::units::{self, rounded};
use luc_cli::{Code, Context, Failure, Verb};

/// List the models of real disks that the lab knows
///
/// Shows for each preset its steady-state performance on 4 GiB under the loads that data sheets
/// quote, and its parameters with the source of each figure. The last column of the first table is
/// the time of an append to a log and its flush. `luc-lab run --disk` takes presets with changes:
/// hdd-7200, `nvme:flush_ns=500000`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab disks\n\
    \x20 luc-lab disks --json")]
pub struct Args {
    /// Names of presets [default: all]
    #[arg(value_name = "PRESET")]
    presets: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let named: Result<Vec<&Preset>, _> = self.presets.iter().map(|name| preset(name)).collect();
        let mut chosen = named.map_err(|error| failed(&error))?;
        if chosen.is_empty() {
            chosen = presets().iter().collect();
        }
        let figures: Result<Vec<_>, _> = chosen.iter().map(|preset| preset.params()).collect();
        let figures = figures.map_err(|error| failed(&error))?;
        let figures: Vec<_> = figures.iter().map(Figures::from_params).collect();
        if self.json {
            let list: Vec<_> = chosen
                .iter()
                .zip(&figures)
                .map(|(preset, figures)| as_json(preset, figures))
                .collect();
            return context.print_json(&json!({ "schema": 1, "presets": list }));
        }
        summary(&chosen, &figures, context)?;
        for preset in chosen {
            writeln!(context.out, "\n{}: {}", preset.name, preset.about)?;
            let rows: Vec<[String; 4]> = preset
                .knobs
                .iter()
                .map(|row| {
                    [
                        format!("  {}", row.name),
                        row.value.to_string(),
                        readable(row.name, row.value),
                        row.source.to_owned(),
                    ]
                })
                .collect();
            units::table(context.out, ["  knob", "value", "", "from"], &rows)?;
        }
        Ok(())
    }
}

fn failed(error: &dyn std::error::Error) -> Failure {
    Failure::coded(Code::Lab, error)
}

fn summary(chosen: &[&Preset], figures: &[Figures], context: &mut Context) -> Result<(), Failure> {
    let heads = [
        "preset",
        "4K reads/s",
        "32 deep",
        "4K writes/s",
        "32 deep",
        "read MB/s",
        "write MB/s",
        "log sync",
    ];
    let rows: Vec<[String; 8]> = chosen
        .iter()
        .zip(figures)
        .map(|(preset, figures)| {
            [
                preset.name.to_owned(),
                whole(figures.read_4k_per_s),
                whole(figures.read_4k_depth32_per_s),
                whole(figures.write_4k_per_s),
                whole(figures.write_4k_depth32_per_s),
                whole(figures.read_stream_per_s_bytes / 1e6),
                whole(figures.write_stream_per_s_bytes / 1e6),
                units::duration(rounded(figures.log_sync_ns)),
            ]
        })
        .collect();
    units::table(context.out, heads, &rows)?;
    Ok(())
}

fn whole(value: f64) -> String {
    units::count(rounded(value))
}

/// A value in a readable unit; empty if the knob's name has no unit.
fn readable(name: &str, value: i64) -> String {
    if name.ends_with("_ns") {
        units::duration(value)
    } else if name.ends_with("_per_s_bytes") {
        format!("{} MB/s", units::count(value / 1_000_000))
    } else if name.ends_with("_bytes") {
        units::bytes(value.unsigned_abs())
    } else {
        String::new()
    }
}

fn as_json(preset: &Preset, figures: &Figures) -> Value {
    let knobs: Vec<_> = knobs()
        .iter()
        .map(|knob| {
            json!({
                "name": knob.name,
                "value": preset.value(knob.name),
                "source": preset.source(knob.name),
                "min": knob.min,
                "max": knob.max,
                "default": knob.default,
                "help": knob.help,
            })
        })
        .collect();
    json!({
        "name": preset.name,
        "about": preset.about,
        "figures": {
            "read_4k_per_s": rounded(figures.read_4k_per_s),
            "read_4k_depth32_per_s": rounded(figures.read_4k_depth32_per_s),
            "write_4k_per_s": rounded(figures.write_4k_per_s),
            "write_4k_depth32_per_s": rounded(figures.write_4k_depth32_per_s),
            "read_stream_per_s_bytes": rounded(figures.read_stream_per_s_bytes),
            "write_stream_per_s_bytes": rounded(figures.write_stream_per_s_bytes),
            "log_sync_ns": rounded(figures.log_sync_ns),
        },
        "knobs": knobs,
    })
}
