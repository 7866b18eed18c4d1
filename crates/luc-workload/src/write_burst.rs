//! Workload `write-burst`: writes that arrive within a fixed time of each other.
//!
//! Each burst has a fixed moment; each thread wakes at its own random moment within the spread
//! after it, writes a new file in pieces, fsyncs and closes it, and then creates and opens its file
//! for the next burst, as a program does that opens its output before it computes. The first to
//! fsync starts a commit, which carries the inodes of all the new files; whoever writes during
//! that commit moves the size and takes blocks, so it needs what the commit is writing.

use serde::{Deserialize, Serialize};

use crate::burst::{busy_ns, wait_for_turn, window};
use crate::clock::{NS_PER_MS, NS_PER_US, now_ns};
use crate::crew::{self, Schedule};
use crate::dir::{Dir, Name};
use crate::latency::summary;
use crate::report::{BenchReport, Outcome, per_second, share};
use crate::scratch::{Scratch, allow_open_files};
use crate::{Latency, Result, Stop, WriteBurst};

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

pub fn run(args: &WriteBurst, stop: &Stop) -> Result<BenchReport> {
    let threads = args.threads as usize;
    allow_open_files(threads)?;
    let scratch = Scratch::new(&args.common.dir, args.common.keep)?;
    let mut places = Vec::with_capacity(threads);
    for index in 0..args.threads {
        places.push((scratch.subdir(&format!("t{index:04}"))?, index));
    }
    let window = window(args.period_ms, args.warmup_bursts, args.bursts);
    let data = vec![0x6c_u8; args.piece_bytes as usize];
    let body = |(dir, index): (Dir, u32), schedule, failed: &Stop| {
        one(&dir, index, args, &data, schedule, stop, failed)
    };
    let (results, _, observed) = crew::run(places, window, &scratch, stop, body)?;
    scratch.remove()?;

    let bursts = results.iter().map(Vec::len).min().unwrap_or(0);
    let warmup = (args.warmup_bursts as usize).min(bursts);
    let turns: Vec<Vec<Turn>> = (warmup..bursts)
        .map(|burst| results.iter().map(|thread| thread[burst]).collect())
        .collect();
    let measured = turns.len() as u64;
    let elapsed_ns = measured * u64::from(args.period_ms) * NS_PER_MS;
    let result = figures(args, &turns);
    let fsyncs = result.fsync.count;
    Ok(BenchReport::new(
        Outcome::WriteBurst(result),
        fsyncs,
        elapsed_ns,
        stop.is_set(),
        observed,
    ))
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
