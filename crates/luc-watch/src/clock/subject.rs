//! The load of a file system, at the highest clock and at a lower one.

use luc_guard::{Side, Subject, Totals, Trouble};
use luc_host::System;
use luc_host::settings::value;
use luc_host::sysfs::Attached;
use luc_power::meter::Meter as EnergyMeter;

use super::clocks::{Clock, Clocks};
use super::limit;
use crate::WatchError;
use crate::trial::{Measured, Meter, Sums};

pub struct ClockSubject<'a> {
    system: &'a dyn System,
    meter: Meter,
    energy: Option<&'a EnergyMeter>,
    clocks: &'a Clocks,
    lower: usize,
    side: Side,
}

impl<'a> ClockSubject<'a> {
    /// Creates the subject at the highest clock, and lists the sources that are missing.
    ///
    /// # Errors
    /// Nothing counts the syncs of this file system.
    pub fn new(
        system: &'a dyn System,
        attached: &Attached,
        clocks: &'a Clocks,
        energy: Option<&'a EnergyMeter>,
    ) -> Result<(Self, Vec<String>), WatchError> {
        let (meter, lacks) = Meter::with_or_without_luc(attached, system)?;
        let subject = Self {
            system,
            meter,
            energy,
            clocks,
            lower: 0,
            side: Side::Off,
        };
        Ok((subject, lacks))
    }

    /// Whether the time of each sync is seen.
    pub fn sees_times(&self) -> bool {
        let sums = self.meter.read_any(self.system);
        sums.is_some_and(|sums| sums.traced.is_some())
    }

    /// Returns to the highest clock, and chooses the lower clock of the next pair.
    ///
    /// # Errors
    /// Another program changed the clock, or the kernel refuses.
    pub fn choose(&mut self, lower: usize) -> Result<(), Trouble> {
        self.side()?;
        self.switch(Side::Off)?;
        self.lower = lower;
        Ok(())
    }

    fn clock(&self, side: Side) -> &'a Clock {
        match side {
            Side::On => &self.clocks.lower[self.lower],
            Side::Off => &self.clocks.highest,
        }
    }

    /// Checks that a file holds its text.
    fn holds(&self, file: &str, text: &str) -> Result<(), Trouble> {
        let now = value(self.system, file);
        if now == text {
            return Ok(());
        }
        Err(Trouble::Refused(format!(
            "{file} is {now:?}, no longer {text:?}: another program or a thermal limit changed it, \
             so clocks cannot be compared; try again once it leaves the clock alone"
        )))
    }
}

impl Subject for ClockSubject<'_> {
    fn totals(&mut self) -> Result<Totals, Trouble> {
        let sums = self.meter.read_any(self.system).ok_or(Trouble::Gone)?;
        Ok(sums.totals())
    }

    fn side(&mut self) -> Result<Side, Trouble> {
        for (file, text) in self.clocks.files.iter().zip(self.clock(self.side)) {
            self.holds(file, text)?;
        }
        for (file, text) in &self.clocks.others {
            self.holds(file, text)?;
        }
        Ok(self.side)
    }

    fn was_written(&mut self) -> bool {
        false
    }

    fn switch(&mut self, to: Side) -> Result<(), Trouble> {
        limit::set(self.system, self.clocks, self.clock(to))?;
        self.side = to;
        Ok(())
    }

    fn settings(&mut self) -> Result<String, Trouble> {
        // `side` checks them, and names the one that changed.
        Ok(String::new())
    }
}

impl Measured for ClockSubject<'_> {
    type Sums = Sums;

    fn sums(&self) -> Option<Sums> {
        Some(Sums {
            energy: self.energy.map(EnergyMeter::sample),
            ..self.meter.read_any(self.system)?
        })
    }
}
