//! Control groups that the kernel delays in favour of others on the same disk: by the `io.latency`
//! of another group, or by `io.weight` where io.cost is enabled. Both compare sibling groups.
//!
//! The kernel counts these delays only if a debugging parameter is set. So a group counts as
//! delayed for the time of its stalls (`io.pressure`) while others get most of the disk.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use luc_control::Dev;

use crate::disks;
use crate::io_limits::{Group, fields, value};
use crate::system::System;

/// The weight of a group that has none.
const WEIGHT_DEFAULT: u64 = 100;
/// A group that gets more of the disk than this is not delayed in favour of others.
const OWN_SHARE_MAX: f64 = 0.5;

/// The setting that delays a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Favour {
    /// `io.latency` of this group, such as `target=10000`.
    Latency { of: String, setting: String },
    /// The group's own `io.weight`, which is less than another's.
    Weight { setting: String },
}

/// A group that may be delayed, while that is measured.
#[derive(Debug)]
pub struct Delayed {
    /// Path of the group in the hierarchy.
    pub cgroup: String,
    pub by: Favour,
    group: Group,
    root: Group,
    disk: Dev,
    before: Option<Counts>,
    since: Instant,
}

/// Totals of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    stalled_us: u64,
    bytes: u64,
    /// Bytes of all groups.
    disk_bytes: u64,
}

/// Starts to measure the groups that may be delayed on the disks under each of these file systems.
pub fn measure(
    system: &dyn System,
    devices: &[Dev],
    groups: &[Group],
) -> BTreeMap<Dev, Vec<Delayed>> {
    let Some(root) = groups.iter().find(|group| group.path == "/") else {
        return BTreeMap::new();
    };
    let of_file_system = |device: &Dev| {
        let disks = disks::under(system, *device).into_iter();
        let delayed = disks.flat_map(|disk| on_disk(system, root, groups, disk));
        (*device, delayed.collect())
    };
    devices.iter().map(of_file_system).collect()
}

impl Delayed {
    /// The share of the time since the start in which tasks of the group stalled; `None` if that
    /// is unknown, or the group got most of the disk.
    pub fn share(&self, system: &dyn System) -> Option<f64> {
        let now = Counts::read(system, &self.group, &self.root, self.disk)?;
        now.share_since(self.before?, self.since.elapsed())
    }
}

impl Counts {
    fn read(system: &dyn System, group: &Group, root: &Group, disk: Dev) -> Option<Self> {
        let pressure = group.read(system, "io.pressure")?;
        let some = pressure
            .lines()
            .find_map(|line| line.strip_prefix("some "))?;
        let bytes = |of: &Group| {
            let stat = of.read(system, "io.stat")?;
            // A group before its first I/O has no line.
            let fields = fields(&stat, disk).unwrap_or_default();
            let number = |key| value(fields, key).and_then(|bytes| bytes.parse().ok());
            let (read, written) = (number("rbytes"), number("wbytes"));
            Some(read.unwrap_or(0_u64).saturating_add(written.unwrap_or(0)))
        };
        Some(Self {
            stalled_us: value(some, "total")?.parse().ok()?,
            bytes: bytes(group)?,
            disk_bytes: bytes(root)?,
        })
    }

    fn share_since(self, before: Self, time: Duration) -> Option<f64> {
        let since = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let disk_bytes = since(self.disk_bytes, before.disk_bytes);
        let own_bytes = since(self.bytes, before.bytes);
        if disk_bytes <= 0.0 || own_bytes / disk_bytes > OWN_SHARE_MAX || time.is_zero() {
            return None;
        }
        let stalled_s = since(self.stalled_us, before.stalled_us) / 1e6;
        Some((stalled_s / time.as_secs_f64()).min(1.0))
    }
}

/// The groups that may be delayed on a disk.
fn on_disk(system: &dyn System, root: &Group, groups: &[Group], disk: Dev) -> Vec<Delayed> {
    let cost_enabled = is_cost_enabled(system, root, disk);
    let mut families: BTreeMap<Option<&str>, Vec<Settings>> = BTreeMap::new();
    // The root has no siblings.
    for group in groups.iter().filter(|group| group.path != root.path) {
        let parent = group.path.rsplit_once('/').map(|(parent, _)| parent);
        let settings = Settings::read(system, group, disk, cost_enabled);
        families.entry(parent).or_default().push(settings);
    }
    let delayed = families.values().flat_map(|family| {
        let favours = favours(family).into_iter();
        favours.map(|(group, by)| Delayed {
            cgroup: group.path.clone(),
            by,
            before: Counts::read(system, group, root, disk),
            since: Instant::now(),
            group: group.clone(),
            root: root.clone(),
            disk,
        })
    });
    delayed.collect()
}

/// Settings of a group for a disk. Each file is read once, as there may be many groups.
struct Settings<'a> {
    group: &'a Group,
    target_us: Option<u64>,
    /// `None` where weights do not count.
    weight: Option<u64>,
}

impl<'a> Settings<'a> {
    fn read(system: &dyn System, group: &'a Group, disk: Dev, cost_enabled: bool) -> Self {
        let target_us = || {
            let latency = group.read(system, "io.latency")?;
            value(fields(&latency, disk)?, "target")?.parse().ok()
        };
        let weight = || {
            let weights = group.read(system, "io.weight")?;
            let default = weights
                .lines()
                .find_map(|line| line.strip_prefix("default "));
            let weight = fields(&weights, disk).or(default);
            let weight = weight.and_then(|it| it.trim().parse().ok());
            Some(weight.unwrap_or(WEIGHT_DEFAULT))
        };
        Self {
            group,
            target_us: target_us(),
            weight: if cost_enabled { weight() } else { None },
        }
    }
}

/// Tells whether io.cost is enabled for a disk.
fn is_cost_enabled(system: &dyn System, root: &Group, disk: Dev) -> bool {
    let qos = root.read(system, "io.cost.qos").unwrap_or_default();
    fields(&qos, disk).and_then(|fields| value(fields, "enable")) == Some("1")
}

/// The groups of one parent that the kernel may delay in favour of another: of the one whose
/// `io.latency` is strictest, or else of one with more weight.
fn favours<'a>(family: &[Settings<'a>]) -> Vec<(&'a Group, Favour)> {
    let targets = family
        .iter()
        .filter_map(|it| Some((it.target_us?, it.group)));
    let strictest = targets.min_by_key(|(us, _)| *us);
    let most = family.iter().filter_map(|it| it.weight).max();
    let by_latency = |of: &Settings| {
        let (us, other) = strictest?;
        (us < of.target_us.unwrap_or(u64::MAX)).then(|| Favour::Latency {
            of: other.path.clone(),
            setting: format!("target={us}"),
        })
    };
    let by_weight = |of: &Settings| {
        let own = of.weight?;
        (own < most?).then(|| Favour::Weight {
            setting: own.to_string(),
        })
    };
    let favours = family.iter().filter_map(|of| {
        let by = by_latency(of).or_else(|| by_weight(of))?;
        Some((of.group, by))
    });
    favours.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    const PRESSURE: &str = "some avg10=93.00 avg60=80.00 avg300=40.00 total=7000000\n\
                            full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";

    /// A file system on vdb. The group `/bulk` has little weight; `/db` has a target.
    fn found(qos: &str, latency: &str) -> Vec<(String, Favour, Option<Counts>)> {
        let (_tree, machine) = tree(&[
            (
                "proc/self/mountinfo",
                "2 0 0:6 / /sys/fs/cgroup rw - cgroup2 none rw\n",
            ),
            ("sys/dev/block/254:16/dev", "254:16\n"),
            ("sys/fs/cgroup/io.cost.qos", qos),
            (
                "sys/fs/cgroup/io.stat",
                "254:0 rbytes=7 wbytes=7\n254:16 rbytes=1000 wbytes=9000 rios=1 wios=9\n",
            ),
            ("sys/fs/cgroup/bulk/io.weight", "default 100\n254:16 10\n"),
            ("sys/fs/cgroup/bulk/io.latency", ""),
            (
                "sys/fs/cgroup/bulk/io.stat",
                "254:16 rbytes=0 wbytes=4096 rios=0 wios=7\n",
            ),
            ("sys/fs/cgroup/bulk/io.pressure", PRESSURE),
            ("sys/fs/cgroup/bulk/inside/io.weight", "default 5\n"),
            ("sys/fs/cgroup/db/io.weight", "default 100\n"),
            ("sys/fs/cgroup/db/io.latency", latency),
            ("sys/fs/cgroup/db/io.stat", ""),
        ]);
        let device: Dev = "254:16".parse().expect("a number");
        let groups = crate::io_limits::groups(&machine);
        let found = measure(&machine, &[device], &groups).remove(&device);
        let found = found.expect("asked for").into_iter();
        found.map(|it| (it.cgroup, it.by, it.before)).collect()
    }

    const BULK: Counts = Counts {
        stalled_us: 7_000_000,
        bytes: 4096,
        disk_bytes: 10_000,
    };

    #[test]
    fn groups_that_others_are_favoured_over() {
        let qos = "254:0 enable=0\n254:16 enable=1 ctrl=auto rpct=0.00\n";
        let weight = Favour::Weight {
            setting: "10".into(),
        };
        // The group inside has no sibling.
        assert_eq!(found(qos, ""), [("/bulk".into(), weight, Some(BULK))]);
        let latency = Favour::Latency {
            of: "/db".into(),
            setting: "target=10000".into(),
        };
        let target = "254:0 target=1\n254:16 target=10000\n";
        let by_latency = [("/bulk".into(), latency, Some(BULK))];
        assert_eq!(found("254:16 enable=0\n", target), by_latency);
        for off in ["", "254:16 enable=0\n", "254:0 enable=1\n"] {
            assert_eq!(found(off, "254:0 target=1\n"), [], "{off}");
        }
    }

    #[test]
    fn the_strictest_target_comes_before_the_largest_weight() {
        let groups = ["/a", "/b", "/c"].map(|path| Group {
            path: path.into(),
            folder: String::new(),
        });
        let settings = [(Some(5), 100), (Some(10), 50), (None, 200)];
        let family = groups.iter().zip(settings);
        let family = family.map(|(group, (target_us, weight))| Settings {
            group,
            target_us,
            weight: Some(weight),
        });
        let family: Vec<_> = family.collect();
        let favours = favours(&family).into_iter();
        let favours: Vec<_> = favours.map(|(group, by)| (&*group.path, by)).collect();
        let latency = Favour::Latency {
            of: "/a".into(),
            setting: "target=5".into(),
        };
        let weight = Favour::Weight {
            setting: "100".into(),
        };
        let wanted = [("/a", weight), ("/b", latency.clone()), ("/c", latency)];
        assert_eq!(favours, wanted);
    }

    #[test]
    fn stalls_count_while_others_get_the_disk() {
        let now = |bytes, disk_bytes| Counts {
            stalled_us: BULK.stalled_us + 1_500_000,
            bytes: BULK.bytes + bytes,
            disk_bytes: BULK.disk_bytes + disk_bytes,
        };
        let share =
            |bytes, disk_bytes| now(bytes, disk_bytes).share_since(BULK, Duration::from_secs(2));
        assert_eq!(share(100, 1000), Some(0.75));
        assert_eq!(share(600, 1000), None, "it gets most of the disk");
        assert_eq!(share(0, 0), None, "nobody uses the disk");
        assert_eq!(now(1, 9).share_since(BULK, Duration::ZERO), None);
    }
}
