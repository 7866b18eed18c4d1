//! Parameter sets of real devices.
//!
//! Each value says where it is from: a document, a calculation from one, or
//! "assumed" where makers publish nothing. All devices are their makers' and
//! only stand for their class; none was measured here.

use thiserror::Error;

use crate::knobs::{KnobError, Params, knob};

/// One value of a preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresetKnob {
    /// Name of the knob.
    pub name: &'static str,
    pub value: i64,
    /// Where the figure is from.
    pub source: &'static str,
}

/// A device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name in the text of a disk.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Values that differ from the defaults, in the order of the knob table.
    pub knobs: &'static [PresetKnob],
}

impl Preset {
    /// All parameters.
    ///
    /// # Errors
    /// A value that the knob table does not allow; the tests see to it that
    /// there is none.
    pub fn params(&self) -> Result<Params, KnobError> {
        let mut params = Params::default();
        for row in self.knobs {
            params.set(row.name, row.value)?;
        }
        Ok(params)
    }
}

/// No preset of that name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("no preset is called '{name}'; there are: {known}")]
pub struct UnknownPreset {
    /// The name asked for.
    pub name: String,
    /// The names there are.
    pub known: String,
}

/// All presets, slowest first.
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// The preset of that name.
///
/// # Errors
/// [`UnknownPreset`] with the names there are.
pub fn preset(name: &str) -> Result<&'static Preset, UnknownPreset> {
    PRESETS
        .iter()
        .find(|preset| preset.name == name)
        .ok_or_else(|| {
            let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
            UnknownPreset {
                name: name.to_owned(),
                known: names.join(", "),
            }
        })
}

impl Preset {
    /// Where the figure of a knob is from.
    pub fn source(&self, name: &str) -> &'static str {
        let row = self.knobs.iter().find(|row| row.name == name);
        row.map_or("default", |row| row.source)
    }

    /// The value of a knob, None if there is none of that name.
    pub fn value(&self, name: &str) -> Option<i64> {
        let row = self.knobs.iter().find(|row| row.name == name);
        match row {
            Some(row) => Some(row.value),
            None => knob(name).ok().map(|knob| knob.default),
        }
    }
}

const fn row(name: &'static str, value: i64, source: &'static str) -> PresetKnob {
    PresetKnob {
        name,
        value,
        source,
    }
}

const NCQ: &str = "SATA: native command queueing has 32 tags";
const SATA: &str = "SATA 6 Gb/s, 8b/10b coded";
const HC310: &str = "WD Ultrastar DC HC310 specification";
const ASSUMED: &str = "assumed";

/// The drive of both hdd-7200 presets, without its cache.
const HDD_7200: [PresetKnob; 14] = [
    row("queue_requests", 32, NCQ),
    row("channels", 32, NCQ),
    row("read_latency_ns", 100_000, "assumed command overhead"),
    row("write_latency_ns", 100_000, "assumed command overhead"),
    row("link_per_s_bytes", 600_000_000, SATA),
    row("seek_min_ns", 230_000, HC310),
    row(
        "seek_max_ns",
        13_673_750,
        "from average 7.4 ms, WD Ultrastar DC HC310 specification",
    ),
    row(
        "write_settle_ns",
        90_000,
        "single track 0.32 less 0.23 ms, WD Ultrastar DC HC310 specification",
    ),
    row("rotation_ns", 8_333_333, "7200 turns per minute"),
    row(
        "track_outer_bytes",
        2_206_600,
        "255 MB/s sustained, assumed of a drive of 6 TB",
    ),
    row(
        "track_inner_bytes",
        1_055_600,
        "48% of the outer, the zones of Hitachi Deskstar 7K500's specification",
    ),
    row("read_ahead_bytes", 4 << 20, ASSUMED),
    row("age_limit_ns", 500_000_000, ASSUMED),
    row("flush_exclusive", 1, "ATA: FLUSH CACHE EXT is not queued"),
];

const fn with<const N: usize, const M: usize, const ALL: usize>(
    first: [PresetKnob; N],
    then: [PresetKnob; M],
) -> [PresetKnob; ALL] {
    assert!(N + M == ALL);
    let mut all = [row("", 0, ""); ALL];
    let mut at = 0;
    while at < ALL {
        all[at] = if at < N { first[at] } else { then[at - N] };
        at += 1;
    }
    all
}

const HDD_7200_CACHED: [PresetKnob; 18] = with(
    HDD_7200,
    [
        row(
            "cache_bytes",
            64 << 20,
            "assumed share of the 256 MB buffer that holds writes",
        ),
        row("cache_volatile", 1, "no capacitor"),
        row("cache_write_ns", 50_000, "assumed command overhead"),
        row("flush_ns", 100_000, "assumed command overhead"),
    ],
);

const SAVVIO: &str = "Seagate Savvio 10K.4 manual, single track";

const HDD_15K: [PresetKnob; 17] = [
    row(
        "queue_requests",
        128,
        "SAS: assumed depth of tagged queueing",
    ),
    row("channels", 128, "SAS: assumed depth of tagged queueing"),
    row("read_latency_ns", 100_000, "assumed command overhead"),
    row("write_latency_ns", 100_000, "assumed command overhead"),
    row(
        "link_per_s_bytes",
        600_000_000,
        "600 MB/s, Seagate Cheetah 15K.7 manual",
    ),
    row("seek_min_ns", 300_000, SAVVIO),
    row(
        "seek_max_ns",
        5_925_000,
        "from average 3.3 ms, Hitachi Ultrastar 15K450 specification",
    ),
    row("write_settle_ns", 260_000, SAVVIO),
    row("rotation_ns", 4_000_000, "15000 turns per minute"),
    row(
        "track_outer_bytes",
        930_240,
        "204 MB/s sustained, Seagate Cheetah 15K.7 manual",
    ),
    row(
        "track_inner_bytes",
        556_320,
        "122 MB/s sustained, Seagate Cheetah 15K.7 manual",
    ),
    row("read_ahead_bytes", 2 << 20, ASSUMED),
    row("age_limit_ns", 500_000_000, ASSUMED),
    row("cache_bytes", 16 << 20, "assumed: all of a buffer of 16 MB"),
    row("cache_volatile", 1, "no capacitor"),
    row("cache_write_ns", 50_000, "assumed command overhead"),
    row("flush_ns", 100_000, "assumed command overhead"),
];

const FLUSH_SATA: &str = "assumed: consumer drives were measured at 0.9 ms to 3.5 ms per fsync";

const SATA_SSD: [PresetKnob; 12] = [
    row("queue_requests", 32, NCQ),
    row("channels", 32, NCQ),
    row(
        "read_latency_ns",
        89_800,
        "10,000 random reads per second alone, Samsung 850 EVO data sheet",
    ),
    row("write_latency_ns", 1_500_000, FLUSH_SATA),
    row(
        "write_per_s_bytes",
        520_000_000,
        "sequential write, Samsung 850 EVO data sheet",
    ),
    row(
        "link_per_s_bytes",
        540_000_000,
        "sequential read, Samsung 850 EVO data sheet",
    ),
    row(
        "command_ns",
        2_600,
        "98,000 random reads per second at depth 32, Samsung 850 EVO data sheet",
    ),
    row("cache_bytes", 32 << 20, "assumed share of the 1 GB DRAM"),
    row("cache_volatile", 1, "no capacitor"),
    row(
        "cache_write_ns",
        14_800,
        "40,000 random writes per second alone, Samsung 850 EVO data sheet",
    ),
    row("flush_ns", 1_500_000, FLUSH_SATA),
    row("flush_exclusive", 1, "ATA: FLUSH CACHE EXT is not queued"),
];

const FLUSH_NVME: &str = "3.5 ms per fsync on a 960 Pro, measured by Percona (2018)";

const NVME: [PresetKnob; 12] = [
    row("queue_requests", 1024, "NVMe: one queue of 1024 entries"),
    row(
        "channels",
        64,
        "assumed: enough for 380,000 reads per second",
    ),
    row(
        "read_latency_ns",
        68_800,
        "14,000 random reads per second alone, Samsung 960 EVO data sheet",
    ),
    row("write_latency_ns", 3_400_000, FLUSH_NVME),
    row(
        "write_per_s_bytes",
        1_900_000_000,
        "sequential write, Samsung 960 EVO data sheet",
    ),
    row(
        "link_per_s_bytes",
        3_200_000_000,
        "sequential read, Samsung 960 EVO data sheet",
    ),
    row(
        "command_ns",
        1_350,
        "380,000 random reads per second, Samsung 960 EVO data sheet",
    ),
    row("cache_bytes", 64 << 20, "assumed share of the 1 GB DRAM"),
    row("cache_volatile", 1, "no capacitor"),
    row(
        "cache_write_ns",
        17_370,
        "50,000 random writes per second alone, Samsung 960 EVO data sheet",
    ),
    row("flush_ns", 3_400_000, FLUSH_NVME),
    row("flush_exclusive", 0, "NVMe: flush is queued"),
];

const NVME_PLP: [PresetKnob; 9] = [
    row("queue_requests", 1024, "NVMe: one queue of 1024 entries"),
    row(
        "channels",
        128,
        "assumed: enough for 490,000 reads per second",
    ),
    row(
        "read_latency_ns",
        82_960,
        "85 us random read, Lenovo product guide of Intel P4500 2 TB",
    ),
    row(
        "write_per_s_bytes",
        1_050_000_000,
        "sequential write, Lenovo product guide of Intel P4500 2 TB",
    ),
    row(
        "link_per_s_bytes",
        3_200_000_000,
        "sequential read, Lenovo product guide of Intel P4500 2 TB",
    ),
    row(
        "command_ns",
        760,
        "490,000 random reads per second, Lenovo product guide of Intel P4500 2 TB",
    ),
    row("cache_bytes", 64 << 20, "assumed share of the DRAM"),
    row("cache_volatile", 0, "capacitors write the cache out"),
    row(
        "cache_write_ns",
        17_960,
        "20 us random write, Lenovo product guide of Intel P4500 2 TB",
    ),
];

const EBS: &str = "Amazon EBS user guide, gp3";
const EBS_LATENCY: &str = "assumed: the EBS user guide says single-digit milliseconds";

const CLOUD_VOLUME: [PresetKnob; 10] = [
    row("queue_requests", 1024, "NVMe: one queue of 1024 entries"),
    row("channels", 128, ASSUMED),
    row("read_latency_ns", 300_000, EBS_LATENCY),
    row("write_latency_ns", 300_000, EBS_LATENCY),
    row("network_ns", 500_000, EBS_LATENCY),
    row("requests_per_s_events", 3000, EBS),
    row("burst_events", 300, "assumed: a tenth of a second"),
    row(
        "request_unit_bytes",
        256 << 10,
        "Amazon EBS user guide, SSD volumes",
    ),
    row("throttle_per_s_bytes", 125 << 20, EBS),
    row("burst_bytes", 12_500 << 10, "assumed: a tenth of a second"),
];

static PRESETS: [Preset; 7] = [
    Preset {
        name: "hdd-7200",
        about: "SATA hard disk of 7200 turns per minute, write cache on",
        knobs: &HDD_7200_CACHED,
    },
    Preset {
        name: "hdd-7200-wc-off",
        about: "the same with its write cache off",
        knobs: &HDD_7200,
    },
    Preset {
        name: "hdd-15k",
        about: "SAS hard disk of 15000 turns per minute, write cache on",
        knobs: &HDD_15K,
    },
    Preset {
        name: "cloud-volume",
        about: "provisioned network volume of 3000 requests per second",
        knobs: &CLOUD_VOLUME,
    },
    Preset {
        name: "sata-ssd",
        about: "consumer SATA SSD, volatile cache",
        knobs: &SATA_SSD,
    },
    Preset {
        name: "nvme",
        about: "consumer NVMe SSD, volatile cache",
        knobs: &NVME,
    },
    Preset {
        name: "nvme-plp",
        about: "data centre NVMe SSD, cache protected against power loss",
        knobs: &NVME_PLP,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knobs::knobs;

    #[test]
    fn every_preset_obeys_the_knob_table() {
        for preset in presets() {
            let params = preset.params().unwrap();
            for row in preset.knobs {
                assert_eq!(params.get(row.name), Some(row.value), "{}", preset.name);
                assert_eq!(preset.value(row.name), Some(row.value));
                assert!(!row.source.is_empty());
            }
            for knob in knobs() {
                let rows = preset.knobs.iter().filter(|row| row.name == knob.name);
                assert!(rows.count() <= 1, "{}: {}", preset.name, knob.name);
            }
        }
    }

    #[test]
    fn an_unknown_preset_is_answered_with_the_list() {
        let error = preset("hdd").unwrap_err().to_string();
        assert!(
            error.starts_with("no preset is called 'hdd'; there are: hdd-7200, hdd-7200-wc-off,"),
            "{error}"
        );
    }
}
