//! The disks under a block device: its own, and those of the layers below.

use luc_control::Dev;

use crate::system::System;

/// Most layers of devices to follow.
const DEPTH_MAX: usize = 8;

/// The numbers of a device's disk and of the disks below it. A partition stands for its disk.
pub(crate) fn under(system: &dyn System, device: Dev) -> Vec<Dev> {
    let mut found = Vec::new();
    let mut layer = vec![format!("/sys/dev/block/{device}")];
    for _ in 0..=DEPTH_MAX {
        let disks = layer.iter().map(|block| disk_of(system, block));
        let disks: Vec<String> = disks.collect();
        found.extend(disks.iter().filter_map(|disk| number(system, disk)));
        layer = disks.iter().flat_map(|disk| below(system, disk)).collect();
    }
    found
}

/// The first of them, as long as each lies on one other alone. Where a device lies on several, such
/// as the paths of one disk, it may do without one of them.
pub(crate) fn needed(system: &dyn System, device: Dev) -> Vec<Dev> {
    let mut found = Vec::new();
    let mut layer = vec![format!("/sys/dev/block/{device}")];
    while let ([block], 0..=DEPTH_MAX) = (&layer[..], found.len()) {
        let disk = disk_of(system, block);
        let Some(number) = number(system, &disk) else {
            break;
        };
        found.push(number);
        layer = below(system, &disk);
    }
    found
}

/// The folder of a block device's disk.
fn disk_of(system: &dyn System, block: &str) -> String {
    if system.exists(&format!("{block}/partition")) {
        format!("{block}/..")
    } else {
        block.to_owned()
    }
}

/// The folders of the block devices that a disk lies on.
fn below(system: &dyn System, disk: &str) -> Vec<String> {
    let names = system.list(&format!("{disk}/slaves")).unwrap_or_default();
    let folder = |name| format!("/sys/class/block/{name}");
    names.into_iter().map(folder).collect()
}

/// The number of the block device that the kernel calls so.
pub(crate) fn named(system: &dyn System, name: &str) -> Option<Dev> {
    number(system, &format!("/sys/class/block/{name}"))
}

/// The node of a disk, by the kernel's name of it, or by its number if it has none.
pub(crate) fn node(system: &dyn System, disk: Dev) -> String {
    let event = system.read(&format!("/sys/dev/block/{disk}/uevent"));
    let event = event.unwrap_or_default();
    let mut fields = event.lines();
    let name = fields.find_map(|field| field.strip_prefix("DEVNAME="));
    name.map_or_else(|| disk.to_string(), |name| format!("/dev/{name}"))
}

fn number(system: &dyn System, folder: &str) -> Option<Dev> {
    let number = system.read(&format!("{folder}/dev")).ok()?;
    number.trim().parse().ok()
}
