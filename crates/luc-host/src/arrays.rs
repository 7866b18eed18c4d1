//! Arrays of disks (md, software RAID) that are being checked, rebuilt or changed.

use luc_control::Dev;

use crate::disks;
use crate::system::System;

/// An array that keeps its disks busy by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusyArray {
    /// Its node.
    pub node: String,
    /// The kernel's word for what is done to it: `check`, `repair`, `resync`, `recover` or
    /// `reshape`.
    pub action: String,
}

/// The busy arrays among a file system's device and those below it.
pub fn busy(system: &dyn System, device: Dev) -> Vec<BusyArray> {
    let busy = disks::under(system, device).into_iter().filter_map(|disk| {
        let action = system.read(&format!("/sys/dev/block/{disk}/md/sync_action"));
        let action = action.ok()?.trim().to_owned();
        // In a frozen array no such work may start.
        let is_idle = matches!(action.as_str(), "" | "idle" | "frozen");
        (!is_idle).then(|| BusyArray {
            node: disks::node_of(system, disk),
            action,
        })
    });
    busy.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn an_array_below_a_volume_is_found_while_it_works() {
        let found = |action: &str| {
            let (folder, machine) = tree(&[
                ("sys/dev/block/253:0/dev", "253:0\n"),
                ("sys/dev/block/253:0/slaves/md0", ""),
                ("sys/class/block/md0/dev", "9:0\n"),
                ("sys/class/block/md0/md/sync_action", action),
            ]);
            let number = folder.path().join("sys/dev/block/9:0");
            std::os::unix::fs::symlink("../../class/block/md0", number).expect("linked");
            busy(&machine, "253:0".parse().expect("a number"))
        };
        let checked = BusyArray {
            node: "/dev/md0".into(),
            action: "check".into(),
        };
        assert_eq!(found("check\n"), [checked]);
        for idle in ["idle\n", "frozen\n", ""] {
            assert_eq!(found(idle), [], "{idle}");
        }
    }
}
