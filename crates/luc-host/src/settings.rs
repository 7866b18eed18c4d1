//! Settings of this machine that a program changes for a while.
//!
//! [`OldValues`] are saved in the [`Lock`]'s file before the first change. Whatever ends the
//! program, `kill -9` included, it or its next run puts them back from there. The file is locked
//! while the program runs, so that two programs never change settings at once.

use std::fs::{self, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};

use luc_base::Locked;
use serde::{Deserialize, Serialize};

use crate::error::HostError;
use crate::kernel;
use crate::system::{System, plain};

/// The lock, with the old values.
pub const LOCK: &str = "/run/luc-settings";

/// A file of the machine and the text that it should hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: String,
    /// `None`: the file is only saved, because another change may alter it.
    pub to: Option<String>,
    /// Whether the file reads back as it was written.
    pub exact: bool,
}

impl Change {
    /// Makes the change and checks that the kernel accepted it.
    ///
    /// # Errors
    /// The reason why it did not, in one line.
    pub fn make(&self, system: &dyn System) -> Result<(), String> {
        let Self { path, to, exact } = self;
        let Some(to) = to else {
            return Ok(());
        };
        let written = system.write(path, to);
        written.map_err(|error| format!("cannot set {path} to {to}: {}", plain(&error)))?;
        let got = value(system, path);
        if *exact && got != *to {
            return Err(format!("{path} was set to {to} but reads {got}"));
        }
        Ok(())
    }

    /// `PATH is TEXT, no longer TEXT` if somebody else has set it since.
    pub fn lost(&self, system: &dyn System) -> Option<String> {
        let to = self.to.as_ref().filter(|_| self.exact)?;
        let now = value(system, &self.path);
        (now != *to).then(|| format!("{} is {now}, no longer {to}", self.path))
    }
}

/// Text of a file, trimmed; empty if there is no such file.
pub fn value(system: &dyn System, path: &str) -> String {
    let text = system.read(path).unwrap_or_default();
    text.trim().to_owned()
}

/// The machine's settings before they were changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OldValues {
    /// Name and version of the format, which tells the program that saved them.
    pub schema: String,
    /// The command that puts them back.
    pub restore: String,
    /// The boot in which the settings were changed; a reboot resets them.
    boot: String,
    values: Vec<OldValue>,
}

/// A file and its text before the changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OldValue {
    path: String,
    text: String,
    /// Texts that the program writes: any other was set by somebody else, and stays. If empty, the
    /// old text replaces any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    own: Vec<String>,
}

impl OldValue {
    /// `PATH is TEXT` if somebody else has set the present text.
    fn foreign(&self, now: &str) -> Option<String> {
        let is_theirs = |own: &[String]| !own.is_empty() && own.iter().all(|text| text != now);
        (now != self.text && is_theirs(&self.own)).then(|| format!("{} is {now}", self.path))
    }
}

/// The outcome of putting settings back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Returned {
    /// `PATH to TEXT` for each file that held another text.
    pub values: Vec<String>,
    /// `PATH is TEXT` for each file that somebody else has set.
    pub foreign: Vec<String>,
    /// Why the first of the others cannot be put back.
    pub refused: Option<String>,
}

impl Returned {
    /// For each file that held another text: `PATH to TEXT`, or that it stays.
    pub fn told(&self) -> Vec<String> {
        let stays = |file: &String| format!("{file}, set by somebody else, and stays");
        let foreign = self.foreign.iter().map(stays);
        self.values.iter().cloned().chain(foreign).collect()
    }
}

impl OldValues {
    pub fn new(system: &dyn System, schema: &str, restore: &str) -> Self {
        Self {
            schema: schema.to_owned(),
            restore: restore.to_owned(),
            boot: kernel::boot_id(system).unwrap_or_default(),
            values: Vec::new(),
        }
    }

    /// Adds a file's present text, once, and the texts that may be replaced by it later.
    pub fn add(&mut self, system: &dyn System, path: &str, own: &[String]) {
        let text = value(system, path);
        let first = self.values.iter().all(|value| value.path != path);
        // `<unsupported>` is not a value: the governor has no speed to set.
        if first && !text.is_empty() && !text.starts_with('<') {
            self.values.push(OldValue {
                path: path.to_owned(),
                text,
                own: own.to_vec(),
            });
        }
    }

    /// The text that a file held; `None` if it is not one of these.
    pub fn text(&self, path: &str) -> Option<&str> {
        let value = self.values.iter().find(|value| value.path == path)?;
        Some(&value.text)
    }

    /// `PATH is TEXT` for the first file that somebody else has set since.
    pub fn foreign(&self, system: &dyn System) -> Option<String> {
        let mut values = self.values.iter();
        values.find_map(|old| old.foreign(&value(system, &old.path)))
    }

    /// Whether a reboot since left nothing to put back.
    pub fn booted(&self, system: &dyn System) -> bool {
        self.boot != kernel::boot_id(system).unwrap_or_default()
    }

    /// Puts back what the program changed, the last first.
    pub fn put_back(&self, system: &dyn System) -> Returned {
        let mut done = Returned::default();
        for old in self.values.iter().rev() {
            let OldValue { path, text, .. } = old;
            let now = value(system, path);
            if now == *text {
                continue;
            }
            if let Some(foreign) = old.foreign(&now) {
                done.foreign.push(foreign);
                continue;
            }
            match system.write(path, text) {
                Ok(()) => done.values.push(format!("{path} to {text}")),
                Err(error) => {
                    let why = || format!("{path} to {text}: {}", plain(&error));
                    done.refused.get_or_insert_with(why);
                }
            }
        }
        done
    }
}

/// The right to change the machine's settings, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: Locked,
}

impl Lock {
    /// # Errors
    /// Another program has it.
    pub fn take(system: &dyn System) -> Result<Self, HostError> {
        let path = system.path(LOCK);
        let failed = |error: &io::Error| {
            HostError::Unexpected(format!("cannot lock {}: {}", path.display(), plain(error)))
        };
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(|error| failed(&error))?;
        }
        let file = Locked::open(&path).map_err(|error| match error {
            TryLockError::WouldBlock => HostError::Busy {
                what: "settings of this machine".into(),
                why: "another run of luc-lab campaign or luc power is changing them".into(),
                fix: "wait until it ends".into(),
            },
            TryLockError::Error(error) => failed(&error),
        })?;
        Ok(Self { file })
    }

    /// Returns the text that a run of this schema left; empty if there is none.
    ///
    /// # Errors
    /// Another program changed settings in this boot and has not put them back.
    pub fn left(&mut self, system: &dyn System, schema: &str) -> Result<String, HostError> {
        let mut text = String::new();
        // If the text is incomplete, the run was killed before any change.
        let _ = self.file.read_to_string(&mut text);
        let _ = self.file.rewind();
        match serde_json::from_str::<OldValues>(&text) {
            Ok(other) if other.schema != schema && !other.booted(system) => Err(HostError::Busy {
                what: "settings of this machine".into(),
                why: "changed by another program of LUC, which has not put them back".into(),
                fix: format!("put them back with `{}`", other.restore),
            }),
            _ => Ok(text),
        }
    }

    /// Saves the text that a later run needs to put the settings back.
    ///
    /// # Errors
    /// The system's.
    pub fn save(&mut self, text: &[u8]) -> io::Result<()> {
        self.clear()?;
        self.file.write_all(text)?;
        self.file.sync_all()
    }

    /// Forgets that text.
    ///
    /// # Errors
    /// The system's.
    pub fn clear(&mut self) -> io::Result<()> {
        self.file.rewind()?;
        self.file.set_len(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: &str = "/sys/max";
    const SCHEMA: &str = "toy/1";

    fn old(own: &[&str], files: &[(&str, &str)]) -> (tempfile::TempDir, crate::Machine, OldValues) {
        let (tree, machine) = crate::tree(files);
        let mut old = OldValues::new(&machine, SCHEMA, "toy --restore");
        let own: Vec<String> = own.iter().map(|text| (*text).to_owned()).collect();
        old.add(&machine, MAX, &own);
        (tree, machine, old)
    }

    #[test]
    fn only_own_texts_are_replaced() {
        let (_tree, machine, old) = old(&["20", "10"], &[("sys/max", "30\n")]);
        machine.write(MAX, "10").unwrap();
        assert_eq!(old.put_back(&machine).values, ["/sys/max to 30"]);
        assert_eq!(value(&machine, MAX), "30");
        machine.write(MAX, "25").unwrap();
        let done = old.put_back(&machine);
        assert_eq!(done.foreign, ["/sys/max is 25"]);
        assert_eq!(
            (done.values.len(), value(&machine, MAX).as_str()),
            (0, "25")
        );
    }

    #[test]
    fn without_own_texts_any_is_replaced() {
        let (tree, machine, old) = old(&[], &[("sys/max", "30\n")]);
        machine.write(MAX, "25").unwrap();
        assert_eq!(old.put_back(&machine).values, ["/sys/max to 30"]);
        fs::remove_file(tree.path().join("sys/max")).unwrap();
        let refused = old.put_back(&machine).refused.unwrap();
        assert!(refused.starts_with("/sys/max to 30: "), "{refused}");
    }

    #[test]
    fn a_lock_keeps_its_text_and_others_out() {
        let files = [("sys/max", "30"), ("proc/sys/kernel/random/boot_id", "one")];
        let (_tree, machine, old) = old(&[], &files);
        let text = serde_json::to_vec(&old).unwrap();
        let mut lock = Lock::take(&machine).unwrap();
        let busy = Lock::take(&machine).unwrap_err().to_string();
        assert!(busy.contains("is changing them"), "{busy}");
        assert_eq!(lock.left(&machine, SCHEMA).unwrap(), "");
        lock.save(b"a longer text than the one that replaces it, by many bytes in a row, and more")
            .unwrap();
        lock.save(&text).unwrap();
        drop(lock);
        let mut lock = Lock::take(&machine).unwrap();
        assert_eq!(lock.left(&machine, SCHEMA).unwrap().as_bytes(), text);
        let other = lock.left(&machine, "other/1").unwrap_err().to_string();
        assert!(
            other.ends_with("put them back with `toy --restore`"),
            "{other}"
        );
        machine
            .write("/proc/sys/kernel/random/boot_id", "two")
            .unwrap();
        assert!(lock.left(&machine, "other/1").is_ok() && old.booted(&machine));
        lock.clear().unwrap();
        assert_eq!(lock.left(&machine, SCHEMA).unwrap(), "");
    }
}
