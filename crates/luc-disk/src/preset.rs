//! Parameter sets of real devices.
//!
//! Each value names its source: a document, a calculation from a document, or "assumed" if vendors
//! publish nothing. A device stands for its class; none was measured here.

use std::sync::LazyLock;

use thiserror::Error;

use crate::knobs::{KnobError, Params, knob};

/// One value of a preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresetKnob {
    /// Name of the knob.
    pub name: &'static str,
    /// Value in the unit that ends the name.
    pub value: i64,
    /// Source of the figure.
    pub source: &'static str,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name, as used in the text of a disk.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Values that differ from the defaults, in the order of the knob table.
    pub knobs: Vec<PresetKnob>,
}

/// The error if no preset has this name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("no preset is named '{name}'; available: {known}")]
pub struct UnknownPreset {
    /// The name asked for.
    pub name: String,
    /// All names, comma separated.
    pub known: String,
}

impl Preset {
    /// Returns all parameters.
    ///
    /// # Errors
    /// The knob table does not allow a value; the tests exclude that.
    pub fn params(&self) -> Result<Params, KnobError> {
        let mut params = Params::default();
        for row in &self.knobs {
            params.set(row.name, row.value)?;
        }
        Ok(params)
    }

    fn row(&self, name: &str) -> Option<&PresetKnob> {
        self.knobs.iter().find(|row| row.name == name)
    }

    /// Returns the source of a knob's figure.
    pub fn source(&self, name: &str) -> &'static str {
        self.row(name).map_or("default", |row| row.source)
    }

    /// Value of a knob; `None` if no knob has that name.
    pub fn value(&self, name: &str) -> Option<i64> {
        match self.row(name) {
            Some(row) => Some(row.value),
            None => knob(name).ok().map(|knob| knob.default),
        }
    }
}

/// All presets, slowest first.
pub fn presets() -> &'static [Preset] {
    static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| DEVICES.iter().map(parse).collect());
    &PRESETS
}

/// Returns the preset with this name.
///
/// # Errors
/// [`UnknownPreset`] with all names.
pub fn preset(name: &str) -> Result<&'static Preset, UnknownPreset> {
    let found = presets().iter().find(|preset| preset.name == name);
    found.ok_or_else(|| {
        let names: Vec<_> = presets().iter().map(|preset| preset.name).collect();
        UnknownPreset {
            name: name.to_owned(),
            known: names.join(", "),
        }
    })
}

/// Name, description, and tables of a device.
type Device = (&'static str, &'static str, &'static [&'static str]);

fn parse(&(name, about, tables): &Device) -> Preset {
    let rows = tables.iter().flat_map(|table| table.lines());
    Preset {
        name,
        about,
        knobs: rows.map(parse_row).collect(),
    }
}

/// Parses a row: knob, value, source. A malformed value becomes one that no knob allows.
fn parse_row(line: &'static str) -> PresetKnob {
    let (name, rest) = line.split_once(' ').unwrap_or_default();
    let (value, source) = rest.trim_start().split_once(' ').unwrap_or_default();
    let (digits, shift) = match (value.strip_suffix("Ki"), value.strip_suffix("Mi")) {
        (Some(digits), _) => (digits, 10),
        (_, Some(digits)) => (digits, 20),
        _ => (value, 0),
    };
    let number: Result<i64, _> = digits.replace('_', "").parse();
    PresetKnob {
        name,
        value: number.map_or(-1, |number| number << shift),
        source: source.trim_start(),
    }
}

const DEVICES: [Device; 7] = [
    (
        "hdd-7200",
        "7200 rpm SATA hard disk, write cache on",
        &[HDD_7200, HDD_7200_CACHE],
    ),
    (
        "hdd-7200-wc-off",
        "7200 rpm SATA hard disk, write cache off",
        &[HDD_7200],
    ),
    (
        "hdd-15k",
        "15000 rpm SAS hard disk, write cache on",
        &[HDD_15K],
    ),
    (
        "cloud-volume",
        "network volume provisioned for 3000 requests per second",
        &[CLOUD_VOLUME],
    ),
    ("sata-ssd", "consumer SATA SSD, volatile cache", &[SATA_SSD]),
    ("nvme", "consumer NVMe SSD, volatile cache", &[NVME]),
    (
        "nvme-plp",
        "data centre NVMe SSD, cache protected against power loss",
        &[NVME_PLP],
    ),
];

/// The drive of both hdd-7200 presets, without its cache.
const HDD_7200: &str = "\
queue_requests                   32  SATA: native command queueing has 32 tags
channels                         32  SATA: native command queueing has 32 tags
read_latency_ns             100_000  assumed command overhead
write_latency_ns            100_000  assumed command overhead
link_per_s_bytes        600_000_000  SATA 6 Gb/s, 8b/10b coded
seek_min_ns                 230_000  WD Ultrastar DC HC310 specification
seek_max_ns              13_673_750  from average 7.4 ms, WD Ultrastar DC HC310 specification
write_settle_ns              90_000  single track 0.32 less 0.23 ms, WD Ultrastar DC HC310 specification
rotation_ns               8_333_333  7200 turns per minute
track_outer_bytes         2_206_600  255 MB/s sustained, assumed for a 6 TB drive
track_inner_bytes         1_055_600  48% of the outer, the zones of Hitachi Deskstar 7K500's specification
read_ahead_bytes                4Mi  assumed
age_limit_ns            500_000_000  assumed
flush_exclusive                   1  ATA: FLUSH CACHE EXT is not queued
";

const HDD_7200_CACHE: &str = "\
cache_bytes                    64Mi  assumed share of the 256 MB buffer that holds writes
cache_volatile                    1  no capacitor
cache_write_ns               50_000  assumed command overhead
flush_ns                    100_000  assumed command overhead
";

const HDD_15K: &str = "\
queue_requests                  128  SAS: assumed depth of tagged queueing
channels                        128  SAS: assumed depth of tagged queueing
read_latency_ns             100_000  assumed command overhead
write_latency_ns            100_000  assumed command overhead
link_per_s_bytes        600_000_000  600 MB/s, Seagate Cheetah 15K.7 manual
seek_min_ns                 300_000  Seagate Savvio 10K.4 manual, single track
seek_max_ns               5_925_000  from average 3.3 ms, Hitachi Ultrastar 15K450 specification
write_settle_ns             260_000  Seagate Savvio 10K.4 manual, single track
rotation_ns               4_000_000  15000 turns per minute
track_outer_bytes           930_240  204 MB/s sustained, Seagate Cheetah 15K.7 manual
track_inner_bytes           556_320  122 MB/s sustained, Seagate Cheetah 15K.7 manual
read_ahead_bytes                2Mi  assumed
age_limit_ns            500_000_000  assumed
cache_bytes                    16Mi  assumed: all of a buffer of 16 MB
cache_volatile                    1  no capacitor
cache_write_ns               50_000  assumed command overhead
flush_ns                    100_000  assumed command overhead
";

const SATA_SSD: &str = "\
queue_requests                   32  SATA: native command queueing has 32 tags
channels                         32  SATA: native command queueing has 32 tags
read_latency_ns              89_800  10,000 random reads per second alone, Samsung 850 EVO data sheet
write_latency_ns          1_500_000  assumed: consumer drives were measured at 0.9 ms to 3.5 ms per fsync
write_per_s_bytes       520_000_000  sequential write, Samsung 850 EVO data sheet
link_per_s_bytes        540_000_000  sequential read, Samsung 850 EVO data sheet
command_ns                    2_600  98,000 random reads per second at depth 32, Samsung 850 EVO data sheet
cache_bytes                    32Mi  assumed share of the 1 GB DRAM
cache_volatile                    1  no capacitor
cache_write_ns               14_800  40,000 random writes per second alone, Samsung 850 EVO data sheet
flush_ns                  1_500_000  assumed: consumer drives were measured at 0.9 ms to 3.5 ms per fsync
flush_exclusive                   1  ATA: FLUSH CACHE EXT is not queued
";

const NVME: &str = "\
queue_requests                 1024  NVMe: one queue of 1024 entries
channels                         64  assumed: enough for 380,000 reads per second
read_latency_ns              68_800  14,000 random reads per second alone, Samsung 960 EVO data sheet
write_latency_ns          3_400_000  3.5 ms per fsync on a 960 Pro, measured by Percona (2018)
write_per_s_bytes     1_900_000_000  sequential write, Samsung 960 EVO data sheet
link_per_s_bytes      3_200_000_000  sequential read, Samsung 960 EVO data sheet
command_ns                    1_350  380,000 random reads per second, Samsung 960 EVO data sheet
cache_bytes                    64Mi  assumed share of the 1 GB DRAM
cache_volatile                    1  no capacitor
cache_write_ns               17_370  50,000 random writes per second alone, Samsung 960 EVO data sheet
flush_ns                  3_400_000  3.5 ms per fsync on a 960 Pro, measured by Percona (2018)
flush_exclusive                   0  NVMe: flush is queued
";

const NVME_PLP: &str = "\
queue_requests                 1024  NVMe: one queue of 1024 entries
channels                        128  assumed: enough for 490,000 reads per second
read_latency_ns              82_960  85 us random read, Lenovo product guide of Intel P4500 2 TB
write_per_s_bytes     1_050_000_000  sequential write, Lenovo product guide of Intel P4500 2 TB
link_per_s_bytes      3_200_000_000  sequential read, Lenovo product guide of Intel P4500 2 TB
command_ns                      760  490,000 random reads per second, Lenovo product guide of Intel P4500 2 TB
cache_bytes                    64Mi  assumed share of the DRAM
cache_volatile                    0  capacitors write the cache out
cache_write_ns               17_960  20 us random write, Lenovo product guide of Intel P4500 2 TB
";

const CLOUD_VOLUME: &str = "\
queue_requests                 1024  NVMe: one queue of 1024 entries
channels                        128  assumed
read_latency_ns             300_000  assumed: the EBS user guide says single-digit milliseconds
write_latency_ns            300_000  assumed: the EBS user guide says single-digit milliseconds
network_ns                  500_000  assumed: the EBS user guide says single-digit milliseconds
requests_per_s_events          3000  Amazon EBS user guide, gp3
burst_events                    300  assumed: a tenth of a second
request_unit_bytes            256Ki  Amazon EBS user guide, SSD volumes
throttle_per_s_bytes          125Mi  Amazon EBS user guide, gp3
burst_bytes                12_500Ki  assumed: a tenth of a second
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knobs::knobs;

    #[test]
    fn every_preset_obeys_the_knob_table() {
        for preset in presets() {
            let params = preset.params().unwrap();
            for row in &preset.knobs {
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
            error.starts_with("no preset is named 'hdd'; available: hdd-7200, hdd-7200-wc-off,"),
            "{error}"
        );
    }
}
