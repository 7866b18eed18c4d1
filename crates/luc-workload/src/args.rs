//! Arguments that several workloads have, and how their values are read.

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::Folder;

/// Arguments that every workload has: where to run and how to print.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Common {
    /// Where to run.
    #[command(flatten)]
    pub dir: Folder,
    /// Keep the files instead of removing them at the end
    #[arg(long)]
    pub keep: bool,
    /// Print the result as JSON
    #[arg(long)]
    #[serde(skip)]
    pub json: bool,
}

/// A number of threads or processes.
pub(crate) fn threads() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=65_536)
}

/// Longest time that can be asked for: keeps every sum of nanoseconds far from overflow.
pub(crate) const LONGEST: f64 = 1e7;

pub(crate) fn duration_s(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= LONGEST => Ok(value),
        _ => Err(format!("not a number above 0 and up to {LONGEST}")),
    }
}

pub(crate) fn warmup_s(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=LONGEST).contains(&value) => Ok(value),
        _ => Err(format!("not a number from 0 to {LONGEST}")),
    }
}
