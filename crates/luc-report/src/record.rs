//! What was measured: raw, complete, and all that rendering ever reads.

use std::collections::BTreeMap;

use luc_workload::{BenchReport, Latency, Outcome, ScalingStep, Times};
use serde::{Deserialize, Serialize};

use crate::load::{Load, Measurement, Mode};
use crate::modelled::Modelled;
use crate::origin::Origin;

/// One measured cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Kernel by its name in the list of kernels.
    pub kernel: String,
    /// What that kernel calls itself.
    pub kernel_release: String,
    /// Million instructions per second of the virtual processor.
    pub cpu_mips: u32,
    /// Virtual processors.
    #[serde(default = "one")]
    pub vcpus: u32,
    /// What was asked for.
    pub cell: Measurement,
    /// What the workload found.
    pub report: BenchReport,
    /// What the model says of its recording, where one was made for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Modelled>,
    /// LUC's counters from its attach to the end of the workload, warm-up included; empty when
    /// it was not attached.
    pub counters: BTreeMap<String, i64>,
}

/// Results of versions that knew of one only do not tell.
fn one() -> u32 {
    1
}

/// Instructions of a lone fsync.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FsyncCost {
    /// One that finds its data committed.
    pub clean: f64,
    /// One with its commit, and the change that asks for it.
    pub committed: f64,
    /// The journal's thread for that commit.
    pub commit: Option<f64>,
    /// The same for one more metadata buffer.
    pub buffer: Option<f64>,
}

/// All records of a run, as they are kept in its JSON file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Records {
    /// Name and version of the format.
    pub schema: String,
    /// Version of LUC that measured.
    pub luc_version: String,
    /// When, where and how they were measured; versions before this field did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// In the order of the plan, whichever machine finished first.
    pub records: Vec<Record>,
}

/// Selects records: every field that is set must match.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    /// Kernel name.
    pub kernel: Option<&'a str>,
    /// Speed.
    pub cpu_mips: Option<u32>,
    /// Virtual processors.
    pub vcpus: Option<u32>,
    pub disk: Option<&'a str>,
}

/// Values of one figure over repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// How many.
    pub runs: usize,
}

impl Spread {
    /// Of these values; `None` of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        Some(Self {
            mean: values.iter().sum::<f64>() / values.len() as f64,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            runs: values.len(),
        })
    }
}

impl Records {
    /// The foot of a page: where the figures are from.
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

    /// Records of one mode whose workload `load` accepts, by repetition.
    pub fn select<'a>(
        &'a self,
        filter: Filter<'a>,
        mode: Mode,
        load: impl Fn(&Load) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Record> {
        self.records.iter().filter(move |record| {
            filter.kernel.is_none_or(|kernel| kernel == record.kernel)
                && filter.cpu_mips.is_none_or(|mips| mips == record.cpu_mips)
                && filter.vcpus.is_none_or(|vcpus| vcpus == record.vcpus)
                && filter.disk.is_none_or(|disk| disk == record.cell.disk)
                && record.cell.mode == mode
                && load(&record.cell.load)
        })
    }

    /// A figure over the repetitions.
    pub fn spread(
        &self,
        filter: Filter<'_>,
        mode: Mode,
        load: impl Fn(&Load) -> bool,
        figure: impl Fn(&Record) -> Option<f64>,
    ) -> Option<Spread> {
        let values: Vec<f64> = self.select(filter, mode, load).filter_map(figure).collect();
        Spread::of(&values)
    }

    /// A figure in `mode` over the same figure on stock, repetition by repetition.
    pub fn ratio(
        &self,
        filter: Filter<'_>,
        mode: Mode,
        load: impl Fn(&Load) -> bool,
        figure: impl Fn(&Record) -> Option<f64>,
    ) -> Option<Spread> {
        let quotient = |value: f64, base: f64| (base > 0.0).then(|| value / base);
        self.compare(filter, mode, load, figure, quotient)
    }

    /// A figure in `mode` compared with the same figure on stock, repetition by repetition.
    pub fn compare(
        &self,
        filter: Filter<'_>,
        mode: Mode,
        load: impl Fn(&Load) -> bool,
        figure: impl Fn(&Record) -> Option<f64>,
        with: impl Fn(f64, f64) -> Option<f64>,
    ) -> Option<Spread> {
        let stock: BTreeMap<u32, f64> = self
            .select(filter, Mode::Stock, &load)
            .filter_map(|record| Some((record.cell.repeat, figure(record)?)))
            .collect();
        let values: Vec<f64> = self
            .select(filter, mode, &load)
            .filter_map(|record| {
                let base = *stock.get(&record.cell.repeat)?;
                with(figure(record)?, base)
            })
            .collect();
        Spread::of(&values)
    }
}

/// Figures that tables are made of.
impl Record {
    /// What the workload is about: operations, writes, files or bytes per second; for write bursts
    /// the mean write time in milliseconds, for fsync-cost the time of an fsync in nanoseconds.
    pub fn main_figure(&self) -> Option<f64> {
        self.report.outcome.found().main_figure()
    }

    /// Share of what the workload calls bad: writes delayed, files that waited for two commits,
    /// threads blocked; 0 to 1.
    pub fn bad_share(&self) -> Option<f64> {
        self.report.outcome.found().bad_share()
    }

    /// Whether the main figure is a rate, so that more is better.
    pub fn is_a_rate(&self) -> bool {
        self.report.outcome.found().is_a_rate()
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

    /// Sync delay that half of the fsyncs did not exceed, and that 99 of 100 did not, in ms.
    pub fn sync_delay_ms(&self) -> (f64, f64) {
        let sync = self.syncs();
        (sync.p50_ns as f64 / 1e6, sync.p99_ns as f64 / 1e6)
    }

    /// What 99 of 100 fsyncs did not exceed, in ms; `None` without any.
    pub fn sync_delay_p99_ms(&self) -> Option<f64> {
        (self.syncs().count > 0).then(|| self.sync_delay_ms().1)
    }

    /// Completed fsyncs or synchronous writes per second of the measurement.
    pub fn syncs_per_s(&self) -> Option<f64> {
        let seconds = self.report.elapsed_ns as f64 / 1e9;
        let count = self.syncs().count;
        (seconds > 0.0 && count > 0).then(|| count as f64 / seconds)
    }

    /// The calls that wait for a commit, none where their times are not those of a load.
    fn syncs(&self) -> Latency {
        let found = self.report.outcome.found();
        found.syncs().copied().unwrap_or_default()
    }

    /// Instructions that the whole machine ran per fsync: busy time of the virtual processor,
    /// whose every nanosecond is `cpu_mips / 1000` instructions.
    pub fn instructions_per_fsync(&self) -> Option<f64> {
        let Outcome::CreateFsync(result) = &self.report.outcome else {
            return None;
        };
        let busy_ns = self.report.cpu_busy_ns? as f64;
        (result.ops > 0).then(|| busy_ns * f64::from(self.cpu_mips) / 1000.0 / result.ops as f64)
    }

    /// What the workload `fsync-cost` found, in instructions.
    pub fn fsync_cost(&self) -> Option<FsyncCost> {
        let Outcome::FsyncCost(result) = &self.report.outcome else {
            return None;
        };
        let instructions = |ns: f64| ns * f64::from(self.cpu_mips) / 1000.0;
        let usual = |times: &Times| instructions(times.usual_ns);
        let commit = result.commit.as_ref().map(usual);
        // Of so many buffers no two are alike.
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

    /// What so many threads of the workload `scaling` did.
    pub fn scaling_step(&self, threads: u32) -> Option<&ScalingStep> {
        let Outcome::Scaling(result) = &self.report.outcome else {
            return None;
        };
        result.steps.iter().find(|step| step.threads == threads)
    }

    /// The gain of the main figure that the model foretells for LUC.
    pub fn gain_foretold(&self) -> Option<f64> {
        let model = self.model.as_ref()?;
        let gain = match self.cell.load {
            Load::WriteDelay { .. } => model.writes_gain,
            _ => model.gain,
        };
        (gain > 0.0).then_some(gain)
    }

    /// Share of the operations that changed metadata and were delayed, by LUC's own count.
    pub fn writes_delayed_share(&self) -> Option<f64> {
        let writes = *self.counters.get("writes")?;
        let delayed = *self.counters.get("writes_delayed")?;
        (writes > 0).then(|| delayed as f64 / writes as f64)
    }
}
