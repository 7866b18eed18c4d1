//! The state of LUC on a file system, and its counts there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use luc_control::{Knob, KnobKind, POLICY, knobs};
use luc_host::cgroup::format_knob;
use luc_host::health::Health;
use luc_host::journal::Journal;
use luc_host::sysfs::{self, Attached};
use luc_host::{HostError, System, stack};
use serde::Serialize;
use serde_json::Value;

use crate::trial::GuardFindings;

/// The state of a file system that LUC is on for.
#[derive(Serialize)]
pub struct AttachedStatus {
    pub name: String,
    pub device: String,
    pub mount_points: Vec<PathBuf>,
    /// Whether the file system takes writes; null if unknown.
    pub health: Health,
    pub knobs: BTreeMap<&'static str, Value>,
    pub counters: BTreeMap<&'static str, i64>,
    #[serde(rename = "derived")]
    pub ratios: Ratios,
    /// Why LUC holds no commit here; `None` if it may.
    pub holds_barred_by: Option<&'static str>,
    /// File systems with LUC on below this one.
    pub stacked_on: Vec<String>,
    /// The guard's findings, if it has watched this file system since LUC was switched on.
    pub guard: Option<GuardFindings>,
}

/// Means and shares of counters; `null` before the first event, or if the module lacks a counter.
#[derive(Serialize)]
pub struct Ratios {
    pub sync_events_per_commit: Option<f64>,
    commits_held_share: Option<f64>,
    held_avg_ns: Option<f64>,
    writes_delayed_share: Option<f64>,
    write_delay_avg_ns: Option<f64>,
}

impl Ratios {
    fn from_counters(counters: &BTreeMap<&'static str, i64>) -> Self {
        let ratio = |part, whole| {
            let (part, whole) = (*counters.get(part)?, *counters.get(whole)?);
            (whole > 0).then(|| part as f64 / whole as f64)
        };
        Self {
            sync_events_per_commit: ratio("sync_events", "commits"),
            commits_held_share: ratio("commits_held", "commits"),
            held_avg_ns: ratio("held_ns", "commits_held"),
            writes_delayed_share: ratio("writes_delayed", "handles"),
            write_delay_avg_ns: ratio("write_delay_ns", "writes_delayed"),
        }
    }
}

impl AttachedStatus {
    /// Reads the status of one of `all` file systems with LUC on.
    pub fn read(
        system: &dyn System,
        attached: &Attached,
        all: &[Attached],
        journal: Option<(&Journal, Health)>,
    ) -> Result<Self, HostError> {
        let mut shown = BTreeMap::new();
        for knob in knobs() {
            let value = sysfs::knob_value(system, attached, knob)?;
            shown.insert(knob.name, knob_json(system, knob, value));
        }
        shown.insert(POLICY, sysfs::policy(system, attached).into());
        let counters = sysfs::counter_values(system, attached);
        let (journal, health) = journal.unzip();
        let health = health.unwrap_or_default();
        Ok(Self {
            name: attached.name.clone(),
            device: attached.device.to_string(),
            mount_points: journal.map_or_else(Vec::new, |one| one.mount_points.clone()),
            health,
            knobs: shown,
            ratios: Ratios::from_counters(&counters),
            counters,
            holds_barred_by: journal.and_then(Journal::holds_barred_by),
            stacked_on: stack::attached_below(system, attached.device, all)?,
            guard: GuardFindings::read(system, attached),
        })
    }

    /// A counter; an older module may not have it.
    pub fn count(&self, name: &str) -> Option<i64> {
        self.counters.get(name).copied()
    }

    /// The word of a knob, or `?`.
    pub fn word(&self, knob: &str) -> &str {
        self.knobs.get(knob).and_then(Value::as_str).unwrap_or("?")
    }
}

/// A knob's value in JSON: a word, a boolean, a number or the path of a control group.
pub fn knob_json(system: &dyn System, knob: &Knob, value: i64) -> Value {
    match knob.kind {
        KnobKind::Enum(_) => knob.format(value).into(),
        KnobKind::Bool => (value != 0).into(),
        KnobKind::Int => value.into(),
        KnobKind::Cgroup => format_knob(system, knob, value).into(),
    }
}
