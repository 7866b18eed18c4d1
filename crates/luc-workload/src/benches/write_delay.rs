//! Workload `write-delay`: small writes beside a stream of fsyncs.

use std::fmt;
use std::time::Duration;

use clap::{Args, value_parser};
use rustix::fs::ftruncate;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::args::{Common, duration_s, threads, warmup_s};
use crate::benchmark::{Benchmark, Found, Measured};
use crate::clock::{NS_PER_US, now_ns, seconds_ns, sleep_until};
use crate::crew::{self, Schedule, Window};
use crate::dir::{Dir, Name};
use crate::latency::Recorder;
use crate::rates::{per_second, share};
use crate::scratch::{Scratch, allow_open_files};
use crate::text::{Lines, latency, percent};
use crate::{Latency, Result, Stop};

/// Arguments of the workload `write-delay`.
///
/// A writer appends `bytes` to its own file and then thinks for `think_us`. An append moves the
/// file's size, so every one of them changes the file's inode: a journal handle on the block of
/// the inode table that holds it, which is the block a commit may be writing. When its file
/// reaches 64 writes the writer truncates it to nothing, which is neither timed nor counted.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[command(after_help = "Examples:\n\
    \x20 luc bench write-delay /srv/scratch\n\
    \x20 luc bench write-delay --writers 16 --fsync-streams 4 /srv/scratch")]
pub struct WriteDelay {
    /// What every workload has.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Number of writers
    #[arg(long, short = 'w', value_name = "N", default_value_t = 48, value_parser = threads())]
    pub writers: u32,
    /// Number of threads that loop create, fsync, close
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(..=65_536))]
    pub fsync_streams: u32,
    /// Bytes of each write
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = value_parser!(u32).range(1..=1 << 20))]
    pub bytes: u32,
    /// Time a writer waits between two writes, microseconds
    #[arg(long, value_name = "US", default_value_t = 2000, value_parser = value_parser!(u32).range(..=60_000_000))]
    pub think_us: u32,
    /// A write that takes longer than this counts as delayed, microseconds
    #[arg(long, value_name = "US", default_value_t = 1000, value_parser = value_parser!(u32).range(1..))]
    pub delayed_over_us: u32,
    /// Measure for this many seconds
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = duration_s)]
    pub seconds: f64,
    /// Run for this many seconds before measuring
    #[arg(long, value_name = "S", default_value_t = 0.5, value_parser = warmup_s)]
    pub warmup_s: f64,
}

/// Result of the workload `write-delay`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteDelayResult {
    /// The arguments it ran with.
    pub args: WriteDelay,
    /// Writes that ended within the measurement.
    pub writes: u64,
    pub writes_per_s: f64,
    /// Writes that took longer than `args.delayed_over_us`.
    pub delayed: u64,
    /// Delayed writes as a share of all writes, 0 to 1.
    pub delayed_share: f64,
    /// The time a write took.
    pub write: Latency,
    /// fsyncs that ended within the measurement, over all streams.
    pub fsyncs: u64,
    pub fsyncs_per_s: f64,
    /// The time an fsync took.
    pub fsync: Latency,
}

/// Writes until a file is truncated: bounds the dirty memory, and is rare beside the writes.
const WRITES_PER_FILE: u32 = 64;

/// Files of one fsync stream that exist at the same time.
const STREAM_FILES: u64 = 4096;

enum Place {
    Writer(Dir, u64),
    Stream(Dir),
}

enum Thread {
    Writer {
        write: Recorder,
        delayed: u64,
        ended_ns: u64,
    },
    Stream {
        fsync: Recorder,
        ended_ns: u64,
    },
}

impl Thread {
    fn ended_ns(&self) -> u64 {
        match self {
            Self::Writer { ended_ns, .. } | Self::Stream { ended_ns, .. } => *ended_ns,
        }
    }
}

impl Benchmark for WriteDelay {
    type Found = WriteDelayResult;

    fn length(&self) -> Option<Duration> {
        Some(Duration::from_secs_f64(self.warmup_s + self.seconds))
    }

    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>> {
        let threads = self.writers as usize + self.fsync_streams as usize;
        allow_open_files(threads)?;
        let scratch = Scratch::new(&self.common.dir, self.common.keep)?;
        let mut places = Vec::with_capacity(threads);
        for index in 0..self.fsync_streams {
            places.push(Place::Stream(scratch.subdir(&format!("sync{index:04}"))?));
        }
        // One directory for all writers: their inodes are neighbours and share blocks of the inode
        // table, as files that are made together do.
        for index in 0..self.writers {
            places.push(Place::Writer(scratch.subdir("write")?, u64::from(index)));
        }
        let window = Window {
            warmup_ns: seconds_ns(self.warmup_s),
            length_ns: Some(seconds_ns(self.seconds)),
        };
        let body = |place, schedule, failed: &Stop| match place {
            Place::Writer(dir, number) => writer(&dir, number, self, schedule, stop, failed),
            Place::Stream(dir) => stream(&dir, schedule, stop, failed),
        };
        let (results, schedule, observed) = crew::run(places, window, &scratch, stop, body)?;
        scratch.remove()?;

        let interrupted = stop.is_set();
        let ended_ns = results.iter().map(Thread::ended_ns);
        let elapsed_ns = schedule.measured_ns(window, interrupted, ended_ns);
        let write = Recorder::merged(results.iter().filter_map(|thread| match thread {
            Thread::Writer { write, .. } => Some(write),
            Thread::Stream { .. } => None,
        }));
        let fsync = Recorder::merged(results.iter().filter_map(|thread| match thread {
            Thread::Stream { fsync, .. } => Some(fsync),
            Thread::Writer { .. } => None,
        }));
        let delayed = results
            .iter()
            .map(|thread| match thread {
                Thread::Writer { delayed, .. } => *delayed,
                Thread::Stream { .. } => 0,
            })
            .sum();
        let result = WriteDelayResult {
            args: self.clone(),
            writes: write.count,
            writes_per_s: per_second(write.count, elapsed_ns),
            delayed,
            delayed_share: share(delayed, write.count),
            write,
            fsyncs: fsync.count,
            fsyncs_per_s: per_second(fsync.count, elapsed_ns),
            fsync,
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

impl Found for WriteDelayResult {
    fn title(&self) -> String {
        format!(
            "write-delay, {} writers beside {} fsync streams",
            self.args.writers, self.args.fsync_streams
        )
    }

    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        lines.line(
            "throughput",
            format!("{:.1} writes/s ({} writes)", self.writes_per_s, self.writes),
        )?;
        lines.line(
            "delayed",
            format!(
                "{} ({}) took longer than {} us",
                self.delayed,
                percent(self.delayed_share),
                self.args.delayed_over_us
            ),
        )?;
        lines.line("write time", latency(&self.write))?;
        lines.line(
            "fsyncs beside them",
            format!("{} ({:.1}/s)", self.fsyncs, self.fsyncs_per_s),
        )?;
        lines.line("sync delay", latency(&self.fsync))
    }

    fn main_figure(&self) -> Option<f64> {
        Some(self.writes_per_s)
    }

    fn bad_share(&self) -> Option<f64> {
        Some(self.delayed_share)
    }

    fn syncs(&self) -> Option<&Latency> {
        Some(&self.fsync)
    }
}

fn writer(
    dir: &Dir,
    number: u64,
    args: &WriteDelay,
    schedule: Schedule,
    stop: &Stop,
    failed: &Stop,
) -> Result<Thread> {
    let mut name = Name::new();
    let name = name.set(number);
    let data = vec![0x6c_u8; args.bytes as usize];
    let delayed_over_ns = u64::from(args.delayed_over_us) * NS_PER_US;
    let (mut write, mut delayed, mut ended_ns) = (Recorder::new(), 0, schedule.start_ns);
    let file = dir.create(name)?;
    let mut in_file = 0;
    while !stop.is_set() && !failed.is_set() {
        if in_file == WRITES_PER_FILE {
            ftruncate(&file, 0).map_err(|e| dir.error("truncate", name, e))?;
            // Without O_APPEND, whose check would be one more thing to do, the offset stays.
            rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))
                .map_err(|e: Errno| dir.error("seek in", name, e))?;
            in_file = 0;
        }
        let begin_ns = now_ns();
        if begin_ns >= schedule.until_ns {
            break;
        }
        dir.write(&file, name, &data)?;
        let end_ns = now_ns();
        in_file += 1;
        if end_ns > schedule.from_ns && end_ns <= schedule.until_ns {
            let took_ns = end_ns - begin_ns;
            write.record(took_ns);
            delayed += u64::from(took_ns > delayed_over_ns);
        }
        ended_ns = end_ns;
        if args.think_us > 0 {
            sleep_until(end_ns + u64::from(args.think_us) * NS_PER_US, stop);
        }
    }
    Ok(Thread::Writer {
        write,
        delayed,
        ended_ns,
    })
}

fn stream(dir: &Dir, schedule: Schedule, stop: &Stop, failed: &Stop) -> Result<Thread> {
    let mut name = Name::new();
    let (mut fsync, mut ended_ns) = (Recorder::new(), schedule.start_ns);
    for turn in 0_u64.. {
        let name = name.set(turn % STREAM_FILES);
        if turn >= STREAM_FILES {
            dir.unlink(name)?;
        }
        if now_ns() >= schedule.until_ns || stop.is_set() || failed.is_set() {
            break;
        }
        let file = dir.create(name)?;
        let begin_ns = now_ns();
        dir.fsync(&file, name)?;
        let end_ns = now_ns();
        drop(file);
        if end_ns > schedule.from_ns && end_ns <= schedule.until_ns {
            fsync.record(end_ns - begin_ns);
        }
        ended_ns = end_ns;
    }
    Ok(Thread::Stream { fsync, ended_ns })
}
