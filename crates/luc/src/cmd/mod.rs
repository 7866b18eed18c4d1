//! The verbs, one file each.

pub mod bench;
pub mod completions;
pub mod control;
pub mod demo;
pub mod disks;
pub mod doctor;
pub mod exporter;
pub mod lab;
pub mod lab_torture;
pub mod man;
pub mod off;
pub mod on;
pub mod probe;
pub mod replay;
pub mod set;
pub mod status;
mod stock_lab;
pub mod top;
pub mod torture;
pub mod trace;

use std::path::{Path, PathBuf};

use luc_control::{Knob, KnobKind};
use luc_host::sysfs::Attached;
use luc_host::{HostError, System, journal};

use crate::Context;
use crate::exit::Failure;

/// Writes a value as indented JSON with a newline at its end.
fn print_json(context: &mut Context, value: &impl serde::Serialize) -> Result<(), Failure> {
    serde_json::to_writer_pretty(&mut *context.out, value)
        .map_err(|error| Failure::from(std::io::Error::from(error)))?;
    writeln!(context.out)?;
    Ok(())
}

/// Makes null what is not known: fields of `value` by their names.
fn hide(value: &mut serde_json::Value, unknown: &[&str]) {
    for field in unknown {
        if let Some(number) = value.get_mut(field) {
            *number = serde_json::Value::Null;
        }
    }
}

/// A knob's value in JSON: a word, a truth value or a number.
fn knob_json(knob: &Knob, value: i64) -> serde_json::Value {
    match knob.kind {
        KnobKind::Enum(_) => knob.format(value).into(),
        KnobKind::Bool => (value != 0).into(),
        KnobKind::Int => value.into(),
    }
}

/// Mount points as people list them.
fn join_paths(paths: &[PathBuf]) -> String {
    let shown: Vec<_> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    shown.join(", ")
}

/// The file system with LUC on that a path or block device means.
///
/// # Errors
/// No such path, or LUC is not on for it.
fn attached_at(system: &dyn System, path: &Path, all: &[Attached]) -> Result<Attached, HostError> {
    let device = journal::device_of(system, path)?;
    all.iter()
        .find(|attached| attached.device == device)
        .cloned()
        .ok_or_else(|| HostError::NotOn {
            path: path.display().to_string(),
        })
}
