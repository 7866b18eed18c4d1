//! The mounted file systems as `luc service` sees them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use luc_control::{Dev, knobs};
use luc_host::health::HealthCheck;
use luc_host::journal::{self, Journal};
use luc_host::mounts::{self, Mount};
use luc_host::{System, cgroup, sysfs};
use luc_service::keep::is_named;
use luc_service::{Attached, Config, Mounted, Names, Seen};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The mounts as last read, kept until they change: a look every other second reads no superblock.
pub struct Mounts {
    health: HealthCheck,
    table: Vec<Mount>,
    live: Vec<String>,
    journals: Vec<Journal>,
    threads: Vec<Option<u32>>,
}

impl Mounts {
    pub fn new(system: &dyn System) -> Self {
        Self {
            health: HealthCheck::new(system),
            table: Vec::new(),
            live: Vec::new(),
            journals: Vec::new(),
            threads: Vec::new(),
        }
    }

    /// The mounted file systems that the configuration could name, and those with LUC on.
    pub fn seen(&mut self, system: &dyn System, config: &Config) -> io::Result<Seen> {
        let mut mounted = self.mounted(system, config)?;
        let healths = self.health.look(system, &self.journals);
        for (one, health) in mounted.iter_mut().zip(healths) {
            if let Some(fault) = health.fault() {
                one.obstacle = Some(fault.short().into());
            }
        }
        Ok(Seen {
            mounted,
            attached: attached(system)?,
            groups: groups(system, config),
        })
    }

    /// The mounted file systems that the configuration names.
    pub fn named(&mut self, system: &dyn System, config: &Config) -> io::Result<Vec<Dev>> {
        let mounted = self.mounted(system, config)?;
        let is_named = |it: &&Mounted| config.entries.iter().any(|entry| is_named(entry, it));
        Ok(mounted
            .iter()
            .filter(is_named)
            .map(|it| it.device)
            .collect())
    }

    fn mounted(&mut self, system: &dyn System, config: &Config) -> io::Result<Vec<Mounted>> {
        let table = mounts::mounts(system)?;
        let threads = |journals: &[Journal]| -> Vec<Option<u32>> {
            let names = journals.iter().map(|journal| &journal.name);
            names.map(|name| journal::thread(system, name)).collect()
        };
        let live = journal::live(system);
        let changed = table != self.table || live != self.live;
        if changed || threads(&self.journals) != self.threads {
            self.journals = journal::journals(system)?;
            self.threads = threads(&self.journals);
            (self.table, self.live) = (table, live);
        }
        let asks_uuid = |entry: &luc_service::Entry| matches!(entry.names, Names::Uuid(_));
        let uuids = if config.entries.iter().any(asks_uuid) {
            uuids(system)
        } else {
            Vec::new()
        };
        let mounted = |(journal, thread): (&Journal, &Option<u32>)| {
            let uuid = uuids.iter().find(|(_, name)| *name == journal.name);
            Mounted {
                device: journal.device,
                thread: *thread,
                uuid: uuid.map(|(uuid, _)| uuid.clone()),
                obstacle: journal.obstacle().map(String::from),
                points: journal.mount_points.clone(),
            }
        };
        let journals = self.journals.iter().zip(&self.threads);
        Ok(journals.map(mounted).collect())
    }
}

/// The ids of the control groups that the configuration names and that exist.
fn groups(system: &dyn System, config: &Config) -> BTreeMap<String, i64> {
    let named = config.entries.iter().flat_map(|entry| &entry.groups);
    let there = named.filter_map(|(_, path)| {
        let id = cgroup::id_of(system, path).ok()?;
        Some((path.clone(), id))
    });
    there.collect()
}

fn attached(system: &dyn System) -> io::Result<Vec<Attached>> {
    let attached = sysfs::attached(system)?.into_iter().map(|attached| {
        let value = |knob: &luc_control::Knob| {
            let value = sysfs::knob_value(system, &attached, knob).ok()?;
            Some((knob.name.to_owned(), value))
        };
        Attached {
            device: attached.device,
            knobs: knobs().iter().filter_map(value).collect(),
        }
    });
    Ok(attached.collect())
}

/// Returns UUIDs in lower case with the kernel's names of their devices, from udev's links.
fn uuids(system: &dyn System) -> Vec<(String, String)> {
    const DIR: &str = "/dev/disk/by-uuid";
    let names = system.list(DIR).unwrap_or_default().into_iter();
    let linked = names.filter_map(|uuid| {
        let target = system.link(&format!("{DIR}/{uuid}")).ok()?;
        let name = target.file_name()?.to_str()?.to_owned();
        Some((uuid.to_ascii_lowercase(), name))
    });
    linked.collect()
}

/// The file that reports mounts and unmounts, if it can be opened.
pub struct Changes(Option<File>);

impl Changes {
    pub fn of_mounts(system: &dyn System) -> Self {
        Self(File::open(system.path("/proc/self/mountinfo")).ok())
    }

    /// Waits at most this long. Returns true if the mounts changed or a signal came.
    pub fn wait(&self, most: Duration) -> bool {
        let Some(file) = &self.0 else {
            std::thread::sleep(most);
            return false;
        };
        let mut ask = [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::PRI)];
        let most = Timespec::try_from(most).ok();
        poll(&mut ask, most.as_ref()) != Ok(0)
    }
}
