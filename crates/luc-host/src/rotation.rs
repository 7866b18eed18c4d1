//! Tells whether a disk rotates.
//!
//! `queue/rotational` is 1 for every disk that does not deny it, so for most virtual ones, too. A
//! disk that does rotate reports its speed.

use luc_control::Dev;

use crate::system::System;

/// The page of vital product data that has the rotation rate: block device characteristics.
const PAGE: &str = "device/vpd_pgb1";
/// Where the rate lies in the page.
const RATE: std::ops::Range<usize> = 4..6;
/// Smallest rate of a rotating medium, per minute, by the standard (SBC); 1 means no rotation.
const RATE_MIN: u16 = 0x401;
/// Most layers of disks that are followed: LVM on encryption on RAID on partitions is four.
const DEPTH_MAX: u32 = 8;

/// Tells whether the disks of a device rotate; `None` if that is not known.
pub fn turns(system: &dyn System, device: Dev) -> Option<bool> {
    rotates(system, &format!("/sys/dev/block/{device}"), DEPTH_MAX)
}

fn rotates(system: &dyn System, block: &str, depth: u32) -> Option<bool> {
    // A partition has no queue of its own, but its disk has.
    let disk = [block.to_owned(), format!("{block}/..")]
        .into_iter()
        .find(|disk| system.exists(&format!("{disk}/queue/rotational")))?;
    let claimed = system.read(&format!("{disk}/queue/rotational")).ok()?;
    if claimed.trim() != "1" {
        return Some(false);
    }
    let below = system.list(&format!("{disk}/slaves")).unwrap_or_default();
    if !below.is_empty() && depth > 0 {
        let each = below
            .iter()
            .map(|name| rotates(system, &format!("/sys/class/block/{name}"), depth - 1));
        return each.reduce(|a, b| if a == Some(true) { a } else { b })?;
    }
    let page = system.read_bytes(&format!("{disk}/{PAGE}")).ok()?;
    let rate = page.get(RATE)?.try_into().ok().map(u16::from_be_bytes)?;
    match rate {
        1 => Some(false),
        rate if (RATE_MIN..u16::MAX).contains(&rate) => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Machine;

    #[test]
    fn a_claim_without_a_speed_is_no_turning() {
        let tree = tempfile::tempdir().expect("a folder");
        let put = |path: &str, bytes: &[u8]| {
            let path = tree.path().join("sys").join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, bytes).expect("written");
        };
        // A disk, and one on top of it; sysfs lists disks by number and by name.
        for disk in ["dev/block/8:0", "class/block/sda"] {
            put(&format!("{disk}/queue/rotational"), b"1\n");
        }
        put("dev/block/253:0/queue/rotational", b"1\n");
        put("dev/block/253:0/slaves/sda", b"");
        put("dev/block/254:0/queue/rotational", b"1\n");
        put("dev/block/259:0/queue/rotational", b"0\n");
        let machine = Machine::new(tree.path());
        let of = |major| turns(&machine, Dev { major, minor: 0 });
        let rate = |rate: u16| {
            let [high, low] = rate.to_be_bytes();
            for disk in ["dev/block/8:0", "class/block/sda"] {
                put(
                    &format!("{disk}/device/vpd_pgb1"),
                    &[0, 0xb1, 0, 60, high, low],
                );
            }
            [of(8), of(253)]
        };
        assert_eq!(rate(7200), [Some(true); 2]);
        assert_eq!(rate(1), [Some(false); 2]);
        assert_eq!(rate(0), [None; 2]);
        assert_eq!(of(254), None, "virtio says nothing of a speed");
        assert_eq!(of(259), Some(false));
        assert_eq!(of(7), None);
    }
}
