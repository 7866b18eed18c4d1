//! The result of a run of a workload file, and its text in Filebench's form.

use std::fmt;
use std::path::PathBuf;

use luc_wml::plan::{Flowop, Io, Op, Plan, Thread};
use serde::{Deserialize, Serialize};

use super::fileset::LiveFileset;
use super::options::WmlOptions;
use super::stats::Stats;
use super::system::Counted;
use crate::Latency;
use crate::benchmark::{Figures, Found};
use crate::rates::per_second;
use crate::text::Lines;
use luc_base::Recorder;

const MIB: f64 = 1_048_576.0;

/// Result of running a workload file. Quantiles are within 1%.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WmlResult {
    /// The file's or the personality's name.
    pub source: String,
    pub dir: PathBuf,
    /// Variables that were set from outside the file.
    pub overrides: Vec<(String, String)>,
    /// Seed of the engine's generator; `None` with Filebench's generators.
    pub seed: Option<u64>,
    /// Number of operations that the user asked for, if any.
    pub ops_wanted: Option<u64>,
    pub warmup_s: f64,
    /// True if fsync and synchronous writes were left out: the figures are only an upper bound.
    pub unsafe_no_fsync: bool,
    /// True if the file system was written out between preparation and run.
    pub settled: bool,
    /// Parts of the file that had no effect, and commands of it that failed: one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    pub filesets: Vec<FilesetResult>,
    pub threads: u64,
    /// Total number of loops of all threads, measured or not.
    pub loops: u64,
    pub ops: u64,
    pub ops_per_s: f64,
    pub reads_per_s: f64,
    pub writes_per_s: f64,
    pub bytes: u64,
    pub mib_per_s: f64,
    pub mean_ns: f64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    /// Sync delay: the time of each fsync.
    pub fsync: Latency,
    /// Time of each synchronous write (`dsync`), asynchronous ones included.
    pub dsync: Latency,
    /// Each flowop, in the order of the file.
    pub flowops: Vec<FlowopResult>,
}

/// A fileset as it was prepared. After an interrupt, all but `files` is what was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilesetResult {
    pub name: String,
    /// Files, existing or not.
    pub files: u64,
    /// Files that existed before the run.
    pub preallocated: u64,
    /// Directories, the root included.
    pub dirs: u64,
    pub leaf_dirs: u64,
    /// Mean depth from which the tree was drawn.
    pub mean_depth: f64,
    /// Bytes of all files, existing or not.
    pub bytes: u64,
}

/// One flowop over all threads. Flowops with the same name are counted together. Quantiles are
/// within 1%.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowopResult {
    pub name: String,
    /// True if its operations count in the summary.
    pub io: bool,
    pub ops: u64,
    pub ops_per_s: f64,
    pub bytes: u64,
    pub mib_per_s: f64,
    pub mean_ns: f64,
    pub min_ns: u64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}

impl FilesetResult {
    pub fn from_live<W: Default>(live: &LiveFileset<W>) -> Self {
        let planned = Self {
            name: live.plan.name.clone(),
            files: live.tree.files.len() as u64,
            preallocated: live.preallocated,
            dirs: live.tree.dirs.len() as u64,
            leaf_dirs: live.tree.leaf_dirs.len() as u64,
            mean_depth: live.tree.mean_depth,
            bytes: live.tree.bytes(),
        };
        match live.cut_short {
            None => planned,
            Some(made) => Self {
                preallocated: made.files,
                dirs: made.dirs,
                leaf_dirs: made.leaf_dirs,
                bytes: made.bytes,
                ..planned
            },
        }
    }
}

impl WmlResult {
    /// Makes the result of a run that has measured nothing yet.
    pub fn new(
        plan: &Plan,
        source: &str,
        overrides: &[(String, String)],
        options: &WmlOptions,
    ) -> Self {
        Self {
            source: source.to_owned(),
            dir: options.dir.to_path_buf(),
            overrides: overrides.to_vec(),
            seed: (!options.filebench_generator).then_some(options.seed),
            ops_wanted: options.ops,
            warmup_s: options.warmup_s,
            unsafe_no_fsync: options.no_fsync,
            settled: options.settle,
            notes: plan.notes.clone(),
            ..Self::default()
        }
    }

    /// Fills in the figures of a run that took `elapsed_ns`, from the counts of each thread;
    /// `written` holds the synchronous ones of the asynchronous writes.
    pub fn sum_up<'p, 's>(
        &mut self,
        threads: impl Iterator<Item = (&'p Thread, &'s Counted)>,
        written: &[Recorder],
        elapsed_ns: u64,
    ) {
        let mut sums = Sums::default();
        let (mut fsyncs, mut dsyncs) = (Vec::new(), Vec::from_iter(written));
        for (thread, counted) in threads {
            for (flowop, stats) in thread.all_flowops().into_iter().zip(&counted.stats) {
                // A composite flowop has a place in the list, but does nothing itself.
                if !matches!(flowop.op, Op::Composite(_)) {
                    sums.add(flowop, stats);
                }
            }
            fsyncs.push(&counted.fsync);
            dsyncs.push(&counted.dsync);
            self.loops += counted.loops;
        }
        self.fsync = Recorder::merged(fsyncs);
        self.dsync = Recorder::merged(dsyncs);
        sums.fill(self, elapsed_ns);
    }
}

/// Counts of all threads, by flowop name.
#[derive(Default)]
struct Sums<'p> {
    all: Vec<(&'p str, Io, Stats)>,
}

impl<'p> Sums<'p> {
    /// Adds a thread's counts of one flowop.
    fn add(&mut self, flowop: &'p Flowop, stats: &Stats) {
        let name = flowop.name.as_str();
        let at = self.all.iter().position(|(other, ..)| *other == name);
        let at = at.unwrap_or_else(|| {
            self.all.push((name, flowop.io, Stats::new()));
            self.all.len() - 1
        });
        self.all[at].2.add(stats);
    }

    /// Fills in the figures of a run that took `elapsed_ns`.
    fn fill(&self, result: &mut WmlResult, elapsed_ns: u64) {
        let mut io = Stats::new();
        let (mut reads, mut writes) = (0, 0);
        for (name, kind, stats) in &self.all {
            result.flowops.push(FlowopResult {
                name: (*name).to_owned(),
                io: *kind != Io::None,
                ops: stats.count,
                ops_per_s: per_second(stats.count, elapsed_ns),
                bytes: stats.bytes,
                mib_per_s: per_second(stats.bytes, elapsed_ns) / MIB,
                mean_ns: mean(stats),
                min_ns: stats.min_ns(),
                p50_ns: stats.quantile_ns(0.5),
                p90_ns: stats.quantile_ns(0.9),
                p99_ns: stats.quantile_ns(0.99),
                max_ns: stats.max_ns,
            });
            match kind {
                Io::None => continue,
                Io::Read => reads += stats.count,
                Io::Write => writes += stats.count,
                Io::Other => {}
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

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

impl Found for WmlResult {
    fn title(&self) -> String {
        format!("{}, {} threads", self.source, self.threads)
    }

    /// The syncs are the fsyncs, or the synchronous writes if there are more of those.
    fn figures(&self) -> Figures<'_> {
        let more = self.dsync.count > self.fsync.count;
        let syncs = if more { &self.dsync } else { &self.fsync };
        Figures::rate(self.ops_per_s, syncs)
    }

    fn fsyncs(&self) -> u64 {
        self.fsync.count + self.dsync.count
    }

    fn ops(&self) -> u64 {
        self.ops
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
        for note in &self.notes {
            writeln!(f, "  note: {note}")?;
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
                fileset.bytes as f64 / MIB,
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
                flowop.mean_ns / 1e6,
                ms(flowop.min_ns),
                ms(flowop.max_ns),
                ms(flowop.p50_ns),
                ms(flowop.p90_ns),
                ms(flowop.p99_ns),
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
            self.mean_ns / 1e6,
            ms(self.p50_ns),
            ms(self.p90_ns),
            ms(self.p99_ns),
        )
    }
}
