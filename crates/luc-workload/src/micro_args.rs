//! Arguments of the workloads that re-create known benchmarks, under the names their users know.

use clap::{Args, ValueEnum, value_parser};
use serde::{Deserialize, Serialize};

use crate::args::{Common, LONGEST, duration_s, threads, warmup_s};
use crate::processes::WORKERS_MAX;

/// Arguments of the workload `metarates`.
///
/// Real processes pass a barrier, then each creates its files, fsyncs and closes every one. With
/// several phases asked for, they come in the order create, stat, utime; without a create phase the
/// files are made beforehand, which is not measured.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)] // each is an option of its own
pub struct Metarates {
    /// What every workload has.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Number of processes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = workers())]
    pub procs: u32,
    /// Files of each process
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=10_000_000))]
    pub files: u32,
    /// Give each process a directory of its own instead of sharing one
    #[arg(long)]
    pub unique_dirs: bool,
    /// Measure creating the files (the default if no phase is asked for)
    #[arg(long, short = 'C')]
    pub create: bool,
    /// Measure stat of the files
    #[arg(long, short = 'S')]
    pub stat: bool,
    /// Measure utime of the files
    #[arg(long, short = 'U')]
    pub utime: bool,
    /// UNSAFE upper bound: leave the fsync before each close out, so that a crash loses the files
    #[arg(long)]
    pub no_fsync: bool,
}

/// Arguments of the workload `iozone`.
///
/// The initial write of the throughput mode. Sizes are in KiB unless they end in k, m or g, all of
/// them binary.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)] // each is an option of its own
pub struct Iozone {
    /// What every workload has.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Number of children that write at the same time
    #[arg(short = 't', long = "threads", value_name = "N", default_value_t = 4, value_parser = workers())]
    pub threads: u32,
    /// Size of each child's file
    #[arg(short = 's', long = "size", value_name = "SIZE", default_value = "128k", value_parser = size_bytes)]
    pub size_bytes: u64,
    /// Size of each write
    #[arg(short = 'r', long = "record", value_name = "SIZE", default_value = "32k", value_parser = record_bytes)]
    pub record_bytes: u64,
    /// Include an fsync in the time of each child
    #[arg(short = 'e', long)]
    pub fsync: bool,
    /// Include the close in the time of each child
    #[arg(short = 'c', long)]
    pub close: bool,
    /// Let every child write all of its file instead of stopping all when the first is done
    #[arg(short = 'x', long)]
    pub no_stonewall: bool,
    /// Use threads of one process instead of processes
    #[arg(short = 'T', long)]
    pub posix_threads: bool,
    /// A child with a write that takes longer than this counts as blocked, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5, value_parser = value_parser!(u32).range(1..))]
    pub blocked_over_ms: u32,
}

/// Arguments of the workload `mdtest`.
///
/// Phases of file creation, stat and removal with barriers between them. The files of a process are
/// spread evenly over the directories of the tree, those of its root included.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mdtest {
    /// What every workload has.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Number of processes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = workers())]
    pub procs: u32,
    /// Files of each process
    #[arg(short = 'n', long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u32).range(1..=10_000_000))]
    pub items: u32,
    /// Bytes to write to each file
    #[arg(short = 'w', long, value_name = "BYTES", default_value_t = 0, value_parser = value_parser!(u32).range(..=1 << 30))]
    pub bytes: u32,
    /// Fsync each file before its close
    #[arg(short = 'y', long)]
    pub fsync: bool,
    /// Levels of directories below the root of a tree
    #[arg(short = 'z', long, value_name = "N", default_value_t = 0, value_parser = value_parser!(u32).range(..=64))]
    pub depth: u32,
    /// Sub-directories of each directory that is not at the bottom
    #[arg(short = 'b', long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=100_000))]
    pub branches: u32,
    /// Give each process a tree of its own instead of sharing one
    #[arg(short = 'u', long)]
    pub unique_dirs: bool,
}

/// What lies between two arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// Random times of an exponential distribution, as of many independent sources
    #[default]
    Exponential,
    /// Always the same time
    Fixed,
}

/// What is done at an arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum StormOp {
    /// Create a file, write to it, fsync and close it
    #[default]
    Create,
    /// Append to the thread's own file and fsync it
    Append,
}

/// Arguments of the workload `fsync-storm`.
///
/// Arrivals do not wait for earlier ones to be served: the load stays what was asked for when
/// commits become slow.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FsyncStorm {
    /// What every workload has.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Threads that serve the arrivals
    #[arg(long, short = 't', value_name = "N", default_value_t = 16, value_parser = threads())]
    pub threads: u32,
    /// Arrivals per second, over all threads
    #[arg(long, value_name = "N", default_value_t = 200.0, value_parser = rate_per_s)]
    pub rate_per_s: f64,
    /// How far apart the arrivals of a rate are
    #[arg(long, value_enum, default_value_t)]
    pub gaps: Gaps,
    /// Arrivals come in bursts of this many instead of at a rate
    #[arg(long, value_name = "N", conflicts_with_all = ["rate_per_s", "gaps"], value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub burst: Option<u32>,
    /// Time from one burst to the next, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 60, requires = "burst", value_parser = value_parser!(u32).range(1..=3_600_000))]
    pub period_ms: u32,
    /// The arrivals of a burst come at random moments within this time, microseconds
    #[arg(long, value_name = "US", default_value_t = 800, requires = "burst", value_parser = value_parser!(u32).range(..=3_600_000_000))]
    pub spread_us: u32,
    /// What is done at an arrival
    #[arg(long, value_enum, default_value_t)]
    pub op: StormOp,
    /// Bytes to write before each fsync; without it none when creating, 1024 when appending
    #[arg(long, value_name = "BYTES", default_value_t = 0, hide_default_value = true, default_value_if("op", "append", "1024"), value_parser = value_parser!(u32).range(..=1 << 30))]
    pub bytes: u32,
    /// Threads that open, read and close files beside the others
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = value_parser!(u32).range(..=65_536))]
    pub readers: u32,
    /// Time a reader waits between two reads, microseconds
    #[arg(long, value_name = "US", default_value_t = 1000, value_parser = value_parser!(u32).range(..=60_000_000))]
    pub read_think_us: u32,
    /// Measure for this many seconds
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = duration_s)]
    pub seconds: f64,
    /// Run for this many seconds before measuring
    #[arg(long, value_name = "S", default_value_t = 0.5, value_parser = warmup_s)]
    pub warmup_s: f64,
    /// Give late arrivals this many seconds after the measurement to be served
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = warmup_s)]
    pub drain_s: f64,
    /// Seed of the random moments
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

fn workers() -> clap::builder::RangedI64ValueParser<u32> {
    value_parser!(u32).range(1..=WORKERS_MAX)
}

fn rate_per_s(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (1e-3..=LONGEST).contains(&value) => Ok(value),
        _ => Err(format!("not a number from 0.001 to {LONGEST}")),
    }
}

/// Largest file of one child: 1 TiB.
const SIZE_BYTES_MAX: u64 = 1 << 40;
/// Largest write: 1 GiB, below what one write(2) may store.
const RECORD_BYTES_MAX: u64 = 1 << 30;

fn size_bytes(text: &str) -> Result<u64, String> {
    binary(text, SIZE_BYTES_MAX, "1024g")
}

fn record_bytes(text: &str) -> Result<u64, String> {
    binary(text, RECORD_BYTES_MAX, "1g")
}

/// A size in KiB, or with a suffix of its own.
fn binary(text: &str, max: u64, max_text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last().map(u8::to_ascii_lowercase) {
        Some(b'k') => (&text[..text.len() - 1], 10),
        Some(b'm') => (&text[..text.len() - 1], 20),
        Some(b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 10),
    };
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let bytes = plain.then(|| digits.parse::<u64>().ok()).flatten();
    bytes
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|bytes| (1..=max).contains(bytes))
        .ok_or_else(|| format!("not a size from 1k to {max_text}, like 128, 128k or 16m"))
}

#[cfg(test)]
mod tests {
    use super::{record_bytes, size_bytes};

    #[test]
    fn sizes_are_kib_unless_they_say_otherwise() {
        assert_eq!(size_bytes("128"), Ok(128 << 10));
        assert_eq!(size_bytes("128k"), Ok(128 << 10));
        assert_eq!(size_bytes("16M"), Ok(16 << 20));
        assert_eq!(size_bytes("1024g"), Ok(1 << 40));
        for bad in [
            "",
            "k",
            "0",
            "-1",
            "+1",
            "1.5m",
            "1025g",
            "99999999999999999999",
            "4kb",
            "é",
        ] {
            assert!(size_bytes(bad).is_err(), "{bad}");
        }
        assert!(record_bytes("1g").is_ok() && record_bytes("2g").is_err());
    }
}
