//! Virtual disks, which use only guest memory and guest timers: null block devices with a fixed
//! latency per request and a number of requests served at the same time, and models of real devices
//! with everything that makes them slow.

use std::fmt;
use std::str::FromStr;

use luc_disk::Spec;
pub use luc_disk::file_system::SIZE_MIB_DEFAULT;
use luc_disk::file_system::parse_size_mib;
use serde::{Deserialize, Serialize};

use crate::error::LabError;

/// Smallest disk in MiB: room for a file system with a journal.
pub const SIZE_MIB_MIN: u32 = 8;
/// Largest disk in MiB: it lives in guest memory.
pub const SIZE_MIB_MAX: u32 = 65_536;
/// Longest latency: 10 s.
pub const LATENCY_NS_MAX: u64 = 10_000_000_000;
/// Deepest queue the null block device takes.
pub const DEPTH_MAX: u32 = 1024;

/// File system made on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum FsType {
    /// ext4 with a journal.
    #[default]
    Ext4,
    /// ext4 without a journal: nothing to wait for, and nothing that is sure to survive a crash.
    #[serde(rename = "ext4-nojournal")]
    Ext4NoJournal,
    /// ext3 layout (the ext4 driver serves it).
    Ext3,
    /// ext2 layout: no journal.
    Ext2,
    /// XFS, with a log of its own: jbd2 does not serve it.
    Xfs,
    /// btrfs, with a log tree of its own.
    Btrfs,
    /// f2fs, with a log of its own; Debian's kernels for clouds lack it.
    F2fs,
    /// No file system: the step gets the bare device.
    None,
}

/// The properties of a type of file system.
struct Kind {
    fs: FsType,
    name: &'static str,
    driver: &'static str,
    /// The program that makes it, and the program's package.
    maker: Option<(&'static str, &'static str)>,
    /// Arguments that make that program quiet, and let it overwrite what is there.
    arguments: &'static [&'static str],
    /// Smallest disk that it takes.
    size_mib_min: u32,
}

const MKE2FS: Option<(&str, &str)> = Some(("mke2fs", "e2fsprogs"));
const KINDS: [Kind; 8] = [
    Kind {
        fs: FsType::Ext4,
        name: "ext4",
        driver: "ext4",
        maker: MKE2FS,
        arguments: &["-q", "-F", "-t", "ext4"],
        size_mib_min: SIZE_MIB_MIN,
    },
    Kind {
        fs: FsType::Ext4NoJournal,
        name: "ext4-nojournal",
        driver: "ext4",
        maker: MKE2FS,
        arguments: &["-q", "-F", "-t", "ext4", "-O", "^has_journal"],
        size_mib_min: SIZE_MIB_MIN,
    },
    Kind {
        fs: FsType::Ext3,
        name: "ext3",
        driver: "ext3",
        maker: MKE2FS,
        arguments: &["-q", "-F", "-t", "ext3"],
        size_mib_min: SIZE_MIB_MIN,
    },
    Kind {
        fs: FsType::Ext2,
        name: "ext2",
        driver: "ext2",
        maker: MKE2FS,
        arguments: &["-q", "-F", "-t", "ext2"],
        size_mib_min: SIZE_MIB_MIN,
    },
    Kind {
        fs: FsType::Xfs,
        name: "xfs",
        driver: "xfs",
        maker: Some(("mkfs.xfs", "xfsprogs")),
        arguments: &["-q", "-f"],
        size_mib_min: 300,
    },
    Kind {
        fs: FsType::Btrfs,
        name: "btrfs",
        driver: "btrfs",
        maker: Some(("mkfs.btrfs", "btrfs-progs")),
        arguments: &["-q", "-f"],
        size_mib_min: 109,
    },
    Kind {
        fs: FsType::F2fs,
        name: "f2fs",
        driver: "f2fs",
        maker: Some(("mkfs.f2fs", "f2fs-tools")),
        arguments: &["-q", "-f"],
        size_mib_min: 52,
    },
    Kind {
        fs: FsType::None,
        name: "none",
        driver: "none",
        maker: None,
        arguments: &[],
        size_mib_min: SIZE_MIB_MIN,
    },
];

impl FsType {
    /// Names of all that make a file system, for people.
    pub const NAMES: &'static str = "ext4, ext4-nojournal, ext3, ext2, xfs, btrfs, f2fs";

    fn kind(self) -> &'static Kind {
        let found = KINDS.iter().find(|kind| kind.fs == self);
        found.unwrap_or(&KINDS[0])
    }

    /// Name as `mkfs` and `mount` know it.
    pub fn driver(self) -> &'static str {
        self.kind().driver
    }

    /// The program that makes it, and the program's package.
    pub fn maker(self) -> Option<(&'static str, &'static str)> {
        self.kind().maker
    }

    /// Arguments that make that program quiet, and let it overwrite what is there.
    pub fn maker_arguments(self) -> &'static [&'static str] {
        self.kind().arguments
    }

    /// The kernel module that serves it, if not that of every guest.
    pub(crate) fn module(self) -> Option<&'static str> {
        let is_ext = self.maker() == MKE2FS;
        (!is_ext && self != Self::None).then(|| self.driver())
    }

    /// Mount option that keeps the kernel from writing inode tables in the background.
    pub fn quiet_option(self) -> Option<&'static str> {
        matches!(self.driver(), "ext4" | "ext3").then_some("noinit_itable")
    }

    /// Whether it has a journal of jbd2.
    pub fn has_journal(self) -> bool {
        matches!(self, Self::Ext4 | Self::Ext3)
    }

    /// Name in the text of a disk.
    pub fn as_str(self) -> &'static str {
        self.kind().name
    }
}

/// One disk of a cell. In text `LATENCY:DEPTH[:SIZE][:FS][:mount=OPTIONS]`: `4ms:1`,
/// `100us:64`, `20us:64:512M`, `4ms:1:1G:ext3`, `4ms:1:mount=dirsync,noatime`; or
/// `PRESET[:KNOB=VALUE...][:SIZE][:FS][:mount=OPTIONS]`: `hdd-7200`, `nvme:flush_ns=500000:1G`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskSpec {
    /// Model of a real device; latency and depth are then ignored.
    #[serde(default, with = "device_text", skip_serializing_if = "Option::is_none")]
    pub device: Option<Spec>,
    /// Time each request takes, in nanoseconds of virtual time; 0 completes at once.
    pub latency_ns: u64,
    /// Requests served at the same time, 1 to [`DEPTH_MAX`].
    pub depth: u32,
    /// Capacity in MiB, [`SIZE_MIB_MIN`] to [`SIZE_MIB_MAX`].
    pub size_mib: u32,
    /// File system to make and mount.
    #[serde(default)]
    pub fs_type: FsType,
    /// Extra arguments for mkfs, for instance `-J size=4`. `-J device=DISK` makes a disk, as text
    /// describes one, that holds the journal.
    #[serde(default)]
    pub mkfs_args: Vec<String>,
    /// Mount options, comma separated; empty for the defaults.
    #[serde(default)]
    pub mount_opts: String,
}

impl DiskSpec {
    /// A disk with an ext4 file system and default size.
    pub fn new(latency_ns: u64, depth: u32) -> Self {
        Self {
            device: None,
            latency_ns,
            depth,
            size_mib: SIZE_MIB_DEFAULT,
            fs_type: FsType::Ext4,
            mkfs_args: Vec::new(),
            mount_opts: String::new(),
        }
    }

    /// A model of a real device with an ext4 file system and default size.
    pub fn of_device(device: Spec) -> Self {
        Self {
            device: Some(device),
            ..Self::new(0, 1)
        }
    }

    /// The disk that holds the journal, if it is not this one.
    ///
    /// # Errors
    /// [`LabError::BadInput`]: mkfs's arguments name a disk that is none, or that has a file
    /// system.
    pub fn journal_disk(&self) -> Result<Option<Self>, LabError> {
        let Some(text) = self.mkfs_args.iter().find_map(|arg| journal_disk(arg)) else {
            return Ok(None);
        };
        let disk: Self = text.parse()?;
        if disk.fs_type != FsType::None {
            let why = format!("it holds a journal, and no file system: {text}:none");
            return Err(LabError::bad_input(format!("disk {text}"), why));
        }
        Ok(Some(disk))
    }

    /// Whether it, or the disk of its journal, is a model of a real device.
    pub(crate) fn needs_driver(&self) -> bool {
        let journal = self.journal_disk().ok().flatten();
        self.device.is_some() || journal.is_some_and(|disk| disk.device.is_some())
    }

    /// Checks every bound.
    ///
    /// # Errors
    /// [`LabError::BadInput`] names the value and its bounds.
    pub fn check(&self) -> Result<(), LabError> {
        let bad = |why: String| Err(LabError::bad_input(format!("disk {self}"), why));
        if self.journal_disk()?.is_some() && !self.fs_type.has_journal() {
            return bad("only ext4 and ext3 have a journal on another disk".to_owned());
        }
        if self.latency_ns > LATENCY_NS_MAX {
            return bad("latency must be at most 10s".to_owned());
        }
        if !(1..=DEPTH_MAX).contains(&self.depth) {
            return bad(format!("depth must be 1 to {DEPTH_MAX}"));
        }
        let size_mib_min = self.fs_type.kind().size_mib_min;
        if !(size_mib_min..=SIZE_MIB_MAX).contains(&self.size_mib) {
            return bad(format!("size must be {size_mib_min}M to {SIZE_MIB_MAX}M"));
        }
        Ok(())
    }
}

/// Reads and writes `device` as the text that users write.
mod device_text {
    use luc_disk::Spec;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[allow(clippy::ref_option)] // the signature that serde requires
    pub fn serialize<S: Serializer>(device: &Option<Spec>, out: S) -> Result<S::Ok, S::Error> {
        match device {
            Some(device) => out.collect_str(device),
            None => out.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Spec>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        let device = text.map(|text| text.parse().map_err(D::Error::custom));
        device.transpose()
    }
}

/// An error about the text of a disk.
fn bad(text: &str, why: &str) -> LabError {
    LabError::bad_input(
        format!("disk {text:?}"),
        format!(
            "{why}; expected LATENCY:DEPTH[:SIZE][:FS][:mount=OPTIONS] such as 4ms:1, 100us:64 or 20us:64:512M:ext4, or PRESET[:KNOB=VALUE...][:SIZE][:FS][:mount=OPTIONS] such as hdd-7200 or nvme:flush_ns=500000:1G, see `luc-lab disks`"
        ),
    )
}

impl FromStr for DiskSpec {
    type Err = LabError;

    fn from_str(whole: &str) -> Result<Self, LabError> {
        let bad = |why: &str| bad(whole, why);
        // Options come last, so that they may contain a colon.
        let (text, mount_opts) = whole.split_once(":mount=").unwrap_or((whole, ""));
        let mut parts = text.split(':').peekable();
        let head = parts.next().unwrap_or_default();
        let mut disk = if head.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let mut device = Spec::new(head)
                .map_err(|why| bad(&format!("{head:?} is not a latency, and {why}")))?;
            while let Some(part) = parts.next_if(|part| part.contains('=')) {
                device.change(part).map_err(|why| bad(&why.to_string()))?;
            }
            Self::of_device(device)
        } else {
            let latency_ns = parse_latency_ns(head).ok_or_else(|| {
                bad(&format!(
                    "{head:?} is not a latency with a unit (ns, us, ms, s)"
                ))
            })?;
            let depth = parts.next().ok_or_else(|| bad("the depth is missing"))?;
            let depth = depth
                .parse()
                .map_err(|_| bad(&format!("{depth:?} is not a depth")))?;
            Self::new(latency_ns, depth)
        };
        mount_opts.clone_into(&mut disk.mount_opts);
        let (mut size_seen, mut fs_seen) = (false, false);
        for part in parts {
            if let (Some(fs_type), false) = (parse_fs(part), fs_seen) {
                disk.fs_type = fs_type;
                fs_seen = true;
            } else if let (Some(size_mib), false, false) =
                (parse_size_mib(part), size_seen, fs_seen)
            {
                disk.size_mib = size_mib;
                size_seen = true;
            } else {
                return Err(bad(&format!(
                    "{part:?} is neither a size with a unit (M, G) nor one of {}, none",
                    FsType::NAMES
                )));
            }
        }
        disk.check()?;
        Ok(disk)
    }
}

impl fmt::Display for DiskSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(device) = &self.device {
            write!(f, "{device}")?;
        } else {
            let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
            let (scale, unit) = units
                .into_iter()
                .find(|(scale, _)| {
                    self.latency_ns >= *scale && self.latency_ns.is_multiple_of(*scale)
                })
                .unwrap_or((1, "ns"));
            write!(f, "{}{unit}:{}", self.latency_ns / scale, self.depth)?;
        }
        if self.size_mib != SIZE_MIB_DEFAULT {
            write!(f, ":{}M", self.size_mib)?;
        }
        if self.fs_type != FsType::Ext4 {
            write!(f, ":{}", self.fs_type.as_str())?;
        }
        if !self.mount_opts.is_empty() {
            write!(f, ":mount={}", self.mount_opts)?;
        }
        Ok(())
    }
}

/// The disk that an argument of mkfs names for the journal.
pub(crate) fn journal_disk(argument: &str) -> Option<&str> {
    let suboptions = argument.strip_prefix("-J").unwrap_or(argument);
    suboptions.trim_start().strip_prefix("device=")
}

fn parse_fs(text: &str) -> Option<FsType> {
    let found = KINDS.iter().find(|kind| kind.name == text);
    found.map(|kind| kind.fs)
}

fn parse_latency_ns(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_documented_forms() {
        let disk: DiskSpec = "4ms:1".parse().unwrap();
        assert_eq!((disk.latency_ns, disk.depth), (4_000_000, 1));
        assert_eq!(disk.size_mib, SIZE_MIB_DEFAULT);
        let disk: DiskSpec = "100us:64".parse().unwrap();
        assert_eq!((disk.latency_ns, disk.depth), (100_000, 64));
        let disk: DiskSpec = "20us:64:512M".parse().unwrap();
        assert_eq!(disk.size_mib, 512);
        let disk: DiskSpec = "1s:2:1G:ext3".parse().unwrap();
        assert_eq!((disk.size_mib, disk.fs_type), (1024, FsType::Ext3));
        let disk: DiskSpec = "100us:64:1G:ext4-nojournal".parse().unwrap();
        assert_eq!(disk.fs_type, FsType::Ext4NoJournal);
        assert_eq!(disk.fs_type.driver(), "ext4");
        assert!(!disk.fs_type.has_journal());
        let disk: DiskSpec = "4ms:1:mount=dirsync,max_batch_time=15000".parse().unwrap();
        assert_eq!(disk.mount_opts, "dirsync,max_batch_time=15000");
    }

    #[test]
    fn display_parses_back() {
        for text in [
            "4ms:1",
            "100us:64",
            "20us:64:512M",
            "1500ns:3:none",
            "0ns:1",
            "4ms:8:64M:ext2",
            "100us:64:1024M:ext4-nojournal",
            "nvme:300M:xfs",
            "nvme:109M:btrfs",
            "nvme:52M:f2fs",
            "4ms:1:512M:ext3:mount=sync,commit=30",
            "hdd-7200",
            "nvme:flush_ns=500000:cache_bytes=0:512M:ext3:mount=sync,commit=30",
            "cloud-volume:none",
        ] {
            let disk: DiskSpec = text.parse().unwrap();
            assert_eq!(disk.to_string(), text);
            assert_eq!(disk.to_string().parse::<DiskSpec>().unwrap(), disk);
        }
    }

    #[test]
    fn a_journal_may_be_on_another_disk() {
        let disk = |text: &str, arguments: &[&str]| DiskSpec {
            mkfs_args: arguments.iter().map(ToString::to_string).collect(),
            ..text.parse().unwrap()
        };
        let journal = |arguments: &[&str]| disk("4ms:1", arguments).journal_disk();
        assert_eq!(journal(&["-J", "size=4"]).unwrap(), None);
        for arguments in [
            &["-b", "4096", "-J", "device=nvme:64M:none"][..],
            &["-Jdevice=nvme:64M:none"],
        ] {
            let found = journal(arguments).unwrap().unwrap();
            assert_eq!(found.to_string(), "nvme:64M:none");
            disk("4ms:1:ext3", arguments).check().unwrap();
            let error = disk("4ms:1:xfs", arguments)
                .check()
                .unwrap_err()
                .to_string();
            assert!(error.contains("only ext4 and ext3"), "{error}");
        }
        for (argument, why) in [
            ("device=/dev/sdx", "\"/dev/sdx\" is not a latency"),
            ("device=nvme", "nvme:none"),
        ] {
            let error = journal(&["-J", argument]).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn devices_are_presets_with_changes() {
        let disk: DiskSpec = "nvme:flush_ns=500000:1G:ext3".parse().unwrap();
        let device = disk.device.as_ref().unwrap();
        assert_eq!(device.preset().name, "nvme");
        assert_eq!(device.params().unwrap().get("flush_ns"), Some(500_000));
        assert_eq!((disk.size_mib, disk.fs_type), (1024, FsType::Ext3));
        for preset in luc_disk::presets() {
            let disk: DiskSpec = preset.name.parse().unwrap();
            assert_eq!(disk.to_string(), preset.name);
        }
        let error = "nvme:speed=1".parse::<DiskSpec>().unwrap_err().to_string();
        assert!(error.contains("no knob is named 'speed'; available: queue_requests,"));
        let error = "floppy".parse::<DiskSpec>().unwrap_err().to_string();
        assert!(error.contains("no preset is named 'floppy'; available: hdd-7200,"));
    }

    #[test]
    fn records_of_old_are_read_and_written_as_ever() {
        let old = r#"{"latency_ns":4000000,"depth":1,"size_mib":4096,"fs_type":"ext4","mkfs_args":[],"mount_opts":""}"#;
        let disk: DiskSpec = serde_json::from_str(old).unwrap();
        assert_eq!(disk, DiskSpec::new(4_000_000, 1));
        assert_eq!(serde_json::to_string(&disk).unwrap(), old);
        let disk: DiskSpec = "nvme:flush_ns=500000".parse().unwrap();
        let json = serde_json::to_string(&disk).unwrap();
        assert!(
            json.contains(r#""device":"nvme:flush_ns=500000""#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<DiskSpec>(&json).unwrap(), disk);
        let bent = json.replace("nvme", "floppy");
        assert!(serde_json::from_str::<DiskSpec>(&bent).is_err());
    }

    #[test]
    fn refuses_nonsense_with_one_line() {
        for text in [
            "",
            "4ms",
            "4:1",
            "4ms:0",
            "4ms:x",
            "4ms:2000",
            "11s:1",
            "4ms:1:4M",
            "4ms:1:1T",
            "4ms:1:ext4:64M",
            "4ms:1:64M:64M",
            "-1ms:1",
            "99999999999999999999s:1",
            "4ms:1:",
            "4ms:1:dirsync",
            "4ms:mount=dirsync",
            "hdd",
            "hdd-7200:1",
            "hdd-7200:4M",
            "nvme:299M:xfs",
            "nvme:108M:btrfs",
            "nvme:51M:f2fs",
            "hdd-7200:",
            "nvme:flush_ns",
            "nvme:flush_ns=",
            "nvme:flush_ns=1ms",
            "nvme:flush_ns=-1",
            "nvme:speed=1",
            "nvme:64M:flush_ns=1",
            "nvme:flush_ns=1:flush_ns=2",
            "4ms:1:flush_ns=1",
        ] {
            let error = text.parse::<DiskSpec>().unwrap_err().to_string();
            assert!(
                error.starts_with("disk ") && !error.contains('\n'),
                "{error}"
            );
        }
    }
}
