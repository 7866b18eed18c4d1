//! Arguments that several workloads share, and the parsers of their values.

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::{EnergyOptions, Folder};

/// Arguments that every workload has: where to run and how to print.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Common {
    #[command(flatten)]
    pub dir: Folder,
    /// Keep the files instead of removing them at the end
    #[arg(long)]
    pub keep: bool,
    /// Print the result as JSON
    #[arg(long)]
    #[serde(skip)]
    pub json: bool,
    #[command(flatten)]
    #[serde(skip)]
    pub energy: EnergyOptions,
}

/// Parses a number of threads or processes.
pub(crate) fn threads() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=65_536)
}

/// Largest number that can be asked for: keeps every sum of nanoseconds far from overflow.
const LARGEST: f64 = 1e7;

fn number(text: &str, range: &str, fits: impl Fn(f64) -> bool) -> Result<f64, String> {
    let value = text.parse().ok();
    let value = value.filter(|&value| fits(value) && value <= LARGEST);
    value.ok_or_else(|| format!("expected a number {range} {LARGEST}"))
}

pub(crate) fn duration_s(text: &str) -> Result<f64, String> {
    number(text, "above 0 and up to", |value| value > 0.0)
}

pub(crate) fn warmup_s(text: &str) -> Result<f64, String> {
    number(text, "from 0 to", |value| value >= 0.0)
}

pub(crate) fn rate_per_s(text: &str) -> Result<f64, String> {
    number(text, "from 0.001 to", |value| value >= 1e-3)
}
