//! Totals at one moment.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use luc_bpf::{Counts, GoingOn, TaskCounts};
use luc_control::Dev;
use luc_host::System;
use luc_host::health::Health;
use luc_host::sysfs::{self, Attached};
use luc_power::meter::Sample;
use luc_trace::{Process, Unseen};
use serde::Serialize;

use super::groups::GroupTotals;

/// Everything that could be read at one moment.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Time since the sampler began.
    pub at: Duration,
    pub module_version: Option<String>,
    pub module_loaded: bool,
    /// Sources that are missing, one line each.
    pub lacks: Vec<String>,
    /// Kinds of events that the tracer does not see: their counts of 0 mean nothing.
    pub unseen: Unseen,
    /// Number of the tracer's hooks by means; 0 each without a tracer.
    pub hooks: BTreeMap<String, usize>,
    /// Number of the tracer that counted: totals of two tracers cannot be compared.
    pub generation: Option<u32>,
    pub lost: Option<u64>,
    /// The meter of energy, or why there is none; `None` if nobody asked for it.
    pub energy: Option<Result<Sample, String>>,
    /// The journals, in the order of their mounts.
    pub journals: Vec<JournalReading>,
    /// The processes, by process ID.
    pub processes: BTreeMap<u32, ProcessReading>,
    /// The control groups; `None` if unknown, or if nobody asked for them.
    pub groups: Option<GroupTotals>,
}

impl Reading {
    /// Drops the tracer's counts: a tracer that has only just started has counted nothing, which
    /// must not look as if nothing happened.
    pub fn forget_traced(&mut self) {
        self.lost = None;
        self.groups = None;
        for journal in &mut self.journals {
            journal.counts = None;
            journal.waiting = None;
        }
    }
}

#[derive(Clone, Debug)]
pub struct JournalReading {
    pub device: Dev,
    /// The kernel's name of the device.
    pub name: String,
    /// `ext4` or `ext3`.
    pub kind: String,
    pub mount_points: Vec<PathBuf>,
    pub health: Health,
    pub counts: Option<Counts>,
    /// Syncs that were going on; `None` if unknown.
    pub waiting: Option<WaitingSyncs>,
    /// Fast commits since the mount, which no tracer sees; `None` if the kernel does not count
    /// them.
    pub fast_commits: Option<u64>,
    /// The module's counters and knobs, if LUC is on.
    pub module: Option<ModuleReading>,
}

/// The syncs of a journal that are going on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WaitingSyncs {
    pub syncs: u64,
    /// How long the oldest has lasted, at least; 0 if there is none.
    pub longest_ns: u64,
}

impl WaitingSyncs {
    pub(super) fn new(going_on: &GoingOn, now_ns: u64) -> Self {
        let begin_ns = going_on.oldest_begin_ns.unwrap_or(now_ns);
        Self {
            syncs: going_on.syncs,
            longest_ns: now_ns.saturating_sub(begin_ns),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ProcessReading {
    pub process: Process,
    pub counts: TaskCounts,
}

/// The contents of the module's files of a file system.
#[derive(Clone, Debug, Default)]
pub struct ModuleReading {
    /// The policy, as `luc set` spells it.
    pub policy: String,
    /// `steer` or `observe`.
    pub mode: String,
    /// The set point that was asked for; 0 is automatic.
    pub setpoint_asked: Option<i64>,
    pub counters: BTreeMap<&'static str, i64>,
}

impl ModuleReading {
    /// Reads the files; `None` if LUC is switched off meanwhile.
    pub(super) fn read(system: &dyn System, attached: &Attached) -> Option<Self> {
        let counters = sysfs::counter_values(system, attached);
        if counters.is_empty() {
            return None;
        }
        Some(ModuleReading {
            policy: sysfs::policy(system, attached).into(),
            // A newer module may have a word that this build does not know.
            mode: sysfs::knob_word(system, attached, "mode").unwrap_or_else(|| "?".into()),
            setpoint_asked: sysfs::knob_word(system, attached, "setpoint_events")
                .and_then(|events| events.parse().ok()),
            counters,
        })
    }

    /// A counter; `None` if the module does not have it.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.counters.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_sync_that_goes_on_has_lasted_longest() {
        let of = |syncs, oldest_begin_ns| {
            let going_on = GoingOn {
                syncs,
                oldest_begin_ns,
            };
            let waiting = WaitingSyncs::new(&going_on, 12_000);
            (waiting.syncs, waiting.longest_ns)
        };
        assert_eq!(of(2, Some(9_000)), (2, 3_000));
        assert_eq!(of(0, None), (0, 0));
        // It began while the clock was read.
        assert_eq!(of(1, Some(12_001)), (1, 0));
    }
}
