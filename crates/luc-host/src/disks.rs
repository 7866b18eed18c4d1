//! The disks under a block device: its own, and those of the layers below.

use std::iter;

use luc_control::Dev;

use crate::system::System;

/// Most layers of devices to follow.
const LAYERS_MAX: usize = 9;

/// The numbers of a device's disk and of the disks below it. A partition stands for its disk.
pub(crate) fn under(system: &dyn System, device: Dev) -> Vec<Dev> {
    let disks = layers(system, device).flatten();
    disks.filter_map(|disk| number(system, &disk)).collect()
}

/// The first of them, as long as each lies on one other alone. Where a device lies on several, such
/// as the paths of one disk, it may do without one of them.
pub(crate) fn needed(system: &dyn System, device: Dev) -> Vec<Dev> {
    let disks = layers(system, device).take_while(|layer| layer.len() == 1);
    let disks = disks.flatten();
    disks.filter_map(|disk| number(system, &disk)).collect()
}

/// The one disk that a device lies on, below all layers; `None` if it lies on several.
pub(crate) fn only_disk(system: &dyn System, device: Dev) -> Option<Dev> {
    let mut only = None;
    for layer in layers(system, device) {
        let [disk] = &layer[..] else { return None };
        only = number(system, disk);
    }
    only
}

/// The folders of a device's disk, of the disks that it lies on, and so on.
fn layers(system: &dyn System, device: Dev) -> impl Iterator<Item = Vec<String>> {
    let first = disk_of(system, &format!("/sys/dev/block/{device}"));
    let next = |layer: &Vec<String>| {
        let below = layer.iter().flat_map(|disk| below(system, disk));
        let disks: Vec<String> = below.map(|block| disk_of(system, &block)).collect();
        (!disks.is_empty()).then_some(disks)
    };
    iter::successors(Some(vec![first]), next).take(LAYERS_MAX)
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

/// The kernel's name of a block device, with `!` for `/` as sysfs writes it.
pub(crate) fn name(system: &dyn System, device: Dev) -> Option<String> {
    let link = system.link(&format!("/sys/dev/block/{device}")).ok()?;
    Some(link.file_name()?.to_str()?.to_owned())
}

/// The node of a block device. Device mapper's are known by their own names, not by the kernel's.
pub(crate) fn node(system: &dyn System, name: &str) -> String {
    let mapped = system.read(&format!("/sys/class/block/{name}/dm/name"));
    match mapped.as_deref().map(str::trim) {
        Ok(mapped) if !mapped.is_empty() => format!("/dev/mapper/{mapped}"),
        _ => format!("/dev/{}", name.replace('!', "/")),
    }
}

/// The node of the block device with this number, or the number if the kernel has no name for it.
pub(crate) fn node_of(system: &dyn System, device: Dev) -> String {
    let name = name(system, device);
    name.map_or_else(|| device.to_string(), |name| node(system, &name))
}

fn number(system: &dyn System, folder: &str) -> Option<Dev> {
    let number = system.read(&format!("{folder}/dev")).ok()?;
    number.trim().parse().ok()
}
