//! Workload `create-fsync`: threads that create files and make each one durable.

use std::fmt;
use std::time::Duration;

use clap::{Args, value_parser};
use serde::{Deserialize, Serialize};

use crate::args::{Common, duration_s, threads, warmup_s};
use crate::benchmark::{Benchmark, Figures, Found, Measured};
use crate::clock::now_ns;
use crate::crew::{self, Shift, Window};
use crate::dir::{Dir, Name};
use crate::rates::{file_creation_rate_per_s, per_second};
use crate::scratch::Scratch;
use crate::text::{Lines, latency, time};
use crate::{Latency, Result, Stop};
use luc_base::{Mean, Recorder};

/// The loop is exactly create, write, fsync, close. All threads create in one directory, as
/// Metarates does, or each in its own. After `files_per_dir` files a thread goes on in the next
/// directory, outside the timed operations, so that no directory grows until searching it
/// dominates; nothing is removed before the end.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab bench create-fsync --threads 16 /srv/scratch\n\
    \x20 luc-lab bench create-fsync --threads 64 --ops 100 --json --dir /srv/scratch")]
pub struct CreateFsync {
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Number of threads
    #[arg(long, short = 't', value_name = "N", default_value_t = 4, value_parser = threads())]
    pub threads: u32,
    /// Measure for this many seconds
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = duration_s)]
    pub seconds: f64,
    /// Measure this many operations per thread instead of a time
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
    /// Files in one directory before a thread starts the next; at least two per thread that shares
    /// the directory
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u32).range(1..))]
    pub files_per_dir: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateFsyncResult {
    pub args: CreateFsync,
    /// Operations that ended within the measurement; one is create, write, fsync, close.
    pub ops: u64,
    pub ops_per_s: f64,
    /// Equation 3 with each thread's mean time of an operation, files per second.
    pub file_creation_rate_per_s: f64,
    /// Operations of the slowest thread.
    pub thread_ops_min: u64,
    /// Operations of the fastest thread.
    pub thread_ops_max: u64,
    /// Sync delay: the time an fsync took.
    pub fsync: Latency,
    pub create_mean_ns: f64,
    /// Mean time of a write, nanoseconds; 0 when nothing is written.
    pub write_mean_ns: f64,
    pub close_mean_ns: f64,
    /// Files that were removed before the end, so that the file system did not run out of inodes.
    #[serde(default)]
    pub removed_early: u64,
}

/// With fewer files per thread and directory, making directories would dominate.
const SHARE_FILES_MIN: u32 = 2;

/// The files of all threads together take at most one in this many of the free inodes: the rest is
/// for directories, which may hold as few as two files each, and for other programs.
const INODES_SHARE: u64 = 4;

/// A thread removes the files of one directory while the others stay.
const DIRS_MIN: u64 = 2;

struct Place {
    /// The thread's directory, or the one it shares.
    dir: Dir,
    /// First file number; differs between threads that share a directory.
    first_file: u64,
    /// Files of this thread before a new directory inside `dir` is begun.
    files_per_dir: u64,
    /// Directories that the thread uses in turn.
    dirs_max: u64,
}

impl Place {
    /// Returns the directory for this turn's file if it differs from that of the turn before, and
    /// the number of files removed to make room: the thread's own, from its last use of the
    /// directory.
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

impl CreateFsync {
    /// Returns how many of its files a thread puts into a directory, and how many directories it
    /// uses in turn.
    pub fn own_files(&self, inodes: u64) -> (u64, u64) {
        let sharers = if self.own_dirs { 1 } else { self.threads };
        let files_max = inodes / INODES_SHARE / u64::from(self.threads);
        let files_per_dir = u64::from((self.files_per_dir / sharers).max(SHARE_FILES_MIN));
        let files_per_dir = files_per_dir.min((files_max / DIRS_MIN).max(1));
        (files_per_dir, (files_max / files_per_dir).max(DIRS_MIN))
    }
}

impl Benchmark for CreateFsync {
    type Found = CreateFsyncResult;

    fn length(&self) -> Option<Duration> {
        let seconds = self.warmup_s + self.seconds;
        self.ops.is_none().then(|| Duration::from_secs_f64(seconds))
    }

    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>> {
        let seconds = self.ops.is_none().then_some(self.seconds);
        let window = Window::seconds(self.warmup_s, seconds);
        let data = vec![0x6c_u8; self.bytes as usize];
        let body = |place, shift: Shift<'_>| one(&place, shift, self.ops, &data);
        let places = |scratch: &Scratch| places(self, scratch);
        let ran = crew::run_in(&self.common, self.threads, places, window, stop, body)?;
        let elapsed_ns = ran.elapsed_ns(|thread| thread.ended_ns);
        let threads = || ran.results.iter();
        let calls = CreateFsyncCalls {
            files: threads()
                .map(|t| (t.fsync.count(), t.whole_sum_ns))
                .collect(),
            fsync: Recorder::merged(threads().map(|t| &t.fsync)),
            create_mean_ns: Mean::merged(threads().map(|t| t.create)),
            write_mean_ns: Mean::merged(threads().map(|t| t.write)),
            close_mean_ns: Mean::merged(threads().map(|t| t.close)),
            removed_early: threads().map(|t| t.removed).sum(),
        };
        let found = CreateFsyncResult::new(self, elapsed_ns, &calls);
        Ok(Measured::by(&ran, elapsed_ns, found))
    }
}

/// The measured calls of all threads.
#[derive(Clone, Debug, Default)]
pub struct CreateFsyncCalls {
    /// Per thread: the number of files, and the sum of their times from create to close, ns.
    pub files: Vec<(u64, u64)>,
    pub fsync: Latency,
    pub create_mean_ns: f64,
    pub write_mean_ns: f64,
    pub close_mean_ns: f64,
    pub removed_early: u64,
}

impl CreateFsyncResult {
    /// Computes the figures of a measurement of `elapsed_ns`.
    pub fn new(args: &CreateFsync, elapsed_ns: u64, calls: &CreateFsyncCalls) -> Self {
        let counts = || calls.files.iter().map(|(count, _)| *count);
        let made = calls.files.iter().filter(|(count, _)| *count > 0);
        let file_ns = made.map(|(count, sum_ns)| *sum_ns as f64 / *count as f64);
        Self {
            args: args.clone(),
            ops: calls.fsync.count,
            ops_per_s: per_second(calls.fsync.count, elapsed_ns),
            file_creation_rate_per_s: file_creation_rate_per_s(file_ns),
            thread_ops_min: counts().min().unwrap_or(0),
            thread_ops_max: counts().max().unwrap_or(0),
            fsync: calls.fsync,
            create_mean_ns: calls.create_mean_ns,
            write_mean_ns: calls.write_mean_ns,
            close_mean_ns: calls.close_mean_ns,
            removed_early: calls.removed_early,
        }
    }
}

impl Found for CreateFsyncResult {
    fn title(&self) -> String {
        format!("create-fsync, {} threads", self.args.threads)
    }

    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        lines.throughput(self.ops_per_s, self.ops, "files")?;
        lines.file_creation_rate(self.file_creation_rate_per_s)?;
        if self.removed_early > 0 {
            let few = "the file system has too few inodes to keep them all";
            lines.line(
                "removed early",
                format!("{} files: {few}", self.removed_early),
            )?;
        }
        let (least, most) = (self.thread_ops_min, self.thread_ops_max);
        lines.line("per thread", format!("{least} to {most} operations"))?;
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

    fn figures(&self) -> Figures<'_> {
        Figures::rate(self.ops_per_s, &self.fsync)
    }
}

fn places(args: &CreateFsync, scratch: &Scratch) -> Result<Vec<Place>> {
    let threads = u64::from(args.threads);
    let (files_per_dir, dirs_max) = args.own_files(scratch.free_inodes()?);
    let place = |index| {
        let (name, first_file) = if args.own_dirs {
            (format!("t{index:04}"), 0)
        } else {
            ("shared".to_owned(), index * Name::COUNT / threads)
        };
        Ok(Place {
            dir: scratch.subdir(&name)?,
            first_file,
            files_per_dir,
            dirs_max,
        })
    };
    (0..threads).map(place).collect()
}

fn one(place: &Place, shift: Shift<'_>, ops: Option<u64>, data: &[u8]) -> Result<Thread> {
    let mut inner: Option<Dir> = None;
    let mut name = Name::new();
    let mut thread = Thread {
        removed: 0,
        fsync: Recorder::new(),
        whole_sum_ns: 0,
        create: Mean::default(),
        write: Mean::default(),
        close: Mean::default(),
        ended_ns: shift.start_ns,
    };
    for turn in 0_u64.. {
        let name = name.set(place.first_file + turn);
        if let Some((next, removed)) = place.next_dir(turn)? {
            inner = Some(next);
            thread.removed += removed;
        }
        let dir = inner.as_ref().unwrap_or(&place.dir);
        let begin_ns = now_ns();
        if begin_ns >= shift.until_ns || shift.is_cut_short() {
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
        // An operation counts if it ends in the window, whenever it began: each then counts once,
        // and neither edge is favoured. With a fixed number of operations, each must begin in the
        // window instead.
        let counts = match ops {
            Some(_) => begin_ns >= shift.from_ns,
            None => shift.measures(closed_ns),
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
