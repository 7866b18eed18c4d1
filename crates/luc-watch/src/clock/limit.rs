//! The limit on the clock, and how the old one is restored, whatever ends the program.
//!
//! [`Limit`] puts it back when dropped. If a signal ends the process, [`put_back_at_once`] does;
//! after `kill -9`, the service or the next [`restore`]. A limit that somebody else set meanwhile
//! stays.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use luc_guard::Trouble;
use luc_host::settings::{Change, Lock, OldValues, Returned, value};
use luc_host::{HostError, Machine, System, plain};
use serde::Serialize;

use super::clocks::{Clock, Clocks};

/// Name and version of the saved values.
pub(super) const SCHEMA: &str = "luc-power-before/1";
const RESTORE: &str = "luc power --restore";

/// The clock's files, until they are put back.
struct Owned {
    root: PathBuf,
    lock: Lock,
    old: OldValues,
}

impl Owned {
    fn put_back(&mut self, system: &dyn System) -> Result<Returned, HostError> {
        put_back(system, &mut self.lock, &self.old)
    }
}

static HELD: Mutex<Option<Owned>> = Mutex::new(None);

fn held() -> MutexGuard<'static, Option<Owned>> {
    // A panic never leaves it half changed.
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn put_back(
    system: &dyn System,
    lock: &mut Lock,
    old: &OldValues,
) -> Result<Returned, HostError> {
    let mut done = Returned::default();
    if !old.booted(system) {
        done = old.put_back(system);
    }
    if let Some(why) = done.refused {
        return Err(HostError::Unexpected(format!(
            "cannot put back {why}; `{RESTORE}` tries again"
        )));
    }
    lock.clear()?;
    Ok(done)
}

/// Claims the machine's settings, and puts back what an earlier run left changed. Returns a line
/// about that if there was such a run.
///
/// # Errors
/// Another program changes settings, or a value cannot be put back.
pub fn restore(system: &dyn System) -> Result<(Lock, Option<String>), HostError> {
    let mut lock = Lock::take(system)?;
    let text = lock.left(system, SCHEMA)?;
    let Ok(old) = serde_json::from_str::<OldValues>(&text) else {
        return Ok((lock, None));
    };
    let booted = old.booted(system);
    let done = put_back(system, &mut lock, &old)?;
    let line = if booted {
        "a reboot has reset the limits of an earlier `luc power`".to_owned()
    } else {
        format!("put back after an earlier `luc power`: {}", told(&done))
    };
    Ok((lock, Some(line)))
}

/// The outcome of putting limits back, in words.
pub fn told(done: &Returned) -> String {
    let mut parts = done.told();
    if parts.is_empty() {
        parts.push("every limit was already as before".into());
    }
    parts.join(", ")
}

/// Puts the limit back when dropped.
pub struct Limit<'a> {
    system: &'a dyn System,
}

impl<'a> Limit<'a> {
    /// Saves the present limits; changes nothing yet.
    ///
    /// # Errors
    /// They cannot be saved.
    pub fn begin(
        system: &'a dyn System,
        mut lock: Lock,
        clocks: &Clocks,
    ) -> Result<Self, HostError> {
        let mut old = OldValues::new(system, SCHEMA, RESTORE);
        for (at, file) in clocks.files.iter().enumerate() {
            let own: Vec<String> = clocks.lower.iter().map(|it| it[at].clone()).collect();
            old.add(system, file, &own);
        }
        let saved = serde_json::to_vec(&old).map_err(std::io::Error::from);
        saved.and_then(|text| lock.save(&text)).map_err(|error| {
            HostError::Unexpected(format!(
                "cannot save the limits of the clock: {}; nothing was changed, because they could \
                 not be put back after a crash",
                plain(&error)
            ))
        })?;
        *held() = Some(Owned {
            root: system.path("/"),
            lock,
            old,
        });
        Ok(Self { system })
    }

    /// Puts the old limits back.
    ///
    /// # Errors
    /// Something refuses; the next command tries again.
    pub fn put_back(self) -> Result<Returned, HostError> {
        // Locked to the end, so that a signal waits until everything is put back.
        let mut held = held();
        match held.take() {
            Some(mut owned) => owned.put_back(self.system),
            None => Ok(Returned::default()),
        }
    }

    /// Leaves the limits as they are until the next [`restore`]. `noted` is saved in the place of
    /// the old values, and contains them.
    ///
    /// # Errors
    /// It cannot be saved; the old limits are back.
    pub fn keep<T: Serialize>(self, noted: impl FnOnce(&OldValues) -> T) -> Result<(), HostError> {
        let Some(mut owned) = held().take() else {
            return Ok(());
        };
        let saved = serde_json::to_vec(&noted(&owned.old)).map_err(std::io::Error::from);
        let saved = saved.and_then(|text| owned.lock.save(&text));
        saved.map_err(|error| {
            let _ = owned.put_back(self.system);
            HostError::Unexpected(format!(
                "cannot save what the limit of the clock is for: {}; it was put back",
                plain(&error)
            ))
        })
    }
}

impl Drop for Limit<'_> {
    fn drop(&mut self) {
        if let Some(mut owned) = held().take() {
            // A failure is not lost: the next command tries again.
            let _ = owned.put_back(self.system);
        }
    }
}

/// Sets a clock, while a [`Limit`] can still put back the old one.
pub fn set(system: &dyn System, clocks: &Clocks, clock: &Clock) -> Result<(), Trouble> {
    let held = held();
    if held.is_none() {
        return Err(Trouble::Refused("the limits were put back".into()));
    }
    for (path, to) in clocks.files.iter().zip(clock) {
        if value(system, path) == *to {
            continue;
        }
        let change = Change {
            path: path.clone(),
            to: Some(to.clone()),
            exact: true,
        };
        change.make(system).map_err(Trouble::Refused)?;
    }
    Ok(())
}

/// Puts the limits back when a signal ends the process.
pub fn put_back_at_once() {
    if let Some(mut owned) = held().take() {
        let machine = Machine::new(&owned.root);
        let _ = owned.put_back(&machine);
    }
}
