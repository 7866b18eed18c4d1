//! LUC's state before `luc try`, and how it is restored, whatever ends the trial.
//!
//! [`RestoreOnDrop`] restores it when dropped. If a signal ends the process, [`put_back_at_once`]
//! does; after `kill -9`, the next command that calls [`recover`]. Changes made by hand meanwhile
//! stay.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use luc_base::Stop;
use luc_control::{Dev, Knob, knob};
use luc_guard::Lengths;
use luc_host::sysfs::{self, Attached};
use luc_host::{HostError, Machine, System, module};

use super::host_subject::MODE;
use super::trial_files::{self, Claim, Content, Purpose, StateBefore};
use crate::time::{now, wait};

impl StateBefore {
    /// Restores LUC's state. If LUC is off by now, this only unloads the trial's module.
    fn put_back(&self, system: &dyn System, attached: &Attached) -> Result<(), HostError> {
        let there = sysfs::attached(system)?.contains(attached);
        if !there {
            return self.unload(system);
        }
        if self.on {
            for (name, (was, made)) in &self.knobs {
                set(system, attached, name, was, |now| now == made)?;
            }
            if let Some(mode) = &self.mode {
                set(system, attached, MODE, mode, |_| true)?;
            }
            return Ok(());
        }
        if self.mode.is_none() {
            // Somebody set the mode by hand meanwhile: LUC stays on.
            return Ok(());
        }
        match sysfs::detach(system, &attached.name, attached.device) {
            Ok(()) | Err(HostError::NotOn { .. }) => self.unload(system),
            Err(error) => Err(error),
        }
    }

    fn unload(&self, system: &dyn System) -> Result<(), HostError> {
        let unused = sysfs::attached(system)?.is_empty();
        if self.loaded || !unused || !sysfs::loaded(system) {
            return Ok(());
        }
        match module::unload(system) {
            // Somebody else uses the module by now.
            Err(HostError::Busy { .. }) => Ok(()),
            done => done,
        }
    }
}

/// Sets a knob if `may` allows its present value to be replaced.
fn set(
    system: &dyn System,
    attached: &Attached,
    name: &str,
    to: &str,
    may: impl Fn(&str) -> bool,
) -> Result<(), HostError> {
    let unexpected = |error: luc_control::KnobError| HostError::Unexpected(error.to_string());
    let knob = knob(name).map_err(unexpected)?;
    let now = sysfs::knob_word(system, attached, name).unwrap_or_default();
    if now == to || !may(&now) {
        return Ok(());
    }
    let value = knob.parse(to).map_err(unexpected)?;
    match sysfs::set_knob(system, &attached.name, attached, knob, value) {
        Err(HostError::NotOn { .. }) => Ok(()),
        done => done,
    }
}

/// A trial's file system, until its state is restored.
struct Owned {
    root: PathBuf,
    claim: Claim,
    attached: Attached,
    before: StateBefore,
}

impl Owned {
    fn put_back(&self, system: &dyn System) -> Result<(), HostError> {
        self.before.put_back(system, &self.attached)?;
        self.claim.forget(system, trial_files::TRY);
        Ok(())
    }
}

static HELD: Mutex<Option<Owned>> = Mutex::new(None);

fn held() -> MutexGuard<'static, Option<Owned>> {
    // A panic never leaves it half changed.
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restores LUC's state when dropped.
pub struct RestoreOnDrop<'a> {
    system: &'a dyn System,
}

impl<'a> RestoreOnDrop<'a> {
    /// Saves LUC's state, then switches LUC on and sets these knobs, if necessary.
    ///
    /// # Errors
    /// If the state cannot be saved, in which case nothing was changed, or something refuses.
    pub fn begin(
        system: &'a dyn System,
        claim: Claim,
        attached: &Attached,
        settings: &[(&'static Knob, i64)],
    ) -> Result<Self, HostError> {
        let on = sysfs::attached(system)?.contains(attached);
        let mut knobs = BTreeMap::new();
        for (knob, value) in settings.iter().filter(|_| on) {
            let was = sysfs::knob_value(system, attached, knob)?;
            let change = (knob.format(was), knob.format(*value));
            knobs.insert(knob.name.to_owned(), change);
        }
        let mode = if on {
            sysfs::knob_word(system, attached, MODE)
        } else {
            Some("steer".into())
        };
        let before = StateBefore {
            on,
            loaded: sysfs::loaded(system),
            knobs,
            mode,
        };
        let noted = claim.note(system, Content::Try(before.clone()));
        noted.map_err(|why| {
            HostError::Unexpected(format!(
                "{why}; nothing was changed, because it could not be restored after a crash"
            ))
        })?;
        *held() = Some(Owned {
            root: system.path("/"),
            claim,
            attached: attached.clone(),
            before,
        });
        // From here on it is restored when dropped.
        let begun = Self { system };
        module::ensure_loaded(system, None)?;
        if on {
            for (knob, value) in settings {
                sysfs::set_knob(system, &attached.name, attached, knob, *value)?;
            }
        } else {
            let name = attached.name.replace('!', "/");
            sysfs::attach(system, &name, attached.device, settings)?;
        }
        Ok(begun)
    }

    /// Tells whether the mode is no longer the one that the trial found or set.
    pub fn mode_was_changed(&self) -> bool {
        held().as_ref().is_some_and(|owned| {
            let now = sysfs::knob_word(self.system, &owned.attached, MODE);
            now.is_some() && now != owned.before.mode
        })
    }

    /// Keeps a mode that was set by hand.
    pub fn leave_mode(&self) {
        if let Some(owned) = held().as_mut() {
            owned.before.mode = None;
            let _ = owned
                .claim
                .note(self.system, Content::Try(owned.before.clone()));
        }
    }

    /// Restores LUC's state.
    ///
    /// # Errors
    /// If something refuses; the next command tries again.
    pub fn put_back(self) -> Result<(), HostError> {
        // Locked to the end, so that a signal waits until everything is restored.
        let mut held = held();
        match held.take() {
            Some(owned) => owned.put_back(self.system),
            None => Ok(()),
        }
    }
}

impl Drop for RestoreOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(owned) = held().take() {
            // A failure is not lost: the next command tries again.
            let _ = owned.put_back(self.system);
        }
    }
}

/// Claims the file system for a trial, once a guard has ended its pair. Calls `waits` before it
/// waits for that.
pub fn take_turn(
    system: &dyn System,
    attached: &Attached,
    stop: &Stop,
    waits: impl FnOnce() -> io::Result<()>,
) -> Result<Claim, HostError> {
    let end = now() + Lengths::default().pair_max();
    let mut waits = Some(waits);
    loop {
        let is_guarded = || Claim::take(system, attached, "try", Purpose::Guard).is_err();
        match Claim::take(system, attached, "try", Purpose::Switch) {
            Err(HostError::Busy { .. }) if now() < end && !stop.is_set() && is_guarded() => {
                if let Some(waits) = waits.take() {
                    waits()?;
                }
                wait(Duration::from_millis(200), stop);
            }
            taken => return taken,
        }
    }
}

/// Restores LUC's state when a signal ends the process.
pub fn put_back_at_once() {
    if let Some(owned) = held().take() {
        let _ = owned.put_back(&Machine::new(&owned.root));
    }
}

/// Restores LUC's state after trials that were killed. Returns a line for each.
pub fn recover(system: &dyn System) -> Result<Vec<String>, HostError> {
    let mut lines = Vec::new();
    for name in trial_files::tried(system) {
        let Some(device) = trial_files::read(system, &name, trial_files::TRY)
            .and_then(|notes| notes.device.parse::<Dev>().ok())
        else {
            continue;
        };
        let attached = Attached { name, device };
        // A running trial holds its lock.
        let Ok(claim) = Claim::take(system, &attached, "recovery", Purpose::Switch) else {
            continue;
        };
        lines.extend(put_back_killed(system, &attached, &claim)?);
    }
    Ok(lines)
}

/// Restores LUC's state after a killed trial of this file system. Returns a line if there was one.
pub fn put_back_killed(
    system: &dyn System,
    attached: &Attached,
    claim: &Claim,
) -> Result<Option<String>, HostError> {
    let notes = trial_files::read_of_disk(system, attached, trial_files::TRY);
    let Some(Content::Try(before)) = notes.map(|notes| notes.of) else {
        return Ok(None);
    };
    before.put_back(system, attached)?;
    claim.forget(system, trial_files::TRY);
    let shown = attached.name.replace('!', "/");
    Ok(Some(format!(
        "a `luc try` of {shown} was killed; LUC is restored to its earlier state"
    )))
}

#[cfg(test)]
mod tests {
    use super::super::trial_files::tests::{attached, noted};
    use super::*;

    #[test]
    fn a_trial_of_another_disk_is_not_put_back_here() {
        let (_dir, machine, tried) = noted();
        for (attached, is_put_back) in [(attached("254:32"), false), (tried, true)] {
            let claim = Claim::take(&machine, &attached, "guard", Purpose::Switch).unwrap();
            let line = put_back_killed(&machine, &attached, &claim).unwrap();
            assert_eq!(line.is_some(), is_put_back, "{line:?}");
        }
    }
}
