//! The lab that measures, or in tests a stand-in that answers as the lab would.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use luc_lab::{Cell, CellResult, RunResult, RunSpec, Step};

use super::modelled::Modelled;
use super::record::Record;
use crate::error::{ReportError, Result};
use crate::plan::arm::Arm;
use crate::plan::load::{Job, Measurement};

/// Measures all cells of a job.
pub trait Lab: Sync {
    /// One record per cell, in the job's order. `progress` is called for every finished cell. A
    /// cell of a mere bound ([`Arm::is_bound`]) may be missing: some workloads cannot run there.
    ///
    /// # Errors
    /// Any other cell could not be measured: half a job is no comparison.
    fn measure(&self, job: &Job, progress: &mut dyn luc_lab::Progress) -> Result<Vec<Record>>;
}

/// The real lab: a stock kernel in a virtual machine on virtual time.
#[derive(Clone, Debug)]
pub struct StockLab {
    /// The program that becomes the guest's `luc`; this program itself by default.
    pub binary: Option<PathBuf>,
    /// A directory that holds the module's sources (`kmod`, `control`, `abi`).
    pub source: PathBuf,
    /// Limit of host time for one machine, seconds.
    pub limit_s: u64,
}

impl StockLab {
    /// Runs a machine of this kernel and speed, with the module's file in its guest; `spec` describes
    /// the rest of the machine.
    ///
    /// # Errors
    /// The machine could not be run, a step failed, or the kernel log shows a problem.
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

/// Keeps a log in a file for the user, if it can be written.
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
    let cells: luc_lab::error::Result<_> = job.cells.iter().map(cell).collect();
    let mut spec = RunSpec::new(&job.kernel, cells?)?;
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
    let step = |argv| Step {
        allow_failure: measurement.arm.is_bound(),
        ..Step::new(argv)
    };
    Ok(Cell {
        name: measurement.name(),
        disks: measurement.disk_specs()?,
        env: BTreeMap::new(),
        steps: measurement.steps().0.into_iter().map(step).collect(),
    })
}

/// Why a mere bound could not be measured.
fn gave_up(measurement: &Measurement, cell: &CellResult) -> Option<String> {
    if !measurement.arm.is_bound() {
        return None;
    }
    let failed = cell.steps.iter().find(|step| !step.success())?;
    let line = failed.stderr.lines().last().unwrap_or("failed");
    Some(line.to_owned())
}

/// Parses a cell's answer.
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
    let modelled = measurement.arm == Arm::Modelled;
    let model = modelled.then(|| Modelled::read(&cell.steps[bench + 1].stdout));
    let model = model.transpose().map_err(bad)?;
    let mut counters = BTreeMap::new();
    if measurement.arm.attached() {
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
