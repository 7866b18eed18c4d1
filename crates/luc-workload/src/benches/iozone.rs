//! Workload `iozone`: children that each write a new file, as the throughput mode of `IOzone` does
//! in its initial write.
//!
//! Each child opens its file before the barrier. Its own clock runs from the barrier through its
//! writes and, on request, its fsync and its close. The first child that has written its whole file
//! stops the clocks of all others before it syncs. Their rates cover the bytes written until then,
//! with an fsync and a close as asked for; they write the rest of their files off the clock. Unless
//! the close is asked for, each child syncs and closes its file after its clock has stopped.

use std::ffi::CStr;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use clap::{Args, value_parser};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::{Common, threads};
use crate::benchmark::{Benchmark, Figures, Found, Measured};
use crate::clock::{NS_PER_MS, now_ns};
use crate::dir::{Dir, NameBuffer};
use crate::letters::{Letter, flag, refused, valued};
use crate::processes::{self, Kind, Phase};
use crate::rates::{per_second, share};
use crate::scratch::Scratch;
use crate::text::{Lines, calls, percent};
use crate::worker::{self, Link, Part};
use crate::{Latency, Result, Stop, WorkloadError};
use luc_base::summary;

const REFUSED: [Letter; 17] = [
    flag('a', "one call measures one size; give it with -s and -r"),
    flag('A', "one call measures one size; give it with -s and -r"),
    valued('f', "LUC makes its files in a new directory inside DIR"),
    // The files' names may follow in any number.
    flag('F', "LUC makes its files in a new directory inside DIR"),
    flag('I', "writes go through the page cache"),
    flag(
        'o',
        "writes are not synchronous; -e includes an fsync in the time",
    ),
    valued('l', "give the number of children with -t"),
    valued('u', "give the number of children with -t"),
    valued('g', "give the size of each file with -s"),
    valued('n', "give the size of each file with -s"),
    valued('q', "give the size of each write with -r"),
    valued('y', "give the size of each write with -r"),
    flag('R', "use --json for a report that programs read"),
    valued('b', "use --json for a report that programs read"),
    flag('w', "use --keep to keep the files"),
    flag('O', "the report has the writes and the bytes per second"),
    valued('U', "LUC mounts nothing"),
];

/// The initial write of the throughput mode. Sizes are in KiB unless they end in k, m or g, all of
/// them binary.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)] // each is an option of its own
#[command(after_help = "Examples:\n\
    \x20 luc-lab bench iozone -e -c /srv/scratch\n\
    \x20 luc-lab bench iozone -t 16 -s 16m -r 4k -e /srv/scratch")]
#[command(args = refused(&REFUSED))]
pub struct Iozone {
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Number of the test; only 0, the initial write, is measured
    #[arg(short = 'i', value_name = "TEST", value_parser = initial_write)]
    #[serde(skip)]
    pub tests: Vec<u32>,
    /// Number of children that write at the same time
    #[arg(short = 't', long = "threads", value_name = "N", default_value_t = 4, value_parser = threads())]
    pub threads: u32,
    /// Size of each child's file
    #[arg(short = 's', long = "size", value_name = "SIZE", default_value = "128k", value_parser = size_bytes)]
    pub size_bytes: u64,
    /// Size of each write
    #[arg(short = 'r', long = "record", value_name = "SIZE", default_value = "32k", value_parser = record_bytes)]
    pub record_bytes: u64,
    /// Include an fsync in each child's time
    #[arg(short = 'e', long)]
    pub fsync: bool,
    /// Include the close in each child's time
    #[arg(short = 'c', long)]
    pub close: bool,
    /// Measure every child over its whole file instead of stopping all clocks when the first child
    /// ends
    #[arg(short = 'x', long)]
    pub no_stonewall: bool,
    /// Use threads of one process instead of processes
    #[arg(short = 'T', long)]
    pub posix_threads: bool,
    /// A child counts as blocked if one of its writes takes longer than this, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5, value_parser = value_parser!(u32).range(1..))]
    pub blocked_over_ms: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IozoneResult {
    pub args: Iozone,
    /// "Children see throughput": sum of the children's own rates, bytes per second.
    pub children_bytes_per_s: f64,
    /// "Parent sees throughput": bytes of all children per second until the last was done.
    pub parent_bytes_per_s: f64,
    /// "Min throughput per process": the slowest child's rate, bytes per second.
    pub child_min_bytes_per_s: f64,
    /// "Max throughput per process": the fastest child's rate, bytes per second.
    pub child_max_bytes_per_s: f64,
    /// "Avg throughput per process", bytes per second.
    pub child_avg_bytes_per_s: f64,
    /// "Min xfer": the smallest number of bytes that a child wrote.
    pub child_min_bytes: u64,
    /// Bytes that all children wrote.
    pub bytes: u64,
    /// Children that wrote all of their file; the others were stopped by the first that did.
    pub finished: u64,
    pub write: Latency,
    /// The time an fsync took, with `-e`.
    pub fsync: Latency,
    /// The time a close took, with `-c`.
    pub close: Latency,
    /// Writes that took longer than `args.blocked_over_ms`.
    pub blocked_writes: u64,
    /// Children with at least one such write.
    pub blocked: u64,
    /// Blocked children as a share of all, 0 to 1.
    pub blocked_share: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Job {
    dir: PathBuf,
    rank: u32,
    records: u64,
    record_bytes: u32,
    fsync: bool,
    close: bool,
    /// Whether the first child to finish stops the clocks of all.
    first_stops: bool,
}

impl Benchmark for Iozone {
    type Found = IozoneResult;

    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>> {
        let (records, record_bytes) = self.records()?;
        let jobs = |scratch: &Scratch| {
            let job = |rank| Job {
                dir: scratch.path().to_owned(),
                rank,
                records,
                record_bytes,
                fsync: self.fsync,
                close: self.close,
                first_stops: !self.no_stonewall,
            };
            Ok((0..self.threads).map(job).collect())
        };
        let kind = if self.posix_threads {
            Kind::Threads
        } else {
            Kind::Processes
        };
        let done = processes::run_in::<Self, Job>(&self.common, kind, 1, jobs, stop)?;
        Ok(done.map(|phases| {
            let nothing = || IozoneResult {
                args: self.clone(),
                ..IozoneResult::default()
            };
            phases
                .first()
                .map_or_else(nothing, |it| IozoneResult::new(self, it))
        }))
    }

    fn work(job: Value, link: &mut Link) -> Result<Vec<Part>> {
        worker::job::<Job>(job)?.run(link)
    }
}

impl Iozone {
    /// Returns how many records a child writes, and the bytes of each.
    ///
    /// # Errors
    /// If the records do not make up a file, or all of them are too many.
    pub fn records(&self) -> Result<(u64, u32)> {
        let (size, record) = (self.size_bytes, self.record_bytes);
        let refused = |why| Err(WorkloadError::Arguments(why));
        let record_bytes = match u32::try_from(record) {
            Ok(bytes) if record <= size => bytes,
            _ => {
                return refused(format!(
                    "a record of {record} bytes does not fit a file of {size}; give a smaller -r or a larger -s"
                ));
            }
        };
        if !size.is_multiple_of(record) {
            return refused(format!(
                "a file of {size} bytes is not a whole number of records of {record}; give another \
                 -s or -r"
            ));
        }
        let records = size / record;
        processes::bound(self.threads, records)?;
        Ok((records, record_bytes))
    }
}

/// Formats a rate in KiB per second, the familiar unit of this benchmark.
fn kib_per_s(bytes_per_s: f64) -> String {
    format!("{:.2} KiB/s", bytes_per_s / 1024.0)
}

impl Found for IozoneResult {
    fn title(&self) -> String {
        let args = &self.args;
        let what = if args.posix_threads {
            "threads"
        } else {
            "processes"
        };
        let (threads, size, record) =
            (args.threads, args.size_bytes >> 10, args.record_bytes >> 10);
        format!(
            "iozone initial write, {threads} {what}, files of {size} KiB in records of {record} KiB"
        )
    }

    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        let children = kib_per_s(self.children_bytes_per_s);
        let children = format!("{children} (\"children see\": the sum of their own)");
        lines.line("throughput", children)?;
        let parent = kib_per_s(self.parent_bytes_per_s);
        let parent = format!("{parent}, all bytes over the time until the last child is done");
        lines.line("parent sees", parent)?;
        let min = kib_per_s(self.child_min_bytes_per_s);
        let avg = kib_per_s(self.child_avg_bytes_per_s);
        let max = kib_per_s(self.child_max_bytes_per_s);
        lines.line("per child", format!("min {min}, avg {avg}, max {max}"))?;
        let (min, finished, threads) =
            (self.child_min_bytes >> 10, self.finished, self.args.threads);
        let min = format!("{min} KiB; {finished} of {threads} children wrote their whole file");
        lines.line("min xfer", min)?;
        let (blocked, share) = (self.blocked, percent(self.blocked_share));
        let (writes, over_ms) = (self.blocked_writes, self.args.blocked_over_ms);
        let blocked =
            format!("{blocked} children ({share}) in {writes} writes longer than {over_ms} ms");
        lines.line("blocked", blocked)?;
        let times = [
            ("write time", &self.write),
            ("sync delay", &self.fsync),
            ("close time", &self.close),
        ];
        calls(lines, &times)
    }

    fn figures(&self) -> Figures<'_> {
        Figures {
            bad_share: Some(self.blocked_share),
            ..Figures::rate(self.children_bytes_per_s, &self.fsync)
        }
    }

    fn ops(&self) -> u64 {
        self.write.count
    }
}

impl IozoneResult {
    /// Computes the figures of all children: the calls of each are its writes, its fsync and its
    /// close.
    pub fn new(args: &Iozone, phase: &Phase) -> Self {
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
        Self {
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
}

impl Job {
    fn run(&self, link: &mut Link) -> Result<Vec<Part>> {
        let dir = Dir::open(&self.dir)?;
        let mut name = NameBuffer::default();
        let name = name.set(format_args!("iozone.{}", self.rank));
        let file = dir.open_file(name, OFlags::CREATE | OFlags::RDWR)?;
        let data = vec![0x6c_u8; self.record_bytes as usize];
        let mut child = Child {
            job: self,
            dir: &dir,
            name,
            file: Some(file),
            calls: [const { Vec::new() }; 3],
            end_ns: 0,
        };
        let records = usize::try_from(self.records).unwrap_or(usize::MAX);
        child.calls[0].reserve(records);
        if !link.barrier()? {
            return Ok(Vec::new());
        }
        let flags = link.flags();
        let begin_ns = now_ns();
        child.end_ns = begin_ns;
        let is_over = || self.first_stops && flags.is_over();
        let (mut ops, mut stopped_ns) = (0, None);
        while child.calls[0].len() < records && !flags.is_stopped() {
            if stopped_ns.is_none() && is_over() {
                stopped_ns = Some(child.stop()?);
            }
            child.write(&data)?;
            ops += u64::from(!is_over());
        }
        if child.calls[0].len() == records {
            flags.finish();
        }
        let end_ns = stopped_ns.map_or_else(|| child.stop(), Ok)?;
        child.leave()?;
        let part = Part {
            begin_ns,
            end_ns,
            ops,
            calls: child.calls.into(),
        };
        link.barrier()?;
        Ok(vec![part])
    }
}

struct Child<'a> {
    job: &'a Job,
    dir: &'a Dir,
    name: &'a CStr,
    /// `None` after a timed close, until the child goes on writing.
    file: Option<OwnedFd>,
    /// Times of its writes, its fsyncs and its closes, ns.
    calls: [Vec<u64>; 3],
    /// The end of the last of those calls, ns.
    end_ns: u64,
}

impl Child<'_> {
    fn write(&mut self, data: &[u8]) -> Result<()> {
        let (dir, name) = (self.dir, self.name);
        let file = match self.file.take() {
            Some(file) => file,
            None => dir.open_file(name, OFlags::RDWR | OFlags::APPEND)?,
        };
        self.timed(0, || dir.write(&file, name, data))?;
        self.file = Some(file);
        Ok(())
    }

    /// Makes the fsync and the close that the clock includes; returns when the clock stops, ns.
    fn stop(&mut self) -> Result<u64> {
        let (dir, name) = (self.dir, self.name);
        let Some(file) = self.file.take() else {
            return Ok(self.end_ns);
        };
        if self.job.fsync {
            self.timed(1, || dir.fsync(&file, name))?;
        }
        if self.job.close {
            self.timed(2, || {
                drop(file);
                Ok(())
            })?;
        } else {
            self.file = Some(file);
        }
        Ok(self.end_ns)
    }

    /// Syncs and closes the file off the clock, unless the close was timed.
    fn leave(&mut self) -> Result<()> {
        match self.file.take() {
            Some(file) if !self.job.close => self.dir.fsync(&file, self.name),
            _ => Ok(()),
        }
    }

    fn timed(&mut self, list: usize, call: impl FnOnce() -> Result<()>) -> Result<()> {
        let start_ns = now_ns();
        call()?;
        self.end_ns = now_ns();
        self.calls[list].push(self.end_ns - start_ns);
        Ok(())
    }
}

/// Largest file of one child: 1 TiB.
const SIZE_BYTES_MAX: u64 = 1 << 40;
/// Largest write: 1 GiB, below the limit of one write(2).
const RECORD_BYTES_MAX: u64 = 1 << 30;

fn initial_write(test: &str) -> std::result::Result<u32, String> {
    match test {
        "0" => Ok(0),
        _ => Err("IOzone's other tests are not measured; 0 is the initial write".into()),
    }
}

fn size_bytes(text: &str) -> std::result::Result<u64, String> {
    binary(text, SIZE_BYTES_MAX, "1024g")
}

fn record_bytes(text: &str) -> std::result::Result<u64, String> {
    binary(text, RECORD_BYTES_MAX, "1g")
}

/// Parses a size in KiB, or with a suffix for another unit.
fn binary(text: &str, max: u64, max_text: &str) -> std::result::Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last().map(u8::to_ascii_lowercase) {
        Some(b'k') => (&text[..text.len() - 1], 10),
        Some(b'm') => (&text[..text.len() - 1], 20),
        Some(b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 10),
    };
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let bytes = plain.then(|| digits.parse::<u64>().ok()).flatten();
    bytes
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|bytes| (1..=max).contains(bytes))
        .ok_or_else(|| format!("not a size from 1k to {max_text}, like 128, 128k or 16m"))
}

#[cfg(test)]
mod tests {
    use crate::processes::Phase;
    use crate::worker::Part;
    use crate::{Iozone, IozoneResult};

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
        let result = IozoneResult::new(&args, &phase);
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
