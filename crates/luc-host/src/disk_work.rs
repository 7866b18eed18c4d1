//! Requests that compete with a file system's syncs for its disk: reads, discards, and those of
//! others on the same disk. Counted by the kernel in the `stat` files of block devices.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use luc_control::Dev;
use luc_trace::printable;

use crate::system::System;
use crate::{disks, mounts, process};

/// `stat` counts in these, whatever the disk's own sectors are.
const SECTOR_BYTES: u64 = 512;
/// The requests in progress when counting begins or ends make the counts differ by this much.
const SLACK: f64 = 1.1;

/// The kind of competing requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Reads of the file system's device.
    Reads,
    /// Discards on the file system's device.
    Discards,
    /// Everything on the disk that does not go through the file system's device.
    Others,
}

/// Competing requests of one kind while they were counted.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskWork {
    pub work: Work,
    /// Node of the device where they were counted.
    pub node: String,
    /// How many were in progress on average.
    pub in_progress_mean: f64,
    pub requests_per_s: f64,
    pub bytes_per_s: f64,
    /// The process that reads at least half, or the device through which at least half of the
    /// others' requests go, with where it is mounted; `None` if there is none, or it is unknown.
    pub by: Option<String>,
}

/// The counters at the start.
#[derive(Debug)]
pub struct Counting {
    since: Instant,
    file_systems: BTreeMap<Dev, Counted>,
    /// Bytes read from disks, by process.
    readers: BTreeMap<u32, u64>,
}

/// A file system's counters at the start.
#[derive(Debug)]
struct Counted {
    /// Its devices: its own, and its journal's if that is another.
    own: Vec<Part>,
    /// The disks below them.
    disks: Vec<Disk>,
}

/// A block device with its counters.
#[derive(Debug)]
struct Part {
    device: Dev,
    before: Stat,
}

/// A disk that the file system may share.
#[derive(Debug)]
struct Disk {
    whole: Part,
    /// The file system's devices on it.
    own: Vec<Dev>,
    /// The other devices on it that nothing else lies on.
    others: Vec<Part>,
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    requests: u64,
    bytes: u64,
    /// Sum of their times.
    ms: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stat {
    reads: Tally,
    writes: Tally,
    discards: Tally,
}

/// Starts to count on the devices of these file systems, each with its journal's device if that is
/// another.
pub fn count(system: &dyn System, file_systems: &[(Dev, Option<Dev>)]) -> Counting {
    let counted = file_systems.iter().map(|(device, log)| {
        let own: Vec<Dev> = std::iter::once(*device).chain(*log).collect();
        (*device, Counted::new(system, &own))
    });
    Counting {
        file_systems: counted.collect(),
        readers: readers(system),
        since: Instant::now(),
    }
}

impl Counting {
    /// The competing requests since the start, by file system's device.
    pub fn end(self, system: &dyn System) -> BTreeMap<Dev, Vec<DiskWork>> {
        let time = self.since.elapsed();
        self.after(system, time)
    }

    fn after(self, system: &dyn System, time: Duration) -> BTreeMap<Dev, Vec<DiskWork>> {
        let readers = Readers {
            before: self.readers,
            now: readers(system),
        };
        let work = self
            .file_systems
            .into_iter()
            .map(|(device, counted)| (device, counted.work(system, &readers, time)));
        work.collect()
    }
}

impl Counted {
    fn new(system: &dyn System, own: &[Dev]) -> Self {
        let mut disks: BTreeMap<Dev, Vec<Dev>> = BTreeMap::new();
        for device in own {
            if let Some(disk) = disks::only_disk(system, *device).filter(|disk| disk != device) {
                disks.entry(disk).or_default().push(*device);
            }
        }
        let disks = disks.into_iter().filter_map(|(disk, own)| {
            Some(Disk {
                whole: Part::new(system, disk)?,
                others: others(system, disk, &own),
                own,
            })
        });
        Self {
            own: own.iter().filter_map(|it| Part::new(system, *it)).collect(),
            disks: disks.collect(),
        }
    }

    fn work(&self, system: &dyn System, readers: &Readers, time: Duration) -> Vec<DiskWork> {
        let own: BTreeMap<Dev, Stat> = self
            .own
            .iter()
            .filter_map(|part| Some((part.device, part.since(system)?)))
            .collect();
        let mut found = Vec::new();
        for (device, stat) in &own {
            let reader = readers.most(system, stat.reads.bytes);
            found.push((Work::Reads, *device, stat.reads, reader));
            found.push((Work::Discards, *device, stat.discards, None));
        }
        for disk in &self.disks {
            let Some(all) = disk.whole.since(system) else {
                continue;
            };
            let own = disk.own.iter().filter_map(|device| own.get(device));
            let others = own.fold(all.sum(), |left, own| left.since(&own.sum()));
            let most = disk.most(system, others);
            found.push((Work::Others, disk.whole.device, others, most));
        }
        let found = found
            .into_iter()
            .filter(|(_, _, tally, _)| tally.requests > 0);
        let work = found.map(|(work, at, tally, by)| DiskWork {
            work,
            node: disks::node_of(system, at),
            in_progress_mean: per_s(tally.ms, time) / 1e3,
            requests_per_s: per_s(tally.requests, time),
            bytes_per_s: per_s(tally.bytes, time),
            by,
        });
        work.collect()
    }
}

impl Part {
    fn new(system: &dyn System, device: Dev) -> Option<Self> {
        let before = Stat::of(system, device)?;
        Some(Self { device, before })
    }

    /// `None` if the device is gone.
    fn since(&self, system: &dyn System) -> Option<Stat> {
        Some(Stat::of(system, self.device)?.since(&self.before))
    }
}

impl Disk {
    /// The device through which at least half of the others' bytes go.
    fn most(&self, system: &dyn System, all: Tally) -> Option<String> {
        let bytes = |part: &Part| Some((part.device, part.since(system)?.sum().bytes));
        let others = self.others.iter().filter_map(bytes);
        let (device, bytes) = others.max_by_key(|(_, bytes)| *bytes)?;
        let most = bytes > 0 && bytes >= all.bytes / 2;
        most.then(|| {
            let node = disks::node_of(system, device);
            let mounts = mounts::mounts(system).unwrap_or_default();
            match mounts::points_of(&mounts, device).first() {
                Some(point) => format!(
                    "{node} (mounted at {})",
                    printable(&point.to_string_lossy())
                ),
                None => node,
            }
        })
    }
}

fn per_s(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(1e-9)
}

/// The devices on a disk that nothing else lies on, without these.
fn others(system: &dyn System, disk: Dev, own: &[Dev]) -> Vec<Part> {
    let names = system.list("/sys/class/block").unwrap_or_default();
    let others = names.iter().filter_map(|name| {
        let holders = system.list(&format!("/sys/class/block/{name}/holders"));
        if holders.is_ok_and(|holders| !holders.is_empty()) {
            return None;
        }
        let device = disks::named(system, name)?;
        let apart = device != disk && !own.contains(&device);
        let shares = apart && disks::only_disk(system, device) == Some(disk);
        shares.then(|| Part::new(system, device))?
    });
    others.collect()
}

impl Stat {
    fn of(system: &dyn System, device: Dev) -> Option<Self> {
        let text = system.read(&format!("/sys/dev/block/{device}/stat")).ok()?;
        Self::parse(&text)
    }

    /// Reads requests, merged requests, sectors and ms of reads, four such numbers of writes, the
    /// requests in progress, two sums of times, four such numbers of discards, and more. Old
    /// kernels count no discards.
    fn parse(text: &str) -> Option<Self> {
        let fields: Option<Vec<u64>> = text.split_whitespace().map(|it| it.parse().ok()).collect();
        let fields = fields?;
        let tally = |first: usize| {
            Some(Tally {
                requests: *fields.get(first)?,
                bytes: fields.get(first + 2)?.saturating_mul(SECTOR_BYTES),
                ms: *fields.get(first + 3)?,
            })
        };
        Some(Self {
            reads: tally(0)?,
            writes: tally(4)?,
            discards: tally(11).unwrap_or_default(),
        })
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            reads: self.reads.since(&before.reads),
            writes: self.writes.since(&before.writes),
            discards: self.discards.since(&before.discards),
        }
    }

    fn sum(&self) -> Tally {
        let all = [self.reads, self.writes, self.discards];
        Tally {
            requests: all.iter().map(|it| it.requests).sum(),
            bytes: all.iter().map(|it| it.bytes).sum(),
            ms: all.iter().map(|it| it.ms).sum(),
        }
    }
}

impl Tally {
    /// A device that was replaced counts from 0.
    fn since(&self, before: &Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(before.requests),
            bytes: self.bytes.saturating_sub(before.bytes),
            ms: self.ms.saturating_sub(before.ms),
        }
    }
}

/// Bytes that processes have read from disks. Without the rights to see a process, it is left out.
fn readers(system: &dyn System) -> BTreeMap<u32, u64> {
    let pids = system.list("/proc").unwrap_or_default();
    let readers = pids.iter().filter_map(|name| {
        let pid: u32 = name.parse().ok()?;
        let text = system.read(&format!("/proc/{pid}/io")).ok()?;
        let bytes = text
            .lines()
            .find_map(|line| line.strip_prefix("read_bytes: "))?;
        Some((pid, bytes.trim().parse().ok()?))
    });
    readers.collect()
}

struct Readers {
    before: BTreeMap<u32, u64>,
    now: BTreeMap<u32, u64>,
}

impl Readers {
    /// The process that read at least half of these bytes. A process that read more than all of
    /// them read from another disk. A shell that runs one program after another counts for these
    /// programs, because the kernel adds a dead child's bytes to its parent's.
    fn most(&self, system: &dyn System, bytes: u64) -> Option<String> {
        let most = bytes as f64 * SLACK;
        let read = self.now.iter().map(|(pid, now)| {
            let before = self.before.get(pid).unwrap_or(&0);
            (*pid, now.saturating_sub(*before))
        });
        let mut fitting =
            read.filter(|(_, read)| *read > 0 && *read >= bytes / 2 && *read as f64 <= most);
        let (pid, _) = fitting.next()?;
        let alone = fitting.next().is_none();
        alone
            .then(|| process::running(system, pid))?
            .map(|it| it.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Machine, tree};
    use std::fs;
    use std::path::Path;

    const PARTITION: Dev = Dev { major: 8, minor: 1 };

    /// Requests, bytes and ms of reads, of writes, of discards.
    fn stat(reads: [u64; 3], writes: [u64; 3], discards: [u64; 3]) -> String {
        let four = |[requests, bytes, ms]: [u64; 3]| format!("{requests} 9 {} {ms}", bytes / 512);
        let (reads, writes, discards) = (four(reads), four(writes), four(discards));
        format!("  {reads} {writes} 3 70 80 {discards} 5 6\n")
    }

    const NONE: [u64; 3] = [0; 3];

    fn put(root: &Path, name: &str, text: &str) {
        fs::write(root.join("sys/class/block").join(name).join("stat"), text).expect("written");
    }

    /// A disk with two partitions; the second has a volume.
    fn machine() -> (tempfile::TempDir, Machine) {
        let fresh = stat(NONE, NONE, NONE);
        let (folder, machine) = tree(&[
            ("sys/block/sda/dev", "8:0\n"),
            ("sys/block/sda/stat", &fresh),
            ("sys/block/sda/sda1/dev", "8:1\n"),
            ("sys/block/sda/sda1/partition", "1\n"),
            ("sys/block/sda/sda1/stat", &fresh),
            ("sys/block/sda/sda2/dev", "8:2\n"),
            ("sys/block/sda/sda2/partition", "2\n"),
            ("sys/block/sda/sda2/holders/dm-0", ""),
            ("sys/block/sda/sda2/stat", &fresh),
            ("sys/block/dm-0/dev", "253:0\n"),
            ("sys/block/dm-0/dm/name", "vg-log\n"),
            ("sys/block/dm-0/slaves/sda2", ""),
            ("sys/block/dm-0/stat", &fresh),
            ("proc/1/io", "rchar: 9\nread_bytes: 5000\nwrite_bytes: 1\n"),
            ("proc/7/io", "read_bytes: 4096\n"),
            ("proc/7/comm", "tar\n"),
            ("proc/8/comm", "cat\n"),
            (
                "proc/self/mountinfo",
                "30 1 253:0 / /var/\\033log rw - ext4 /dev/mapper/vg-log rw\n",
            ),
        ]);
        let link = |from: &str, to: &str| {
            let from = folder.path().join(from);
            fs::create_dir_all(from.parent().expect("a folder")).expect("made");
            std::os::unix::fs::symlink(to, from).expect("linked");
        };
        for (name, number, place) in [
            ("sda", "8:0", "sda"),
            ("sda1", "8:1", "sda/sda1"),
            ("sda2", "8:2", "sda/sda2"),
            ("dm-0", "253:0", "dm-0"),
        ] {
            link(
                &format!("sys/class/block/{name}"),
                &format!("../../block/{place}"),
            );
            link(
                &format!("sys/dev/block/{number}"),
                &format!("../../block/{place}"),
            );
        }
        (folder, machine)
    }

    #[test]
    fn what_competes_is_told_apart() {
        let (folder, machine) = machine();
        let counting = count(&machine, &[(PARTITION, None)]);
        let own = stat([200, 819_200, 3_000], [50, 409_600, 900], [4, 4096, 1_000]);
        put(folder.path(), "sda1", &own);
        let log = stat(NONE, [70, 512_000, 2_000], NONE);
        put(folder.path(), "dm-0", &log);
        put(folder.path(), "sda2", &log);
        let all = stat(
            [200, 819_200, 3_000],
            [120, 921_600, 2_900],
            [4, 4096, 1_000],
        );
        put(folder.path(), "sda", &all);
        // Another disk's reader has read more than this disk.
        fs::write(folder.path().join("proc/1/io"), "read_bytes: 99000000\n").expect("written");
        fs::write(folder.path().join("proc/7/io"), "read_bytes: 700000\n").expect("written");
        let mut found = counting.after(&machine, Duration::from_secs(2));
        let work =
            |work, node: &str, in_progress_mean, requests_per_s, bytes_per_s, by: Option<&str>| {
                DiskWork {
                    work,
                    node: node.into(),
                    in_progress_mean,
                    requests_per_s,
                    bytes_per_s,
                    by: by.map(Into::into),
                }
            };
        let log = "/dev/mapper/vg-log (mounted at /var/?log)";
        assert_eq!(
            found.remove(&PARTITION).expect("counted"),
            [
                work(Work::Reads, "/dev/sda1", 1.5, 100.0, 409_600.0, Some("tar")),
                work(Work::Discards, "/dev/sda1", 0.5, 2.0, 2048.0, None),
                work(Work::Others, "/dev/sda", 1.0, 35.0, 256_000.0, Some(log)),
            ]
        );
    }

    #[test]
    fn a_journal_on_the_same_disk_is_no_other() {
        let (folder, machine) = machine();
        let log: Dev = "253:0".parse().expect("a number");
        let counting = count(&machine, &[(PARTITION, Some(log))]);
        let written = stat(NONE, [10, 40_960, 20], NONE);
        for name in ["sda1", "dm-0"] {
            put(folder.path(), name, &written);
        }
        put(folder.path(), "sda", &stat(NONE, [20, 81_920, 40], NONE));
        let found = counting.after(&machine, Duration::from_secs(1));
        assert_eq!(found[&PARTITION], []);
    }

    #[test]
    fn two_possible_readers_are_none() {
        let (folder, machine) = machine();
        let counting = count(&machine, &[(PARTITION, None)]);
        put(folder.path(), "sda1", &stat([9, 1_024_000, 9], NONE, NONE));
        for pid in [7, 8] {
            let io = folder.path().join(format!("proc/{pid}/io"));
            fs::write(io, "read_bytes: 600000\n").expect("written");
        }
        let found = counting.after(&machine, Duration::from_secs(1));
        assert_eq!(found[&PARTITION].len(), 1);
        assert_eq!(found[&PARTITION][0].by, None);
    }

    #[test]
    fn bad_counters_are_none() {
        for text in ["", "1 2 3", "a b c d e f g h", "-1 0 0 0 0 0 0 0"] {
            assert_eq!(Stat::parse(text), None, "{text}");
        }
        let old = Stat::parse("1 0 2 3 4 0 5 6 0 0 0").expect("counters without discards");
        assert_eq!(old.discards, Tally::default());
        let huge = Stat::parse(&format!("{max} 0 {max} 0 0 0 0 0", max = u64::MAX));
        assert_eq!(huge.expect("counters").reads.bytes, u64::MAX);
    }
}
