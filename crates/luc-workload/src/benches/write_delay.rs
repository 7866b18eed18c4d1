//! Workload `write-delay`: small writes beside a stream of fsyncs.

use std::fmt;
use std::time::Duration;

use clap::{Args, value_parser};
use rustix::fs::ftruncate;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::args::{Common, duration_s, threads, warmup_s};
use crate::benchmark::{Benchmark, Figures, Found, Measured};
use crate::clock::{NS_PER_US, now_ns, sleep_until};
use crate::crew::{self, Shift, Window};
use crate::dir::{Dir, Name};
use crate::rates::{per_second, share};
use crate::scratch::Scratch;
use crate::text::{Lines, latency, percent};
use crate::{Latency, Result, Stop};
use luc_base::Recorder;

/// A writer appends `bytes` to its own file and then thinks for `think_us`. An append changes the
/// file's size, so every one of them changes the file's inode: a journal handle on the block of the
/// inode table that holds it, which is the block a commit may be writing. When its file reaches 64
/// writes the writer truncates it to nothing, which is neither timed nor counted.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab bench write-delay /srv/scratch\n\
    \x20 luc-lab bench write-delay --writers 16 --fsync-streams 4 /srv/scratch")]
pub struct WriteDelay {
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Number of writers
    #[arg(long, short = 'w', value_name = "N", default_value_t = 48, value_parser = threads())]
    pub writers: u32,
    /// Number of threads that create, fsync and close files in a loop
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(..=65_536))]
    pub fsync_streams: u32,
    /// Bytes per write
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = value_parser!(u32).range(1..=1 << 20))]
    pub bytes: u32,
    /// Time that a writer waits between writes, microseconds
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteDelayResult {
    pub args: WriteDelay,
    /// Writes that ended within the measurement.
    pub writes: u64,
    pub writes_per_s: f64,
    /// Writes that took longer than `args.delayed_over_us`.
    pub delayed: u64,
    /// Delayed writes as a share of all writes, 0 to 1.
    pub delayed_share: f64,
    pub write: Latency,
    /// fsyncs that ended within the measurement, over all streams.
    pub fsyncs: u64,
    pub fsyncs_per_s: f64,
    pub fsync: Latency,
}

/// Writes after which a file is truncated: few enough to bound the dirty memory, many enough to
/// make truncates rare.
const WRITES_PER_FILE: u32 = 64;

/// Files of one fsync stream that exist at the same time.
const STREAM_FILES: u64 = 4096;

enum Place {
    Writer(Dir, u64),
    Stream(Dir),
}

/// A thread's measurements: the writes of a writer, or the fsyncs of a stream.
struct Thread {
    write: Option<Recorder>,
    fsync: Option<Recorder>,
    delayed: u64,
    ended_ns: u64,
}

impl Benchmark for WriteDelay {
    type Found = WriteDelayResult;

    fn length(&self) -> Option<Duration> {
        Some(Duration::from_secs_f64(self.warmup_s + self.seconds))
    }

    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>> {
        let window = Window::seconds(self.warmup_s, Some(self.seconds));
        let threads = self.writers + self.fsync_streams;
        let places = |scratch: &Scratch| places(self, scratch);
        let body = |place, shift: Shift<'_>| match place {
            Place::Writer(dir, number) => writer(&dir, number, self, shift),
            Place::Stream(dir) => stream(&dir, shift),
        };
        let ran = crew::run_in(&self.common, threads, places, window, stop, body)?;
        let elapsed_ns = ran.elapsed_ns(|thread| thread.ended_ns);
        let write = Recorder::merged(ran.results.iter().filter_map(|it| it.write.as_ref()));
        let fsync = Recorder::merged(ran.results.iter().filter_map(|it| it.fsync.as_ref()));
        let delayed = ran.results.iter().map(|it| it.delayed).sum();
        let found = WriteDelayResult::new(self, elapsed_ns, write, delayed, fsync);
        Ok(Measured::by(&ran, elapsed_ns, found))
    }
}

impl WriteDelayResult {
    /// Computes the figures of all writes, `delayed` of which took too long, and of the fsyncs
    /// beside them.
    pub fn new(
        args: &WriteDelay,
        elapsed_ns: u64,
        write: Latency,
        delayed: u64,
        fsync: Latency,
    ) -> Self {
        Self {
            args: args.clone(),
            writes: write.count,
            writes_per_s: per_second(write.count, elapsed_ns),
            delayed,
            delayed_share: share(delayed, write.count),
            write,
            fsyncs: fsync.count,
            fsyncs_per_s: per_second(fsync.count, elapsed_ns),
            fsync,
        }
    }
}

impl Found for WriteDelayResult {
    fn title(&self) -> String {
        let (writers, streams) = (self.args.writers, self.args.fsync_streams);
        format!("write-delay, {writers} writers beside {streams} fsync streams")
    }

    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        lines.throughput(self.writes_per_s, self.writes, "writes")?;
        let (share, over_us) = (percent(self.delayed_share), self.args.delayed_over_us);
        let delayed = format!("{} ({share}) took longer than {over_us} us", self.delayed);
        lines.line("delayed", delayed)?;
        lines.line("write time", latency(&self.write))?;
        let fsyncs = format!("{} ({:.1}/s)", self.fsyncs, self.fsyncs_per_s);
        lines.line("fsyncs beside them", fsyncs)?;
        lines.line("sync delay", latency(&self.fsync))
    }

    fn figures(&self) -> Figures<'_> {
        Figures {
            bad_share: Some(self.delayed_share),
            ..Figures::rate(self.writes_per_s, &self.fsync)
        }
    }

    fn ops(&self) -> u64 {
        self.writes
    }
}

fn places(args: &WriteDelay, scratch: &Scratch) -> Result<Vec<Place>> {
    let stream = |index| Ok(Place::Stream(scratch.subdir(&format!("sync{index:04}"))?));
    // One directory for all writers: their inodes are neighbours and share blocks of the inode
    // table, as files that are made together do.
    let writer = |index| Ok(Place::Writer(scratch.subdir("write")?, u64::from(index)));
    let streams = (0..args.fsync_streams).map(stream);
    streams.chain((0..args.writers).map(writer)).collect()
}

fn writer(dir: &Dir, number: u64, args: &WriteDelay, shift: Shift<'_>) -> Result<Thread> {
    let mut name = Name::new();
    let name = name.set(number);
    let data = vec![0x6c_u8; args.bytes as usize];
    let delayed_over_ns = u64::from(args.delayed_over_us) * NS_PER_US;
    let (mut write, mut delayed, mut ended_ns) = (Recorder::new(), 0, shift.start_ns);
    let file = dir.create(name)?;
    let mut in_file = 0;
    while !shift.is_cut_short() {
        if in_file == WRITES_PER_FILE {
            ftruncate(&file, 0).map_err(|e| dir.error("truncate", name, e))?;
            // The file is open without O_APPEND, to save its check, so truncating leaves the
            // offset.
            rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))
                .map_err(|e: Errno| dir.error("seek in", name, e))?;
            in_file = 0;
        }
        let begin_ns = now_ns();
        if begin_ns >= shift.until_ns {
            break;
        }
        dir.write(&file, name, &data)?;
        let end_ns = now_ns();
        in_file += 1;
        if shift.measures(end_ns) {
            let took_ns = end_ns - begin_ns;
            write.record(took_ns);
            delayed += u64::from(took_ns > delayed_over_ns);
        }
        ended_ns = end_ns;
        if args.think_us > 0 {
            sleep_until(end_ns + u64::from(args.think_us) * NS_PER_US, shift.stop);
        }
    }
    Ok(Thread {
        write: Some(write),
        fsync: None,
        delayed,
        ended_ns,
    })
}

fn stream(dir: &Dir, shift: Shift<'_>) -> Result<Thread> {
    let mut name = Name::new();
    let (mut fsync, mut ended_ns) = (Recorder::new(), shift.start_ns);
    for turn in 0_u64.. {
        let name = name.set(turn % STREAM_FILES);
        if turn >= STREAM_FILES {
            dir.unlink(name)?;
        }
        if now_ns() >= shift.until_ns || shift.is_cut_short() {
            break;
        }
        let file = dir.create(name)?;
        let begin_ns = now_ns();
        dir.fsync(&file, name)?;
        let end_ns = now_ns();
        drop(file);
        if shift.measures(end_ns) {
            fsync.record(end_ns - begin_ns);
        }
        ended_ns = end_ns;
    }
    Ok(Thread {
        write: None,
        fsync: Some(fsync),
        delayed: 0,
        ended_ns,
    })
}
