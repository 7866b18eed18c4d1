//! Restores the machine's settings, whatever ends the measurement.
//!
//! [`Guard`] restores them when it is dropped, in reverse order; [`put_back_at_once`] does so when
//! a signal ends the process. For other ends, such as `kill -9`, the old values are saved before
//! the first change: in the folder of the results, and in the file of the machine's lock
//! ([`luc_host::settings`]), which the next run reads, whatever its folder.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use luc_host::settings::{Change, LOCK, Lock, OldValues};
use luc_host::{Machine, module, mounts, plain, sysfs};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

use crate::error::{CampaignError, Result};
use crate::store;

/// Name and version of the format.
const SCHEMA: &str = "luc-host-before/1";
/// File of the old values in the folder of the results.
const FILE: &str = "host-before.json";
const RESTORE: &str = "luc-lab campaign restore";
/// Longest wait for a file system that is still in use.
const BUSY_MAX: Duration = Duration::from_secs(5);

/// The machine's settings before they were changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Before {
    #[serde(flatten)]
    old: OldValues,
    /// Private folder that holds the mounts; removed after they are unmounted.
    folder: PathBuf,
    /// Folder of the results.
    out: PathBuf,
}

/// Settings that were put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBack {
    /// For each file that held another text: `PATH to TEXT`, or that it stays.
    pub values: Vec<String>,
    pub unmounted: usize,
    /// Whether a reboot since left nothing to restore.
    pub booted: bool,
}

/// The lock by which the machine belongs to this run.
pub struct Locked {
    lock: Lock,
    root: PathBuf,
}

/// The state that a [`Guard`] owns, unless a signal handler has taken it first.
struct Held {
    id: u64,
    locked: Locked,
    before: Before,
    child: Option<Pid>,
}

static HELD: Mutex<(u64, Vec<Held>)> = Mutex::new((0, Vec::new()));

fn held() -> MutexGuard<'static, (u64, Vec<Held>)> {
    // No panic leaves the list half changed.
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This machine cannot measure the cell, for this reason.
pub fn unavailable(why: impl Into<String>) -> CampaignError {
    CampaignError::Unavailable {
        place: "host".into(),
        why: why.into(),
    }
}

impl Locked {
    /// Locks the machine for measuring.
    ///
    /// # Errors
    /// Another run holds it.
    pub fn take(root: &Path) -> Result<Self> {
        Ok(Self {
            lock: Lock::take(&Machine::new(root))
                .map_err(|error| unavailable(error.to_string()))?,
            root: root.to_owned(),
        })
    }

    /// Restores what a killed run left changed: the last run on this machine, or else the run of
    /// the folder `out`. `None` if there was no such run.
    ///
    /// # Errors
    /// A value cannot be restored; the next run tries again.
    pub fn recover(&mut self, out: &Path) -> Result<Option<PutBack>> {
        let text = self
            .lock
            .left(&Machine::new(&self.root), SCHEMA)
            .map_err(|error| unavailable(error.to_string()))?;
        let of_folder = || fs::read_to_string(out.join(FILE)).ok();
        let before: Option<Before> = serde_json::from_str(&text)
            .ok()
            .or_else(|| serde_json::from_str(&of_folder()?).ok());
        let Some(before) = before.filter(|before| before.old.schema == SCHEMA) else {
            return Ok(None);
        };
        put_back(self, &before).map(Some)
    }

    fn forget(&mut self, before: &Before) -> Result<()> {
        store::remove(&before.out.join(FILE))?;
        let cleared = self.lock.clear();
        cleared.map_err(CampaignError::file("clear", Path::new(LOCK)))
    }
}

/// Texts that this run writes to a file; none if the file does not read back as it was written.
fn own_texts(changes: &[Change], path: &str) -> Vec<String> {
    let of_file = || changes.iter().filter(|change| change.path == path);
    if of_file().any(|change| !change.exact) {
        return Vec::new();
    }
    of_file().filter_map(|change| change.to.clone()).collect()
}

/// Restores the machine when it is dropped.
pub struct Guard {
    id: u64,
}

impl Guard {
    /// Saves the old values and makes the changes. If one is refused, all are undone.
    ///
    /// # Errors
    /// A change is refused, or the old values cannot be saved.
    pub fn set(mut locked: Locked, out: &Path, folder: &Path, changes: &[Change]) -> Result<Self> {
        let machine = Machine::new(&locked.root);
        let mut old = OldValues::new(&machine, SCHEMA, RESTORE);
        for change in changes {
            old.add(&machine, &change.path, &own_texts(changes, &change.path));
        }
        let out = out
            .canonicalize()
            .map_err(CampaignError::file("find", out))?;
        let before = Before {
            old,
            folder: folder.to_owned(),
            out,
        };
        let json = store::json(&before);
        store::write(&before.out.join(FILE), &json)?;
        if let Err(error) = locked.lock.save(&json) {
            locked.forget(&before)?;
            return Err(CampaignError::file("write", Path::new(LOCK))(error));
        }
        let mut all = held();
        all.0 += 1;
        let id = all.0;
        all.1.push(Held {
            id,
            locked,
            before,
            child: None,
        });
        drop(all);
        let guard = Self { id };
        for change in changes {
            if let Err(why) = change.make(&machine) {
                guard.put_back()?;
                return Err(unavailable(why));
            }
        }
        Ok(guard)
    }

    /// Registers a process group to kill if a signal ends this process.
    pub fn child_runs(&self, child: &Child) {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        self.with(|held| held.child = pid);
    }

    /// The exit status if the process has ended, which also unregisters it.
    pub fn child_ended(
        &self,
        child: &mut Child,
    ) -> std::io::Result<Option<std::process::ExitStatus>> {
        // Under the lock, so that no process is killed that has reused the id.
        self.with(|held| {
            let status = child.try_wait()?;
            if status.is_some() {
                held.child = None;
            }
            Ok(status)
        })
        .unwrap_or_else(|| child.try_wait())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Held) -> T) -> Option<T> {
        let mut all = held();
        all.1.iter_mut().find(|held| held.id == self.id).map(act)
    }

    /// Restores everything.
    ///
    /// # Errors
    /// A value cannot be restored; the next run tries again.
    pub fn put_back(self) -> Result<()> {
        take_back(self.id)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // A failure is not lost: the next run tries again and reports it.
        let _ = take_back(self.id);
    }
}

fn take_back(id: u64) -> Result<()> {
    // Locked to the end, so that a signal's handler waits until all is restored.
    let mut all = held();
    let Some(at) = all.1.iter().position(|held| held.id == id) else {
        return Ok(());
    };
    let mut held = all.1.remove(at);
    end(&mut held)
}

fn end(held: &mut Held) -> Result<()> {
    if let Some(group) = held.child.take() {
        let _ = kill_process_group(group, Signal::KILL);
    }
    put_back(&mut held.locked, &held.before).map(drop)
}

/// Restores everything at once, because a signal ends the process.
pub fn put_back_at_once() {
    for mut one in std::mem::take(&mut held().1) {
        if let Err(error) = end(&mut one) {
            let _ = writeln!(std::io::stderr(), "luc-lab: {error}");
        }
    }
}

fn put_back(locked: &mut Locked, before: &Before) -> Result<PutBack> {
    let machine = Machine::new(&locked.root);
    let mut done = PutBack {
        values: Vec::new(),
        unmounted: 0,
        booted: before.old.booted(&machine),
    };
    if done.booted {
        remove_folder(&before.folder);
        locked.forget(before)?;
        return Ok(done);
    }
    let mut refused: Option<String> = None;
    match unmount_below(&machine, &before.folder) {
        Ok(unmounted) => done.unmounted = unmounted,
        Err(why) => refused = Some(why),
    }
    // The module was not loaded before: the place refuses a machine with it.
    if sysfs::loaded(&machine)
        && let Err(error) = module::unload(&machine)
    {
        refused.get_or_insert(error.to_string());
    }
    let returned = before.old.put_back(&machine);
    done.values = returned.told();
    let refused = refused.or(returned.refused);
    if let Some(why) = refused {
        let why = format!("cannot restore {why}; `{RESTORE}` tries again");
        return Err(unavailable(why));
    }
    remove_folder(&before.folder);
    locked.forget(before)?;
    Ok(done)
}

/// Unmounts everything below a folder, the last mount first.
pub fn unmount_below(machine: &Machine, folder: &Path) -> std::result::Result<usize, String> {
    let cannot = |what: &Path, why: &dyn std::fmt::Display| format!("{}: {why}", what.display());
    let table = mounts::mounts(machine).map_err(|error| cannot(folder, &error))?;
    let mut count = 0;
    for mount in table.iter().rev() {
        if !mount.point.starts_with(folder) || folder.as_os_str().is_empty() {
            continue;
        }
        unmount(&mount.point).map_err(|error| cannot(&mount.point, &plain(&error)))?;
        count += 1;
    }
    Ok(count)
}

fn unmount(point: &Path) -> std::io::Result<()> {
    let begun = Instant::now();
    loop {
        match rustix::mount::unmount(point, rustix::mount::UnmountFlags::empty()) {
            Err(rustix::io::Errno::BUSY) if begun.elapsed() < BUSY_MAX => {
                std::thread::sleep(Duration::from_millis(50));
            }
            done => return Ok(done?),
        }
    }
}

/// Start of a private folder's name.
pub const FOLDER: &str = "luc-host-";

/// Removes a private folder after its mounts; a failure is harmless. The name may come from an
/// edited file, so it is checked.
fn remove_folder(folder: &Path) {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with(FOLDER) {
        let _ = fs::remove_dir_all(folder);
    }
}
