//! What tables and plots can show of an arm. A measure is a row.

use luc_report::show::number;
use serde_json::Value;

use crate::error::did_you_mean;
use crate::store::ArmResult;

/// Something measured.
#[derive(Clone, Copy)]
pub struct Measure {
    pub name: &'static str,
    /// For people.
    pub help: &'static str,
    pub of: fn(&ArmResult) -> Option<f64>,
    pub form: fn(f64) -> String,
}

/// Every measure but those of [`found`].
pub const ALL: &[Measure] = &[
    Measure {
        name: "rate",
        help: "the benchmark's main figure: operations, files or bytes per second",
        of: |arm| arm.report.outcome.found().figures().main,
        form: number::figure,
    },
    Measure {
        name: "bad_share",
        help: "share that the benchmark calls bad: writes delayed, two commits, blocked",
        of: |arm| arm.report.outcome.found().figures().bad_share,
        form: number::percent,
    },
    Measure {
        name: "sync_mean_ms",
        help: "mean time of a sync call",
        of: |arm| syncs(arm, |syncs| syncs.mean_ns / 1e6),
        form: number::figure,
    },
    Measure {
        name: "sync_p50_ms",
        help: "median time of a sync call",
        of: |arm| syncs(arm, |syncs| syncs.p50_ns as f64 / 1e6),
        form: number::figure,
    },
    Measure {
        name: "sync_p99_ms",
        help: "99th percentile of the time of a sync call, of at least 1000",
        of: |arm| syncs(arm, |syncs| syncs.p99_ns as f64 / 1e6).filter(|_| enough_for_p99(arm)),
        form: number::figure,
    },
    Measure {
        name: "syncs_per_s",
        help: "sync calls per second",
        of: |arm| per_second(arm, syncs(arm, |syncs| syncs.count as f64)?),
        form: number::figure,
    },
    Measure {
        name: "commits_per_s",
        help: "journal commits per second",
        of: |arm| per_second(arm, arm.report.journal?.commits as f64),
        form: number::figure,
    },
    Measure {
        name: "syncs_per_commit",
        help: "sync calls per journal commit",
        of: |arm| arm.report.fsyncs_per_commit,
        form: number::figure,
    },
    Measure {
        name: "writes_delayed_share",
        help: "share of metadata changes that slept, by LUC's own count",
        of: |arm| {
            let count = |name| arm.counters.get(name).copied();
            let handles = count("handles").filter(|handles| *handles > 0)?;
            Some(count("writes_delayed")? as f64 / handles as f64)
        },
        form: number::percent,
    },
    Measure {
        name: "write_delay_mean_ms",
        help: "mean sleep of such a change, by LUC's own count",
        of: |arm| {
            let count = |name| arm.counters.get(name).copied();
            let delayed = count("writes_delayed").filter(|delayed| *delayed > 0)?;
            Some(count("write_delay_ns")? as f64 / delayed as f64 / 1e6)
        },
        form: number::figure,
    },
    Measure {
        name: "busy_share",
        help: "busy time of all processors over the time of the measurement",
        of: |arm| {
            let elapsed_ns = arm.report.elapsed_ns as f64;
            (elapsed_ns > 0.0).then_some(arm.report.cpu_busy_ns? as f64 / elapsed_ns)
        },
        form: number::percent,
    },
];

/// Of fewer syncs the 99th percentile is the second longest or so.
const P99_SYNCS_MIN: u64 = 1000;

fn enough_for_p99(arm: &ArmResult) -> bool {
    let found = arm.report.outcome.found();
    found
        .figures()
        .syncs
        .is_some_and(|syncs| syncs.count >= P99_SYNCS_MIN)
}

fn syncs(arm: &ArmResult, figure: fn(&luc_workload::Latency) -> f64) -> Option<f64> {
    let found = arm.report.outcome.found();
    found
        .figures()
        .syncs
        .filter(|syncs| syncs.count > 0)
        .map(figure)
}

fn per_second(arm: &ArmResult, count: f64) -> Option<f64> {
    let seconds = arm.report.elapsed_ns as f64 / 1e9;
    (seconds > 0.0).then(|| count / seconds)
}

/// Measures that are paths: a number of the benchmark's report or of the answer of the command
/// behind it, by JSON pointer, or one of LUC's counters.
const PATHS: [&str; 3] = ["report:/", "after:/", "counter:"];

/// Whether there is such a measure.
///
/// # Errors
/// There is none; says which was meant.
pub fn check(name: &str) -> Result<(), String> {
    if find(name).is_some()
        || PATHS
            .iter()
            .any(|path| name.starts_with(path) && name.len() > path.len())
    {
        return Ok(());
    }
    let near = did_you_mean(name, ALL.iter().map(|measure| measure.name));
    Err(format!("no measure {name}{near}"))
}

fn find(name: &str) -> Option<&'static Measure> {
    ALL.iter().find(|measure| measure.name == name)
}

/// The value of a measure; `None` where it is not known.
pub fn of(name: &str, arm: &ArmResult) -> Option<f64> {
    if let Some(measure) = find(name) {
        return (measure.of)(arm);
    }
    let at = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_f64);
    if let Some(pointer) = name.strip_prefix("report:") {
        return at(&serde_json::to_value(&arm.report).ok()?, pointer);
    }
    if let Some(pointer) = name.strip_prefix("after:") {
        return at(arm.after.as_ref()?, pointer);
    }
    let counter = name.strip_prefix("counter:")?;
    arm.counters.get(counter).map(|count| *count as f64)
}

/// How a measure's values are written.
pub fn form(name: &str) -> fn(f64) -> String {
    find(name).map_or(number::figure as fn(f64) -> String, |measure| measure.form)
}
