//! Raw results: rendering reads nothing else.

use std::collections::BTreeMap;

use luc_workload::{BenchReport, Latency, Outcome, ScalingStep, Times};
use serde::{Deserialize, Serialize};

use super::modelled::Modelled;
use super::origin::Origin;
use crate::plan::host::Host;
use crate::plan::load::{Load, Measurement};

/// One measured cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Name in the list of kernels.
    pub kernel: String,
    /// `uname -r` of that kernel.
    pub kernel_release: String,
    /// Million instructions per second of the virtual processor.
    pub cpu_mips: u32,
    /// Virtual processors.
    #[serde(default = "one")]
    pub vcpus: u32,
    pub cell: Measurement,
    /// Results of the workload.
    pub report: BenchReport,
    /// The model's answer, where the cell was recorded for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Modelled>,
    /// LUC's counters from its attach to the end of the workload, warm-up included; empty if LUC
    /// was not attached.
    pub counters: BTreeMap<String, i64>,
}

/// Versions that measured on one processor only did not record the number.
fn one() -> u32 {
    1
}

/// Instructions of a lone fsync.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FsyncCost {
    /// An fsync that finds its data committed.
    pub clean: f64,
    /// An fsync with its commit, and the change that asks for it.
    pub committed: f64,
    /// The journal's thread, for that commit.
    pub commit: Option<f64>,
    /// The journal's thread, for one more metadata buffer.
    pub buffer: Option<f64>,
}

/// All records of a run, as they are kept in its JSON file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Records {
    /// Name and version of the format.
    pub schema: String,
    /// Version of LUC that measured.
    pub luc_version: String,
    /// Date, machine and command; absent in the results of versions before this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// In the order of the plan.
    pub records: Vec<Record>,
}

/// Values of one figure over repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub mean: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// Of these values; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        Some(Self {
            mean: values.iter().sum::<f64>() / values.len() as f64,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

impl Records {
    /// The foot of a page: origin of the figures.
    pub fn foot(&self) -> Vec<String> {
        let version = format!("LUC {}", self.luc_version);
        let Some(origin) = &self.origin else {
            return vec![format!("{version}; date, host and command were not kept.")];
        };
        vec![
            format!("{version}, measured {} on {}", origin.date, origin.host),
            origin.command.clone(),
        ]
    }

    /// Hosts in the order in which they were measured.
    pub fn hosts(&self) -> Vec<Host<'_>> {
        let mut hosts = Vec::new();
        for record in &self.records {
            if !hosts.contains(&record.host()) {
                hosts.push(record.host());
            }
        }
        hosts
    }
}

/// Figures that tables are made of.
impl Record {
    /// The kernel and its processors.
    pub fn host(&self) -> Host<'_> {
        Host {
            kernel: &self.kernel,
            vcpus: self.vcpus,
        }
    }

    /// The main figure of the workload: operations, writes, files or bytes per second; for write
    /// bursts the mean write time in milliseconds, for fsync-cost the time of an fsync in ns.
    pub fn main_figure(&self) -> Option<f64> {
        self.report.outcome.found().figures().main
    }

    /// Share of bad outcomes, 0 to 1: writes delayed, files that waited for two commits, threads
    /// blocked.
    pub fn bad_share(&self) -> Option<f64> {
        self.report.outcome.found().figures().bad_share
    }

    /// Whether the main figure is a rate, so that more is better.
    pub fn is_a_rate(&self) -> bool {
        self.report.outcome.found().figures().is_a_rate
    }

    /// Journal commits per second of the measurement.
    pub fn commits_per_s(&self) -> Option<f64> {
        let journal = self.report.journal?;
        let seconds = self.report.elapsed_ns as f64 / 1e9;
        (seconds > 0.0).then(|| journal.commits as f64 / seconds)
    }

    /// fsyncs per journal commit.
    pub fn fsyncs_per_commit(&self) -> Option<f64> {
        self.report.fsyncs_per_commit
    }

    /// Median and 99th percentile of the sync delay, in ms.
    pub fn sync_delay_ms(&self) -> (f64, f64) {
        let sync = self.syncs();
        (sync.p50_ns as f64 / 1e6, sync.p99_ns as f64 / 1e6)
    }

    /// 99th percentile of the sync delay, in ms; `None` without any sync.
    pub fn sync_delay_p99_ms(&self) -> Option<f64> {
        (self.sync_count() > 0).then(|| self.sync_delay_ms().1)
    }

    /// Completed fsyncs or synchronous writes.
    pub fn sync_count(&self) -> u64 {
        self.syncs().count
    }

    /// Completed fsyncs or synchronous writes per second of the measurement.
    pub fn syncs_per_s(&self) -> Option<f64> {
        let seconds = self.report.elapsed_ns as f64 / 1e9;
        let count = self.sync_count();
        (seconds > 0.0 && count > 0).then(|| count as f64 / seconds)
    }

    /// The calls that wait for a commit; none where their times are not those of a load.
    fn syncs(&self) -> Latency {
        let found = self.report.outcome.found();
        found.figures().syncs.copied().unwrap_or_default()
    }

    /// Instructions of the whole machine per fsync: busy time of the virtual processor, which runs
    /// `cpu_mips / 1000` instructions in a nanosecond.
    pub fn instructions_per_fsync(&self) -> Option<f64> {
        let Outcome::CreateFsync(result) = &self.report.outcome else {
            return None;
        };
        let busy_ns = self.report.cpu_busy_ns? as f64;
        (result.ops > 0).then(|| busy_ns * f64::from(self.cpu_mips) / 1000.0 / result.ops as f64)
    }

    /// Results of the workload `fsync-cost`, in instructions.
    pub fn fsync_cost(&self) -> Option<FsyncCost> {
        let Outcome::FsyncCost(result) = &self.report.outcome else {
            return None;
        };
        let instructions = |ns: f64| ns * f64::from(self.cpu_mips) / 1000.0;
        let usual = |times: &Times| instructions(times.usual_ns);
        let commit = result.commit.as_ref().map(usual);
        // The times of large commits differ: take the median.
        let large = result.commit_buffers.as_ref();
        let large = large.map(|times| instructions(times.median_ns as f64));
        let more = f64::from(result.args.buffers.saturating_sub(1).max(1));
        Some(FsyncCost {
            clean: usual(&result.clean),
            committed: usual(&result.committed),
            commit,
            buffer: large.zip(commit).map(|(large, one)| (large - one) / more),
        })
    }

    /// Results of the workload `scaling` with a number of threads.
    pub fn scaling_step(&self, threads: u32) -> Option<&ScalingStep> {
        let Outcome::Scaling(result) = &self.report.outcome else {
            return None;
        };
        result.steps.iter().find(|step| step.threads == threads)
    }

    /// The gain of the main figure that the model predicts for LUC.
    pub fn predicted_gain(&self) -> Option<f64> {
        let model = self.model.as_ref()?;
        let gain = match self.cell.load {
            Load::WriteDelay { .. } => model.writes_gain,
            _ => model.gain,
        };
        (gain > 0.0).then_some(gain)
    }

    /// Share of the metadata changes that were delayed, by LUC's own count.
    pub fn writes_delayed_share(&self) -> Option<f64> {
        let writes = *self.counters.get("handles")?;
        let delayed = *self.counters.get("writes_delayed")?;
        (writes > 0).then(|| delayed as f64 / writes as f64)
    }
}
