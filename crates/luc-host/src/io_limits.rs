//! Limits on the I/O of control groups (cgroup2's `io.max`), and how far they are used.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use luc_control::Dev;
use luc_trace::printable;

use crate::disks;
use crate::process;
use crate::system::System;

/// Keys of `io.max`, each with the key of `io.stat` that counts what it limits.
const KEYS: [(&str, &str); 4] = [
    ("rbps", "rbytes"),
    ("wbps", "wbytes"),
    ("riops", "rios"),
    ("wiops", "wios"),
];

/// A limit of a control group on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoLimit {
    /// Path of the group in the hierarchy.
    pub cgroup: String,
    pub device: Dev,
    /// As `io.max` writes it, such as `wbps=2097152`.
    pub setting: String,
    per_s: u64,
    counter: &'static str,
    /// Folder of the group.
    folder: String,
}

/// A limit while its use is measured.
#[derive(Debug)]
pub struct Measured {
    pub limit: IoLimit,
    before: u64,
    since: Instant,
}

/// Starts to measure the use of all limits on the devices under each of these file systems.
pub fn measure(
    system: &dyn System,
    devices: &[Dev],
    groups: &[Group],
) -> BTreeMap<Dev, Vec<Measured>> {
    let groups = limited(system, groups);
    let measured = devices.iter().map(|device| {
        let limits = limits(system, *device, &groups).into_iter();
        let measured = limits.map(|limit| Measured {
            before: limit.count(system).unwrap_or(0),
            since: Instant::now(),
            limit,
        });
        (*device, measured.collect())
    });
    measured.collect()
}

impl Measured {
    /// The share of the limit that was used since the start; `None` if the group is gone.
    pub fn used_share(&self, system: &dyn System) -> Option<f64> {
        self.share(self.limit.count(system)?, self.since.elapsed())
    }

    fn share(&self, now: u64, time: Duration) -> Option<f64> {
        let most = self.limit.per_s as f64 * time.as_secs_f64();
        (most > 0.0).then(|| now.saturating_sub(self.before) as f64 / most)
    }
}

impl IoLimit {
    /// The bytes or requests of the group so far; 0 before its first I/O.
    fn count(&self, system: &dyn System) -> Option<u64> {
        let text = system.read(&format!("{}/io.stat", self.folder)).ok()?;
        let fields = fields(&text, self.device);
        let count = fields.and_then(|fields| value(fields, self.counter)?.parse().ok());
        Some(count.unwrap_or(0))
    }
}

/// A control group with limits.
struct Limited<'a> {
    group: &'a Group,
    io_max: String,
}

/// The control groups with limits, which on most machines are few or none.
fn limited<'a>(system: &dyn System, groups: &'a [Group]) -> Vec<Limited<'a>> {
    let limited = groups.iter().filter_map(|group| {
        // The root group has none.
        let io_max = group.read(system, "io.max")?;
        (!io_max.is_empty()).then_some(Limited { group, io_max })
    });
    limited.collect()
}

/// A control group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its path in the hierarchy, without characters that act on a terminal, as
    /// [`luc_trace::Process`] has it.
    pub path: String,
    pub(crate) folder: String,
}

impl Group {
    pub(crate) fn read(&self, system: &dyn System, file: &str) -> Option<String> {
        system.read(&format!("{}/{file}", self.folder)).ok()
    }
}

/// The control groups of this machine. There may be many thousands: list them only once.
pub fn groups(system: &dyn System) -> Vec<Group> {
    let Some(root) = process::cgroup_root(system) else {
        return Vec::new();
    };
    let groups = process::cgroups(system).into_values().map(|path| {
        let folder = Path::new(&root).join(path.trim_start_matches('/'));
        Group {
            path: printable(&path),
            folder: folder.display().to_string(),
        }
    });
    groups.collect()
}

/// The limits of control groups on the devices under a file system.
fn limits(system: &dyn System, device: Dev, groups: &[Limited<'_>]) -> Vec<IoLimit> {
    if groups.is_empty() {
        return Vec::new();
    }
    let devices = disks::under(system, device);
    let mut found = Vec::new();
    for Limited { group, io_max } in groups {
        for device in &devices {
            let fields = fields(io_max, *device).unwrap_or_default();
            found.extend(KEYS.into_iter().filter_map(|(key, counter)| {
                let per_s = value(fields, key)?;
                Some(IoLimit {
                    cgroup: group.path.clone(),
                    device: *device,
                    setting: format!("{key}={per_s}"),
                    per_s: per_s.parse().ok()?,
                    counter,
                    folder: group.folder.clone(),
                })
            }));
        }
    }
    found
}

/// The line of a device.
pub(crate) fn fields(text: &str, device: Dev) -> Option<&str> {
    let head = device.to_string();
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find_map(|(name, fields)| (name == head).then_some(fields))
}

pub(crate) fn value<'a>(fields: &'a str, key: &str) -> Option<&'a str> {
    let mut pairs = fields.split(' ').filter_map(|field| field.split_once('='));
    pairs.find_map(|(name, value)| (name == key).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn limits_of_the_disks_below_are_found() {
        let (_tree, machine) = tree(&[
            (
                "proc/self/mountinfo",
                "2 0 0:6 / /sys/fs/cgroup rw - cgroup2 none rw\n",
            ),
            // A logical volume on a partition of vdb.
            ("sys/dev/block/253:0/dev", "253:0\n"),
            ("sys/dev/block/253:0/slaves/vdb1", ""),
            ("sys/class/block/vdb1/partition", "1\n"),
            ("sys/class/block/dev", "254:16\n"),
            (
                "sys/fs/cgroup/low/io.max",
                "254:0 rbps=1 wbps=max riops=max wiops=max\n\
                 254:16 rbps=max wbps=2097152 riops=max wiops=50\n",
            ),
            (
                "sys/fs/cgroup/low/io.stat",
                "254:16 rbytes=0 wbytes=4096 rios=0 wios=7\n",
            ),
            ("sys/fs/cgroup/free/io.max", ""),
        ]);
        let device = Dev {
            major: 253,
            minor: 0,
        };
        let found = measure(&machine, &[device], &groups(&machine))
            .remove(&device)
            .expect("asked for");
        let shown: Vec<_> = found
            .iter()
            .map(|it| {
                (
                    it.limit.cgroup.as_str(),
                    it.limit.setting.as_str(),
                    it.before,
                )
            })
            .collect();
        assert_eq!(
            shown,
            [("/low", "wbps=2097152", 4096), ("/low", "wiops=50", 7)]
        );
        let second = Duration::from_secs(1);
        assert_eq!(found[1].share(7 + 25, second), Some(0.5));
        assert_eq!(found[1].share(7, Duration::ZERO), None);
    }

    /// Any user to whom a part of the tree is delegated can choose names.
    #[test]
    fn ten_thousand_groups_with_names_of_any_kind() {
        let (tree, machine) = tree(&[
            (
                "proc/self/mountinfo",
                "2 0 0:6 / /sys/fs/cgroup rw - cgroup2 none rw\n",
            ),
            ("sys/dev/block/254:16/dev", "254:16\n"),
        ]);
        let root = tree.path().join("sys/fs/cgroup/pods");
        for number in 0..10_000 {
            std::fs::create_dir_all(root.join(format!("pod {number}"))).expect("made");
        }
        let odd = root.join("a \"b\"\u{1b}[2J\nc");
        std::fs::create_dir(&odd).expect("made");
        let limit = "254:16 rbps=max wbps=1000 riops=max wiops=max\n";
        for (file, text) in [("io.max", limit), ("io.stat", "254:16 rbytes=0 wbytes=5\n")] {
            std::fs::write(odd.join(file), text).expect("written");
        }
        let device: Dev = "254:16".parse().expect("a number");
        let groups = groups(&machine);
        assert_eq!(groups.len(), 10_003);
        let found = measure(&machine, &[device], &groups);
        let [one] = &found[&device][..] else {
            panic!("{found:?}");
        };
        assert_eq!(one.limit.cgroup, "/pods/a \"b\"?[2J?c");
        assert_eq!(one.before, 5);
        let delayed = crate::io_shares::measure(&machine, &[device], &groups);
        assert!(delayed[&device].is_empty());
    }
}
