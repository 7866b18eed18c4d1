//! Locks and notes of the processes that try LUC on file systems: files below `/run/luc`.
//!
//! The guard of NAME holds `NAME.guard.lock`. The process that switches NAME's mode holds
//! `NAME.lock`: a trial all the time, a guard only while it looks and during a pair, so that a
//! trial can come in between. `NAME.try.json` and `NAME.guard.json` hold their notes for after a
//! crash. A lock ends with its process, notes stay. Notes are valid for one boot: the next one
//! starts with LUC off.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::PathBuf;

use luc_guard::Saved;
use luc_host::sysfs::Attached;
use luc_host::{HostError, System, kernel, plain};
use serde::{Deserialize, Serialize};

/// Folder of these files.
pub const DIR: &str = "/run/luc";
pub const TRY: &str = "try.json";
pub const GUARD: &str = "guard.json";
const SCHEMA: &str = "luc-notes/1";

/// A process's notes about a file system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notes {
    schema: String,
    boot: String,
    pub name: String,
    pub device: String,
    pub pid: u32,
    #[serde(flatten)]
    pub of: Content,
}

/// The notes of one verb.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    Try(StateBefore),
    /// The state from which the guard continues.
    Guard(Box<Saved>),
}

/// LUC's state before a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateBefore {
    /// Whether LUC was on for the file system, and whether the module was loaded.
    pub on: bool,
    pub loaded: bool,
    /// Knobs that the trial sets, with the values before and during it. Other values are set by
    /// hand.
    pub knobs: BTreeMap<String, (String, String)>,
    /// The mode, which the trial sets again and again; `None` if it was set by hand meanwhile.
    pub mode: Option<String>,
}

/// The purpose of a claim to a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Guard,
    Switch,
}

/// A lock on a file system, held until dropped.
#[derive(Debug)]
pub struct Claim {
    _lock: File,
    /// Whether another process has held the lock since this one did.
    pub was_others: bool,
    name: String,
    device: String,
}

fn file(system: &dyn System, name: &str, ending: &str) -> PathBuf {
    system.path(&format!("{DIR}/{name}.{ending}"))
}

impl Claim {
    /// Locks a file system for `verb`.
    ///
    /// # Errors
    /// If another process holds the lock, or the lock's file cannot be created.
    pub fn take(
        system: &dyn System,
        attached: &Attached,
        verb: &str,
        purpose: Purpose,
    ) -> Result<Self, HostError> {
        let ending = match purpose {
            Purpose::Guard => "guard.lock",
            Purpose::Switch => "lock",
        };
        let path = file(system, &attached.name, ending);
        let cannot = |error: &io::Error| {
            HostError::Unexpected(format!(
                "cannot lock {}: {}; nothing was changed",
                path.display(),
                plain(error)
            ))
        };
        fs::create_dir_all(system.path(DIR)).map_err(|error| cannot(&error))?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut lock = options.open(&path).map_err(|error| cannot(&error))?;
        let locked = lock.try_lock();
        let mut former = String::new();
        let _ = lock.read_to_string(&mut former);
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(taken(&attached.name, former.trim(), purpose));
            }
            Err(TryLockError::Error(error)) => return Err(cannot(&error)),
        }
        // For people and later owners. The lock does not need it, so a full /run is no reason to
        // stop.
        let owner = format!("luc {verb}, process {}\n", std::process::id());
        let was_others = owner != former;
        if was_others {
            let _ = lock
                .set_len(0)
                .and_then(|()| lock.rewind())
                .and_then(|()| lock.write_all(owner.as_bytes()));
        }
        Ok(Self {
            _lock: lock,
            was_others,
            name: attached.name.clone(),
            device: attached.device.to_string(),
        })
    }

    /// Replaces earlier notes; fails with a line that says why.
    pub fn note(&self, system: &dyn System, of: Content) -> Result<(), String> {
        let ending = match of {
            Content::Try(_) => TRY,
            Content::Guard(_) => GUARD,
        };
        let path = file(system, &self.name, ending);
        let notes = Notes {
            schema: SCHEMA.to_owned(),
            boot: kernel::boot_id(system).unwrap_or_default(),
            name: self.name.clone(),
            device: self.device.clone(),
            pid: std::process::id(),
            of,
        };
        let cannot =
            |error: &io::Error| format!("cannot write {}: {}", path.display(), plain(error));
        let text = serde_json::to_string(&notes).map_err(|error| cannot(&error.into()))?;
        luc_base::replace_file(&path, text.as_bytes()).map_err(|error| cannot(&error))
    }

    /// Removes the notes with this ending.
    pub fn forget(&self, system: &dyn System, ending: &str) {
        let _ = fs::remove_file(file(system, &self.name, ending));
    }
}

fn taken(name: &str, owner: &str, purpose: Purpose) -> HostError {
    let owner = if owner.is_empty() {
        "another process"
    } else {
        owner
    };
    HostError::Busy {
        what: name.replace('!', "/"),
        why: match purpose {
            Purpose::Guard => format!("{owner}, already guards it"),
            Purpose::Switch => format!("{owner}, already switches LUC here"),
        },
        fix: "wait until it ends, or end it".into(),
    }
}

/// Reads the notes with this ending about a file system, if they are of this boot and valid.
pub fn read(system: &dyn System, name: &str, ending: &str) -> Option<Notes> {
    let text = fs::read_to_string(file(system, name, ending)).ok()?;
    let notes: Notes = serde_json::from_str(&text).ok()?;
    let boot = kernel::boot_id(system).unwrap_or_default();
    (notes.schema == SCHEMA && notes.boot == boot).then_some(notes)
}

/// Reads what a guard saved about a file system, and whether that guard still runs.
pub fn guarded(system: &dyn System, attached: &Attached) -> Option<(Saved, bool)> {
    let notes = read(system, &attached.name, GUARD)?;
    match notes.of {
        Content::Guard(saved) if notes.device == attached.device.to_string() => {
            Some((*saved, system.exists(&format!("/proc/{}", notes.pid))))
        }
        _ => None,
    }
}

/// File systems with notes of a trial.
pub fn tried(system: &dyn System) -> Vec<String> {
    let names = system.list(DIR).unwrap_or_default().into_iter();
    names
        .filter_map(|name| Some(name.strip_suffix(TRY)?.strip_suffix('.')?.to_owned()))
        .collect()
}
