//! Workload `create-fsync`: threads that create files and make each one durable.

use std::fmt;
use std::time::Duration;

use clap::{Args, value_parser};
use serde::{Deserialize, Serialize};

use crate::args::{Common, duration_s, threads, warmup_s};
use crate::benchmark::{Benchmark, Found, Measured};
use crate::clock::{now_ns, seconds_ns};
use crate::crew::{self, Schedule, Window};
use crate::dir::{Dir, Name};
use crate::latency::{Mean, Recorder};
use crate::rates::{file_creation_rate_per_s, per_second};
use crate::scratch::{Scratch, allow_open_files};
use crate::text::{Lines, latency, time};
use crate::{Latency, Result, Stop};

/// Arguments of the workload `create-fsync`.
///
/// The loop is exactly create, write, fsync, close. All threads create in one directory, as
/// Metarates does, or each in its own. After `files_per_dir` files a thread goes on in the next
/// directory, outside the timed operations, so that none grows until searching it dominates;
/// nothing is removed before the end.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[command(after_help = "Examples:\n\
    \x20 luc bench create-fsync --threads 16 /srv/scratch\n\
    \x20 luc bench create-fsync --threads 64 --ops 100 --json --dir /srv/scratch")]
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
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = value_parser!(u64).range(1..))]
    pub ops: Option<u64>,
    /// Run for this many seconds before measuring
    #[arg(long, value_name = "S", default_value_t = 0.5, value_parser = warmup_s)]
    pub warmup_s: f64,
    /// Bytes to write to each file before its fsync
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = value_parser!(u32).range(..=1 << 30))]
    pub bytes: u32,
    /// Give each thread directories of its own instead of sharing them
    #[arg(long)]
    pub own_dirs: bool,
    /// Files in one directory before the next one is begun, at least two of each thread that shares it
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u32).range(1..))]
    pub files_per_dir: u32,
}

/// Result of the workload `create-fsync`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateFsyncResult {
    /// The arguments it ran with.
    pub args: CreateFsync,
    /// Operations that ended within the measurement; one is create, write, fsync, close.
    pub ops: u64,
    /// Operations per second of the measurement.
    pub ops_per_s: f64,
    /// Equation 3 with each thread's mean time of an operation, files per second.
    pub file_creation_rate_per_s: f64,
    /// Operations of the slowest thread.
    pub thread_ops_min: u64,
    /// Operations of the fastest thread.
    pub thread_ops_max: u64,
    /// Sync delay: the time an fsync took.
    pub fsync: Latency,
    /// Mean time of a create, nanoseconds.
    pub create_mean_ns: f64,
    /// Mean time of a write, nanoseconds; 0 when nothing is written.
    pub write_mean_ns: f64,
    /// Mean time of a close, nanoseconds.
    pub close_mean_ns: f64,
    /// Files that were removed before the end, so that the file system did not run out of inodes.
    #[serde(default)]
    pub removed_early: u64,
}

/// Fewer files than this per thread and directory would measure the making of directories.
const SHARE_FILES_MIN: u32 = 2;

/// The files of all threads together may take one in this many of the inodes that are free: the rest
/// is for directories, which take one for as few as two files, and for other programs.
const INODES_SHARE: u64 = 4;

/// The files of one directory go while the others stay.
const DIRS_MIN: u64 = 2;

struct Place {
    /// The thread's directory, or the one it shares.
    dir: Dir,
    /// First file number; differs between threads that share a directory.
    first_file: u64,
    /// Files of this thread before a new directory inside `dir` is begun.
    files_per_dir: u64,
    /// Directories that the thread goes round in.
    dirs_max: u64,
}

impl Place {
    /// The directory for the file of this turn, if another one than for the turn before, and how many
    /// files went to make room for it: the thread's own in that directory, if it has been there.
    fn next_dir(&self, turn: u64) -> Result<Option<(Dir, u64)>> {
        if !turn.is_multiple_of(self.files_per_dir) {
            return Ok(None);
        }
        let number = turn / self.files_per_dir;
        let dir = self.dir.subdir(&format!("d{}", number % self.dirs_max))?;
        let Some(before) = number.checked_sub(self.dirs_max) else {
            return Ok(Some((dir, 0)));
        };
        let first = self.first_file + before * self.files_per_dir;
        let mut name = Name::new();
        for file in first..first + self.files_per_dir {
            dir.unlink(name.set(file))?;
        }
        Ok(Some((dir, self.files_per_dir)))
    }
}

struct Thread {
    removed: u64,
    fsync: Recorder,
    whole_sum_ns: u64,
    create: Mean,
    write: Mean,
    close: Mean,
    ended_ns: u64,
}

impl Benchmark for CreateFsync {
    type Found = CreateFsyncResult;

    fn length(&self) -> Option<Duration> {
        let seconds = self.warmup_s + self.seconds;
        self.ops.is_none().then(|| Duration::from_secs_f64(seconds))
    }

    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>> {
        let threads = self.threads as usize;
        allow_open_files(threads)?;
        let scratch = Scratch::new(&self.common.dir, self.common.keep)?;
        let files_max = scratch.free_inodes()? / INODES_SHARE / u64::from(self.threads);
        let mut places = Vec::with_capacity(threads);
        for index in 0..u64::from(self.threads) {
            let (name, first_file) = if self.own_dirs {
                (format!("t{index:04}"), 0)
            } else {
                (
                    "shared".to_owned(),
                    index * Name::COUNT / u64::from(self.threads),
                )
            };
            let sharers = if self.own_dirs { 1 } else { self.threads };
            let files_per_dir = u64::from((self.files_per_dir / sharers).max(SHARE_FILES_MIN));
            let files_per_dir = files_per_dir.min((files_max / DIRS_MIN).max(1));
            places.push(Place {
                dir: scratch.subdir(&name)?,
                first_file,
                files_per_dir,
                dirs_max: (files_max / files_per_dir).max(DIRS_MIN),
            });
        }
        let window = Window {
            warmup_ns: seconds_ns(self.warmup_s),
            length_ns: self.ops.is_none().then(|| seconds_ns(self.seconds)),
        };
        let data = vec![0x6c_u8; self.bytes as usize];
        let body =
            |place, schedule, failed: &Stop| one(&place, schedule, self.ops, &data, stop, failed);
        let (results, schedule, observed) = crew::run(places, window, &scratch, stop, body)?;
        scratch.remove()?;

        let interrupted = stop.is_set();
        let ended_ns = results.iter().map(|t| t.ended_ns);
        let elapsed_ns = schedule.measured_ns(window, interrupted, ended_ns);
        let fsync = Recorder::merged(results.iter().map(|t| &t.fsync));
        let counts = || results.iter().map(|t| t.fsync.count());
        let result = CreateFsyncResult {
            args: self.clone(),
            ops: fsync.count,
            ops_per_s: per_second(fsync.count, elapsed_ns),
            file_creation_rate_per_s: file_creation_rate_per_s(
                results
                    .iter()
                    .filter(|t| t.fsync.count() > 0)
                    .map(|t| t.whole_sum_ns as f64 / t.fsync.count() as f64),
            ),
            thread_ops_min: counts().min().unwrap_or(0),
            thread_ops_max: counts().max().unwrap_or(0),
            fsync,
            create_mean_ns: Mean::merged(results.iter().map(|t| t.create)),
            write_mean_ns: Mean::merged(results.iter().map(|t| t.write)),
            close_mean_ns: Mean::merged(results.iter().map(|t| t.close)),
            removed_early: results.iter().map(|t| t.removed).sum(),
        };
        Ok(Measured {
            fsyncs: fsync.count,
            found: result,
            elapsed_ns,
            interrupted,
            observed,
        })
    }
}

impl Found for CreateFsyncResult {
    fn title(&self) -> String {
        format!("create-fsync, {} threads", self.args.threads)
    }

    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        lines.line(
            "throughput",
            format!("{:.1} files/s ({} files)", self.ops_per_s, self.ops),
        )?;
        lines.file_creation_rate(self.file_creation_rate_per_s)?;
        if self.removed_early > 0 {
            lines.line(
                "removed early",
                format!(
                    "{} files: the file system has too few inodes to keep all",
                    self.removed_early
                ),
            )?;
        }
        lines.line(
            "per thread",
            format!(
                "{} to {} operations",
                self.thread_ops_min, self.thread_ops_max
            ),
        )?;
        lines.line("sync delay", latency(&self.fsync))?;
        let create = time(self.create_mean_ns);
        let close = time(self.close_mean_ns);
        let parts = if self.args.bytes > 0 {
            let write = time(self.write_mean_ns);
            format!("create {create}, write {write}, close {close}")
        } else {
            format!("create {create}, close {close}")
        };
        lines.line("other calls, mean", parts)
    }

    fn main_figure(&self) -> Option<f64> {
        Some(self.ops_per_s)
    }

    fn syncs(&self) -> Option<&Latency> {
        Some(&self.fsync)
    }
}

fn one(
    place: &Place,
    schedule: Schedule,
    ops: Option<u64>,
    data: &[u8],
    stop: &Stop,
    failed: &Stop,
) -> Result<Thread> {
    let mut inner: Option<Dir> = None;
    let mut name = Name::new();
    let mut thread = Thread {
        removed: 0,
        fsync: Recorder::new(),
        whole_sum_ns: 0,
        create: Mean::default(),
        write: Mean::default(),
        close: Mean::default(),
        ended_ns: schedule.start_ns,
    };
    for turn in 0_u64.. {
        let name = name.set(place.first_file + turn);
        if let Some((next, removed)) = place.next_dir(turn)? {
            inner = Some(next);
            thread.removed += removed;
        }
        let dir = inner.as_ref().unwrap_or(&place.dir);
        let begin_ns = now_ns();
        if begin_ns >= schedule.until_ns || stop.is_set() || failed.is_set() {
            break;
        }
        let file = dir.create(name)?;
        let created_ns = now_ns();
        if !data.is_empty() {
            dir.write(&file, name, data)?;
        }
        let written_ns = now_ns();
        dir.fsync(&file, name)?;
        let synced_ns = now_ns();
        drop(file);
        let closed_ns = now_ns();
        // Counting what ends in the window, whenever it began, counts each operation once and
        // favours neither edge. Counted operations must begin in it instead.
        let counts = match ops {
            Some(_) => begin_ns >= schedule.from_ns,
            None => closed_ns > schedule.from_ns && closed_ns <= schedule.until_ns,
        };
        if counts {
            thread.create.record(created_ns - begin_ns);
            if !data.is_empty() {
                thread.write.record(written_ns - created_ns);
            }
            thread.fsync.record(synced_ns - written_ns);
            thread.close.record(closed_ns - synced_ns);
            thread.whole_sum_ns += closed_ns - begin_ns;
        }
        thread.ended_ns = closed_ns;
        if ops == Some(thread.fsync.count()) {
            break;
        }
    }
    Ok(thread)
}
