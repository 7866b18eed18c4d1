//! The options that measure energy, and the meter that they ask for.

use std::path::Path;
use std::time::Duration;

use clap::{Args, value_parser};
use luc_power::meter::{External, Meter};

use crate::clock::{NS_PER_S, now_ns, sleep_until};
use crate::{Result, Stop};

/// Seconds of rest before the load, by default.
const IDLE_S: u32 = 10;

/// How to measure energy, if at all.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct EnergyOptions {
    /// Measure this machine's energy: by the counters of its processors (needs root), or else by
    /// its battery
    #[arg(long)]
    energy: bool,
    /// Measure energy by a command for the shell, or by a serial device, that gives one number of
    /// watts a line
    #[arg(long, value_name = "COMMAND|DEVICE", requires = "energy")]
    meter: Option<String>,
    /// Seconds of rest before the load, in which idle power is measured; 0 leaves it out
    #[arg(long, value_name = "S", requires = "energy", default_value_t = IDLE_S,
        value_parser = value_parser!(u32).range(..=86_400))]
    idle_s: u32,
}

impl Default for EnergyOptions {
    fn default() -> Self {
        Self {
            energy: false,
            meter: None,
            idle_s: IDLE_S,
        }
    }
}

impl EnergyOptions {
    pub fn is_wanted(&self) -> bool {
        self.energy
    }

    /// Returns the rest before the load.
    pub fn rest(&self) -> Duration {
        Duration::from_secs(if self.energy { self.idle_s.into() } else { 0 })
    }

    /// Finds the meter and measures idle power; `None` if no energy is asked for.
    pub(crate) fn start(&self, stop: &Stop) -> Result<Option<Meter>> {
        if !self.energy {
            return Ok(None);
        }
        let external = self.meter.as_deref().map(External::named);
        let mut meter = Meter::find(Path::new("/"), external.as_ref())?;
        if self.idle_s > 0 {
            let before = meter.sample();
            sleep_until(now_ns() + u64::from(self.idle_s) * NS_PER_S, stop);
            if !stop.is_set() {
                meter.rested_since(&before)?;
            }
        }
        Ok(Some(meter))
    }
}
