//! Finds the file systems that LUC could steer, and the one to which a user's path refers.

use std::path::{Path, PathBuf};

use luc_control::Dev;
use serde::Serialize;

use crate::disks;
use crate::error::HostError;
use crate::kernel;
use crate::mounts::{self, Mount};
use crate::superblock::Superblock;
use crate::system::{Located, System, as_text};

/// An ext4 or ext3 file system that the kernel serves.
#[derive(Clone, Debug, Serialize)]
pub struct Journal {
    /// The kernel's name of the block device, as in `/sys/fs/ext4`.
    pub name: String,
    /// Number of the block device.
    #[serde(serialize_with = "as_text")]
    pub device: Dev,
    /// `ext4` or `ext3`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it is mounted; empty if only another namespace or an open file holds it.
    pub mount_points: Vec<PathBuf>,
    /// False if the file system has no journal; `None` if the kernel does not say.
    pub has_journal: Option<bool>,
    /// True if mounted read-only.
    pub read_only: bool,
    /// Size of the journal in bytes, if the superblock could be read, or its own device tells it.
    pub journal_bytes: Option<u64>,
    /// The node of the journal's device, if it has one of its own.
    pub journal_device: Option<String>,
    /// The number of the journal's own device.
    #[serde(skip)]
    pub log_device: Option<Dev>,
    /// True if fast commits are switched on in the superblock, if it could be read.
    pub fast_commit: Option<bool>,
    /// Size of a block in bytes, if the superblock could be read.
    #[serde(skip)]
    pub block_bytes: Option<u64>,
    /// Size of its block device in bytes, if the kernel tells it.
    #[serde(skip)]
    pub device_bytes: Option<u64>,
    /// The node of its block device, as an administrator names it.
    #[serde(skip)]
    pub node: String,
    /// Mount options of the file system, separated by commas.
    #[serde(skip)]
    pub options: String,
    /// Where the journal begins on the device, in bytes, if the superblock could be read.
    #[serde(skip)]
    pub(crate) begins_at: Option<u64>,
}

/// The ext4 driver serves all three; ext2 has no journal, and shows that in the same way.
fn is_ext(kind: &str) -> bool {
    matches!(kind, "ext4" | "ext3" | "ext2")
}

impl Journal {
    fn from_mount(system: &dyn System, table: &[Mount], mount: &Mount) -> Self {
        let name = device_name(system, mount);
        let superblock = Superblock::read(system, &name);
        let task = system
            .read(&format!("/sys/fs/ext4/{name}/journal_task"))
            .ok();
        let task = task.as_deref().map(str::trim);
        let journal_device = task.and_then(|task| journal_device(system, &name, task));
        Journal {
            // ext4 shows `<none>` if there is no journal.
            has_journal: task
                .map(|task| task != "<none>")
                .or(superblock.as_ref().map(|superblock| superblock.has_journal)),
            journal_bytes: superblock
                .as_ref()
                .and_then(|superblock| superblock.journal_bytes)
                .or_else(|| device_bytes(system, journal_device.as_deref()?)),
            log_device: journal_device
                .as_deref()
                .and_then(|name| disks::named(system, name)),
            journal_device: journal_device.map(|name| disks::node(system, &name)),
            block_bytes: superblock
                .as_ref()
                .and_then(|superblock| superblock.block_bytes),
            begins_at: superblock
                .as_ref()
                .and_then(|superblock| superblock.journal_at),
            fast_commit: superblock.map(|superblock| superblock.fast_commit),
            device_bytes: device_bytes(system, &name),
            node: disks::node(system, &name),
            options: mount.options.clone(),
            device: mount.device,
            kind: mount.kind.clone(),
            mount_points: mounts::points_of(table, mount.device),
            read_only: mount.read_only,
            name,
        }
    }

    /// Why LUC cannot steer it, if it cannot.
    pub fn obstacle(&self) -> Option<&'static str> {
        if self.has_journal == Some(false) {
            Some("no journal")
        } else if self.read_only {
            Some("read-only")
        } else {
            None
        }
    }

    /// Whether a sync leaves data in the volatile cache of the file system's device, if it has one.
    /// That is a fault of ext4 before 6.15 (kernel commit aac45075f6d7; seen on 6.1 and 6.12) if
    /// the journal has its own device, unless one of two mount options orders data.
    pub fn leaves_data_cached(&self, release: &str) -> bool {
        self.journal_device.is_some() && leaves_data_cached(&self.options, release)
    }

    /// Why LUC holds none of its commits, if it holds none; it still copies buffers out.
    pub fn holds_barred_by(&self) -> Option<&'static str> {
        let mut options = self.options.split(',');
        if options.any(|option| option == "max_batch_time=0") {
            Some("mount option max_batch_time=0")
        } else if self.fast_commit == Some(true) {
            Some("feature fast_commit")
        } else {
            None
        }
    }
}

/// The name of the journal's device, if it is not that of the file system. jbd2 calls the thread of
/// a journal inside a file system `jbd2/DEVICE-INODE`, and else `jbd2/DEVICE`.
fn journal_device(system: &dyn System, name: &str, thread: &str) -> Option<String> {
    let comm = system.read(&format!("/proc/{thread}/comm")).ok()?;
    let journal = comm.trim_end().strip_prefix("jbd2/")?;
    let inside = journal.strip_prefix(name);
    // Before Linux 5.17 (kernel commit d6986ce24fc0) the kernel cut names of threads.
    let is_inside = inside.is_some_and(|inode| inode.starts_with('-')) || name.starts_with(journal);
    (!is_inside).then(|| journal.to_owned())
}

fn leaves_data_cached(options: &str, release: &str) -> bool {
    let mut options = options.split(',');
    kernel::is_before(release, (6, 15)) == Some(true)
        && !options.any(|option| matches!(option, "dioread_lock" | "nodelalloc"))
}

fn device_bytes(system: &dyn System, name: &str) -> Option<u64> {
    let sectors = system.read(&format!("/sys/class/block/{name}/size")).ok()?;
    let sectors: u64 = sectors.trim().parse().ok()?;
    sectors.checked_mul(512)
}

/// Process ID of the thread of a file system's journal. It tells mounts apart: every mount starts a
/// new thread, whereas mount numbers are used again and differ between namespaces.
pub fn thread(system: &dyn System, name: &str) -> Option<u32> {
    let task = system.read(&format!("/sys/fs/ext4/{name}/journal_task"));
    task.ok()?.trim().parse().ok()
}

/// Process ID of the thread of the journal on a device.
pub fn thread_of(system: &dyn System, device: Dev) -> Option<u32> {
    thread(system, &disks::name(system, device)?)
}

/// Fast commits of the file system on a device since its mount; `None` if the kernel does not tell.
pub fn fast_commits(system: &dyn System, device: Dev) -> Option<u64> {
    let name = disks::name(system, device)?;
    let info = system.read(&format!("/proc/fs/ext4/{name}/fc_info")).ok()?;
    let mut counts = info
        .lines()
        .filter_map(|line| line.strip_suffix(" commits"));
    counts.find_map(|count| count.parse().ok())
}

/// The kernel's names of all file systems that the ext4 driver serves.
pub fn live(system: &dyn System) -> Vec<String> {
    let mut names = system.list("/sys/fs/ext4").unwrap_or_default();
    // Among them is the folder of the driver's features, which is no device.
    names.retain(|name| system.exists(&format!("/sys/class/block/{name}/dev")));
    names
}

/// The file systems that are not mounted here, but in another namespace, or that an open file holds
/// after a lazy unmount, each as a mount without a mount point.
fn mounted_elsewhere(system: &dyn System, table: &[Mount]) -> Vec<Mount> {
    let mount = |name: String| {
        let device = disks::named(system, &name)?;
        let options = system.read(&format!("/proc/fs/ext4/{name}/options"));
        let options = options.unwrap_or_default();
        let options: Vec<&str> = options.lines().collect();
        Some(Mount {
            id: 0,
            device,
            root: PathBuf::new(),
            point: PathBuf::new(),
            // The driver does not tell which of its types it is.
            kind: "ext4".into(),
            source: format!("/dev/{}", name.replace('!', "/")),
            read_only: options.contains(&"ro"),
            read_only_here: false,
            options: options.join(","),
        })
    };
    let here = |one: &Mount| table.iter().any(|mount| mount.device == one.device);
    let all = live(system).into_iter().filter_map(mount);
    all.filter(|one| !here(one)).collect()
}

/// Every ext4 or ext3 file system that the kernel serves: those mounted here in the order of their
/// mounts, then those mounted elsewhere.
///
/// # Errors
/// The mount table cannot be read.
pub fn journals(system: &dyn System) -> std::io::Result<Vec<Journal>> {
    let table = mounts::mounts(system)?;
    let elsewhere = mounted_elsewhere(system, &table);
    let mut found: Vec<Journal> = Vec::new();
    let all = table.iter().chain(&elsewhere);
    for mount in all.filter(|mount| is_ext(&mount.kind)) {
        if found.iter().all(|journal| journal.device != mount.device) {
            found.push(Journal::from_mount(system, &table, mount));
        }
    }
    Ok(found)
}

/// The kernel's name of a mount's block device, or else the name that the mount gives.
fn device_name(system: &dyn System, mount: &Mount) -> String {
    disks::name(system, mount.device).unwrap_or_else(|| {
        let source = mount.source.strip_prefix("/dev/").unwrap_or(&mount.source);
        source.replace('/', "!")
    })
}

/// Finds what a user names: a path, or else a device by its number or the kernel's name of it.
fn locate(system: &dyn System, path: &Path) -> std::io::Result<Located> {
    let located = system.locate(path);
    if !matches!(&located, Err(error) if error.kind() == std::io::ErrorKind::NotFound) {
        return located;
    }
    let Some(text) = path.to_str() else {
        return located;
    };
    if let Ok(device) = text.parse() {
        return Ok(Located::BlockDevice(device));
    }
    let name = text.strip_prefix("/dev/").unwrap_or(text).replace('/', "!");
    let named = live(system).into_iter().find(|live| *live == name);
    let device = named.and_then(|name| disks::named(system, &name));
    device.map_or(located, |device| Ok(Located::BlockDevice(device)))
}

/// The mount to which a user's path or block device refers.
///
/// # Errors
/// No such path, or nothing is mounted from that device.
fn find(system: &dyn System, path: &Path) -> Result<(Vec<Mount>, Mount), HostError> {
    let shown = path.display().to_string();
    let located = locate(system, path).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => HostError::NotPermitted {
            what: format!("access {shown}"),
            fix: "run it as root".into(),
        },
        std::io::ErrorKind::NotFound => HostError::NotFound {
            path: shown.clone(),
            why: "no such file, folder or device".into(),
            fix: "`luc probe` lists the journals of this machine".into(),
        },
        _ => HostError::NotFound {
            path: shown.clone(),
            why: error.to_string(),
            fix: "give a mount point, a path below one, or a block device".into(),
        },
    })?;
    let table = mounts::mounts(system)?;
    let found = mounts::mount_of(&table, &located).cloned();
    let found = found.or_else(|| match located {
        Located::BlockDevice(device) => {
            let elsewhere = mounted_elsewhere(system, &table);
            elsewhere.into_iter().find(|one| one.device == device)
        }
        Located::Inside { .. } => None,
    });
    let Some(mount) = found else {
        return Err(HostError::NotFound {
            path: shown,
            why: match located {
                Located::BlockDevice(_) => "no file system is mounted from this device".into(),
                Located::Inside { .. } => "not on any mount that this process can see".into(),
            },
            fix: "mount it first".into(),
        });
    };
    Ok((table, mount))
}

/// The device to which a path refers, whatever file system it holds.
///
/// # Errors
/// No such path, or nothing is mounted from that device.
pub fn device_of(system: &dyn System, path: &Path) -> Result<Dev, HostError> {
    Ok(find(system, path)?.1.device)
}

/// The file system of the ext4 driver, with or without a journal, to which a user refers.
///
/// # Errors
/// No such path, nothing is mounted from that device, or it holds another kind of file system.
pub fn at(system: &dyn System, path: &Path) -> Result<Journal, HostError> {
    let (table, mount) = find(system, path)?;
    let kind = &mount.kind;
    if is_ext(kind) {
        return Ok(Journal::from_mount(system, &table, &mount));
    }
    Err(HostError::NotJournaled {
        path: path.display().to_string(),
        why: format!("the file system is {kind}"),
    })
}

/// The file systems of these paths, each once; without paths, all that the ext4 driver serves.
///
/// # Errors
/// No such path, another kind of file system, or none is mounted.
pub fn devs(paths: &[PathBuf], system: &dyn System) -> Result<Vec<Dev>, HostError> {
    let mut devices = Vec::new();
    if paths.is_empty() {
        let journals = journals(system)?;
        devices.extend(journals.into_iter().map(|journal| journal.device));
    }
    for path in paths {
        let device = at(system, path)?.device;
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    if devices.is_empty() {
        return Err(HostError::NotJournaled {
            path: "this machine".into(),
            why: "no ext4 file system is mounted".into(),
        });
    }
    Ok(devices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_may_have_its_own_device() {
        for (name, comm, device) in [
            ("vdb", "jbd2/vdb-8\n", None),
            ("vdb", "jbd2/vdc\n", Some("vdc")),
            ("nvme0n1p2", "jbd2/nvme0n1p2-\n", None),
            ("mapper!data", "jbd2/mapper!dat\n", None),
            ("vdb", "bash\n", None),
        ] {
            let (_tree, machine) = crate::tree(&[("proc/77/comm", comm)]);
            let found = journal_device(&machine, name, "77");
            assert_eq!(found.as_deref(), device, "{name} {comm}");
        }
    }

    #[test]
    fn a_sync_may_leave_data_in_a_cache() {
        for (options, release, leaves) in [
            ("rw", "6.12.95+deb12-cloud-amd64", true),
            ("rw,data=journal", "6.1.0-56-cloud-amd64", true),
            ("rw,dioread_lock", "6.12.95", false),
            ("rw,nodelalloc,noatime", "6.12.95", false),
            ("rw", "6.14.11", true),
            ("rw", "6.15.0", false),
            ("rw", "7.2.13+deb14-cloud-amd64", false),
            ("rw", "unknown", false),
        ] {
            assert_eq!(
                leaves_data_cached(options, release),
                leaves,
                "{options} {release}"
            );
        }
    }

    #[test]
    fn fast_commits_are_read_or_unknown() {
        let counted = |name: &str, info: &str| {
            let (tree, machine) = crate::tree(&[(name, info)]);
            let links = tree.path().join("sys/dev/block");
            std::fs::create_dir_all(&links).expect("a folder");
            std::os::unix::fs::symlink("../../block/vdb", links.join("254:16")).expect("a link");
            fast_commits(&machine, "254:16".parse().expect("a number"))
        };
        let info = "fc stats:\n1204 commits\n3 ineligible\n2408 numblks\n172us avg_commit_time\n\
                    Ineligible reasons:\n\"Extended attributes changed\":\t0\n";
        assert_eq!(counted("proc/fs/ext4/vdb/fc_info", info), Some(1204));
        assert_eq!(
            counted("proc/fs/ext4/vda/fc_info", info),
            None,
            "of another"
        );
        for bad in ["", "fc stats:\n", "fc stats:\nmany commits\n"] {
            assert_eq!(counted("proc/fs/ext4/vdb/fc_info", bad), None, "{bad:?}");
        }
    }
}
