//! Names of processes: the name of the main thread, and the control group.
//! [`luc_trace::Trace::process`] names the processes of a recording.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use luc_control::Dev;
use luc_trace::{Process, printable};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use crate::system::System;

/// Control groups to search at most; if a machine has more, some processes get no group's name.
const GROUPS_MAX: usize = 100_000;

/// Open files of a process to search at most, which takes a few milliseconds.
const FILES_MAX: usize = 2_000;

/// A running process; `None` once it has ended.
pub fn running(system: &dyn System, pid: u32) -> Option<Process> {
    let name = system.read(&format!("/proc/{pid}/comm")).ok()?;
    let groups = system.read(&format!("/proc/{pid}/cgroup"));
    let path = groups.ok().and_then(|groups| unified(&groups));
    Some(Process {
        name: printable(name.trim_end_matches('\n')),
        cgroup: path.map(|path| printable(&path)),
    })
}

/// Finds which of these files (file system and inode) a process has open, with their paths.
pub fn open_files(
    system: &dyn System,
    pid: u32,
    wanted: &BTreeSet<(Dev, u64)>,
) -> BTreeMap<(Dev, u64), String> {
    let dir = system.path(&format!("/proc/{pid}/fd"));
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found = BTreeMap::new();
    for entry in entries.take(FILES_MAX) {
        if found.len() == wanted.len() {
            break;
        }
        let link = entry.path();
        // An open file may lie on a server that no longer answers: use the cached attributes.
        let flags = AtFlags::STATX_DONT_SYNC;
        let Ok(file) = statx(CWD, &link, flags, StatxFlags::INO) else {
            continue;
        };
        let dev = Dev {
            major: file.stx_dev_major,
            minor: file.stx_dev_minor,
        };
        let file = (dev, file.stx_ino);
        if let Some(path) = wanted.get(&file).and_then(|_| fs::read_link(&link).ok()) {
            found.insert(file, path.to_string_lossy().into_owned());
        }
    }
    found
}

/// The path in the unified hierarchy, `0::/system.slice/mailer.service`.
fn unified(groups: &str) -> Option<String> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(path.to_owned())
}

/// Paths of the control groups, by the numbers that the tracer uses for them.
pub fn cgroups(system: &dyn System) -> BTreeMap<u64, String> {
    let mut found = BTreeMap::new();
    let Some(root) = cgroup_root(system) else {
        return found;
    };
    let root = system.path(&root);
    let mut left = vec![root.clone()];
    while let Some(dir) = left.pop() {
        let Ok(metadata) = fs::metadata(&dir) else {
            continue;
        };
        if found.len() >= GROUPS_MAX {
            break;
        }
        let below = dir.strip_prefix(&root).unwrap_or(Path::new(""));
        let path = Path::new("/").join(below);
        found.insert(metadata.ino(), path.display().to_string());
        let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
        let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        left.extend(dirs.map(|entry| entry.path()));
    }
    found
}

/// Tells whether a path below the root of the groups still is the one with this number.
pub fn is_cgroup(system: &dyn System, root: &str, path: &str, id: u64) -> bool {
    let metadata = fs::metadata(system.path(&format!("{root}{path}")));
    metadata.is_ok_and(|metadata| metadata.ino() == id)
}

/// Where the unified hierarchy is mounted.
pub fn cgroup_root(system: &dyn System) -> Option<String> {
    let mounts = system.read("/proc/self/mountinfo").ok()?;
    let point = mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then_some(())?;
        mount.split(' ').nth(4)
    })?;
    Some(point.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{Machine, numbered};
    use crate::tree;

    #[test]
    fn the_unified_hierarchy_counts() {
        let groups = "12:pids:/old\n0::/system.slice/a:b.service\n";
        assert_eq!(
            unified(groups).as_deref(),
            Some("/system.slice/a:b.service")
        );
        assert_eq!(unified("1:name=systemd:/x\n"), None);
    }

    #[test]
    fn open_files_are_known_by_their_inodes() {
        let tree = tempfile::tempdir().expect("a folder");
        let fds = tree.path().join("proc/7/fd");
        fs::create_dir_all(&fds).expect("made");
        let mut paths = Vec::new();
        for (name, fd) in [("log", "3"), ("other", "4")] {
            let path = tree.path().join(name);
            fs::write(&path, "").expect("written");
            std::os::unix::fs::symlink(&path, fds.join(fd)).expect("a link");
            paths.push(path);
        }
        std::os::unix::fs::symlink("/no/such/file", fds.join("5")).expect("a link");
        let machine = Machine::new(tree.path());
        let log = fs::metadata(&paths[0]).expect("there");
        let dev = numbered(log.dev());
        let wanted = BTreeSet::from([(dev, log.ino()), (dev, u64::MAX)]);
        let found = open_files(&machine, 7, &wanted);
        let expected = ((dev, log.ino()), paths[0].display().to_string());
        assert_eq!(found, BTreeMap::from([expected]));
        assert!(open_files(&machine, 8, &wanted).is_empty());
    }

    #[test]
    fn groups_are_known_by_their_numbers() {
        let mounts =
            "1 0 0:5 / /proc rw - proc none rw\n2 0 0:6 / /sys/fs/cgroup rw - cgroup2 none rw\n";
        let (tree, machine) = tree(&[
            ("proc/self/mountinfo", mounts),
            ("sys/fs/cgroup/one/two/cgroup.procs", ""),
            ("proc/7/comm", "mail\u{7}er\n"),
            ("proc/7/cgroup", "0::/one/two\n"),
        ]);
        let inner = tree.path().join("sys/fs/cgroup/one/two");
        let number = fs::metadata(inner).expect("there").ino();
        let groups = cgroups(&machine);
        assert_eq!(groups.len(), 3);
        assert_eq!(groups[&number], "/one/two");
        let root = cgroup_root(&machine).expect("mounted");
        assert!(is_cgroup(&machine, &root, "/one/two", number));
        // Another group has taken its path, or none.
        assert!(!is_cgroup(&machine, &root, "/one", number));
        assert!(!is_cgroup(&machine, &root, "/gone", number));
        let process = running(&machine, 7).expect("there");
        assert_eq!(process.name, "mail?er");
        assert_eq!(process.cgroup.as_deref(), Some("/one/two"));
        assert_eq!(running(&machine, 8), None);
    }
}
