//! A file system with LUC on, as `luc_guard` acts on it.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use luc_control::{Knob, knob, knobs};
use luc_guard::{Side, Subject, Totals, Trouble};
use luc_host::sysfs::{self, Attached};
use luc_host::{HostError, System};
use luc_power::meter::Meter as EnergyMeter;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use super::meter::{Measured, Meter, Sums};
use crate::WatchError;

pub(super) const MODE: &str = "mode";

pub struct HostSubject<'a> {
    system: &'a dyn System,
    attached: Attached,
    meter: Meter,
    energy: Option<&'a EnergyMeter>,
    writes: Writes,
}

fn mode_knob() -> &'static Knob {
    knob(MODE).expect("the mode is a knob of this build")
}

/// A side's word for the mode knob.
fn word(side: Side) -> &'static str {
    match side {
        Side::On => "steer",
        Side::Off => "observe",
    }
}

impl<'a> HostSubject<'a> {
    /// Creates the subject for a file system with LUC on, and lists the sources that are missing.
    pub fn new(
        system: &'a dyn System,
        attached: Attached,
    ) -> Result<(Self, Vec<String>), WatchError> {
        let (meter, lacks) = Meter::new(&attached, system)?;
        let writes = Writes::to(system, &attached);
        let subject = Self {
            system,
            attached,
            meter,
            energy: None,
            writes,
        };
        Ok((subject, lacks))
    }

    /// Reads this meter, too, at the edges of windows.
    #[must_use]
    pub fn with_energy(self, energy: Option<&'a EnergyMeter>) -> Self {
        Self { energy, ..self }
    }

    pub fn attached(&self) -> &Attached {
        &self.attached
    }

    /// Returns `Gone` if LUC is no longer on for this device, or else the module's error.
    fn trouble(&self, error: &HostError) -> Trouble {
        if self.is_there() {
            Trouble::Refused(error.to_string())
        } else {
            Trouble::Gone
        }
    }

    fn is_there(&self) -> bool {
        sysfs::attached(self.system).is_ok_and(|all| all.contains(&self.attached))
    }

    fn value(&self, knob: &Knob) -> Result<String, Trouble> {
        let value = sysfs::knob_value(self.system, &self.attached, knob);
        let value = value.map_err(|error| self.trouble(&error))?;
        Ok(knob.format(value))
    }
}

impl Subject for HostSubject<'_> {
    fn totals(&mut self) -> Result<Totals, Trouble> {
        let sums = self.sums().ok_or(Trouble::Gone)?;
        Ok(sums.totals())
    }

    fn side(&mut self) -> Result<Side, Trouble> {
        Ok(match self.value(mode_knob())?.as_str() {
            "steer" => Side::On,
            _ => Side::Off,
        })
    }

    fn was_written(&mut self) -> bool {
        self.writes.seen()
    }

    fn switch(&mut self, to: Side) -> Result<(), Trouble> {
        let knob = mode_knob();
        let value = knob.parse(word(to));
        let value = value.map_err(|error| Trouble::Refused(error.to_string()))?;
        let name = &self.attached.name;
        let set = sysfs::set_knob(self.system, name, &self.attached, knob, value);
        // `luc_guard` checks for others' writes before each switch, so these writes are its own.
        self.writes.seen();
        set.map_err(|error| self.trouble(&error))
    }

    fn settings(&mut self) -> Result<String, Trouble> {
        let others = knobs().iter().filter(|knob| knob.name != MODE);
        let values: Result<Vec<String>, Trouble> = others.map(|knob| self.value(knob)).collect();
        Ok(values?.join(" "))
    }
}

impl Measured for HostSubject<'_> {
    type Sums = Sums;

    fn sums(&self) -> Option<Sums> {
        Some(Sums {
            energy: self.energy.map(EnergyMeter::sample),
            ..self.meter.read(self.system)?
        })
    }
}

/// A watch on the mode knob: the kernel reports each write, even one that changes nothing.
struct Writes(Option<OwnedFd>);

impl Writes {
    /// Starts the watch. Without it, only a changed value reveals a change by hand.
    fn to(system: &dyn System, attached: &Attached) -> Self {
        let file = sysfs::knob_file(attached, MODE);
        let watched = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).and_then(|fd| {
            inotify::add_watch(&fd, system.path(&file), WatchFlags::MODIFY)?;
            Ok(fd)
        });
        Self(watched.ok())
    }

    /// Tells whether there was a write since the last call.
    fn seen(&self) -> bool {
        let Some(fd) = &self.0 else {
            return false;
        };
        let mut space = [MaybeUninit::uninit(); 512];
        let mut events = inotify::Reader::new(fd, &mut space);
        let mut seen = false;
        // The watch also reports that the file is gone.
        while let Ok(event) = events.next() {
            seen |= event.events().contains(ReadFlags::MODIFY);
        }
        seen
    }
}
