//! The host's orders to the guest, and the guest's answer. Both sides are the same build, so the
//! formats carry no compatibility rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::disk::DiskSpec;
use crate::error::LabError;

/// Path of the plan in the guest.
pub const PLAN_PATH: &str = "/luc-plan.json";
/// Report inside the guest's archive.
pub(crate) const REPORT_NAME: &str = "report.json";
/// Kernel log inside the guest's archive.
pub(crate) const KERNEL_LOG_NAME: &str = "kernel.log";
/// Prefix of result files inside the guest's archive.
pub(crate) const OUT_PREFIX: &str = "out/";

/// A kernel module to load before the first cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleLoad {
    /// Path in the guest.
    pub path: String,
    /// Module parameters, as after `insmod FILE`.
    pub params: String,
}

/// The guest's work, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Loaded one after the other; the first that fails ends the run.
    pub modules: Vec<ModuleLoad>,
    /// Virtual nanoseconds of sleep before the first cell: the kernel finishes its late start-up
    /// work meanwhile.
    pub settle_ns: u64,
    /// Whether to tell the host every second what a step puts out.
    pub tells_output: bool,
    /// Experiments, each on fresh disks.
    pub cells: Vec<Cell>,
}

/// One experiment: fresh disks, then steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Cell {
    /// Name, unique in the run; letters, digits and `._=+-@,`, at most 100.
    pub name: String,
    /// Disks, made, formatted and mounted at /mnt/0, /mnt/1 ... in this order.
    #[serde(default)]
    pub disks: Vec<DiskSpec>,
    /// Added to the environment of every step.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Steps, run one after the other; the first that fails ends the cell, unless it may fail.
    pub steps: Vec<Step>,
}

/// One command of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Step {
    /// Program and arguments; the program is looked up in the guest's PATH.
    pub argv: Vec<String>,
    /// Limit in seconds of virtual time; `None`: only the host's own limit applies.
    #[serde(default)]
    pub timeout_s: Option<u64>,
    /// Whether the cell continues if this step fails.
    #[serde(default)]
    pub allow_failure: bool,
}

impl Step {
    /// A step that must succeed, without a limit.
    pub fn new<I, S>(argv: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Exit code.
    Exited(i32),
    /// Killed by this signal.
    Signaled(i32),
    /// Killed by the lab at its limit.
    TimedOut,
    /// Never ran; the reason.
    NotStarted(String),
}

/// Result of a step. Times are the guest's `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepResult {
    pub argv: Vec<String>,
    pub status: Status,
    /// Virtual time at its start, in nanoseconds since boot.
    pub begin_ns: u64,
    /// Virtual time at its end, in nanoseconds since boot.
    pub end_ns: u64,
    /// Standard output, at most [`OUTPUT_BYTES_MAX`].
    pub stdout: String,
    /// Standard error, at most [`OUTPUT_BYTES_MAX`].
    pub stderr: String,
    /// Bytes of both that did not fit.
    pub dropped_bytes: u64,
    pub allow_failure: bool,
}

/// Most bytes kept of each output of a step.
pub const OUTPUT_BYTES_MAX: u64 = 8 << 20;

impl StepResult {
    /// Whether the command ran and exited with 0.
    pub fn success(&self) -> bool {
        self.status == Status::Exited(0)
    }
}

/// Result of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellResult {
    pub name: String,
    /// Failure of the lab itself in making, mounting or removing a disk.
    pub error: Option<String>,
    /// Steps that were reached.
    pub steps: Vec<StepResult>,
}

impl CellResult {
    /// Whether the lab's own work and every step that must succeed succeeded.
    pub fn success(&self) -> bool {
        self.error.is_none() && self.steps.iter().all(|s| s.allow_failure || s.success())
    }
}

/// The guest's whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestReport {
    /// `uname -r`.
    pub kernel_release: String,
    /// Clock the kernel chose.
    pub clocksource: String,
    /// Virtual time at the first cell, in nanoseconds since boot.
    pub ready_ns: u64,
    /// The failure that stopped the run before its cells.
    pub error: Option<String>,
    /// Cells in the plan's order.
    pub cells: Vec<CellResult>,
    /// Result files that did not fit into the answer.
    pub files_dropped: Vec<String>,
}

/// Checks a list of cells before a machine is started for them.
///
/// # Errors
/// [`LabError::BadInput`] names the cell and the reason.
pub fn check_cells(cells: &[Cell]) -> Result<(), LabError> {
    if cells.is_empty() {
        let why = "there is nothing to run: give at least one cell";
        return Err(LabError::bad_input("run", why));
    }
    let mut names = std::collections::BTreeSet::new();
    for cell in cells {
        let bad = |why: &str| Err(LabError::bad_input(format!("cell {:?}", cell.name), why));
        let legal = |c: char| c.is_ascii_alphanumeric() || "._=+-@,".contains(c);
        if cell.name.is_empty()
            || cell.name.len() > 100
            || cell.name.starts_with('.')
            || !cell.name.chars().all(legal)
        {
            return bad(
                "a name must be 1 to 100 letters, digits or ._=+-@, and must not begin with a dot",
            );
        }
        if !names.insert(&cell.name) {
            return bad("the name is used twice");
        }
        if cell.steps.is_empty() || cell.steps.iter().any(|s| s.argv.is_empty()) {
            return bad("every cell needs steps, and every step a command");
        }
        let has_nul = |text: &String| text.contains('\0');
        let bad_name = |name: &String| name.is_empty() || name.contains('=') || has_nul(name);
        if cell.steps.iter().any(|s| s.argv.iter().any(has_nul))
            || cell
                .env
                .iter()
                .any(|(name, value)| bad_name(name) || has_nul(value))
        {
            return bad(
                "commands and environment must not contain NUL bytes, and variable names must not \
                 contain '='",
            );
        }
        if cell.disks.len() > 32 {
            return bad("at most 32 disks");
        }
        for disk in &cell.disks {
            disk.check()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(name: &str) -> Cell {
        Cell {
            name: name.into(),
            steps: vec![Step::new(["true"])],
            ..Cell::default()
        }
    }

    #[test]
    fn good_cells_pass() {
        check_cells(&[cell("a"), cell("4ms@1,luc-n=16")]).unwrap();
    }

    #[test]
    fn bad_cells_are_named() {
        let mut no_step = cell("x");
        no_step.steps.clear();
        let mut nul = cell("x");
        nul.steps[0].argv.push("a\0b".into());
        let mut deep = cell("x");
        deep.disks.push(DiskSpec::new(1, 5000));
        for cells in [
            vec![],
            vec![cell("")],
            vec![cell("../up")],
            vec![cell("a/b")],
            vec![cell("a"), cell("a")],
            vec![no_step],
            vec![nul],
            vec![deep],
        ] {
            let error = check_cells(&cells).unwrap_err().to_string();
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
