//! A file system with LUC on, as `luc_guard` acts on it.

use luc_control::{Knob, knob, knobs};
use luc_guard::{Side, Subject, Totals, Trouble};
use luc_host::sysfs::{self, Attached};
use luc_host::{HostError, System};

use super::meter::Meter;

pub const MODE: &str = "mode";

pub struct OnHost<'a> {
    pub system: &'a dyn System,
    pub attached: &'a Attached,
    pub meter: &'a Meter,
}

pub fn mode_knob() -> &'static Knob {
    knob(MODE).expect("the mode is a knob of this build")
}

/// The word of the mode knob.
fn word(side: Side) -> &'static str {
    match side {
        Side::On => "steer",
        Side::Off => "observe",
    }
}

impl OnHost<'_> {
    /// Gone, if LUC is no longer on for this device; else what the module said.
    fn trouble(&self, error: &HostError) -> Trouble {
        if self.is_there() {
            Trouble::Refused(error.to_string())
        } else {
            Trouble::Gone
        }
    }

    fn is_there(&self) -> bool {
        let file = format!("{}/{}/device", sysfs::ROOT, self.attached.name);
        let device = self.system.read(&file).ok();
        device.is_some_and(|text| text.trim() == self.attached.device.to_string())
    }

    fn value(&self, knob: &Knob) -> Result<String, Trouble> {
        let value = sysfs::knob_value(self.system, self.attached, knob);
        let value = value.map_err(|error| self.trouble(&error))?;
        Ok(knob.format(value))
    }
}

impl Subject for OnHost<'_> {
    fn totals(&mut self) -> Result<Totals, Trouble> {
        let sums = self.meter.read(self.system).ok_or(Trouble::Gone)?;
        Ok(sums.totals())
    }

    fn side(&mut self) -> Result<Side, Trouble> {
        Ok(match self.value(mode_knob())?.as_str() {
            "steer" => Side::On,
            _ => Side::Off,
        })
    }

    fn switch(&mut self, to: Side) -> Result<(), Trouble> {
        let knob = mode_knob();
        let value = knob.parse(word(to));
        let value = value.map_err(|error| Trouble::Refused(error.to_string()))?;
        let name = &self.attached.name;
        let set = sysfs::set_knob(self.system, name, self.attached, knob, value);
        set.map_err(|error| self.trouble(&error))
    }

    fn settings(&mut self) -> Result<String, Trouble> {
        let others = knobs().iter().filter(|knob| knob.name != MODE);
        let values: Result<Vec<String>, Trouble> = others.map(|knob| self.value(knob)).collect();
        Ok(values?.join(" "))
    }
}
