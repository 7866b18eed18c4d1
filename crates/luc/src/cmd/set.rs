//! `luc set`

use std::path::PathBuf;

use luc_control::{Knob, KnobKind, knob, knobs};
use serde_json::{Value, json};

use crate::Context;
use crate::exit::Failure;
use crate::sysfs::Attached;
use crate::system::System;
use crate::{cli, sysfs, units};

/// Show or change the knobs of a file system
///
/// Without a knob, lists them all. A knob that was set stays as it is: LUC
/// never changes a knob by itself.
#[derive(Debug, clap::Args)]
#[command(after_long_help = cli::knob_table())]
pub struct Args {
    /// A path on the file system, or its block device
    #[arg(value_name = "PATH|DEVICE", value_hint = clap::ValueHint::AnyPath)]
    path: PathBuf,
    /// The knob to show or change
    knob: Option<String>,
    /// Its new value
    #[arg(allow_hyphen_values = true)]
    value: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The words an enumerated knob takes; none for others.
fn words(knob: &Knob) -> Vec<&'static str> {
    match knob.kind {
        KnobKind::Enum(words) => words.iter().map(|word| word.text).collect(),
        KnobKind::Bool | KnobKind::Int => Vec::new(),
    }
}

fn as_json(knob: &Knob, value: i64) -> Value {
    json!({
        "knob": knob.name,
        "value": super::knob_json(knob, value),
        "default": super::knob_json(knob, knob.default),
        "min": knob.min,
        "max": knob.max,
        "words": words(knob),
        "help": knob.help,
    })
}

fn refused(error: &luc_control::KnobError) -> Failure {
    Failure::KnobRefused {
        why: error.to_string(),
        kept: match error {
            luc_control::KnobError::Unknown { .. } => "nothing was changed",
            _ => "the old value is kept",
        },
    }
}

/// Runs the verb.
pub fn run(args: &Args, context: &mut Context) -> Result<(), Failure> {
    let system = context.system;
    let all = sysfs::attached(system)?;
    let chosen = args.knob.as_deref().map(knob).transpose();
    let chosen = chosen.map_err(|error| refused(&error))?;
    let attached = super::attached_at(system, &args.path, &all)?;
    if let (Some(knob), Some(text)) = (chosen, &args.value) {
        let value = knob.parse(text).map_err(|error| refused(&error))?;
        return change(args, context, &attached, knob, value);
    }
    let shown: Vec<&Knob> = chosen.map_or_else(|| knobs().iter().collect(), |knob| vec![knob]);
    let mut values = Vec::new();
    for knob in shown {
        values.push((knob, sysfs::knob_value(system, &attached, knob)?));
    }
    if args.json {
        let rows = values.iter().map(|(knob, value)| as_json(knob, *value));
        return super::print_json(context, &rows.collect::<Vec<_>>());
    }
    let cells: Vec<[String; 5]> = values
        .iter()
        .map(|(knob, value)| {
            [
                knob.name.to_owned(),
                knob.format(*value),
                knob.format(knob.default),
                cli::range(knob.min, knob.max, &words(knob)),
                knob.help.to_owned(),
            ]
        })
        .collect();
    let heads = ["knob", "value", "default", "allowed", "meaning"];
    units::table(context.out, heads, &cells)?;
    Ok(())
}

fn change(
    args: &Args,
    context: &mut Context,
    attached: &Attached,
    knob: &'static Knob,
    value: i64,
) -> Result<(), Failure> {
    let path = args.path.display().to_string();
    let said = apply(context.system, &path, attached, knob, value)?;
    if args.json {
        return super::print_json(context, &[as_json(knob, value)]);
    }
    writeln!(context.out, "{said}")?;
    Ok(())
}

/// Sets a knob, looks whether it is set, and says what it was before.
///
/// # Errors
/// The module refuses it, or somebody else set it at the same time.
pub(super) fn apply(
    system: &dyn System,
    path: &str,
    attached: &Attached,
    knob: &Knob,
    value: i64,
) -> Result<String, Failure> {
    let before = sysfs::knob_value(system, attached, knob)?;
    sysfs::set_knob(system, path, attached, knob, value)?;
    let after = sysfs::knob_value(system, attached, knob)?;
    if after != value {
        return Err(Failure::Unexpected(anyhow::anyhow!(
            "{path}: {} should be {} and is {}: somebody else set it",
            knob.name,
            knob.format(value),
            knob.format(after)
        )));
    }
    Ok(format!(
        "{path}: {} {} (was {})",
        knob.name,
        knob.format(after),
        knob.format(before)
    ))
}
