//! `luc-lab sim calibrate`

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueHint;
use luc_base::words::{three, time};
use luc_control::Dev;
use luc_host::plain;
use luc_sim::replayed::{Calibration, Parameter, Unreplayable};
use luc_trace::Trace;
use serde_json::{Value, json};

use luc_cli::recordings::{recording, unreadable};
use luc_cli::units::{known, table};
use luc_cli::{Context, Failure, Verb};

const SCHEMA: &str = "luc-sim-calibration/1";

/// Derive the machine behind recordings: its processors, their speed and its disk
///
/// Shows - for a value that a recording does not determine. With --json, one recording of one file
/// system gives a machine for `luc-lab sim run --calibrated`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab sim calibrate run.luc\n\
    \x20 luc-lab sim calibrate --json run.luc > machine.json")]
pub struct Args {
    /// Recordings of `luc trace record`
    #[arg(required = true, value_name = "RECORDING", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A file system of a recording.
type Found = (Dev, Result<Calibration, Unreplayable>);

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let mut recordings = Vec::new();
        for file in &self.files {
            let trace = recording(file, context)?;
            recordings.push((file, calibrated(&trace, file)?));
        }
        if self.json {
            let recordings: Vec<Value> = recordings.iter().map(|it| as_json(it.0, &it.1)).collect();
            let all = json!({ "schema": SCHEMA, "recordings": recordings });
            return context.print_json(&all);
        }
        for (at, (file, found)) in recordings.iter().enumerate() {
            if at > 0 {
                writeln!(context.out)?;
            }
            tell(file, found, context)?;
        }
        Ok(())
    }
}

/// Measures each file system of a recording. Fails if none can be measured.
fn calibrated(trace: &Trace, file: &Path) -> Result<Vec<Found>, Failure> {
    let devs: BTreeSet<Dev> = trace.spans.iter().map(|span| span.dev).collect();
    let of = |dev: Dev| (dev, Calibration::measure(trace, dev));
    let found: Vec<Found> = devs.into_iter().map(of).collect();
    if found.iter().any(|(_, it)| it.is_ok()) {
        return Ok(found);
    }
    let why = found.into_iter().find_map(|(_, it)| it.err());
    let why = why.map_or_else(
        || "holds no operation and no commit; give a recording of the tracer".to_owned(),
        |why| why.to_string(),
    );
    Err(unreadable(file, why))
}

fn as_json(file: &Path, found: &[Found]) -> Value {
    let of = |(dev, it): &Found| match it {
        Ok(machine) => json!({
            "device": dev.to_string(),
            "disk": machine.disk(),
            "cpus": machine.cpus(),
            "mips": machine.mips(),
            "parameters": machine.parameters(),
        }),
        Err(why) => json!({ "device": dev.to_string(), "refused": why.to_string() }),
    };
    let file_systems: Vec<Value> = found.iter().map(of).collect();
    json!({ "file": file.display().to_string(), "file_systems": file_systems })
}

fn tell(file: &Path, found: &[Found], context: &mut Context) -> Result<(), Failure> {
    for (dev, it) in found {
        let machine = match it {
            Ok(machine) => machine,
            Err(why) => {
                writeln!(context.out, "{}, {dev}: {why}", file.display())?;
                continue;
            }
        };
        let disk = machine.disk();
        writeln!(context.out, "{}, {dev}: disk {disk}\n", file.display())?;
        let rows: Vec<[String; 5]> = machine.parameters().iter().map(row).collect();
        let heads = ["parameter", "value", "middle half", "of", "source"];
        table(context.out, heads, &rows)?;
    }
    Ok(())
}

fn row(it: &Parameter) -> [String; 5] {
    let shown = |value: f64| match it.unit {
        "ns" => time(value),
        unit => format!("{} {unit}", three(value)),
    };
    let middle = it
        .middle
        .map(|[low, high]| format!("{} to {}", shown(low), shown(high)));
    [
        it.name.to_owned(),
        known(it.value.map(shown)),
        known(middle),
        known((it.samples > 0).then(|| it.samples.to_string())),
        it.source.to_owned(),
    ]
}

/// A machine that was measured.
pub struct MeasuredMachine {
    pub disk: String,
    pub cpus: Option<u16>,
    pub mips: Option<f64>,
}

/// Reads a machine from the JSON form.
///
/// # Errors
/// If the file is not of that form, or does not hold exactly one machine.
pub fn machine(file: &Path) -> Result<MeasuredMachine, String> {
    let said = |why: &str| format!("{}: {why}", file.display());
    let text = fs::read_to_string(file).map_err(|error| said(&plain(&error)))?;
    let wrong = || said("is not output of `luc-lab sim calibrate --json`");
    let all: Value = serde_json::from_str(&text).map_err(|_| wrong())?;
    if all["schema"] != SCHEMA {
        return Err(wrong());
    }
    let recordings = all["recordings"].as_array().into_iter().flatten();
    let mut machines = recordings
        .flat_map(|it| it["file_systems"].as_array().into_iter().flatten())
        .filter(|it| it["disk"].is_string());
    let (Some(one), None) = (machines.next(), machines.next()) else {
        return Err(said(
            "must hold exactly one machine: measure one recording of one file system",
        ));
    };
    let cpus = one["cpus"].as_u64();
    Ok(MeasuredMachine {
        disk: one["disk"].as_str().unwrap_or_default().to_owned(),
        cpus: cpus.and_then(|cpus| u16::try_from(cpus).ok()),
        mips: one["mips"].as_f64(),
    })
}
