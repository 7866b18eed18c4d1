//! Workload `fsync-storm`, an open loop: fsyncs arrive whether or not earlier ones are done.
//!
//! In a closed loop a slow commit delays the next request, so the slowest waits are sampled least
//! often. Here the moment of every arrival is fixed before the run: at a rate with fixed or
//! exponential inter-arrival times, or in bursts. A thread that is free takes the next arrival,
//! waits for its moment, creates a file or appends to its own, fsyncs, and is free again. When all
//! threads are busy, arrivals wait: the response time of an arrival counts from the moment it was
//! meant for, its service time from the moment a thread began. After the measurement, threads go on
//! serving its arrivals up to a time limit. Arrivals that still wait then are reported as unserved,
//! and are in no percentile.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum, value_parser};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::args::{Common, duration_s, rate_per_s, threads, warmup_s};
use crate::benchmark::{Benchmark, Figures, Found, Measured};
use crate::clock::{NS_PER_MS, NS_PER_S, NS_PER_US, now_ns, seconds_ns, sleep_until};
use crate::crew::{self, Shift, Window};
use crate::dir::{Dir, Name};
use crate::processes::OPS_MAX;
use crate::random::moment_ns;
use crate::rates::per_second;
use crate::scratch::Scratch;
use crate::text::{Lines, latency};
use crate::{Latency, Result, Stop, WorkloadError};
use luc_base::Recorder;

/// Arrivals do not wait for earlier ones to be served: the load stays as requested when commits
/// become slow.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab bench fsync-storm --rate-per-s 500 /srv/scratch\n\
    \x20 luc-lab bench fsync-storm --burst 16 --period-ms 100 /srv/scratch")]
pub struct FsyncStorm {
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Threads that serve the arrivals
    #[arg(long, short = 't', value_name = "N", default_value_t = 16, value_parser = threads())]
    pub threads: u32,
    /// Arrivals per second, over all threads
    #[arg(long, value_name = "N", default_value_t = 200.0, value_parser = rate_per_s)]
    pub rate_per_s: f64,
    /// Distribution of the inter-arrival times
    #[arg(long, value_enum, default_value_t)]
    pub gaps: Gaps,
    /// Let arrivals come in bursts of this many instead of at a rate
    #[arg(long, value_name = "N", conflicts_with_all = ["rate_per_s", "gaps"], value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub burst: Option<u32>,
    /// Time from one burst to the next, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 60, requires = "burst", value_parser = value_parser!(u32).range(1..=3_600_000))]
    pub period_ms: u32,
    /// Time over which the arrivals of a burst are spread at random, microseconds
    #[arg(long, value_name = "US", default_value_t = 800, requires = "burst", value_parser = value_parser!(u32).range(..=3_600_000_000))]
    pub spread_us: u32,
    /// Operation at each arrival
    #[arg(long, value_enum, default_value_t)]
    pub op: StormOp,
    /// Bytes to write before each fsync [default: 0 for create, 1024 for append]
    #[arg(long, value_name = "BYTES", default_value_t = 0, hide_default_value = true, default_value_if("op", "append", "1024"), value_parser = value_parser!(u32).range(..=1 << 30))]
    pub bytes: u32,
    /// Threads that open, read and close files meanwhile
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = value_parser!(u32).range(..=65_536))]
    pub readers: u32,
    /// Time that a reader waits between reads, microseconds
    #[arg(long, value_name = "US", default_value_t = 1000, value_parser = value_parser!(u32).range(..=60_000_000))]
    pub read_think_us: u32,
    /// Measure for this many seconds
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = duration_s)]
    pub seconds: f64,
    /// Run for this many seconds before measuring
    #[arg(long, value_name = "S", default_value_t = 0.5, value_parser = warmup_s)]
    pub warmup_s: f64,
    /// Seconds after the measurement in which late arrivals may still be served
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = warmup_s)]
    pub drain_s: f64,
    /// Seed of the random moments
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// The inter-arrival times of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// Exponentially distributed, as from many independent sources
    #[default]
    Exponential,
    /// All the same
    Fixed,
}

/// The operation at an arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum StormOp {
    /// Create a file, write to it, fsync and close it
    #[default]
    Create,
    /// Append to the thread's own file and fsync it
    Append,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FsyncStormResult {
    pub args: FsyncStorm,
    /// Operations that were due within the measurement.
    pub arrivals: u64,
    /// Arrivals that were served; the four times below are theirs.
    pub served: u64,
    /// Arrivals that no thread had begun when the time to catch up was over.
    pub unserved: u64,
    /// Time from the moment an operation was due to its end.
    pub response: Latency,
    /// Time from the start of an operation to its end.
    pub service: Latency,
    /// Time from the moment an operation was due to its start.
    pub lateness: Latency,
    /// Sync delay: the time an fsync took.
    pub fsync: Latency,
    /// fsyncs that ended within the measurement, whenever they were due.
    pub fsyncs: u64,
    /// fsyncs that ended within the measurement, per second.
    pub fsyncs_per_s: f64,
    /// The time a reader's open, read and close took together.
    pub read: Latency,
    pub reads_per_s: f64,
}

/// Bytes of a reader's file, and of one read of it.
const READ_FILE_BYTES: usize = 64 * 1024;
const READ_BYTES: usize = 4096;

/// Longest wait for an arrival before a check whether another thread failed.
const LOOK_NS: u64 = 250 * NS_PER_MS;

enum Place {
    Server(Dir),
    Reader(Dir, u32),
}

/// A thread's measurements: the arrivals of a server, or the reads of a reader.
struct Thread {
    server: Option<Box<Server>>,
    read: Option<Recorder>,
    ended_ns: u64,
}

struct Server {
    response: Recorder,
    service: Recorder,
    lateness: Recorder,
    fsync: Recorder,
    /// fsyncs that ended within the measurement.
    fsyncs: u64,
}

impl Benchmark for FsyncStorm {
    type Found = FsyncStormResult;

    fn length(&self) -> Option<Duration> {
        Some(Duration::from_secs_f64(self.warmup_s + self.seconds))
    }

    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>> {
        if self.op == StormOp::Append && self.bytes == 0 {
            return Err(WorkloadError::Arguments(
                "an append of 0 bytes leaves its fsync nothing to do; give --bytes 1 or more"
                    .to_owned(),
            ));
        }
        let window = Window::seconds(self.warmup_s, Some(self.seconds));
        let warmup_ns = window.warmup_ns;
        let queue = Queue {
            arrivals: arrivals(self, warmup_ns + seconds_ns(self.seconds))?,
            next: AtomicU64::new(0),
            drain_ns: seconds_ns(self.drain_s),
        };
        let data = vec![0x6c_u8; self.bytes as usize];
        let body = |place, shift: Shift<'_>| match place {
            Place::Server(dir) => serve(&dir, self, &data, &queue, shift),
            Place::Reader(dir, index) => read(&dir, index, self, shift),
        };
        let threads = self.threads + self.readers;
        let places = |scratch: &Scratch| places(self, scratch);
        let ran = crew::run_in(&self.common, threads, places, window, stop, body)?;
        let elapsed_ns = ran.elapsed_ns(|thread| thread.ended_ns);
        let before = |ns| queue.arrivals.partition_point(|&at_ns| at_ns < ns) as u64;
        let meant = before(warmup_ns + elapsed_ns) - before(warmup_ns);
        let found = figures(self, meant, elapsed_ns, &ran.results);
        Ok(Measured::by(&ran, elapsed_ns, found))
    }
}

impl Found for FsyncStormResult {
    fn title(&self) -> String {
        let args = &self.args;
        let gaps = match args.gaps {
            Gaps::Exponential => "exponential",
            Gaps::Fixed => "fixed",
        };
        let load = args.burst.map_or_else(
            || format!("{} arrivals/s at {gaps} gaps", args.rate_per_s),
            |burst| {
                let (spread_us, period_ms) = (args.spread_us, args.period_ms);
                format!("bursts of {burst} within {spread_us} us every {period_ms} ms")
            },
        );
        format!("fsync-storm, {load}, {} threads", args.threads)
    }

    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        lines.throughput(self.fsyncs_per_s, self.fsyncs, "fsyncs")?;
        lines.line("arrivals", self.arrivals)?;
        let (served, unserved) = (self.served, self.unserved);
        lines.line("served", format!("{served}; {unserved} never started"))?;
        lines.line("response, from due", latency(&self.response))?;
        lines.line("service, from start", latency(&self.service))?;
        lines.line("lateness", latency(&self.lateness))?;
        lines.line("sync delay", latency(&self.fsync))?;
        if self.args.readers > 0 {
            let rate = format!("{} ({:.1}/s)", self.read.count, self.reads_per_s);
            lines.line("reads", rate)?;
            lines.line("read time", latency(&self.read))?;
        }
        Ok(())
    }

    fn figures(&self) -> Figures<'_> {
        Figures::rate(self.fsyncs_per_s, &self.fsync)
    }

    fn fsyncs(&self) -> u64 {
        self.fsyncs
    }
}

fn places(args: &FsyncStorm, scratch: &Scratch) -> Result<Vec<Place>> {
    let server = |index| Ok(Place::Server(scratch.subdir(&format!("t{index:04}"))?));
    let reader = |index| Ok(Place::Reader(readers_file(scratch, index)?, index));
    let servers = (0..args.threads).map(server);
    servers.chain((0..args.readers).map(reader)).collect()
}

fn figures(
    args: &FsyncStorm,
    arrivals: u64,
    elapsed_ns: u64,
    threads: &[Thread],
) -> FsyncStormResult {
    let servers = || threads.iter().filter_map(|thread| thread.server.as_ref());
    let of_servers =
        |pick: fn(&Server) -> &Recorder| Recorder::merged(servers().map(|server| pick(server)));
    let response = of_servers(|s| &s.response);
    let read = Recorder::merged(threads.iter().filter_map(|thread| thread.read.as_ref()));
    let fsyncs = servers().map(|server| server.fsyncs).sum();
    FsyncStormResult {
        args: args.clone(),
        arrivals,
        served: response.count,
        unserved: arrivals.saturating_sub(response.count),
        response,
        service: of_servers(|s| &s.service),
        lateness: of_servers(|s| &s.lateness),
        fsync: of_servers(|s| &s.fsync),
        fsyncs,
        fsyncs_per_s: per_second(fsyncs, elapsed_ns),
        reads_per_s: per_second(read.count, elapsed_ns),
        read,
    }
}

/// All arrivals, which threads take in turn.
struct Queue {
    /// Moments after the common start, nanoseconds, ascending.
    arrivals: Vec<u64>,
    next: AtomicU64,
    /// Time to catch up after the measurement, nanoseconds.
    drain_ns: u64,
}

impl Queue {
    /// Takes the next arrival; returns its number and its moment.
    fn take(&self) -> Option<(u64, u64)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let index = usize::try_from(number).ok()?;
        Some((number, *self.arrivals.get(index)?))
    }
}

/// Returns the moments of all arrivals before `length_ns`, nanoseconds after the start, ascending.
fn arrivals(args: &FsyncStorm, length_ns: u64) -> Result<Vec<u64>> {
    let length_s = length_ns as f64 / NS_PER_S as f64;
    let expected = match args.burst {
        Some(burst) => f64::from(burst) * (length_s * 1e3 / f64::from(args.period_ms)).ceil(),
        None => args.rate_per_s * length_s,
    };
    // Random gaps may make some more arrivals than expected; the limit need not be exact.
    if expected > OPS_MAX as f64 {
        return Err(WorkloadError::Arguments(format!(
            "{expected:.0} arrivals are more than {OPS_MAX}; ask for a lower rate or a shorter time"
        )));
    }
    Ok(match args.burst {
        Some(burst) => in_bursts(args, burst, length_ns),
        None => at_rate(args, length_ns),
    })
}

fn in_bursts(args: &FsyncStorm, burst: u32, length_ns: u64) -> Vec<u64> {
    let period_ns = u64::from(args.period_ms) * NS_PER_MS;
    let spread_ns = u64::from(args.spread_us) * NS_PER_US;
    let mut arrivals = Vec::new();
    for (number, from_ns) in (0_u32..).zip((0..length_ns).step_by(step(period_ns))) {
        for index in 0..burst {
            arrivals.push(from_ns + moment_ns(args.seed, index, number, spread_ns));
        }
    }
    arrivals.sort_unstable();
    arrivals.retain(|&at_ns| at_ns < length_ns);
    arrivals
}

fn step(ns: u64) -> usize {
    usize::try_from(ns).unwrap_or(usize::MAX)
}

/// Returns arrivals at a rate. `SplitMix64` gives the same moments on every machine; the logarithm
/// of an exponential gap may differ in its last bit between mathematical libraries, which is far
/// below a nanosecond.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn at_rate(args: &FsyncStorm, length_ns: u64) -> Vec<u64> {
    let gap_ns = NS_PER_S as f64 / args.rate_per_s;
    let mut arrivals = Vec::new();
    let mut at_ns = 0.0;
    for number in 0_u32.. {
        let gaps = match args.gaps {
            Gaps::Fixed => {
                // From the number, so that no rounding error accumulates.
                at_ns = gap_ns * f64::from(number);
                0.0
            }
            Gaps::Exponential => {
                let bits = moment_ns(args.seed, u32::MAX, number, 1 << 53);
                -(1.0 - bits as f64 / (1_u64 << 53) as f64).ln()
            }
        };
        at_ns += gap_ns * gaps;
        if at_ns >= length_ns as f64 {
            break;
        }
        arrivals.push(at_ns as u64);
    }
    arrivals
}

fn serve(
    dir: &Dir,
    args: &FsyncStorm,
    data: &[u8],
    queue: &Queue,
    shift: Shift<'_>,
) -> Result<Thread> {
    let mut name = Name::new();
    let mut server = Server {
        response: Recorder::new(),
        service: Recorder::new(),
        lateness: Recorder::new(),
        fsync: Recorder::new(),
        fsyncs: 0,
    };
    let mut ended_ns = shift.start_ns;
    let own = match args.op {
        StormOp::Append => Some(dir.create(name.set(0))?),
        StormOp::Create => None,
    };
    let give_up_ns = shift.until_ns.saturating_add(queue.drain_ns);
    while let Some((number, after_ns)) = queue.take() {
        let meant_ns = shift.start_ns + after_ns;
        let mut begin_ns = now_ns();
        while begin_ns < meant_ns && !shift.is_cut_short() {
            sleep_until(meant_ns.min(begin_ns + LOOK_NS), shift.stop);
            begin_ns = now_ns();
        }
        if shift.is_cut_short() || begin_ns > give_up_ns {
            break;
        }
        let name = name.set(if own.is_some() { 0 } else { number });
        let made = match &own {
            Some(_) => None,
            None => Some(dir.create(name)?),
        };
        // One of the two exists.
        let Some(file) = own.as_ref().or(made.as_ref()) else {
            break;
        };
        if !data.is_empty() {
            dir.write(file, name, data)?;
        }
        let written_ns = now_ns();
        dir.fsync(file, name)?;
        let synced_ns = now_ns();
        drop(made);
        let end_ns = now_ns();
        if meant_ns >= shift.from_ns {
            server.response.record(end_ns - meant_ns);
            server.service.record(end_ns - begin_ns);
            server.lateness.record(begin_ns - meant_ns);
            server.fsync.record(synced_ns - written_ns);
        }
        server.fsyncs += u64::from(shift.measures(synced_ns));
        ended_ns = end_ns;
    }
    Ok(Thread {
        server: Some(Box::new(server)),
        read: None,
        ended_ns,
    })
}

/// Makes the file that a reader reads, in a directory of its own.
fn readers_file(scratch: &Scratch, index: u32) -> Result<Dir> {
    let dir = scratch.subdir(&format!("r{index:04}"))?;
    let file = dir.creat(c"read")?;
    dir.write(&file, c"read", &vec![0x6c_u8; READ_FILE_BYTES])?;
    Ok(dir)
}

fn read(dir: &Dir, index: u32, args: &FsyncStorm, shift: Shift<'_>) -> Result<Thread> {
    let mut read = Recorder::new();
    let mut buffer = vec![0_u8; READ_BYTES];
    let mut ended_ns = shift.start_ns;
    for turn in 0_u32.. {
        let begin_ns = now_ns();
        if begin_ns >= shift.until_ns || shift.is_cut_short() {
            break;
        }
        let records = (READ_FILE_BYTES / READ_BYTES) as u64;
        // Counted down from the maximum, so that readers and bursts draw different numbers.
        let record = moment_ns(args.seed, u32::MAX - 1 - index, turn, records);
        let file = dir.open_file(c"read", OFlags::RDONLY)?;
        dir.read_at(&file, c"read", &mut buffer, record * READ_BYTES as u64)?;
        drop(file);
        ended_ns = now_ns();
        if shift.measures(ended_ns) {
            read.record(ended_ns - begin_ns);
        }
        if args.read_think_us > 0 {
            sleep_until(
                ended_ns + u64::from(args.read_think_us) * NS_PER_US,
                shift.stop,
            );
        }
    }
    Ok(Thread {
        server: None,
        read: Some(read),
        ended_ns,
    })
}

#[cfg(test)]
mod tests;
