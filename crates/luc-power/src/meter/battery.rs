//! Batteries: the whole machine's energy while nothing else feeds it, in steps that the battery
//! chooses.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::MeterError;
use super::source::{Counted, Lost, Source};
use super::sysfs::{named, number};

/// Batteries move every second at most.
const PERIOD: Duration = Duration::from_secs(1);
/// Both edges of a reading lie within a step: ten steps bound the error at a tenth.
const STEPS_MIN: u64 = 10;

/// All batteries of a machine.
pub struct Batteries {
    all: Vec<Battery>,
    counted: Counted,
}

struct Battery {
    dir: PathBuf,
    level: Level,
}

/// How full a battery is, in the two forms that drivers have.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Level {
    MicrowattHours(u64),
    /// Charge, and the voltage at which it flows.
    MicroampereHours {
        charge: u64,
        microvolts: u64,
    },
}

impl Level {
    fn read(dir: &Path) -> std::io::Result<Self> {
        match number(&dir.join("energy_now")) {
            Ok(energy) => Ok(Self::MicrowattHours(energy)),
            Err(error) => {
                // The first file is the one to name if the driver has neither.
                let charge = number(&dir.join("charge_now")).map_err(|_| error)?;
                let microvolts = number(&dir.join("voltage_now"))?;
                Ok(Self::MicroampereHours { charge, microvolts })
            }
        }
    }

    /// Returns the joules down to a later level; `None` if the battery gained or changed its form.
    fn joules_until(self, later: Self) -> Option<f64> {
        match (self, later) {
            (Self::MicrowattHours(before), Self::MicrowattHours(after)) => {
                Some(before.checked_sub(after)? as f64 * 3600.0 / 1e6)
            }
            (
                Self::MicroampereHours { charge, microvolts },
                Self::MicroampereHours {
                    charge: charge_after,
                    microvolts: microvolts_after,
                },
            ) => {
                let ampere_hours = charge.checked_sub(charge_after)? as f64 / 1e6;
                let volts = f64::midpoint(microvolts as f64, microvolts_after as f64) / 1e6;
                Some(ampere_hours * volts * 3600.0)
            }
            _ => None,
        }
    }
}

fn status(dir: &Path) -> Result<String, Lost> {
    let file = dir.join("status");
    let text = fs::read_to_string(&file);
    let text = text.map_err(|e| format!("cannot read {}: {e}", file.display()))?;
    Ok(text.trim().to_owned())
}

impl Batteries {
    /// Finds the machine's batteries; `None` unless they feed it: one discharges, none charges.
    pub fn discharging(power_supply: &Path) -> Option<Result<Self, MeterError>> {
        // A mouse has a battery, too, and its scope says so.
        let is_of_device = |dir: &Path| {
            let scope = fs::read_to_string(dir.join("scope"));
            scope.is_ok_and(|scope| scope.trim() == "Device")
        };
        let supplies = named(power_supply, "type").into_iter();
        let batteries = supplies.filter(|(dir, kind)| kind == "Battery" && !is_of_device(dir));
        let dirs: Vec<PathBuf> = batteries.map(|(dir, _)| dir).collect();
        feed(&dirs).ok()?;
        let open = |dir: PathBuf| match Level::read(&dir) {
            Ok(level) => Ok(Battery { dir, level }),
            Err(error) => Err(MeterError::read(dir.join("energy_now"), error)),
        };
        let all = dirs.into_iter().map(open).collect::<Result<_, _>>();
        Some(all.map(|all| Self {
            all,
            counted: Counted::default(),
        }))
    }
}

/// Checks that batteries feed the machine, and nothing else does.
fn feed<D: AsRef<Path>>(dirs: &[D]) -> Result<(), Lost> {
    let mut discharges = false;
    for dir in dirs {
        let status = status(dir.as_ref())?;
        if status == "Charging" {
            return Err(format!("battery {} charges", dir.as_ref().display()));
        }
        discharges |= status == "Discharging";
    }
    if discharges {
        return Ok(());
    }
    Err("no battery discharges: the machine is not on battery".to_owned())
}

impl AsRef<Path> for Battery {
    fn as_ref(&self) -> &Path {
        &self.dir
    }
}

impl Source for Batteries {
    fn count(&mut self, _now: Instant) -> Result<Counted, Lost> {
        feed(&self.all)?;
        let mut moved = false;
        for Battery { dir, level } in &mut self.all {
            let name = dir.display();
            let now = Level::read(dir).map_err(|e| format!("cannot read battery {name}: {e}"))?;
            let gained = || format!("battery {name} gained charge while it discharged");
            self.counted.joules += level.joules_until(now).ok_or_else(gained)?;
            moved |= *level != now;
            *level = now;
        }
        self.counted.steps += u64::from(moved);
        Ok(self.counted)
    }

    fn steps_min(&self) -> u64 {
        STEPS_MIN
    }

    fn period(&self) -> Duration {
        PERIOD
    }
}

#[cfg(test)]
mod tests {
    use super::Level;

    #[test]
    fn joules_of_both_forms() {
        let about = |joules: Option<f64>, expected: f64| {
            assert!(
                joules.is_some_and(|joules| (joules - expected).abs() < 1e-6),
                "{joules:?}"
            );
        };
        let energy = Level::MicrowattHours;
        about(energy(50_000_000).joules_until(energy(49_990_000)), 36.0);
        let charge = |charge, microvolts| Level::MicroampereHours { charge, microvolts };
        let (before, after) = (charge(4_000_000, 12_000_000), charge(3_999_000, 11_000_000));
        about(before.joules_until(after), 0.001 * 11.5 * 3600.0);
        assert_eq!(energy(5).joules_until(energy(6)), None);
        assert_eq!(after.joules_until(before), None);
        assert_eq!(energy(5).joules_until(before), None);
    }
}
