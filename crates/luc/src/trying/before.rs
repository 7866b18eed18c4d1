//! LUC's state before `luc try`, and how it is restored, whatever ends the trial.
//!
//! [`Held`] restores it when dropped. If a signal ends the process, [`put_back_at_once`] does;
//! after `kill -9`, the next command that calls [`recover`]. Changes made by hand meanwhile stay.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use luc_control::{Dev, knob};
use luc_host::sysfs::{self, Attached};
use luc_host::{HostError, Machine, System, module};

use super::notes::{self, Before, Claim, Of, To};
use super::subject::MODE;
use luc_cli::Context;
use luc_cli::exit::Failure;

impl Before {
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
    before: Before,
}

impl Owned {
    fn put_back(&self, system: &dyn System) -> Result<(), HostError> {
        self.before.put_back(system, &self.attached)?;
        self.claim.forget(system, notes::TRY);
        Ok(())
    }
}

static HELD: Mutex<Option<Owned>> = Mutex::new(None);

fn held() -> MutexGuard<'static, Option<Owned>> {
    // A panic never leaves it half changed.
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restores LUC's state when dropped.
pub struct Held<'a> {
    system: &'a dyn System,
}

impl<'a> Held<'a> {
    /// Saves LUC's state, before anything is changed.
    ///
    /// # Errors
    /// If the state cannot be saved: nothing was changed.
    pub fn new(
        system: &'a dyn System,
        claim: Claim,
        attached: &Attached,
        before: Before,
    ) -> Result<Self, Failure> {
        let noted = claim.note(system, Of::Try(before.clone()));
        noted.map_err(|why| {
            Failure::from(HostError::Unexpected(format!(
                "{why}; nothing was changed, because it could not be restored after a crash"
            )))
        })?;
        *held() = Some(Owned {
            root: system.path("/"),
            claim,
            attached: attached.clone(),
            before,
        });
        Ok(Self { system })
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
            let _ = owned.claim.note(self.system, Of::Try(owned.before.clone()));
        }
    }

    /// Restores LUC's state.
    ///
    /// # Errors
    /// If something refuses; the next command tries again.
    pub fn put_back(self) -> Result<(), Failure> {
        // Locked to the end, so that a signal waits until everything is restored.
        let mut held = held();
        match held.take() {
            Some(owned) => Ok(owned.put_back(self.system)?),
            None => Ok(()),
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(owned) = held().take() {
            // A failure is not lost: the next command tries again.
            let _ = owned.put_back(self.system);
        }
    }
}

/// Restores LUC's state when a signal ends the process.
pub fn put_back_at_once() {
    if let Some(owned) = held().take() {
        let _ = owned.put_back(&Machine::new(&owned.root));
    }
}

/// Restores LUC's state after trials that were killed, and notes it.
pub fn recover(context: &mut Context) -> Result<(), Failure> {
    let system = context.system;
    for name in notes::tried(system) {
        let Some(device) = notes::read(system, &name, notes::TRY)
            .and_then(|notes| notes.device.parse::<Dev>().ok())
        else {
            continue;
        };
        let attached = Attached { name, device };
        // A running trial holds its lock.
        let Ok(claim) = Claim::take(system, &attached, "recovery", To::Switch) else {
            continue;
        };
        if let Some(line) = put_back_killed(system, &attached, &claim)? {
            context.note(line)?;
        }
    }
    Ok(())
}

/// Restores LUC's state after a killed trial of this file system. Returns a line if there was one.
pub fn put_back_killed(
    system: &dyn System,
    attached: &Attached,
    claim: &Claim,
) -> Result<Option<String>, HostError> {
    let notes = notes::read(system, &attached.name, notes::TRY);
    let Some(Of::Try(before)) = notes.map(|notes| notes.of) else {
        return Ok(None);
    };
    before.put_back(system, attached)?;
    claim.forget(system, notes::TRY);
    let shown = attached.name.replace('!', "/");
    Ok(Some(format!(
        "a `luc try` of {shown} was killed; LUC is restored to its earlier state"
    )))
}
