//! The results of measuring a cell.

use std::collections::BTreeMap;

use luc_workload::BenchReport;
use serde::{Deserialize, Serialize};

/// The results of one arm of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmResult {
    pub arm: String,
    pub report: BenchReport,
    /// LUC's counters from its attach to the end of the benchmark; empty if it was not attached.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, i64>,
    /// The output of the command after the benchmark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<serde_json::Value>,
}

/// The results of a cell's arms.
#[derive(Clone, Debug)]
pub struct Measured {
    /// `uname -r` where it was measured.
    pub kernel_release: String,
    /// In the order of the cell's arms; a bound that could not be measured is left out.
    pub arms: Vec<ArmResult>,
}
