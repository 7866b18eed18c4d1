//! Whether a file system takes writes.
//!
//! After an error, a forced shutdown or a freeze, every write fails or waits, while the mount table
//! may still show `rw`: since Linux 6.12 (commit d3476f3dad4a), ext4 no longer becomes read-only
//! after an error. The sources, best first: the kernel's own state, by BPF; the mount options,
//! which show it since Linux 6.15 (commits 6b76715d5e41 and 5855c3519463); the journal's superblock
//! on the device, which records the error of an abort. The state of the devices below is in sysfs.

use std::iter;
use std::path::{Path, PathBuf};

use luc_bpf::{JournalLister, JournalState};
use luc_control::Dev;
use luc_trace::printable;
use serde::{Serialize, Serializer};

use crate::fault::Fault;
use crate::journal::Journal;
use crate::mounts::{self, Mount};
use crate::system::System;
use crate::{disks, halted, stack, superblock};

/// Whether a file system takes writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// The kernel says that it does.
    Sound,
    /// It does not.
    Unsound(Fault),
    /// No source that can be read shows a fault.
    #[default]
    Unknown,
}

impl Health {
    /// The fault, if one is seen.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Unsound(fault) => Some(fault),
            Self::Sound | Self::Unknown => None,
        }
    }

    /// For programs: `sound` or the fault; `None` if unknown.
    pub fn word(&self) -> Option<&'static str> {
        match self {
            Self::Sound => Some("sound"),
            Self::Unsound(fault) => Some(fault.word()),
            Self::Unknown => None,
        }
    }
}

impl Serialize for Health {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.word().serialize(to)
    }
}

/// Looks at the health of file systems, once or repeatedly.
pub struct HealthCheck(Option<JournalLister>);

impl HealthCheck {
    /// Loads the program that asks the kernel. If that is refused, the other sources remain.
    pub fn new(system: &dyn System) -> Self {
        // With --sysroot, the running kernel is not the one that was asked about.
        let real = system.path("/sys") == Path::new("/sys");
        Self(real.then(JournalLister::load).and_then(Result::ok))
    }

    /// The health of each of these file systems at this moment.
    pub fn look(&self, system: &dyn System, journals: &[Journal]) -> Vec<Health> {
        let listed = self.0.as_ref().map(JournalLister::list);
        let states = listed.and_then(Result::ok).unwrap_or_default();
        let table = mounts::mounts(system).unwrap_or_default();
        let health = |journal: &Journal| {
            let state = states.iter().find(|state| state.device == journal.device);
            let fault = match state {
                Some(state) => fault_of(state),
                None => shown(system, journal),
            };
            let fault = match fault {
                // Device mapper freezes the file system, too, and only it can thaw that.
                None | Some(Fault::Frozen) => halted(system, journal).or(fault),
                Some(_) => fault,
            };
            let fault = match fault {
                None => below(system, &states, &table, journal),
                Some(Fault::JournalAborted { errno, .. }) => Some(Fault::JournalAborted {
                    errno,
                    full: full_below(system, &table, journal),
                }),
                Some(_) => fault,
            };
            let sound = state.map_or(Health::Unknown, |_| Health::Sound);
            fault.map_or(sound, Health::Unsound)
        };
        journals.iter().map(health).collect()
    }

    /// The fault of one file system at this moment, if one is seen.
    pub fn fault(&self, system: &dyn System, journal: &Journal) -> Option<Fault> {
        let healths = self.look(system, std::slice::from_ref(journal));
        healths.first()?.fault().cloned()
    }
}

/// The devices of a file system and of its journal.
fn devices(journal: &Journal) -> Vec<Dev> {
    let own = iter::once(journal.device);
    own.chain(journal.log_device).collect()
}

/// The fault of a device that the file system or its journal lies on.
fn halted(system: &dyn System, journal: &Journal) -> Option<Fault> {
    halted::halted(system, &devices(journal))
}

/// The fault of a file system on whose files this one or its journal lies.
fn below(
    system: &dyn System,
    states: &[JournalState],
    table: &[Mount],
    journal: &Journal,
) -> Option<Fault> {
    let hosts = hosts(system, table, journal);
    hosts.into_iter().find_map(|host| {
        let state = states.iter().find(|state| state.device == host);
        let fault = state.and_then(fault_of);
        let fault = fault.or_else(|| halted::halted(system, &[host]))?;
        let point = mounts::points_of(table, host).into_iter().next();
        Some(Fault::Below {
            place: point.map_or_else(
                || disks::node_of(system, host),
                |point| printable(&point.to_string_lossy()),
            ),
            fault: Box::new(fault),
        })
    })
}

/// The mount point of a file system on whose files this one or its journal lies and that has no
/// free space.
fn full_below(system: &dyn System, table: &[Mount], journal: &Journal) -> Option<String> {
    let mut points = hosts(system, table, journal)
        .into_iter()
        .filter_map(|host| mounts::points_of(table, host).into_iter().next());
    let is_full = |point: &PathBuf| {
        let space = rustix::fs::statvfs(system.path(&point.to_string_lossy()));
        space.is_ok_and(|space| space.f_blocks > 0 && space.f_bavail == 0)
    };
    let full = points.find(is_full)?;
    Some(printable(&full.to_string_lossy()))
}

/// The devices of the file systems on whose files this one or its journal lies.
fn hosts(system: &dyn System, table: &[Mount], journal: &Journal) -> Vec<Dev> {
    let devices = devices(journal).into_iter();
    devices
        .flat_map(|device| stack::lies_on(system, table, device))
        .collect()
}

/// The fault that the kernel's state of a journal amounts to.
fn fault_of(state: &JournalState) -> Option<Fault> {
    /// A forced shutdown aborts the journal with this error.
    const ESHUTDOWN: u32 = 108;
    match state.aborted {
        Some(ESHUTDOWN) => Some(Fault::ShutDown),
        Some(errno) => Some(Fault::aborted(errno)),
        None if state.shut_down => Some(Fault::ShutDown),
        None if state.emergency_read_only => Some(Fault::WritesRefused),
        None => state.frozen.then_some(Fault::Frozen),
    }
}

/// A fault that can be seen without BPF.
fn shown(system: &dyn System, journal: &Journal) -> Option<Fault> {
    let name = &journal.name;
    // The driver's list is current; the mount table was read earlier.
    let current = system.read(&format!("/proc/fs/ext4/{name}/options"));
    let current = current.unwrap_or_default();
    let mut options = current.lines().chain(journal.options.split(','));
    let by_option = options.find_map(|option| match option {
        "shutdown" => Some(Fault::ShutDown),
        "emergency_ro" => Some(Fault::WritesRefused),
        _ => None,
    });
    by_option.or_else(|| {
        let errno = superblock::journal_errno(system, name, journal.begins_at?)?;
        (errno != 0).then(|| Fault::aborted(errno))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_state_is_read_as_one_fault() {
        let sound = JournalState {
            device: Dev { major: 8, minor: 1 },
            frozen: false,
            shut_down: false,
            emergency_read_only: false,
            aborted: None,
        };
        assert_eq!(fault_of(&sound), None);
        let aborted = |errno| JournalState {
            // Linux 6.12 (commit d3476f3dad4a) to 6.14 (until commit 8f984530c242 in 6.15) mark the
            // file system as shut down after an error, too.
            shut_down: true,
            aborted: Some(errno),
            ..sound
        };
        let errno = |errno| Some(Fault::JournalAborted { errno, full: None });
        assert_eq!(fault_of(&aborted(5)), errno(Some(5)));
        assert_eq!(fault_of(&aborted(0)), errno(None));
        assert_eq!(fault_of(&aborted(108)), Some(Fault::ShutDown));
        let state = JournalState {
            frozen: true,
            ..sound
        };
        assert_eq!(fault_of(&state), Some(Fault::Frozen));
        let state = JournalState {
            emergency_read_only: true,
            ..sound
        };
        assert_eq!(fault_of(&state), Some(Fault::WritesRefused));
        let state = JournalState {
            shut_down: true,
            frozen: true,
            ..sound
        };
        assert_eq!(fault_of(&state), Some(Fault::ShutDown));
    }
}
