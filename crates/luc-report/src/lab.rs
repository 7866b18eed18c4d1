//! Virtual machines of the campaign of power cuts.

use std::io::Write as _;
use std::path::PathBuf;

use luc_vm::{RunResult, RunSpec};

use crate::error::{ReportError, Result};

/// A stock kernel in a virtual machine on virtual time.
#[derive(Clone, Debug)]
pub struct StockLab {
    /// The program that becomes the guest's `luc`; this program itself by default.
    pub luc_lab: Option<PathBuf>,
    /// A directory that holds the module's sources (`kmod`, `control`, `abi`).
    pub source: PathBuf,
    /// Limit of host time for one machine, seconds.
    pub limit_s: u64,
}

impl StockLab {
    /// Runs a machine of this kernel and speed, with the module's file in its guest; `spec`
    /// describes the rest of the machine.
    ///
    /// # Errors
    /// The machine could not be run, a step failed, or the kernel log shows a problem.
    pub(crate) fn run(
        &self,
        kernel: &str,
        cpu_mips: u32,
        progress: &mut dyn luc_vm::Progress,
        spec: impl FnOnce(&mut dyn luc_vm::Progress) -> luc_vm::error::Result<RunSpec>,
    ) -> Result<RunResult> {
        let in_lab = |source| ReportError::Lab {
            kernel: kernel.to_owned(),
            cpu_mips,
            source,
        };
        let mut spec = spec(progress).map_err(in_lab)?;
        spec.cpu_mips = f64::from(cpu_mips);
        spec.timeout_host_s = self.limit_s;
        spec.luc_lab.clone_from(&self.luc_lab);
        let module = luc_vm::build_module(&spec.kernels, kernel, &self.source, progress);
        spec.luc_module = Some(module.map_err(in_lab)?);
        let result = luc_vm::run(&spec, progress).map_err(in_lab)?;
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
