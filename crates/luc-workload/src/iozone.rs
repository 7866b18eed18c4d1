//! Workload `iozone`: children that each write a new file, as the throughput mode of `IOzone` does
//! in its initial write.
//!
//! Each child opens its file before the barrier and runs its own clock from there through its
//! writes and, on request, its fsync and its close. The first child that has done everything stops
//! the clocks of all others: each of them takes its rate over what it wrote until then. Nobody's
//! rate is thus measured while others have nothing left to do.

use std::path::PathBuf;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::clock::{NS_PER_MS, now_ns};
use crate::dir::{Dir, NameBuffer};
use crate::latency::summary;
use crate::processes::{self, Kind, Phase};
use crate::report::{BenchReport, Outcome, per_second, share};
use crate::scratch::Scratch;
use crate::worker::{self, Link, Part};
use crate::{Iozone, Latency, Result, Stop, WorkloadError};

/// Name of the workload.
pub const NAME: &str = "iozone";

/// Result of the workload `iozone`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IozoneResult {
    /// The arguments it ran with.
    pub args: Iozone,
    /// "Children see throughput": sum of the children's own rates, bytes per second.
    pub children_bytes_per_s: f64,
    /// "Parent sees throughput": bytes of all children by the time until the last was done.
    pub parent_bytes_per_s: f64,
    /// "Min throughput per process": the slowest child's rate, bytes per second.
    pub child_min_bytes_per_s: f64,
    /// "Max throughput per process": the fastest child's rate, bytes per second.
    pub child_max_bytes_per_s: f64,
    /// "Avg throughput per process", bytes per second.
    pub child_avg_bytes_per_s: f64,
    /// "Min xfer": bytes that the child wrote which wrote least.
    pub child_min_bytes: u64,
    /// Bytes that all children wrote.
    pub bytes: u64,
    /// Children that wrote all of their file; the others were stopped by the first that did.
    pub finished: u64,
    /// The time a write took.
    pub write: Latency,
    /// The time an fsync took, with `-e`.
    pub fsync: Latency,
    /// The time a close took, with `-c`.
    pub close: Latency,
    /// Writes that took longer than `args.blocked_over_ms`.
    pub blocked_writes: u64,
    /// Children with at least one such write.
    pub blocked: u64,
    /// That as a share of all children, 0 to 1.
    pub blocked_share: f64,
}

/// One child's work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    dir: PathBuf,
    rank: u32,
    records: u64,
    record_bytes: u32,
    fsync: bool,
    close: bool,
    /// The first to finish stops the clocks of all.
    first_stops: bool,
}

pub fn run(args: &Iozone, stop: &Stop) -> Result<BenchReport> {
    let record_bytes = u32::try_from(args.record_bytes)
        .ok()
        .filter(|&bytes| u64::from(bytes) <= args.size_bytes)
        .ok_or_else(|| {
            WorkloadError::Arguments(format!(
                "a record of {} bytes does not fit a file of {}; give a smaller -r or a larger -s",
                args.record_bytes, args.size_bytes
            ))
        })?;
    let records = args.size_bytes / args.record_bytes;
    if records * args.record_bytes != args.size_bytes {
        return Err(WorkloadError::Arguments(format!(
            "a file of {} bytes is no whole number of records of {}; give another -s or -r",
            args.size_bytes, args.record_bytes
        )));
    }
    processes::bound(args.threads, records)?;
    let scratch = Scratch::new(&args.common.dir, args.common.keep)?;
    let jobs = (0..args.threads)
        .map(|rank| {
            worker::Job::Iozone(Job {
                dir: scratch.path().to_owned(),
                rank,
                records,
                record_bytes,
                fsync: args.fsync,
                close: args.close,
                first_stops: !args.no_stonewall,
            })
        })
        .collect();
    let kind = if args.posix_threads {
        Kind::Threads
    } else {
        Kind::Processes(NAME)
    };
    let (phases, observed) = processes::run(kind, jobs, 1, &scratch, stop)?;
    scratch.remove()?;

    let result = phases.first().map_or_else(
        || IozoneResult {
            args: args.clone(),
            ..IozoneResult::default()
        },
        |phase| figures(args, phase),
    );
    let elapsed_ns = phases.iter().map(Phase::length_ns).sum();
    let fsyncs = result.fsync.count;
    Ok(BenchReport::new(
        Outcome::Iozone(result),
        fsyncs,
        elapsed_ns,
        stop.is_set(),
        observed,
    ))
}

fn figures(args: &Iozone, phase: &Phase) -> IozoneResult {
    let bytes_of = |part: &Part| part.ops * args.record_bytes;
    let rates = || {
        let parts = phase.parts.iter();
        parts.map(|part| per_second(bytes_of(part), part.took_ns()))
    };
    let children = phase.parts.len() as u64;
    let bytes = phase.parts.iter().map(bytes_of).sum();
    let blocked_over_ns = u64::from(args.blocked_over_ms) * NS_PER_MS;
    let blocked_writes = |part: &Part| {
        let writes = part.calls.first().into_iter().flatten();
        writes.filter(|&&ns| ns > blocked_over_ns).count() as u64
    };
    let blocked = phase.parts.iter().filter(|p| blocked_writes(p) > 0).count() as u64;
    IozoneResult {
        args: args.clone(),
        children_bytes_per_s: rates().sum(),
        parent_bytes_per_s: per_second(bytes, phase.length_ns()),
        child_min_bytes_per_s: rates().reduce(f64::min).unwrap_or(0.0),
        child_max_bytes_per_s: rates().reduce(f64::max).unwrap_or(0.0),
        child_avg_bytes_per_s: rates().sum::<f64>() / children.max(1) as f64,
        child_min_bytes: phase.parts.iter().map(bytes_of).min().unwrap_or(0),
        bytes,
        finished: phase
            .parts
            .iter()
            .filter(|part| bytes_of(part) == args.size_bytes)
            .count() as u64,
        write: summary(&mut phase.calls(0)),
        fsync: summary(&mut phase.calls(1)),
        close: summary(&mut phase.calls(2)),
        blocked_writes: phase.parts.iter().map(blocked_writes).sum(),
        blocked,
        blocked_share: share(blocked, children),
    }
}

impl Job {
    pub fn run(&self, link: &mut Link) -> Result<Vec<Part>> {
        let dir = Dir::open(&self.dir)?;
        let mut name = NameBuffer::default();
        let name = name.set(format_args!("iozone.{}", self.rank));
        let file = dir.open_file(name, OFlags::CREATE | OFlags::RDWR)?;
        let data = vec![0x6c_u8; self.record_bytes as usize];
        let mut writes = Vec::with_capacity(usize::try_from(self.records).unwrap_or(0));
        let (mut fsync, mut close) = (Vec::with_capacity(1), Vec::with_capacity(1));
        if !link.barrier()? {
            return Ok(Vec::new());
        }
        let flags = link.flags();
        let begin_ns = now_ns();
        let mut end_ns = begin_ns;
        while (writes.len() as u64) < self.records {
            let over = if self.first_stops {
                flags.is_over()
            } else {
                flags.is_stopped()
            };
            if over {
                break;
            }
            let start_ns = now_ns();
            dir.write(&file, name, &data)?;
            end_ns = now_ns();
            writes.push(end_ns - start_ns);
        }
        if self.fsync {
            let start_ns = now_ns();
            dir.fsync(&file, name)?;
            end_ns = now_ns();
            fsync.push(end_ns - start_ns);
        }
        if self.close {
            let start_ns = now_ns();
            drop(file);
            end_ns = now_ns();
            close.push(end_ns - start_ns);
        }
        if writes.len() as u64 == self.records {
            flags.finish();
        }
        let part = Part {
            begin_ns,
            end_ns,
            ops: writes.len() as u64,
            calls: vec![writes, fsync, close],
        };
        link.barrier()?;
        Ok(vec![part])
    }
}

#[cfg(test)]
mod tests {
    use super::figures;
    use crate::Iozone;
    use crate::processes::Phase;
    use crate::worker::Part;

    #[test]
    fn rates_and_blocked_by_hand() {
        let args = Iozone {
            size_bytes: 3000,
            record_bytes: 1000,
            blocked_over_ms: 10,
            ..Iozone::default()
        };
        let part = |took_ns: u64, writes: Vec<u64>| Part {
            begin_ns: 5,
            end_ns: 5 + took_ns,
            ops: writes.len() as u64,
            calls: vec![writes, vec![7], vec![]],
        };
        let phase = Phase {
            start_ns: 0,
            passed_ns: 2_000_000_000,
            parts: vec![
                part(1_000_000_000, vec![1, 10_000_000, 3]),
                part(500_000_000, vec![10_000_001]),
            ],
        };
        let result = figures(&args, &phase);
        let about = |a: f64, b: f64| assert!((a - b).abs() < 1e-6 * b, "{a} is not {b}");
        about(result.children_bytes_per_s, 3000.0 + 2000.0);
        about(result.parent_bytes_per_s, 2000.0);
        about(result.child_min_bytes_per_s, 2000.0);
        about(result.child_max_bytes_per_s, 3000.0);
        about(result.child_avg_bytes_per_s, 2500.0);
        assert_eq!((result.child_min_bytes, result.bytes), (1000, 4000));
        assert_eq!((result.finished, result.write.count), (1, 4));
        assert_eq!((result.fsync.count, result.close.count), (2, 0));
        assert_eq!((result.blocked_writes, result.blocked), (1, 1));
        about(result.blocked_share, 0.5);
    }
}
