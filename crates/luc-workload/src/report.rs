//! What a run found: the part all workloads share, and how a person reads it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::NS_PER_S;
use crate::crew::Observed;
use crate::fsync_cost::Times;
use crate::wml::WmlResult;
use crate::{
    BurstResult, CreateFsyncResult, FsyncCostResult, FsyncStormResult, IozoneResult, JournalCounts,
    Latency, MdtestResult, MetaratesResult, ScalingResult, WriteBurstResult, WriteDelayResult,
};

/// Name and version of the JSON form. The number grows when a field changes its meaning or goes.
pub const SCHEMA: &str = "luc-bench/1";

/// The result of one run of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// The workload's own figures.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// True when the run was ended early; the figures then cover the part that was done.
    pub interrupted: bool,
    /// Length of the measurement, nanoseconds.
    pub elapsed_ns: u64,
    /// Journal commits within the measurement, where the kernel shows them to this user.
    pub journal: Option<JournalCounts>,
    /// Measured fsyncs per journal commit; `None` without commits or without their count.
    pub fsyncs_per_commit: Option<f64>,
    /// Busy time of all processors within the measurement, nanoseconds: every instruction that
    /// the machine ran, in and outside the kernel; `None` where it cannot be read (needs root).
    pub cpu_busy_ns: Option<u64>,
}

/// The figures of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "workload", rename_all = "kebab-case")]
pub enum Outcome {
    /// Of `create-fsync`.
    CreateFsync(CreateFsyncResult),
    /// Of `write-delay`.
    WriteDelay(WriteDelayResult),
    /// Of `burst`.
    Burst(BurstResult),
    /// Of `write-burst`.
    WriteBurst(WriteBurstResult),
    /// Of `fsync-cost`.
    FsyncCost(FsyncCostResult),
    /// Of `scaling`.
    Scaling(ScalingResult),
    /// Of `metarates`.
    Metarates(MetaratesResult),
    /// Of `iozone`.
    Iozone(IozoneResult),
    /// Of `mdtest`.
    Mdtest(MdtestResult),
    /// Of `fsync-storm`.
    FsyncStorm(FsyncStormResult),
    /// Of a workload file (`run`).
    Wml(WmlResult),
}

impl BenchReport {
    pub(crate) fn new(
        outcome: Outcome,
        fsyncs: u64,
        elapsed_ns: u64,
        interrupted: bool,
        observed: Observed,
    ) -> Self {
        let commits = observed.journal.map_or(0, |journal| journal.commits);
        Self {
            schema: SCHEMA.to_owned(),
            outcome,
            interrupted,
            elapsed_ns,
            journal: observed.journal,
            fsyncs_per_commit: (commits > 0).then(|| fsyncs as f64 / commits as f64),
            cpu_busy_ns: observed.cpu_busy_ns,
        }
    }
}

/// A count as a rate; 0 over no time.
pub fn per_second(count: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 {
        return 0.0;
    }
    count as f64 * NS_PER_S as f64 / elapsed_ns as f64
}

/// A part of a whole; 0 of nothing.
pub fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// File creation rate of equation 3, files per second: N threads make a file each in the
/// mean of their times, so N * N / sum of T. Each thread's mean time of a file, ns; 0 of none.
pub fn file_creation_rate_per_s(times_ns: impl Iterator<Item = f64>) -> f64 {
    let (threads, sum_ns) = times_ns.fold((0.0, 0.0), |(n, sum), ns| (n + 1.0, sum + ns));
    if sum_ns > 0.0 {
        threads * threads * 1e9 / sum_ns
    } else {
        0.0
    }
}

/// A time in the unit that suits it.
fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.1} us", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

pub fn latency(latency: &Latency) -> String {
    if latency.count == 0 {
        return "none".to_owned();
    }
    format!(
        "mean {}, p50 {}, p99 {}, max {}",
        time(latency.mean_ns),
        time(latency.p50_ns as f64),
        time(latency.p99_ns as f64),
        time(latency.max_ns as f64),
    )
}

pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// Lines of a name and a value, aligned.
pub struct Lines<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Lines<'_, '_> {
    pub fn line(&mut self, name: &str, value: impl fmt::Display) -> fmt::Result {
        writeln!(self.0, "  {name:<20} {value}")
    }

    /// Over bursts: over all time it would say how many were asked for.
    fn busy(&mut self, files: u64, busy_ns: u64, files_per_s: f64, from: &str) -> fmt::Result {
        let busy = time(busy_ns as f64);
        self.line(
            "throughput",
            format!(
                "{files_per_s:.1} files/s while a burst is under way, from its first {from} to its \
                 last close ({files} files in {busy})"
            ),
        )
    }

    /// The published figure, which is no throughput: it leaves out all time between two files.
    pub fn file_creation_rate(&mut self, files_per_s: f64) -> fmt::Result {
        self.line(
            "file creation rate",
            format!("{files_per_s:.1} files/s, a file of each thread by their mean time"),
        )
    }
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (title, dir) = match &self.outcome {
            Outcome::CreateFsync(r) => (
                format!("create-fsync, {} threads", r.args.threads),
                &*r.args.common.dir,
            ),
            Outcome::WriteDelay(r) => (
                format!(
                    "write-delay, {} writers beside {} fsync streams",
                    r.args.writers, r.args.fsync_streams
                ),
                &*r.args.common.dir,
            ),
            Outcome::Burst(r) => (
                format!(
                    "burst, {} threads within {} us every {} ms",
                    r.args.threads, r.args.spread_us, r.args.period_ms
                ),
                &*r.args.common.dir,
            ),
            Outcome::WriteBurst(r) => (
                format!(
                    "write-burst, {} threads within {} us every {} ms",
                    r.args.threads, r.args.spread_us, r.args.period_ms
                ),
                &*r.args.common.dir,
            ),
            Outcome::FsyncCost(r) => (
                format!("fsync-cost, {} operations each", r.args.ops),
                &*r.args.common.dir,
            ),
            Outcome::Metarates(r) => (r.title(), &*r.args.common.dir),
            Outcome::Iozone(r) => (r.title(), &*r.args.common.dir),
            Outcome::Mdtest(r) => (r.title(), &*r.args.common.dir),
            Outcome::FsyncStorm(r) => (r.title(), &*r.args.common.dir),
            Outcome::Wml(r) => (
                format!("{}, {} threads", r.source, r.threads),
                r.dir.as_path(),
            ),
            Outcome::Scaling(r) => (
                "scaling, fsyncs without a commit".to_owned(),
                &*r.args.common.dir,
            ),
        };
        writeln!(f, "{title}, in {}", dir.display())?;
        let mut lines = Lines(f);
        match &self.outcome {
            Outcome::CreateFsync(r) => r.lines(&mut lines)?,
            Outcome::WriteDelay(r) => r.lines(&mut lines)?,
            Outcome::Burst(r) => r.lines(&mut lines)?,
            Outcome::WriteBurst(r) => r.lines(&mut lines)?,
            Outcome::FsyncCost(r) => r.lines(&mut lines)?,
            Outcome::Scaling(r) => r.lines(&mut lines)?,
            Outcome::Metarates(r) => r.lines(&mut lines)?,
            Outcome::Iozone(r) => r.lines(&mut lines)?,
            Outcome::Mdtest(r) => r.lines(&mut lines)?,
            Outcome::FsyncStorm(r) => r.lines(&mut lines)?,
            Outcome::Wml(r) => {
                r.text(lines.0)?;
                if r.flowops.is_empty() {
                    // Only prepared: there was no measurement.
                    return Ok(());
                }
            }
        }
        match (self.journal, self.fsyncs_per_commit) {
            (Some(journal), Some(per_commit)) => lines.line(
                "journal commits",
                format!("{}, {per_commit:.2} fsyncs each", journal.commits),
            )?,
            (Some(journal), None) => lines.line("journal commits", journal.commits)?,
            (None, _) => lines.line("journal commits", "not known (needs ext4 and root)")?,
        }
        if let Some(busy_ns) = self.cpu_busy_ns {
            lines.line("processors busy", time(busy_ns as f64))?;
        }
        let cut = if self.interrupted {
            ", interrupted: figures cover the part that was done"
        } else {
            ""
        };
        lines.line(
            "measured for",
            format!("{:.2} s{cut}", self.elapsed_ns as f64 / NS_PER_S as f64),
        )
    }
}

impl CreateFsyncResult {
    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        lines.line(
            "throughput",
            format!("{:.1} files/s ({} files)", self.ops_per_s, self.ops),
        )?;
        lines.file_creation_rate(self.file_creation_rate_per_s)?;
        if self.removed_early > 0 {
            lines.line(
                "removed early",
                format!(
                    "{} files: the file system has too few inodes to keep all",
                    self.removed_early
                ),
            )?;
        }
        lines.line(
            "per thread",
            format!(
                "{} to {} operations",
                self.thread_ops_min, self.thread_ops_max
            ),
        )?;
        lines.line("sync delay", latency(&self.fsync))?;
        let create = time(self.create_mean_ns);
        let close = time(self.close_mean_ns);
        let parts = if self.args.bytes > 0 {
            let write = time(self.write_mean_ns);
            format!("create {create}, write {write}, close {close}")
        } else {
            format!("create {create}, close {close}")
        };
        lines.line("other calls, mean", parts)
    }
}

impl WriteDelayResult {
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
}

impl BurstResult {
    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        let files = self.file.count;
        lines.busy(files, self.busy_ns, self.files_per_busy_s, "create")?;
        lines.line("bursts", self.bursts)?;
        // The pauses between the bursts are no part of it.
        lines.file_creation_rate(self.file_creation_rate_per_s)?;
        lines.line("time per file", latency(&self.file))?;
        lines.line("sync delay", latency(&self.fsync))?;
        lines.line(
            "waited for two",
            format!(
                "{} of the files took over 1.5 commits of {}",
                percent(self.two_commits_share),
                time(self.commit_ns)
            ),
        )
    }
}

impl WriteBurstResult {
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
}

impl FsyncCostResult {
    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        let one = |times: Times| {
            let (usual, half) = (times.usual_ns, times.median_ns);
            format!(
                "usually {usual:.0} ns; half of {} up to {half} ns",
                times.count
            )
        };
        let known = |times: Option<Times>| times.map_or("not known (needs root)".into(), one);
        lines.line("fsync, no commit", one(self.clean))?;
        lines.line("fchmod and fsync", one(self.committed))?;
        lines.line("journal's thread", known(self.commit))?;
        let buffers = format!("  {} buffers", self.args.buffers);
        lines.line(&buffers, known(self.commit_buffers))
    }
}

impl ScalingResult {
    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        for step in &self.steps {
            let to_one = step
                .to_one_thread
                .map_or(String::new(), |ratio| format!(", {ratio:.2} of one alone"));
            lines.line(
                &format!("threads: {}", step.threads),
                format!(
                    "{:.0} calls/s each ({:.0} to {:.0}){to_one}; {:.0} calls/s together",
                    step.thread_calls_per_s,
                    step.thread_calls_per_s_min,
                    step.thread_calls_per_s_max,
                    step.calls_per_s
                ),
            )?;
        }
        Ok(())
    }
}
