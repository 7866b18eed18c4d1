//! Devices that keep all I/O waiting: `dmsetup suspend`, or a lost connection.

use luc_control::Dev;

use crate::disks;
use crate::fault::Fault;
use crate::system::System;

/// States of a SCSI device and of an `nvme` controller in which the kernel keeps requests.
const KEEPING: [&str; 4] = ["blocked", "quiesce", "connecting", "resetting"];

/// The fault of the first disk that one of these devices needs and that keeps all I/O waiting.
pub(crate) fn halted(system: &dyn System, devices: &[Dev]) -> Option<Fault> {
    let disks = devices
        .iter()
        .flat_map(|device| disks::needed(system, *device));
    disks.into_iter().find_map(|disk| {
        let folder = format!("/sys/dev/block/{disk}");
        let read = |file: &str| {
            let text = system.read(&format!("{folder}/{file}"));
            text.map(|text| text.trim().to_owned()).ok()
        };
        if read("dm/suspended").as_deref() == Some("1") {
            return Some(Fault::Suspended {
                mapped: read("dm/name")?,
            });
        }
        let state = read("device/state")?;
        KEEPING.contains(&state.as_str()).then(|| Fault::Halted {
            device: disks::node_of(system, disk),
            state,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn a_device_that_keeps_io_waiting_is_found_in_any_layer() {
        let (folder, machine) = tree(&[
            // A logical volume on a partition of sda.
            ("sys/dev/block/253:0/dev", "253:0\n"),
            ("sys/dev/block/253:0/slaves/sda1", ""),
            ("sys/class/block/sda1/partition", "1\n"),
            ("sys/class/block/dev", "8:0\n"),
            ("sys/dev/block/253:0/dm/name", "vg-data\n"),
        ]);
        // Two paths to one disk, of which one is lost.
        let (_paths, multipath) = tree(&[
            ("sys/dev/block/253:1/dev", "253:1\n"),
            ("sys/dev/block/253:1/slaves/sdb", ""),
            ("sys/dev/block/253:1/slaves/sdc", ""),
            ("sys/class/block/sdb/dev", "8:16\n"),
            ("sys/class/block/sdc/dev", "8:32\n"),
            ("sys/dev/block/8:16/device/state", "blocked\n"),
        ]);
        let disk = "253:1".parse().expect("a number");
        assert_eq!(halted(&multipath, &[disk]), None);
        let put = |path: &str, text: &str| {
            let path = folder.path().join("sys/dev/block").join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        let found = |device: &str| halted(&machine, &[device.parse().expect("a number")]);
        let sda = folder.path().join("sys/class/block/sda");
        std::fs::create_dir(sda).expect("made");
        let number = folder.path().join("sys/dev/block/8:0");
        std::os::unix::fs::symlink("../../class/block/sda", number).expect("linked");
        for (file, text) in [
            ("253:0/dm/suspended", "0\n"),
            ("8:0/device/state", "running\n"),
        ] {
            put(file, text);
        }
        assert_eq!(found("253:0"), None);
        put("8:0/device/state", "blocked\n");
        let blocked = Fault::Halted {
            device: "/dev/sda".into(),
            state: "blocked".into(),
        };
        assert_eq!(found("253:0"), Some(blocked));
        put("253:0/dm/suspended", "1\n");
        let mapped = "vg-data".into();
        assert_eq!(found("253:0"), Some(Fault::Suspended { mapped }));
        assert_eq!(found("254:0"), None);
    }
}
