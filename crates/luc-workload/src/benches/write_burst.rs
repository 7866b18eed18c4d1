//! Workload `write-burst`: writes that arrive within a fixed time of each other.
//!
//! Each burst has a fixed moment; each thread wakes at its own random moment within the spread
//! after it, writes a new file in pieces, fsyncs and closes it, and then creates and opens its file
//! for the next burst, like a program that opens its output before it computes. The first fsync
//! starts a commit, which carries the inodes of all the new files. A thread that writes during that
//! commit changes its file's size and takes blocks, so it needs the buffers that the commit is
//! writing.

use std::fmt;
use std::os::fd::OwnedFd;
use std::time::Duration;

use clap::{Args, value_parser};
use serde::{Deserialize, Serialize};

use super::bursts::{Bursts, busy_ns};
use crate::args::{Common, threads};
use crate::benchmark::{Benchmark, Figures, Found, Measured};
use crate::clock::{NS_PER_US, now_ns};
use crate::dir::{Dir, Name};
use crate::rates::{per_second, share};
use crate::text::{Lines, latency, percent};
use crate::{Latency, Result, Stop};
use luc_base::summary;

#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab bench write-burst /srv/scratch\n\
    \x20 luc-lab bench write-burst --pieces 16 --piece-bytes 1024 /srv/scratch")]
pub struct WriteBurst {
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
    /// Bytes per piece
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = value_parser!(u32).range(1..=1 << 20))]
    pub piece_bytes: u32,
    /// Pieces written to each file
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=65_536))]
    pub pieces: u32,
    /// A thread whose writes take longer than this in total counts as blocked, microseconds
    #[arg(long, value_name = "US", default_value_t = 1500, value_parser = value_parser!(u32).range(1..))]
    pub blocked_over_us: u32,
    /// Seed of the random moments
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteBurstResult {
    pub args: WriteBurst,
    pub bursts: u64,
    /// Total time with a burst under way, from its first write to its last close, ns; without the
    /// creates for the next burst.
    #[serde(default)]
    pub busy_ns: u64,
    /// Files per second of busy time.
    #[serde(default)]
    pub files_per_busy_s: f64,
    /// Time of all pieces of one file together, without create and fsync.
    pub write: Latency,
    /// Threads that wrote for longer than `args.blocked_over_us`, over all bursts.
    pub blocked: u64,
    /// Blocked threads as a share of all threads in all bursts, 0 to 1.
    pub blocked_share: f64,
    pub create: Latency,
    pub fsync: Latency,
}

/// One thread's part of one burst.
#[derive(Clone, Copy, Debug)]
pub struct WriteBurstTurn {
    /// The moment before the first write.
    pub begin_ns: u64,
    /// The moment after the close.
    pub end_ns: u64,
    /// Time of the create of this file, which came before the burst.
    pub create_ns: u64,
    /// Time of all pieces together.
    pub write_ns: u64,
    pub fsync_ns: u64,
}

impl WriteBurst {
    pub fn bursts(&self) -> Bursts {
        Bursts {
            threads: self.threads,
            period_ms: self.period_ms,
            spread_us: self.spread_us,
            measured: self.bursts,
            warmup: self.warmup_bursts,
            seed: self.seed,
        }
    }
}

/// A thread's file for its next burst.
struct Next {
    file: Option<OwnedFd>,
    create_ns: u64,
    name: Name,
}

impl Benchmark for WriteBurst {
    type Found = WriteBurstResult;

    fn length(&self) -> Option<Duration> {
        Some(self.bursts().length())
    }

    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>> {
        let data = vec![0x6c_u8; self.piece_bytes as usize];
        let begin = |dir: &Dir| {
            let mut name = Name::new();
            let file = Some(dir.create(name.set(0))?);
            Ok(Next {
                file,
                create_ns: 0,
                name,
            })
        };
        let turn = |dir: &Dir, next: &mut Next, burst: u32| {
            let (file, create_ns) = (next.file.take(), next.create_ns);
            let file = file.expect("each turn leaves a file for the next");
            let name = next.name.set(u64::from(burst));
            let begin_ns = now_ns();
            for _ in 0..self.pieces {
                dir.write(&file, name, &data)?;
            }
            let written_ns = now_ns();
            dir.fsync(&file, name)?;
            let synced_ns = now_ns();
            drop(file);
            let turn = WriteBurstTurn {
                begin_ns,
                end_ns: now_ns(),
                create_ns,
                write_ns: written_ns - begin_ns,
                fsync_ns: synced_ns - written_ns,
            };
            let name = next.name.set(u64::from(burst) + 1);
            let begin_ns = now_ns();
            next.file = Some(dir.create(name)?);
            next.create_ns = now_ns() - begin_ns;
            Ok(turn)
        };
        let measured = self.bursts().run(&self.common, stop, begin, turn)?;
        Ok(measured.map(|turns| WriteBurstResult::new(self, &turns)))
    }
}

impl Found for WriteBurstResult {
    fn title(&self) -> String {
        let (threads, spread_us) = (self.args.threads, self.args.spread_us);
        let period_ms = self.args.period_ms;
        format!("write-burst, {threads} threads within {spread_us} us every {period_ms} ms")
    }

    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        let args = &self.args;
        lines.busy(
            self.fsync.count,
            self.busy_ns,
            self.files_per_busy_s,
            "write",
        )?;
        lines.line("bursts", self.bursts)?;
        let bytes = u64::from(args.piece_bytes) * u64::from(args.pieces);
        let write = format!("{} for {bytes} bytes", latency(&self.write));
        lines.line("write time", write)?;
        let (share, over_us) = (percent(self.blocked_share), args.blocked_over_us);
        let blocked = format!("{share} of the threads wrote for longer than {over_us} us");
        lines.line("blocked", blocked)?;
        lines.line("create time", latency(&self.create))?;
        lines.line("sync delay", latency(&self.fsync))
    }

    fn figures(&self) -> Figures<'_> {
        Figures {
            is_a_rate: false,
            bad_share: Some(self.blocked_share),
            ..Figures::rate(self.write.mean_ns / 1e6, &self.fsync)
        }
    }
}

impl WriteBurstResult {
    /// Computes the figures; `bursts` holds the turns of all threads, burst by burst.
    pub fn new(args: &WriteBurst, bursts: &[Vec<WriteBurstTurn>]) -> Self {
        let bounds = |turn: &WriteBurstTurn| (turn.begin_ns, turn.end_ns);
        let busy_ns = busy_ns(bursts.iter().map(|burst| burst.iter().map(bounds)));
        let turns: Vec<WriteBurstTurn> = bursts.iter().flatten().copied().collect();
        let blocked_over_ns = u64::from(args.blocked_over_us) * NS_PER_US;
        let blocked = turns
            .iter()
            .filter(|t| t.write_ns > blocked_over_ns)
            .count() as u64;
        let times = |pick: fn(&WriteBurstTurn) -> u64| {
            let mut times: Vec<u64> = turns.iter().map(pick).collect();
            summary(&mut times)
        };
        Self {
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
}
