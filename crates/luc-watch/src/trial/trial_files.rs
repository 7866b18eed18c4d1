//! Locks and notes of the processes that try LUC on file systems: files below `/run/luc`.
//!
//! The guard of NAME holds `NAME.guard.lock`. The process that switches NAME's mode holds
//! `NAME.lock`: a trial all the time, a guard only while it looks and during a pair, so that a
//! trial can come in between. `NAME.try.json` and `NAME.guard.json` hold their notes for after a
//! crash. A lock ends with its process, notes stay. Notes are valid for one boot: the next one
//! starts with LUC off.

use std::collections::BTreeMap;
use std::fs::{self, TryLockError};
use std::io::{self, Write as _};
use std::path::PathBuf;

use luc_base::Locked;
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
    _lock: Locked,
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
        let locked = Locked::open(&path);
        let former = fs::read_to_string(&path).unwrap_or_default();
        let mut lock = locked.map_err(|error| match error {
            TryLockError::WouldBlock => taken(&attached.name, former.trim(), purpose),
            TryLockError::Error(error) => cannot(&error),
        })?;
        // For people and later owners. The lock does not need it, so a full /run is no reason to
        // stop.
        let owner = format!("luc {verb}, process {}\n", std::process::id());
        let was_others = owner != former;
        if was_others {
            let _ = lock
                .set_len(0)
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

    /// Tells whether there are notes with this ending, of whatever disk or boot, valid or not.
    pub fn has_notes(&self, system: &dyn System, ending: &str) -> bool {
        file(system, &self.name, ending).is_file()
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

/// Reads the notes with this ending about a file system, if they are from this boot and valid.
pub fn read(system: &dyn System, name: &str, ending: &str) -> Option<Notes> {
    let text = fs::read_to_string(file(system, name, ending)).ok()?;
    let notes: Notes = serde_json::from_str(&text).ok()?;
    let boot = kernel::boot_id(system).unwrap_or_default();
    (notes.schema == SCHEMA && notes.boot == boot).then_some(notes)
}

/// Reads the notes with this ending, unless they are about another disk of this name.
pub fn read_of_disk(system: &dyn System, attached: &Attached, ending: &str) -> Option<Notes> {
    let notes = read(system, &attached.name, ending)?;
    (notes.device == attached.device.to_string()).then_some(notes)
}

/// Reads what a guard saved about a file system, and whether that guard still runs.
pub fn guarded(system: &dyn System, attached: &Attached) -> Option<(Saved, bool)> {
    let notes = read_of_disk(system, attached, GUARD)?;
    let Content::Guard(saved) = notes.of else {
        return None;
    };
    let runs = system.exists(&format!("/proc/{}", notes.pid));
    Some((*saved, runs))
}

/// File systems with notes of a trial.
pub fn tried(system: &dyn System) -> Vec<String> {
    let names = system.list(DIR).unwrap_or_default().into_iter();
    names
        .filter_map(|name| Some(name.strip_suffix(TRY)?.strip_suffix('.')?.to_owned()))
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use luc_guard::Guard;
    use luc_host::Machine;

    use super::*;

    const BOOT: &str = "/proc/sys/kernel/random/boot_id";

    /// A machine with notes of a guard and of a trial about vdb.
    pub fn noted() -> (tempfile::TempDir, Machine, Attached) {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::new(dir.path());
        let boot = machine.path(BOOT);
        fs::create_dir_all(boot.parent().unwrap()).unwrap();
        fs::write(boot, "one\n").unwrap();
        let attached = attached("254:16");
        let claim = Claim::take(&machine, &attached, "guard", Purpose::Guard).unwrap();
        let guard = Content::Guard(Box::new(Saved {
            guard: Guard::new(1, Duration::ZERO),
            in_pair: true,
            left_alone: false,
            commits: 7,
        }));
        let before = Content::Try(StateBefore {
            on: true,
            loaded: true,
            knobs: BTreeMap::new(),
            mode: Some("steer".into()),
        });
        for content in [guard, before] {
            claim.note(&machine, content).unwrap();
        }
        (dir, machine, attached)
    }

    pub fn attached(device: &str) -> Attached {
        Attached {
            name: "vdb".into(),
            device: device.parse().unwrap(),
        }
    }

    fn is_known(machine: &Machine, attached: &Attached) -> [bool; 2] {
        let tried = read_of_disk(machine, attached, TRY).is_some();
        [guarded(machine, attached).is_some(), tried]
    }

    #[test]
    fn notes_of_another_disk_or_boot_mean_nothing() {
        let (_dir, machine, vdb) = noted();
        assert_eq!(is_known(&machine, &vdb), [true; 2]);
        assert_eq!(is_known(&machine, &attached("254:32")), [false; 2]);
        fs::write(machine.path(BOOT), "two\n").unwrap();
        assert_eq!(is_known(&machine, &vdb), [false; 2]);
    }

    #[test]
    fn damaged_notes_and_those_of_another_version_mean_nothing() {
        let cut = |text: &str| text[..text.len() / 2].to_owned();
        let other = |text: &str| text.replace(SCHEMA, "luc-notes/2");
        let lacking = |text: &str| {
            text.replace("\"commits\"", "\"x\"")
                .replace("\"on\"", "\"x\"")
        };
        let binary = |_: &str| "\u{0}\u{1}".to_owned();
        let empty = |_: &str| String::new();
        let damages: [&dyn Fn(&str) -> String; 5] = [&cut, &other, &lacking, &binary, &empty];
        for damage in damages {
            let (_dir, machine, vdb) = noted();
            for ending in [TRY, GUARD] {
                let path = file(&machine, "vdb", ending);
                let text = damage(&fs::read_to_string(&path).unwrap());
                fs::write(&path, &text).unwrap();
                let known = read(&machine, "vdb", ending);
                assert_eq!(known, None, "{ending}: {text}");
            }
            assert_eq!(is_known(&machine, &vdb), [false; 2]);
        }
    }
}
