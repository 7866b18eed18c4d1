//! Workload `write-burst`: writes that arrive within a fixed time of each other.
//!
//! Each burst has a fixed moment; each thread wakes at its own random moment within the spread
//! after it, writes a new file in pieces, fsyncs and closes it, and then creates and opens its file
//! for the next burst, as a program does that opens its output before it computes. The first to
//! fsync starts a commit, which carries the inodes of all the new files; whoever writes during
//! that commit moves the size and takes blocks, so it needs what the commit is writing.

use std::fmt;
use std::time::Duration;

use clap::{Args, value_parser};
use serde::{Deserialize, Serialize};

use super::burst::{busy_ns, wait_for_turn, window};
use crate::args::{Common, threads};
use crate::benchmark::{Benchmark, Found, Measured};
use crate::clock::{NS_PER_MS, NS_PER_US, now_ns};
use crate::crew::{self, Schedule};
use crate::dir::{Dir, Name};
use crate::latency::summary;
use crate::rates::{per_second, share};
use crate::scratch::{Scratch, allow_open_files};
use crate::text::{Lines, latency, percent};
use crate::{Latency, Result, Stop};

/// Arguments of the workload `write-burst`.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[command(after_help = "Examples:\n\
    \x20 luc bench write-burst /srv/scratch\n\
    \x20 luc bench write-burst --pieces 16 --piece-bytes 1024 /srv/scratch")]
pub struct WriteBurst {
    /// What every workload has.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Number of threads
    #[arg(long, short = 't', value_name = "N", default_value_t = 16, value_parser = threads())]
    pub threads: u32,
    /// Time from one burst to the next, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 600, value_parser = value_parser!(u32).range(1..=3_600_000))]
    pub period_ms: u32,
    /// Each thread wakes at a random moment within this time, microseconds
    #[arg(long, value_name = "US", default_value_t = 5000, value_parser = value_parser!(u32).range(..=3_600_000_000))]
    pub spread_us: u32,
    /// Bursts to measure
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub bursts: u32,
    /// Bursts before measuring
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(..=1_000_000))]
    pub warmup_bursts: u32,
    /// Bytes of each piece
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = value_parser!(u32).range(1..=1 << 20))]
    pub piece_bytes: u32,
    /// Pieces written to each file
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=65_536))]
    pub pieces: u32,
    /// A thread whose writes take longer than this together counts as blocked, microseconds
    #[arg(long, value_name = "US", default_value_t = 1500, value_parser = value_parser!(u32).range(1..))]
    pub blocked_over_us: u32,
    /// Seed of the random moments
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Result of the workload `write-burst`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteBurstResult {
    /// The arguments it ran with.
    pub args: WriteBurst,
    /// Bursts measured.
    pub bursts: u64,
    /// Time while a burst was under way, from its first write to its last close, ns; the creates for the
    /// next burst are no part of it.
    #[serde(default)]
    pub busy_ns: u64,
    /// Files per second of that time.
    #[serde(default)]
    pub files_per_busy_s: f64,
    /// Time of all pieces of one file together, without create and fsync.
    pub write: Latency,
    /// Threads that wrote for longer than `args.blocked_over_us`, over all bursts.
    pub blocked: u64,
    /// That as a share of all threads in all bursts, 0 to 1.
    pub blocked_share: f64,
    /// The time a create took.
    pub create: Latency,
    /// The time an fsync took.
    pub fsync: Latency,
}

#[derive(Clone, Copy)]
struct Turn {
    begin_ns: u64,
    end_ns: u64,
    create_ns: u64,
    write_ns: u64,
    fsync_ns: u64,
}

impl Benchmark for WriteBurst {
    type Found = WriteBurstResult;

    fn length(&self) -> Option<Duration> {
        let bursts = u64::from(self.warmup_bursts) + u64::from(self.bursts);
        Some(Duration::from_millis(bursts * u64::from(self.period_ms)))
    }

    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>> {
        let threads = self.threads as usize;
        allow_open_files(threads)?;
        let scratch = Scratch::new(&self.common.dir, self.common.keep)?;
        let mut places = Vec::with_capacity(threads);
        for index in 0..self.threads {
            places.push((scratch.subdir(&format!("t{index:04}"))?, index));
        }
        let window = window(self.period_ms, self.warmup_bursts, self.bursts);
        let data = vec![0x6c_u8; self.piece_bytes as usize];
        let body = |(dir, index): (Dir, u32), schedule, failed: &Stop| {
            one(&dir, index, self, &data, schedule, stop, failed)
        };
        let (results, _, observed) = crew::run(places, window, &scratch, stop, body)?;
        scratch.remove()?;

        let bursts = results.iter().map(Vec::len).min().unwrap_or(0);
        let warmup = (self.warmup_bursts as usize).min(bursts);
        let turns: Vec<Vec<Turn>> = (warmup..bursts)
            .map(|burst| results.iter().map(|thread| thread[burst]).collect())
            .collect();
        let measured = turns.len() as u64;
        let elapsed_ns = measured * u64::from(self.period_ms) * NS_PER_MS;
        let result = figures(self, &turns);
        Ok(Measured {
            fsyncs: result.fsync.count,
            found: result,
            elapsed_ns,
            interrupted: stop.is_set(),
            observed,
        })
    }
}

impl Found for WriteBurstResult {
    fn title(&self) -> String {
        format!(
            "write-burst, {} threads within {} us every {} ms",
            self.args.threads, self.args.spread_us, self.args.period_ms
        )
    }

    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        let files = self.fsync.count;
        lines.busy(files, self.busy_ns, self.files_per_busy_s, "write")?;
        lines.line("bursts", self.bursts)?;
        lines.line(
            "write time",
            format!(
                "{} for {} bytes",
                latency(&self.write),
                u64::from(self.args.piece_bytes) * u64::from(self.args.pieces)
            ),
        )?;
        lines.line(
            "blocked",
            format!(
                "{} of the threads wrote for longer than {} us",
                percent(self.blocked_share),
                self.args.blocked_over_us
            ),
        )?;
        lines.line("create time", latency(&self.create))?;
        lines.line("sync delay", latency(&self.fsync))
    }

    fn main_figure(&self) -> Option<f64> {
        Some(self.write.mean_ns / 1e6)
    }

    fn is_a_rate(&self) -> bool {
        false
    }

    fn bad_share(&self) -> Option<f64> {
        Some(self.blocked_share)
    }

    fn syncs(&self) -> Option<&Latency> {
        Some(&self.fsync)
    }
}

fn one(
    dir: &Dir,
    index: u32,
    args: &WriteBurst,
    data: &[u8],
    schedule: Schedule,
    stop: &Stop,
    failed: &Stop,
) -> Result<Vec<Turn>> {
    let bursts = args.warmup_bursts + args.bursts;
    let mut turns = Vec::with_capacity(bursts as usize);
    let mut name = Name::new();
    let mut open = (dir.create(name.set(0))?, 0);
    for burst in 0..bursts {
        let timing = (args.period_ms, args.spread_us, args.seed);
        wait_for_turn(timing, index, burst, schedule, stop);
        if stop.is_set() || failed.is_set() {
            break;
        }
        let (file, create_ns) = open;
        let current = name.set(u64::from(burst));
        let begin_ns = now_ns();
        for _ in 0..args.pieces {
            dir.write(&file, current, data)?;
        }
        let written_ns = now_ns();
        dir.fsync(&file, current)?;
        let synced_ns = now_ns();
        drop(file);
        turns.push(Turn {
            begin_ns,
            end_ns: now_ns(),
            create_ns,
            write_ns: written_ns - begin_ns,
            fsync_ns: synced_ns - written_ns,
        });
        let next = name.set(u64::from(burst) + 1);
        let begin_ns = now_ns();
        let file = dir.create(next)?;
        open = (file, now_ns() - begin_ns);
    }
    Ok(turns)
}

fn figures(args: &WriteBurst, bursts: &[Vec<Turn>]) -> WriteBurstResult {
    let bounds = |turn: &Turn| (turn.begin_ns, turn.end_ns);
    let busy_ns = busy_ns(bursts.iter().map(|burst| burst.iter().map(bounds)));
    let turns: Vec<Turn> = bursts.iter().flatten().copied().collect();
    let blocked_over_ns = u64::from(args.blocked_over_us) * NS_PER_US;
    let blocked = turns
        .iter()
        .filter(|t| t.write_ns > blocked_over_ns)
        .count() as u64;
    let times = |pick: fn(&Turn) -> u64| {
        let mut times: Vec<u64> = turns.iter().map(pick).collect();
        summary(&mut times)
    };
    WriteBurstResult {
        args: args.clone(),
        bursts: bursts.len() as u64,
        busy_ns,
        files_per_busy_s: per_second(turns.len() as u64, busy_ns),
        write: times(|t| t.write_ns),
        blocked,
        blocked_share: share(blocked, turns.len() as u64),
        create: times(|t| t.create_ns),
        fsync: times(|t| t.fsync_ns),
    }
}
