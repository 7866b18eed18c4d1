//! What a workload can be told, as command-line arguments that are also part of its result.

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use crate::Folder;
use crate::micro_args::{FsyncStorm, Iozone, Mdtest, Metarates};

/// One workload with its arguments.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Bench {
    /// N threads loop: create a file, optionally write it, fsync, close
    #[command(after_help = "Examples:\n\
        \x20 luc bench create-fsync --threads 16 /srv/scratch\n\
        \x20 luc bench create-fsync --threads 64 --ops 100 --json --dir /srv/scratch")]
    CreateFsync(CreateFsync),
    /// Writers append to their own files beside threads that create and fsync
    #[command(after_help = "Examples:\n\
        \x20 luc bench write-delay /srv/scratch\n\
        \x20 luc bench write-delay --writers 16 --fsync-streams 4 /srv/scratch")]
    WriteDelay(WriteDelay),
    /// Threads wake close together, then each creates a file, fsyncs and closes it
    #[command(after_help = "Examples:\n\
        \x20 luc bench burst /srv/scratch\n\
        \x20 luc bench burst --threads 16 --spread-us 400 /srv/scratch")]
    Burst(Burst),
    /// Threads wake close together, then each writes a new file in pieces and fsyncs it
    #[command(after_help = "Examples:\n\
        \x20 luc bench write-burst /srv/scratch\n\
        \x20 luc bench write-burst --pieces 16 --piece-bytes 1024 /srv/scratch")]
    WriteBurst(WriteBurst),
    /// One thread measures the processor time of an fsync with and without its commit
    #[command(after_help = "Examples:\n\
        \x20 luc bench fsync-cost /srv/scratch\n\
        \x20 luc bench fsync-cost --ops 1000 /srv/scratch")]
    FsyncCost(FsyncCost),
    /// Threads on processors of their own fsync what is committed, as fast as they can
    #[command(after_help = "Examples:\n\
        \x20 luc bench scaling /srv/scratch\n\
        \x20 luc bench scaling --threads 1,16 --seconds 5 /srv/scratch")]
    Scaling(Scaling),
    /// Processes create, stat and touch files, phase by phase (`metarates`)
    #[command(after_help = "Examples:\n\
        \x20 luc bench metarates --procs 16 --files 16 /srv/scratch\n\
        \x20 luc bench metarates --create --stat --utime --unique-dirs /srv/scratch")]
    Metarates(Metarates),
    /// Children each write a new file, and the first to finish stops the clocks (`iozone`)
    #[command(after_help = "Examples:\n\
        \x20 luc bench iozone -e -c /srv/scratch\n\
        \x20 luc bench iozone -t 16 -s 16m -r 4k -e /srv/scratch")]
    Iozone(Iozone),
    /// Processes create, stat and unlink files in a tree of directories (`mdtest`)
    #[command(after_help = "Examples:\n\
        \x20 luc bench mdtest --fsync /srv/scratch\n\
        \x20 luc bench mdtest -n 1000 --depth 2 --branches 4 /srv/scratch")]
    Mdtest(Mdtest),
    /// Fsyncs arrive at a given rate or in bursts, whether or not earlier ones are done
    #[command(after_help = "Examples:\n\
        \x20 luc bench fsync-storm --rate-per-s 500 /srv/scratch\n\
        \x20 luc bench fsync-storm --burst 16 --period-ms 100 /srv/scratch")]
    FsyncStorm(FsyncStorm),
    /// A process of one of the above; of no use by hand
    #[command(hide = true)]
    Worker,
}

/// Arguments that every workload has: where to run and how to print.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Common {
    /// Where to run.
    #[command(flatten)]
    pub dir: Folder,
    /// Keep the files instead of removing them at the end
    #[arg(long)]
    pub keep: bool,
    /// Print the result as JSON
    #[arg(long)]
    #[serde(skip)]
    pub json: bool,
}

/// Arguments of the workload `create-fsync`.
///
/// The loop is exactly create, write, fsync, close. All threads create in one directory, as
/// Metarates does, or each in its own. After `files_per_dir` files a thread goes on in the next
/// directory, outside the timed operations, so that none grows until searching it dominates;
/// nothing is removed before the end.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateFsync {
    /// What every workload has.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Number of threads
    #[arg(long, short = 't', value_name = "N", default_value_t = 4, value_parser = threads())]
    pub threads: u32,
    /// Measure for this many seconds
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = duration_s)]
    pub seconds: f64,
    /// Measure this many operations of each thread instead of a time
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    pub ops: Option<u64>,
    /// Run for this many seconds before measuring
    #[arg(long, value_name = "S", default_value_t = 0.5, value_parser = warmup_s)]
    pub warmup_s: f64,
    /// Bytes to write to each file before its fsync
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1 << 30))]
    pub bytes: u32,
    /// Give each thread directories of its own instead of sharing them
    #[arg(long)]
    pub own_dirs: bool,
    /// Files in one directory before the next one is begun, at least two of each thread that shares it
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub files_per_dir: u32,
}

/// Arguments of the workload `write-delay`.
///
/// A writer appends `bytes` to its own file and then thinks for `think_us`. An append moves the
/// file's size, so every one of them changes the file's inode: a journal handle on the block of
/// the inode table that holds it, which is the block a commit may be writing. When its file
/// reaches 64 writes the writer truncates it to nothing, which is neither timed nor counted.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteDelay {
    /// What every workload has.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Number of writers
    #[arg(long, short = 'w', value_name = "N", default_value_t = 48, value_parser = threads())]
    pub writers: u32,
    /// Number of threads that loop create, fsync, close
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=65_536))]
    pub fsync_streams: u32,
    /// Bytes of each write
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub bytes: u32,
    /// Time a writer waits between two writes, microseconds
    #[arg(long, value_name = "US", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(..=60_000_000))]
    pub think_us: u32,
    /// A write that takes longer than this counts as delayed, microseconds
    #[arg(long, value_name = "US", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub delayed_over_us: u32,
    /// Measure for this many seconds
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = duration_s)]
    pub seconds: f64,
    /// Run for this many seconds before measuring
    #[arg(long, value_name = "S", default_value_t = 0.5, value_parser = warmup_s)]
    pub warmup_s: f64,
}

/// Arguments of the workload `burst`.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// What every workload has.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Number of threads
    #[arg(long, short = 't', value_name = "N", default_value_t = 4, value_parser = threads())]
    pub threads: u32,
    /// Time from one burst to the next, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    pub period_ms: u32,
    /// Each thread wakes at a random moment within this time, microseconds
    #[arg(long, value_name = "US", default_value_t = 800, value_parser = clap::value_parser!(u32).range(..=3_600_000_000))]
    pub spread_us: u32,
    /// Bursts to measure
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub bursts: u32,
    /// Bursts before measuring
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub warmup_bursts: u32,
    /// Seed of the random moments
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Duration of one journal commit, milliseconds; without it, the median of each burst's
    /// fastest fsync, which met no other commit
    #[arg(long, value_name = "MS", value_parser = duration_s)]
    pub commit_ms: Option<f64>,
}

/// Arguments of the workload `write-burst`.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteBurst {
    /// What every workload has.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Number of threads
    #[arg(long, short = 't', value_name = "N", default_value_t = 16, value_parser = threads())]
    pub threads: u32,
    /// Time from one burst to the next, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    pub period_ms: u32,
    /// Each thread wakes at a random moment within this time, microseconds
    #[arg(long, value_name = "US", default_value_t = 5000, value_parser = clap::value_parser!(u32).range(..=3_600_000_000))]
    pub spread_us: u32,
    /// Bursts to measure
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub bursts: u32,
    /// Bursts before measuring
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub warmup_bursts: u32,
    /// Bytes of each piece
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub piece_bytes: u32,
    /// Pieces written to each file
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub pieces: u32,
    /// A thread whose writes take longer than this together counts as blocked, microseconds
    #[arg(long, value_name = "US", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1..))]
    pub blocked_over_us: u32,
    /// Seed of the random moments
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Arguments of the workload `fsync-cost`.
///
/// Loops, each of `ops` turns: fsync of a file that is committed; fchmod and fsync; fchmod, and a
/// wait until the journal commits by its timer; the same with the fchmod of `buffers` files, whose
/// inodes lie in as many blocks. Nothing else should run. Mounted with `commit=1`, the waits are short.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsyncCost {
    /// What every workload has.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Operations to measure in each loop
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub ops: u32,
    /// Operations before them
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub warmup_ops: u32,
    /// Metadata buffers of the large commits
    #[arg(long, value_name = "N", default_value_t = 129, value_parser = clap::value_parser!(u32).range(2..=256))]
    pub buffers: u32,
}

/// Arguments of the workload `scaling`.
///
/// For each number of threads in turn: every thread gets a processor and a file of its own, and
/// fsyncs the file, which is committed, over and over. Such a call waits for no disk, so N threads
/// make N times the calls of one unless they contend for memory.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// What every workload has.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Numbers of threads, one after the other; without it 1, 2, 4 and so on, up to the number of
    /// processors
    #[arg(long, short = 't', value_name = "N,...", value_delimiter = ',', value_parser = threads())]
    pub threads: Vec<u32>,
    /// Measure each number of threads for this many seconds
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = duration_s)]
    pub seconds: f64,
    /// Measure this many calls of each thread instead of a time
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    pub ops: Option<u64>,
    /// Run for this many seconds before measuring
    #[arg(long, value_name = "S", default_value_t = 0.2, value_parser = warmup_s)]
    pub warmup_s: f64,
}

pub(crate) fn threads() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=65_536)
}

/// Longest time that can be asked for: keeps every sum of nanoseconds far from overflow.
pub(crate) const LONGEST: f64 = 1e7;

pub(crate) fn duration_s(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= LONGEST => Ok(value),
        _ => Err(format!("not a number above 0 and up to {LONGEST}")),
    }
}

pub(crate) fn warmup_s(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=LONGEST).contains(&value) => Ok(value),
        _ => Err(format!("not a number from 0 to {LONGEST}")),
    }
}
