//! The report of a run: the part that all workloads share, and its text.

use std::fmt;

use luc_power::activity::{Activity, DiskActivity};
use luc_power::meter::{Energy, Spent};
use serde::{Deserialize, Serialize};

use crate::benches::{Bench, Outcome};
use crate::benchmark::Measured;
use crate::clock::NS_PER_S;
use crate::text::{Lines, time};
use crate::wml::WmlResult;
use crate::{HardwareCounts, JournalCounts};
use crate::{Result, Stop};

/// Name and version of the JSON form. The number grows when a field is removed or changes its
/// meaning.
pub const SCHEMA: &str = "luc-bench/1";

/// The result of one run of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchReport {
    pub schema: String,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// True when the run was ended early; the figures then cover the part that was done.
    pub interrupted: bool,
    /// Length of the measurement, nanoseconds.
    pub elapsed_ns: u64,
    /// Journal commits within the measurement, if the kernel shows them to this user.
    pub journal: Option<JournalCounts>,
    /// Measured fsyncs per journal commit; `None` without commits or without their count.
    pub fsyncs_per_commit: Option<f64>,
    /// Measured syncs by the commits that they waited for: none, one, two, more; `None` for a run
    /// on a real kernel, which shows that only to tracers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syncs_by_commits: Option<[u64; 4]>,
    /// Busy time of all processors within the measurement, nanoseconds: every instruction that the
    /// machine ran, in and outside the kernel; `None` if it cannot be read (needs root).
    pub cpu_busy_ns: Option<u64>,
    /// How often a processor went idle; `None` if it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_idle_periods: Option<u64>,
    /// Time that `cpu_busy_ns` and `disks` cover, nanoseconds: tasks that keep the processors busy
    /// delay both readings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_elapsed_ns: Option<u64>,
    /// Activity of the disks; `None` unless they are the lab's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disks: Option<DiskActivity>,
    /// Time of all processors in programs within the measurement, nanoseconds, sampled by the
    /// kernel's ticks; `None` in reports of earlier versions.
    #[serde(default)]
    pub cpu_user_ns: Option<u64>,
    /// Time of all processors in the kernel, interrupts included, sampled in the same way.
    #[serde(default)]
    pub cpu_kernel_ns: Option<u64>,
    /// Counters of the processors; `None` if the machine has none or this user may not read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<HardwareCounts>,
    /// Activity of the machine's parts, from which a model computes their energy; `None` where it
    /// is not known: outside simulator and lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// Energy within the measurement, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<Energy>,
    /// Measured operations per joule; `None` without a reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops_per_joule: Option<f64>,
}

impl BenchReport {
    pub fn new(measured: Measured<Outcome>) -> Self {
        let observed = measured.observed;
        let found = measured.found.found();
        let (fsyncs, ops) = (found.fsyncs(), found.ops());
        let energy = observed.energy.map(Spent::energy);
        let reading = energy.as_ref().and_then(Energy::reading);
        let commits = observed.journal.map_or(0, |journal| journal.commits);
        Self {
            schema: SCHEMA.to_owned(),
            ops_per_joule: reading.map(|reading| ops as f64 / reading.joules),
            outcome: measured.found,
            interrupted: measured.interrupted,
            elapsed_ns: measured.elapsed_ns,
            journal: observed.journal,
            fsyncs_per_commit: (commits > 0).then(|| fsyncs as f64 / commits as f64),
            syncs_by_commits: None,
            cpu_busy_ns: observed.cpu_busy_ns,
            cpu_idle_periods: observed.cpu_idle_periods,
            cpu_elapsed_ns: observed.cpu_elapsed_ns,
            disks: observed.disks,
            cpu_user_ns: observed.cpu_user_kernel_ns.map(|(user, _)| user),
            cpu_kernel_ns: observed.cpu_user_kernel_ns.map(|(_, kernel)| kernel),
            hardware: observed.hardware.known(),
            activity: None,
            energy,
        }
    }

    fn idle_watts(&self) -> Option<f64> {
        self.energy.as_ref()?.reading()?.idle_watts
    }
}

impl From<Measured<WmlResult>> for BenchReport {
    fn from(measured: Measured<WmlResult>) -> Self {
        Self::new(measured.map(Outcome::Wml))
    }
}

impl Bench {
    /// Runs the workload and waits for its end.
    ///
    /// # Errors
    /// The first system call that failed, with the file's name; files made so far are removed
    /// (unless they are to be kept). An interrupt through `stop` is not an error: the report then
    /// covers what was done so far and says so.
    pub fn run(&self, stop: &Stop) -> Result<BenchReport> {
        self.measure(stop).map(BenchReport::new)
    }
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.outcome.found();
        writeln!(f, "{}, in {}", found.title(), self.outcome.dir().display())?;
        let mut lines = Lines(f);
        found.lines(&mut lines)?;
        if !found.is_measured() {
            return Ok(());
        }
        match (self.journal, self.fsyncs_per_commit) {
            (Some(journal), Some(per_commit)) => lines.line(
                "journal commits",
                format!("{}, {per_commit:.2} fsyncs each", journal.commits),
            )?,
            (Some(journal), None) => lines.line("journal commits", journal.commits)?,
            (None, _) => lines.line("journal commits", "unknown (needs ext4 and root)")?,
        }
        if let Some([none, one, two, more]) = self.syncs_by_commits {
            let waited = format!("none {none}, one {one}, two {two}, more {more}");
            lines.line("commits waited for", waited)?;
        }
        if let Some(busy_ns) = self.cpu_busy_ns {
            lines.line("processors busy", time(busy_ns as f64))?;
        }
        if let Some((user_ns, kernel_ns)) = self.cpu_user_ns.zip(self.cpu_kernel_ns) {
            let split = format!(
                "{} in programs, {} in the kernel",
                time(user_ns as f64),
                time(kernel_ns as f64)
            );
            lines.line("by ticks", split)?;
        }
        if let Some(hardware) = self.hardware {
            for (what, count) in hardware.rows() {
                if let Some(count) = count {
                    lines.line(what, count)?;
                }
            }
        }
        if let Some(energy) = &self.energy {
            lines.line("energy", energy)?;
        }
        if let Some(ops) = self.ops_per_joule {
            lines.line("operations per joule", format!("{ops:.3}"))?;
        }
        if let Some(idle_watts) = self.idle_watts() {
            let idle = format!("{idle_watts:.2} W before the load; not subtracted");
            lines.line("idle power", idle)?;
        }
        let cut = if self.interrupted {
            ", interrupted: the figures cover the part that was done"
        } else {
            ""
        };
        let seconds = self.elapsed_ns as f64 / NS_PER_S as f64;
        lines.line("measured for", format!("{seconds:.2} s{cut}"))
    }
}
