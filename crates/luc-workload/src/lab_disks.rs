//! Disks of the lab's guest, which tell what they did. Other machines have none.

use std::fs;
use std::path::Path;

use luc_power::activity::DiskActivity;

/// Folder in which the driver has a folder for each disk.
pub const ROOT: &str = "/sys/kernel/config/lucdisk";

/// Returns the activity of all disks together since each was switched on; `None` if there is none,
/// or if one is off.
pub fn activity(root: &Path) -> Option<DiskActivity> {
    let disks = fs::read_dir(root).ok()?.flatten();
    let all: Option<Vec<DiskActivity>> = disks
        .map(|disk| parse(&fs::read_to_string(disk.path().join("activity")).ok()?))
        .collect();
    all?.into_iter().reduce(DiskActivity::and)
}

fn parse(text: &str) -> Option<DiskActivity> {
    let numbers: Option<Vec<u64>> = text
        .split_whitespace()
        .map(|number| number.parse().ok())
        .collect();
    let [busy_ns, read_bytes, written_bytes, flushes] = numbers?[..] else {
        return None;
    };
    Some(DiskActivity {
        disks: 1,
        busy_ns,
        read_bytes,
        written_bytes,
        flushes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_add_up_and_one_that_is_off_makes_the_sum_unknown() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(activity(root.path()), None);
        let disk = |name: &str, text: &str| {
            let dir = root.path().join(name);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("activity"), text).unwrap();
        };
        disk("lucdisk0", "100 1 4096 3\n");
        disk("lucdisk1", "20 2 512 1\n");
        let both = DiskActivity {
            disks: 2,
            busy_ns: 120,
            read_bytes: 3,
            written_bytes: 4608,
            flushes: 4,
        };
        assert_eq!(activity(root.path()), Some(both));
        disk("lucdisk2", "");
        assert_eq!(activity(root.path()), None);
    }
}
