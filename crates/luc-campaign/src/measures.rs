//! Measures: numbers of an arm for tables and plots. Each measure is a row of [`ALL`].

use luc_power::machine::{Energy, MachineError, PowerModel};
use luc_report::show::number;
use luc_workload::{FsyncCostResult, Outcome};
use serde_json::Value;

use crate::cell::Cell;
use crate::error::did_you_mean;
use crate::result::ArmResult;

/// A number from an arm's result.
#[derive(Clone, Copy)]
pub struct Measure {
    pub name: &'static str,
    /// Description for the user.
    pub help: &'static str,
    pub of: fn(&ArmResult, &Cell) -> Option<f64>,
    pub form: fn(f64) -> String,
}

/// Every named measure; [`check`] also accepts paths.
pub const ALL: &[Measure] = &[
    Measure {
        name: "rate",
        help: "the benchmark's main figure: operations, files or bytes per second",
        of: |arm, _| arm.report.outcome.found().figures().main,
        form: number::three,
    },
    Measure {
        name: "bad_share",
        help: "share that the benchmark counts as bad: delayed writes, two commits, blocked calls",
        of: |arm, _| arm.report.outcome.found().figures().bad_share,
        form: number::percent,
    },
    Measure {
        name: "sync_mean_ms",
        help: "mean time of a sync call",
        of: |arm, _| syncs(arm, |syncs| syncs.mean_ns / 1e6),
        form: number::three,
    },
    Measure {
        name: "sync_p50_ms",
        help: "median time of a sync call",
        of: |arm, _| syncs(arm, |syncs| syncs.p50_ns as f64 / 1e6),
        form: number::three,
    },
    Measure {
        name: "sync_p99_ms",
        help: "99th percentile of the time of a sync call, of at least 1000",
        of: |arm, _| syncs(arm, |syncs| syncs.p99_ns as f64 / 1e6).filter(|_| enough_for_p99(arm)),
        form: number::three,
    },
    Measure {
        name: "syncs_per_s",
        help: "sync calls per second",
        of: |arm, _| per_second(arm, syncs(arm, |syncs| syncs.count as f64)?),
        form: number::three,
    },
    Measure {
        name: "commits_per_s",
        help: "journal commits per second",
        of: |arm, _| per_second(arm, arm.report.journal?.commits as f64),
        form: number::three,
    },
    Measure {
        name: "syncs_per_commit",
        help: "sync calls per journal commit",
        of: |arm, _| arm.report.fsyncs_per_commit,
        form: number::three,
    },
    Measure {
        name: "writes_delayed_share",
        help: "share of metadata changes that slept, as LUC counted them",
        of: |arm, _| {
            let count = |name| arm.counters.get(name).copied();
            let handles = count("handles").filter(|handles| *handles > 0)?;
            Some(count("writes_delayed")? as f64 / handles as f64)
        },
        form: number::percent,
    },
    Measure {
        name: "write_delay_mean_ms",
        help: "mean sleep of such a change, as LUC counted it",
        of: |arm, _| {
            let count = |name| arm.counters.get(name).copied();
            let delayed = count("writes_delayed").filter(|delayed| *delayed > 0)?;
            Some(count("write_delay_ns")? as f64 / delayed as f64 / 1e6)
        },
        form: number::three,
    },
    Measure {
        name: "two_commits_share",
        help: "share of sync calls that waited for two commits: recorded, or by burst or the simulator",
        of: |arm, _| recorded(arm, "two_commits_share").or_else(|| reported_two_commits_share(arm)),
        form: number::percent,
    },
    Measure {
        name: "write_calls_delayed_share",
        help: "recorded: share of write calls that waited for metadata being committed",
        of: |arm, _| recorded(arm, "writes_delayed_share"),
        form: number::percent,
    },
    Measure {
        name: "write_call_delay_mean_ms",
        help: "recorded: mean wait of such a call",
        of: |arm, _| Some(recorded(arm, "write_delay_mean_ns")? / 1e6),
        form: number::three,
    },
    Measure {
        name: "busy_share",
        help: "busy time of all processors over the time of the measurement",
        of: |arm, _| {
            let elapsed_ns = arm.report.cpu_elapsed_ns.unwrap_or(arm.report.elapsed_ns);
            share(arm.report.cpu_busy_ns, Some(elapsed_ns))
        },
        form: number::percent,
    },
    Measure {
        name: "user_share",
        help: "user time of all processors over the time of the measurement, by ticks",
        of: |arm, _| of_elapsed(arm, arm.report.cpu_user_ns?),
        form: number::percent,
    },
    Measure {
        name: "kernel_share",
        help: "kernel time of all processors over the time of the measurement, by ticks",
        of: |arm, _| of_elapsed(arm, arm.report.cpu_kernel_ns?),
        form: number::percent,
    },
    Measure {
        name: "instructions_per_cycle",
        help: "instructions per cycle of all processors, by their own counters",
        of: |arm, _| {
            share(
                arm.report.hardware?.instructions,
                arm.report.hardware?.cycles,
            )
        },
        form: number::three,
    },
    Measure {
        name: "cache_miss_share",
        help: "cache misses over cache references, by the processors' counters",
        of: |arm, _| {
            let hardware = arm.report.hardware?;
            share(hardware.cache_misses, hardware.cache_references)
        },
        form: number::percent,
    },
    Measure {
        name: "instructions_per_sync",
        help: "instructions of the whole machine for each sync call; in virtual time",
        of: |arm, cell| {
            let count = syncs(arm, |syncs| syncs.count as f64)?;
            Some(instructions(arm.report.cpu_busy_ns? as f64, cell)? / count)
        },
        form: number::whole,
    },
    Measure {
        name: "joules",
        help: "energy within the measurement, with `--energy`; the report names its boundary",
        of: |arm, _| energy(arm).map(|(joules, _)| joules),
        form: number::three,
    },
    Measure {
        name: "watts",
        help: "mean power within the measurement, idle power included",
        of: |arm, _| energy(arm).map(|(_, watts)| watts),
        form: number::three,
    },
    Measure {
        name: "ops_per_joule",
        help: "measured operations per joule",
        of: |arm, _| Some(arm.report.outcome.found().ops() as f64 / energy(arm)?.0),
        form: number::three,
    },
    Measure {
        name: "foretold_gain",
        help: "the gain in the main figure that `luc trace model` predicts for LUC",
        of: |arm, _| {
            let of = if matches!(arm.report.outcome, Outcome::WriteDelay(_)) {
                "writes_gain"
            } else {
                "gain"
            };
            let gain = arm
                .after
                .as_ref()?
                .pointer(&format!("/file_systems/0/what_if/luc/{of}"))?;
            gain.as_f64().filter(|gain| *gain > 0.0)
        },
        form: number::ratio,
    },
    Measure {
        name: "clean_instructions",
        help: "fsync-cost: instructions of an fsync that finds its data committed",
        of: |arm, cell| instructions(fsync_cost(arm)?.clean.usual_ns, cell),
        form: number::whole,
    },
    Measure {
        name: "committed_instructions",
        help: "fsync-cost: instructions of an fsync with its commit and the change before it",
        of: |arm, cell| instructions(fsync_cost(arm)?.committed.usual_ns, cell),
        form: number::whole,
    },
    Measure {
        name: "commit_instructions",
        help: "fsync-cost: instructions of the journal's thread for that commit",
        of: |arm, cell| instructions(fsync_cost(arm)?.commit.as_ref()?.usual_ns, cell),
        form: number::whole,
    },
    Measure {
        name: "buffer_instructions",
        help: "fsync-cost: instructions of the journal's thread for one more metadata buffer",
        of: |arm, cell| {
            let cost = fsync_cost(arm)?;
            // The times of large commits vary, so take the median.
            let large_ns = cost.commit_buffers.as_ref()?.median_ns as f64;
            let more = f64::from(cost.args.buffers.saturating_sub(1).max(1));
            instructions((large_ns - cost.commit.as_ref()?.usual_ns) / more, cell)
        },
        form: number::whole,
    },
];

/// Joules and watts, wherever they come from.
fn energy(arm: &ArmResult) -> Option<(f64, f64)> {
    let reading = arm.report.energy.as_ref()?.reading()?;
    Some((reading.joules, reading.watts))
}

/// A number from the table of `luc trace summary`, for the only file system.
fn recorded(arm: &ArmResult, field: &str) -> Option<f64> {
    let pointer = format!("/file_systems/0/table/{field}");
    arm.after.as_ref()?.pointer(&pointer)?.as_f64()
}

/// The share by the benchmark, which judges by times, or by the simulator, which sees the commits.
fn reported_two_commits_share(arm: &ArmResult) -> Option<f64> {
    if let Outcome::Burst(found) = &arm.report.outcome {
        return Some(found.two_commits_share);
    }
    let [_, one, two, more] = arm.report.syncs_by_commits?;
    share(Some(two + more), Some(one + two + more))
}

/// Divides a time by that of the measurement.
fn of_elapsed(arm: &ArmResult, ns: u64) -> Option<f64> {
    share(Some(ns), Some(arm.report.elapsed_ns))
}

fn share(part: Option<u64>, whole: Option<u64>) -> Option<f64> {
    let whole = whole.filter(|whole| *whole > 0)?;
    Some(part? as f64 / whole as f64)
}

fn fsync_cost(arm: &ArmResult) -> Option<&FsyncCostResult> {
    match &arm.report.outcome {
        Outcome::FsyncCost(result) => Some(result),
        _ => None,
    }
}

/// Converts busy time to instructions; `None` unless the place runs in virtual time.
fn instructions(busy_ns: f64, cell: &Cell) -> Option<f64> {
    let counted = cell.machine.get("time")? == "virtual";
    let mips: f64 = cell.machine.get("mips")?.parse().ok()?;
    counted.then_some(busy_ns * mips / 1000.0)
}

/// Fewest sync calls for a 99th percentile: of fewer, a few outliers decide it.
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

/// Prefixes of measures that are paths: JSON pointers into the benchmark's report or the output of
/// the command after it, and names of LUC's counters.
const PATHS: [&str; 3] = ["report:/", "after:/", "counter:"];

/// A number from the energy that a model of a machine gives, and the seconds that it took.
type Modelled = fn(&ArmResult, &Energy, f64) -> Option<f64>;

/// Measures that take a machine of the model behind a colon: `model_joules:r710:idle_w=50`.
const MODELLED: [(&str, Modelled); 5] = [
    ("model_joules", |_, energy, _| Some(energy.total_j())),
    ("model_millijoules_per_sync", |arm, energy, seconds| {
        let per_s = per_second(arm, syncs(arm, |syncs| syncs.count as f64)?)?;
        Some(1e3 * energy.total_j() / seconds / per_s)
    }),
    ("model_watts", |_, energy, seconds| {
        Some(energy.total_j() / seconds)
    }),
    ("model_processor_watts", |_, energy, seconds| {
        Some(energy.processors_j / seconds)
    }),
    ("model_ops_per_joule", |arm, energy, seconds| {
        let rate = arm.report.outcome.found().figures().main?;
        Some(rate * seconds / energy.total_j())
    }),
];

/// Splits such a measure: how to compute it, and the machine; `None` for any other measure.
fn modelled(name: &str) -> Option<(Modelled, Result<PowerModel, MachineError>)> {
    let (measure, machine) = name.split_once(':')?;
    let (_, of) = MODELLED.iter().find(|(known, _)| *known == measure)?;
    Some((*of, machine.parse()))
}

/// Checks that there is such a measure.
///
/// # Errors
/// There is none; suggests a similar name.
pub fn check(name: &str) -> Result<(), String> {
    if let Some((_, machine)) = modelled(name) {
        return machine
            .map(drop)
            .map_err(|error| format!("measure {name}: {error}"));
    }
    if find(name).is_some()
        || PATHS
            .iter()
            .any(|path| name.starts_with(path) && name.len() > path.len())
    {
        return Ok(());
    }
    let modelled = MODELLED.iter().map(|(measure, _)| *measure);
    let all = ALL.iter().map(|measure| measure.name).chain(modelled);
    let near = did_you_mean(name, all);
    Err(format!("no measure {name}{near}"))
}

fn find(name: &str) -> Option<&'static Measure> {
    ALL.iter().find(|measure| measure.name == name)
}

/// The value of a measure; `None` if it is not known.
pub fn value(name: &str, arm: &ArmResult, cell: &Cell) -> Option<f64> {
    if let Some(measure) = find(name) {
        return (measure.of)(arm, cell);
    }
    if let Some((of, machine)) = modelled(name) {
        let activity = arm
            .report
            .activity
            .as_ref()
            .filter(|it| it.elapsed_ns > 0)?;
        let seconds = activity.elapsed_ns as f64 / 1e9;
        return of(arm, &machine.ok()?.energy(activity), seconds);
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

/// Returns the function that formats a measure's values.
pub fn form(name: &str) -> fn(f64) -> String {
    find(name).map_or(number::three as fn(f64) -> String, |measure| measure.form)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::value;
    use crate::arms::builtin;
    use crate::cell::{Cell, NamedArm};
    use crate::places::sim::Sim;

    #[test]
    fn energy_is_a_number_only_with_a_reading() {
        let machine = [("vcpus", "1"), ("mips", "1000"), ("disk", "4ms:1")];
        let stock = NamedArm {
            name: "stock".to_owned(),
            arm: builtin()["stock"].clone(),
        };
        let cell = Cell {
            place: "sim".to_owned(),
            machine: BTreeMap::from(machine.map(|(k, v)| (k.to_owned(), v.to_owned()))),
            bench: "write-delay --seconds 0.5 {dir}".to_owned(),
            arms: vec![stock],
            repeat: 1,
            seed: 1,
        };
        let mut arm = Sim.simulate(&cell).unwrap().remove(0);
        let ops = value("report:/writes", &arm, &cell).unwrap();
        let reading = json!({
            "boundary": { "of": "packages_and_dram", "packages": 2 },
            "joules": 8.0, "elapsed_ns": 500_000_000, "watts": 16.0, "idle_watts": null,
        });
        for (energy, joules) in [
            (None, None),
            (Some(json!({ "unknown": "the meter ended" })), None),
            (Some(reading), Some(8.0)),
        ] {
            arm.report.energy = energy.map(|energy| serde_json::from_value(energy).unwrap());
            assert_eq!(value("joules", &arm, &cell), joules);
            assert_eq!(
                value("watts", &arm, &cell),
                joules.map(|joules| joules / 0.5)
            );
            let per_joule = joules.map(|joules| ops / joules);
            assert_eq!(value("ops_per_joule", &arm, &cell), per_joule);
        }
    }
}
