//! Who measures: the lab, or in tests something that answers as it would.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use luc_lab::{Cell, CellResult, KernelList, RunResult, RunSpec, Step};

use crate::error::{ReportError, Result};
use crate::load::{Job, Measurement, Mode};
use crate::modelled::Modelled;
use crate::record::Record;

/// Kernels that everything is measured on, and have figures to reach.
pub fn every_kernel() -> Vec<String> {
    KernelList::builtin().map_or_else(|_| Vec::new(), |list| list.tagged("every"))
}

/// Measures all cells of a job.
pub trait Lab: Sync {
    /// Gives one record per cell, in the job's order. `progress` hears of every finished cell. A
    /// cell of a mere bound ([`Mode::is_bound`](crate::load::Mode::is_bound)) may be lacking: a
    /// workload may not be able to run there.
    ///
    /// # Errors
    /// When any other cell could not be measured: half a job is no comparison.
    fn measure(&self, job: &Job, progress: &mut dyn luc_lab::Progress) -> Result<Vec<Record>>;
}

/// The real one: a stock kernel in a virtual machine on virtual time.
#[derive(Clone, Debug)]
pub struct StockLab {
    /// The program that becomes the guest's `luc`; this program itself by default.
    pub binary: Option<PathBuf>,
    /// A directory that holds the module's sources (`kmod`, `control`, `abi`).
    pub source: PathBuf,
    /// Host time that a machine may take, seconds.
    pub limit_s: u64,
}

impl StockLab {
    /// Runs a machine of this kernel and speed, with the module's file in its guest; `spec` makes
    /// the rest of it.
    ///
    /// # Errors
    /// It could not be run, a step failed, or the kernel log shows a problem.
    pub(crate) fn run(
        &self,
        kernel: &str,
        cpu_mips: u32,
        progress: &mut dyn luc_lab::Progress,
        spec: impl FnOnce(&mut dyn luc_lab::Progress) -> luc_lab::error::Result<RunSpec>,
    ) -> Result<RunResult> {
        let in_lab = |source| ReportError::Lab {
            kernel: kernel.to_owned(),
            cpu_mips,
            source,
        };
        let mut spec = spec(progress).map_err(in_lab)?;
        spec.cpu_mips = f64::from(cpu_mips);
        spec.timeout_host_s = self.limit_s;
        spec.binary.clone_from(&self.binary);
        // Stock cells come with the module in the guest, but not loaded.
        let module = luc_lab::build_module(&spec.kernels, kernel, &self.source, progress);
        spec.luc_module = Some(module.map_err(in_lab)?);
        let result = luc_lab::run(&spec, progress).map_err(in_lab)?;
        match result.failures().as_slice() {
            [] => Ok(result),
            [first, rest @ ..] => Err(ReportError::Failed {
                kernel: kernel.to_owned(),
                cpu_mips,
                first: first.clone(),
                more: rest.len(),
                log: keep(&result.kernel_log),
            }),
        }
    }
}

/// Puts a log where somebody can read it; who cannot write must do without.
fn keep(log: &str) -> Option<PathBuf> {
    let file = tempfile::Builder::new()
        .prefix("luc-kernel-")
        .suffix(".log")
        .tempfile();
    let (mut file, path) = file.ok()?.keep().ok()?;
    file.write_all(log.as_bytes()).ok()?;
    Some(path)
}

/// A machine that measures the cells of a job.
fn spec(job: &Job) -> luc_lab::error::Result<RunSpec> {
    let cells = job
        .cells
        .iter()
        .map(cell)
        .collect::<luc_lab::error::Result<_>>()?;
    let mut spec = RunSpec::new(&job.kernel, cells)?;
    spec.vcpus = job.vcpus;
    spec.virtual_time = job.virtual_time;
    let memory_mib = job.cells.iter().map(Measurement::memory_mib);
    spec.memory_mib = memory_mib.fold(spec.memory_mib, u32::max);
    Ok(spec)
}

impl Lab for StockLab {
    fn measure(&self, job: &Job, progress: &mut dyn luc_lab::Progress) -> Result<Vec<Record>> {
        let result = self.run(&job.kernel, job.cpu_mips, progress, |_| spec(job))?;
        let mut records = Vec::with_capacity(job.cells.len());
        for (measurement, cell) in job.cells.iter().zip(&result.report.cells) {
            if let Some(why) = gave_up(measurement, cell) {
                progress.note(&format!("{}: {why}", measurement.name()));
                continue;
            }
            let release = &result.report.kernel_release;
            records.push(record(job, measurement, cell, release)?);
        }
        Ok(records)
    }
}

fn cell(measurement: &Measurement) -> luc_lab::error::Result<Cell> {
    Ok(Cell {
        name: measurement.name(),
        disks: measurement.disk_specs()?,
        env: BTreeMap::new(),
        steps: measurement
            .steps()
            .0
            .into_iter()
            .map(|argv| Step {
                allow_failure: measurement.mode.is_bound(),
                ..Step::new(argv)
            })
            .collect(),
    })
}

/// Why a cell that need not be measured could not be.
fn gave_up(measurement: &Measurement, cell: &CellResult) -> Option<String> {
    if !measurement.mode.is_bound() {
        return None;
    }
    let failed = cell.steps.iter().find(|step| !step.success())?;
    let line = failed.stderr.lines().last().unwrap_or("failed");
    Some(line.to_owned())
}

/// Reads a cell's answer.
pub fn record(
    job: &Job,
    measurement: &Measurement,
    cell: &CellResult,
    kernel_release: &str,
) -> Result<Record> {
    let bad = |why: String| ReportError::BadOutput {
        kernel: job.kernel.clone(),
        cell: measurement.name(),
        why,
    };
    let (steps, bench) = measurement.steps();
    if cell.name != measurement.name() || cell.steps.len() != steps.len() {
        return Err(bad(format!(
            "cell {:?} came back with {} steps",
            cell.name,
            cell.steps.len()
        )));
    }
    let report = serde_json::from_str(&cell.steps[bench].stdout).map_err(|e| bad(e.to_string()))?;
    let model = if measurement.mode == Mode::Modelled {
        Some(Modelled::read(&cell.steps[bench + 1].stdout).map_err(bad)?)
    } else {
        None
    };
    let mut counters = BTreeMap::new();
    if measurement.mode.attached() {
        for line in cell.steps[bench + 1].stdout.lines() {
            let pair = line.split_once(' ');
            let pair = pair.and_then(|(name, value)| Some((name, value.parse().ok()?)));
            let (name, value) = pair.ok_or_else(|| bad(format!("counter {line:?}")))?;
            counters.insert(name.to_owned(), value);
        }
    }
    Ok(Record {
        kernel: job.kernel.clone(),
        kernel_release: kernel_release.to_owned(),
        cpu_mips: job.cpu_mips,
        vcpus: job.vcpus,
        cell: measurement.clone(),
        report,
        model,
        counters,
    })
}
