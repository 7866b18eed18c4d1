//! The disks and processors of the documents' systems.
//!
//! The documents give size, rotation speed and array of a system's disks, but no model. The other
//! values come from data sheets of disks of that size and class, or from the preset.

/// A system of the documents.
pub struct System {
    /// Name as a disk.
    pub name: &'static str,
    /// Name in the documents.
    pub called: &'static str,
    /// The documents' description of it, and its place there.
    pub about: &'static str,
    /// The disk, before the changes.
    pub disk: &'static str,
    /// The changes, one a line: `KNOB=VALUE`, then the source.
    tables: &'static [&'static str],
    pub cpus: u16,
    /// Frequencies that the documents name. They round Nehalem's, which are multiples of 133 MHz,
    /// except for 2.527 and 2.66 GHz.
    pub mhz: &'static [u32],
}

/// A knob of a system's disk that differs from the preset.
pub struct SystemKnob {
    pub name: &'static str,
    /// `KNOB=VALUE`.
    pub change: &'static str,
    pub source: &'static str,
}

impl System {
    pub fn knobs(&self) -> impl Iterator<Item = SystemKnob> {
        self.tables
            .iter()
            .flat_map(|table| table.lines())
            .map(|line| {
                let (change, source) = line.split_once(' ').unwrap_or_default();
                SystemKnob {
                    name: change.split('=').next().unwrap_or_default(),
                    change,
                    source: source.trim_start(),
                }
            })
    }
}

/// Returns the system with this name.
pub fn system(name: &str) -> Option<&'static System> {
    SYSTEMS.iter().find(|system| system.name == name)
}

pub const SYSTEMS: [System; 4] = [
    System {
        name: "nehalem-hdd",
        called: "Nehalem (HDD)",
        about: "Dell T3500, Xeon W3550, one 250 GB disk, 7200 rpm: dissertation 3.2.1",
        disk: "hdd-7200",
        tables: &[HDD_250_GB],
        cpus: 4,
        mhz: &[
            1596, 1729, 1862, 1995, 2128, 2261, 2394, 2527, 2660, 2793, 2926, 3059,
        ],
    },
    System {
        name: "sandybridge-hdd",
        called: "SandyBridge (HDD)",
        about: "Dell T1100, Xeon E3-1270, one 250 GB disk, 7200 rpm: dissertation 3.2.1",
        disk: "hdd-7200",
        tables: &[HDD_250_GB],
        cpus: 4,
        mhz: &[1600, 1800, 2000, 2200, 2400, 2600, 2800, 3000, 3300],
    },
    System {
        name: "nehalem-raid10",
        called: "Nehalem (Raid10)",
        about: "Dell T7500n, two Xeon E5620, four 146 GB disks, 15000 rpm: dissertation 3.2.1",
        disk: "raid10:4:hdd-15k",
        tables: &[HDD_146_GB],
        cpus: 8,
        mhz: E5620_MHZ,
    },
    System {
        name: "nehalem-raid10-cache",
        called: "Nehalem (Raid10)",
        about: "the same with a caching controller; the documents name none: assumed",
        disk: "raid10:4:hdd-15k",
        tables: &[HDD_146_GB, PERC_6I],
        cpus: 8,
        mhz: E5620_MHZ,
    },
];

const E5620_MHZ: &[u32] = &[1596, 1729, 1862, 1995, 2128, 2261, 2394];

const HDD_250_GB: &str = "\
link_per_s_bytes=300000000  SATA 3 Gb/s, 8b/10b coded: Hitachi Deskstar T7K250 of 250 GB
seek_max_ns=15736250        from average 8.5 ms, Hitachi Deskstar T7K250 of 250 GB
track_outer_bytes=586696    67.8 MB/s sustained, Hitachi Deskstar T7K250 of 250 GB
track_inner_bytes=284695    32.9 MB/s sustained, Hitachi Deskstar T7K250 of 250 GB
read_ahead_bytes=1048576    assumed
cache_bytes=8388608         assumed: all of a buffer of 8 MB, Hitachi Deskstar T7K250 of 250 GB";

const HDD_146_GB: &str = "\
link_per_s_bytes=300000000  300 MB/s, Seagate Cheetah 15K.6 manual, the model of 146 GB
track_outer_bytes=779760    171 MB/s sustained, Seagate Cheetah 15K.6 manual
track_inner_bytes=510720    112 MB/s sustained, Seagate Cheetah 15K.6 manual";

const PERC_6I: &str = "\
chunk_bytes=65536           64 KB, Dell PERC 6/i user's guide
controller_cache_bytes=268435456  256 MB with a battery, Dell PERC 6/i user's guide";
