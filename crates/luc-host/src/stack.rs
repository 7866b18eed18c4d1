//! File systems on files of other file systems, by way of loop devices. If LUC is on for both, a
//! sync on the upper one may wait for a hold of each. On the lower one the kernel's worker for the
//! loop device syncs.

use std::collections::BTreeMap;
use std::path::Path;

use luc_control::Dev;

use crate::disks;
use crate::mounts::{self, Mount};
use crate::sysfs::Attached;
use crate::system::{Located, System};

/// Most layers that are followed: a deeper stack is taken for a cycle.
const DEPTH_MAX: usize = 8;

/// Names of the file systems that the one on this device lies on and that LUC is on for.
///
/// # Errors
/// The mount table cannot be read.
pub fn attached_below(
    system: &dyn System,
    device: Dev,
    attached: &[Attached],
) -> std::io::Result<Vec<String>> {
    let table = mounts::mounts(system)?;
    let found = lies_on(system, &table, device);
    let on = attached.iter().filter(|one| found.contains(&one.device));
    Ok(on.map(|one| one.name.clone()).collect())
}

/// Devices of the file systems that the one on this device lies on, the nearest first.
pub(crate) fn lies_on(system: &dyn System, table: &[Mount], device: Dev) -> Vec<Dev> {
    let mut found = Vec::new();
    below(system, table, device, DEPTH_MAX, &mut found);
    found
}

/// Names of the loop devices that can be written, by the file system that their files lie on.
pub fn loops(system: &dyn System) -> BTreeMap<Dev, Vec<String>> {
    let table = mounts::mounts(system).unwrap_or_default();
    let mut found: BTreeMap<Dev, Vec<String>> = BTreeMap::new();
    for name in system.list("/sys/block").unwrap_or_default() {
        let folder = format!("/sys/block/{name}");
        let read_only = system.read(&format!("{folder}/ro"));
        if read_only.is_ok_and(|text| text.trim() == "1") {
            continue;
        }
        if let Some(mount) = mount_of_file(system, &table, &[format!("{folder}/loop")]) {
            found.entry(mount.device).or_default().push(name);
        }
    }
    found
}

/// The mount that holds the file of a loop device, whose folder `loop` is the first of these.
fn mount_of_file<'a>(
    system: &dyn System,
    table: &'a [Mount],
    folders: &[String],
) -> Option<&'a Mount> {
    let mut files = folders
        .iter()
        .map(|folder| format!("{folder}/backing_file"));
    let file = files.find_map(|file| system.read(&file).ok())?;
    let located = Located::Inside {
        path: Path::new(file.trim_end_matches('\n')).to_owned(),
        mount_id: None,
        device: None,
    };
    mounts::mount_of(table, &located)
}

/// Adds the devices of file systems below `device`.
fn below(system: &dyn System, table: &[Mount], device: Dev, depth: usize, found: &mut Vec<Dev>) {
    if depth == 0 {
        return;
    }
    let folder = format!("/sys/dev/block/{device}");
    // A partition lies in the folder of its disk.
    let folders = ["loop", "../loop"].map(|part| format!("{folder}/{part}"));
    let mount = mount_of_file(system, table, &folders);
    let parts = system.list(&format!("{folder}/slaves"));
    let parts = parts.unwrap_or_default();
    let parts = parts.iter().filter_map(|name| disks::named(system, name));
    let parts: Vec<Dev> = parts.collect();
    found.extend(mount.map(|mount| mount.device));
    for next in mount.map(|mount| mount.device).into_iter().chain(parts) {
        below(system, table, next, depth - 1, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:1 / / rw - ext4 /dev/vda1 rw
30 22 254:16 / /images rw - ext4 /dev/vdb rw
31 22 7:0 / /inner rw - ext4 /dev/loop0 rw
32 22 252:0 / /mapped rw - ext4 /dev/mapper/m rw
";

    fn dev(text: &str) -> Dev {
        text.parse().expect("a device number")
    }

    #[test]
    fn loop_devices_that_can_be_written_are_found() {
        let (_tree, machine) = crate::tree(&[
            ("proc/self/mountinfo", MOUNTS),
            ("sys/block/loop0/ro", "0\n"),
            ("sys/block/loop0/loop/backing_file", "/images/disk.img\n"),
            ("sys/block/loop1/ro", "1\n"),
            (
                "sys/block/loop1/loop/backing_file",
                "/images/program.snap\n",
            ),
            ("sys/block/loop2/ro", "0\n"),
            ("sys/block/vdb/ro", "0\n"),
        ]);
        let names = vec!["loop0".to_owned()];
        assert_eq!(loops(&machine), BTreeMap::from([(dev("254:16"), names)]));
    }

    #[test]
    fn the_file_of_a_loop_device_is_below() {
        let (_tree, machine) = crate::tree(&[
            ("proc/self/mountinfo", MOUNTS),
            ("sys/dev/block/7:0/loop/backing_file", "/images/disk.img\n"),
            ("sys/dev/block/252:0/slaves/loop0/dev", "7:0\n"),
            ("sys/class/block/loop0/dev", "7:0\n"),
        ]);
        let attached = [("vda1", "254:1"), ("vdb", "254:16"), ("loop0", "7:0")];
        let attached = attached.map(|(name, device)| Attached {
            name: name.into(),
            device: dev(device),
        });
        let found = |device| attached_below(&machine, dev(device), &attached).expect("mounts");
        assert_eq!(found("7:0"), ["vdb"]);
        assert_eq!(found("252:0"), ["vdb"], "through the device mapper");
        assert_eq!(found("254:1"), Vec::<String>::new());
        let off = attached_below(&machine, dev("7:0"), &attached[..1]).expect("mounts");
        assert!(off.is_empty(), "LUC is off for the one below");
    }
}
