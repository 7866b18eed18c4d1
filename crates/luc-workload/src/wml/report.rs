//! What a run of a workload file found, and Filebench's familiar text of it.

use std::fmt;
use std::path::PathBuf;

use luc_wml::plan::Flowop;
use serde::{Deserialize, Serialize};

use super::engine::{Counts, counts};
use super::fileset::LiveFileset;
use super::stats::Stats;
use crate::Latency;
use crate::benchmark::Found;
use crate::rates::per_second;
use crate::text::Lines;

const MIB: f64 = 1_048_576.0;

/// Result of running a workload file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WmlResult {
    /// What was run: the file's or the personality's name.
    pub source: String,
    /// The directory that it was given.
    pub dir: PathBuf,
    /// Variables that were set from outside the file.
    pub overrides: Vec<(String, String)>,
    /// Seed of the generator; `None` with Filebench's.
    pub seed: Option<u64>,
    /// Operations that were asked for, where they were.
    pub ops_wanted: Option<u64>,
    /// Seconds before the measurement.
    pub warmup_s: f64,
    /// True if fsync and synchronous writes were left out: the figures are an upper bound that no
    /// file system that keeps its promises can reach.
    pub unsafe_no_fsync: bool,
    /// True if the file system was written out between preparation and run.
    pub settled: bool,
    /// Filesets as they were before the run.
    pub filesets: Vec<FilesetResult>,
    /// Threads of all processes.
    pub threads: u64,
    /// Times that the threads went through their loops, measured or not, in all.
    pub loops: u64,
    /// I/O operations.
    pub ops: u64,
    /// I/O operations per second.
    pub ops_per_s: f64,
    pub reads_per_s: f64,
    pub writes_per_s: f64,
    /// Bytes of all I/O operations.
    pub bytes: u64,
    /// MiB per second of all I/O operations.
    pub mib_per_s: f64,
    /// Mean time of an I/O operation, nanoseconds.
    pub mean_ns: f64,
    /// Half of the I/O operations took at most this, nanoseconds; within 1%.
    pub p50_ns: u64,
    /// 90 of 100 took at most this, nanoseconds; within 1%.
    pub p90_ns: u64,
    /// 99 of 100 took at most this, nanoseconds; within 1%.
    pub p99_ns: u64,
    /// Sync delay: the time of each fsync.
    pub fsync: Latency,
    /// Time of each synchronous write (`dsync`), asynchronous ones included.
    pub dsync: Latency,
    /// Each flowop, in the order of the file.
    pub flowops: Vec<FlowopResult>,
}

/// A fileset as it was prepared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilesetResult {
    pub name: String,
    /// Files, existing or not.
    pub files: u64,
    /// Files that existed before the run.
    pub preallocated: u64,
    /// Directories, the root included.
    pub dirs: u64,
    /// Directories without entries.
    pub leaf_dirs: u64,
    /// Mean depth of the directories that was asked for.
    pub mean_depth: f64,
    /// Bytes of all files, existing or not.
    pub bytes: u64,
}

/// One flowop over all threads. Flowops of one name are one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowopResult {
    pub name: String,
    /// True if it counts in the summary.
    pub io: bool,
    /// Operations.
    pub ops: u64,
    /// Operations per second.
    pub ops_per_s: f64,
    /// Bytes moved.
    pub bytes: u64,
    /// MiB per second.
    pub mib_per_s: f64,
    /// Mean time, nanoseconds.
    pub mean_ns: f64,
    /// The fastest, nanoseconds.
    pub min_ns: u64,
    /// Half took at most this, nanoseconds; within 1%.
    pub p50_ns: u64,
    /// 90 of 100 took at most this, nanoseconds; within 1%.
    pub p90_ns: u64,
    /// 99 of 100 took at most this, nanoseconds; within 1%.
    pub p99_ns: u64,
    /// The slowest, nanoseconds.
    pub max_ns: u64,
}

impl FilesetResult {
    pub(crate) fn of(live: &LiveFileset<'_>) -> Self {
        Self {
            name: live.plan.name.clone(),
            files: live.tree.files.len() as u64,
            preallocated: live.preallocated,
            dirs: live.tree.dirs.len() as u64,
            leaf_dirs: live.tree.leaf_dirs.len() as u64,
            mean_depth: live.tree.mean_depth,
            bytes: live.tree.bytes(),
        }
    }
}

/// Counts of all threads, by name of the flowop.
#[derive(Default)]
pub struct Sums<'p> {
    all: Vec<(&'p str, Counts, Stats)>,
}

impl<'p> Sums<'p> {
    /// Adds what a thread counted for one flowop.
    pub fn add(&mut self, flowop: &'p Flowop, stats: &Stats) {
        let name = flowop.name.as_str();
        let at = self.all.iter().position(|(other, ..)| *other == name);
        let at = at.unwrap_or_else(|| {
            self.all.push((name, counts(&flowop.op), Stats::new()));
            self.all.len() - 1
        });
        self.all[at].2.add(stats);
    }

    /// Fills in the figures of a run that took `elapsed_ns`.
    pub fn fill(&self, result: &mut WmlResult, elapsed_ns: u64) {
        let mut io = Stats::new();
        let (mut reads, mut writes) = (0, 0);
        for (name, kind, stats) in &self.all {
            result.flowops.push(FlowopResult {
                name: (*name).to_owned(),
                io: *kind != Counts::Other,
                ops: stats.count,
                ops_per_s: per_second(stats.count, elapsed_ns),
                bytes: stats.bytes,
                mib_per_s: per_second(stats.bytes, elapsed_ns) / MIB,
                mean_ns: mean(stats),
                min_ns: stats.min_ns,
                p50_ns: stats.quantile_ns(0.5),
                p90_ns: stats.quantile_ns(0.9),
                p99_ns: stats.quantile_ns(0.99),
                max_ns: stats.max_ns,
            });
            match kind {
                Counts::Other => continue,
                Counts::Read => reads += stats.count,
                Counts::Write => writes += stats.count,
                Counts::Io => {}
            }
            io.add(stats);
        }
        result.ops = io.count;
        result.ops_per_s = per_second(io.count, elapsed_ns);
        result.reads_per_s = per_second(reads, elapsed_ns);
        result.writes_per_s = per_second(writes, elapsed_ns);
        result.bytes = io.bytes;
        result.mib_per_s = per_second(io.bytes, elapsed_ns) / MIB;
        result.mean_ns = mean(&io);
        result.p50_ns = io.quantile_ns(0.5);
        result.p90_ns = io.quantile_ns(0.9);
        result.p99_ns = io.quantile_ns(0.99);
    }
}

fn mean(stats: &Stats) -> f64 {
    stats.total_ns as f64 / stats.count.max(1) as f64
}

fn ms(ns: impl Into<f64>) -> f64 {
    ns.into() / 1e6
}

/// As a floating-point number, which is near enough for a text.
fn near(ns: u64) -> f64 {
    ns as f64
}

impl Found for WmlResult {
    fn title(&self) -> String {
        format!("{}, {} threads", self.source, self.threads)
    }

    fn main_figure(&self) -> Option<f64> {
        Some(self.ops_per_s)
    }

    /// Fsyncs, or synchronous writes where they are more.
    fn syncs(&self) -> Option<&Latency> {
        let more = self.dsync.count > self.fsync.count;
        Some(if more { &self.dsync } else { &self.fsync })
    }

    fn is_measured(&self) -> bool {
        !self.flowops.is_empty()
    }

    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        let f = &mut *lines.0;
        if self.unsafe_no_fsync {
            writeln!(
                f,
                "  UNSAFE               --no-fsync: nothing was made durable; an upper bound, not a result"
            )?;
        }
        for fileset in &self.filesets {
            writeln!(
                f,
                "  fileset {}: {} files ({} exist), {} directories, {} leaf directories, \
                 mean depth {:.1}, {:.3} MB",
                fileset.name,
                fileset.files,
                fileset.preallocated,
                fileset.dirs,
                fileset.leaf_dirs,
                fileset.mean_depth,
                near(fileset.bytes) / MIB,
            )?;
        }
        if self.flowops.is_empty() {
            return Ok(());
        }
        writeln!(f, "Per-Operation Breakdown")?;
        for flowop in self.flowops.iter().rev() {
            writeln!(
                f,
                "{:<20} {}ops {:8.0}ops/s {:5.1}mb/s {:8.3}ms/op [{:.3}ms - {:5.3}ms] \
                 p50 {:.3}ms p90 {:.3}ms p99 {:.3}ms",
                flowop.name,
                flowop.ops,
                flowop.ops_per_s,
                flowop.mib_per_s,
                ms(flowop.mean_ns),
                ms(near(flowop.min_ns)),
                ms(near(flowop.max_ns)),
                ms(near(flowop.p50_ns)),
                ms(near(flowop.p90_ns)),
                ms(near(flowop.p99_ns)),
            )?;
        }
        writeln!(
            f,
            "IO Summary: {:5} ops {:5.3} ops/s {:.0}/{:.0} rd/wr {:5.1}mb/s {:5.3}ms/op \
             p50 {:.3}ms p90 {:.3}ms p99 {:.3}ms",
            self.ops,
            self.ops_per_s,
            self.reads_per_s,
            self.writes_per_s,
            self.mib_per_s,
            ms(self.mean_ns),
            ms(near(self.p50_ns)),
            ms(near(self.p90_ns)),
            ms(near(self.p99_ns)),
        )
    }
}
