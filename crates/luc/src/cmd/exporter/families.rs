//! Which metrics there are, from a reading.

use luc_bpf::{Counts, Histogram, WAITS};
use luc_control::{Counter, CounterKind, counters};
use luc_trace::{Sight, SpanKind};

use super::text::{Family, Kind, Labels, Value};
use crate::sample::{JournalReading, ModuleReading, Reading};

/// Buckets of a histogram go from 66 us to 8.6 s, one for each power of two. They are always the same, as
/// a rate needs. Each is a series for each journal, and the tracer's own would be nine times as many.
const FIRST_LOG2: u32 = 16;
const LAST_LOG2: u32 = 33;

/// Every metric of a reading.
pub fn families(reading: &Reading) -> Vec<Family> {
    let mut all = vec![
        build_info(reading),
        attached(reading),
        single(
            "luc_tracer_lost_total",
            "events that the tracer lost: other totals are lower bounds",
            Kind::Counter,
            reading.lost.map(|lost| lost as f64),
        ),
    ];
    all.extend(traced(reading));
    all.extend(waits(reading));
    all.push(policy(reading));
    all.extend(counters().iter().map(|counter| of_module(counter, reading)));
    all
}

fn single(name: &str, help: &str, kind: Kind, value: Option<f64>) -> Family {
    let series = value.map(|value| (Labels::new(), Value::Number(value)));
    Family {
        name: name.into(),
        kind,
        help: help.into(),
        series: series.into_iter().collect(),
    }
}

/// A means that this host lacks is known to have no hook, so its series is there.
fn attached(reading: &Reading) -> Family {
    let series = reading.hooks.iter().map(|(means, hooks)| {
        let labels = vec![("means", means.clone())];
        (labels, Value::Number(*hooks as f64))
    });
    Family {
        name: "luc_tracer_attached".into(),
        kind: Kind::Gauge,
        help: "hooks that count syncs, commits and waits, by their means; no tracepoint: nothing is counted".into(),
        series: series.collect(),
    }
}

fn build_info(reading: &Reading) -> Family {
    let module = reading.module_version.clone().unwrap_or_default();
    let labels = vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("module_version", module),
    ];
    Family {
        name: "luc_build_info".into(),
        kind: Kind::Gauge,
        help: "always 1; versions of the exporter and of the loaded module".into(),
        series: vec![(labels, Value::Number(1.0))],
    }
}

/// How a journal is called: the kernel's name of the device, and where it is mounted first.
fn labels(journal: &JournalReading) -> Labels {
    let point = journal.mount_points.first();
    let point = point.map_or_else(String::new, |point| point.display().to_string());
    vec![("device", journal.name.clone()), ("mountpoint", point)]
}

/// Seconds of nanoseconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A metric of a journal's counts.
struct Row {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    value: fn(&Counts) -> Value,
    /// The spans that it is about, if they may be unseen.
    of: Option<SpanKind>,
}

const TRACED: [Row; 7] = [
    Row {
        name: "luc_journal_commits_total",
        help: "journal commits",
        kind: Kind::Counter,
        value: |counts| Value::Number(counts.commits as f64),
        of: None,
    },
    Row {
        name: "luc_journal_commit_seconds_total",
        help: "time that journal commits ran",
        kind: Kind::Counter,
        value: |counts| Value::Number(seconds(counts.commit_ns)),
        of: None,
    },
    Row {
        name: "luc_syncs_total",
        help: "fsync and fdatasync calls",
        kind: Kind::Counter,
        value: |counts| Value::Number(counts.syncs as f64),
        of: None,
    },
    Row {
        name: "luc_syncs_served_total",
        help: "fsync and fdatasync calls that waited for a commit",
        kind: Kind::Counter,
        value: |counts| Value::Number(sum(&counts.syncs_by_commits[1..])),
        of: None,
    },
    Row {
        name: "luc_syncs_late_total",
        help: "fsync and fdatasync calls that waited for two commits or more",
        kind: Kind::Counter,
        value: |counts| Value::Number(sum(&counts.syncs_by_commits[2..])),
        of: None,
    },
    Row {
        name: "luc_sync_duration_seconds",
        help: "time in fsync and fdatasync calls",
        kind: Kind::Histogram,
        value: |counts| buckets(&counts.sync_hist, counts.sync_ns),
        of: None,
    },
    Row {
        name: "luc_buffer_wait_duration_seconds",
        help: "time that operations slept because a commit was writing their metadata",
        kind: Kind::Histogram,
        value: |counts| buckets(&counts.wait_hist, counts.wait_ns[0]),
        of: Some(SpanKind::WaitBuffer),
    },
];

fn sum(numbers: &[u64]) -> f64 {
    numbers.iter().sum::<u64>() as f64
}

fn traced(reading: &Reading) -> impl Iterator<Item = Family> {
    // A series that is not there is unknown; one that is 0 is known to be nothing.
    let seen = |row: &&Row| row.of.is_none_or(|kind| Sight::sees(&reading.unseen, kind));
    TRACED.iter().filter(seen).map(|row| Family {
        name: row.name.into(),
        kind: row.kind,
        help: row.help.into(),
        series: reading
            .journals
            .iter()
            .filter_map(|one| Some((labels(one), (row.value)(one.counts.as_ref()?))))
            .collect(),
    })
}

fn buckets(hist: &Histogram, sum_ns: u64) -> Value {
    let bounds = (FIRST_LOG2..=LAST_LOG2).map(|log2| 1_u64 << log2);
    // Bounds of the tracer's buckets are among them all, and grow.
    let mut of_tracer = hist.buckets_ns().peekable();
    let mut below = 0;
    let cumulative = bounds.map(|bound| {
        while let Some((_, count)) = of_tracer.next_if(|(upper, _)| *upper <= bound) {
            below += count;
        }
        (seconds(bound), below)
    });
    Value::Buckets(cumulative.collect(), seconds(sum_ns), hist.total())
}

fn waits(reading: &Reading) -> [Family; 2] {
    let family = |name: &str, help: &str, value: fn(&Counts, usize) -> f64| Family {
        name: name.into(),
        kind: Kind::Counter,
        help: help.into(),
        series: reading
            .journals
            .iter()
            .filter_map(|one| Some((one, one.counts.as_ref()?)))
            .flat_map(|(one, counts)| {
                let kinds = WAITS.iter().enumerate();
                let seen = kinds.filter(|(_, kind)| Sight::sees(&reading.unseen, **kind));
                seen.map(move |(at, kind)| {
                    let mut labels = labels(one);
                    labels.push(("kind", kind.text().to_owned()));
                    (labels, Value::Number(value(counts, at)))
                })
            })
            .collect(),
    };
    [
        family(
            "luc_waits_total",
            "waits inside operations: for a buffer that a commit writes, a locked transaction, journal space",
            |counts, at| counts.waits[at] as f64,
        ),
        family(
            "luc_wait_seconds_total",
            "time in waits inside operations",
            |counts, at| seconds(counts.wait_ns[at]),
        ),
    ]
}

/// The journals that LUC is on for.
fn on(reading: &Reading) -> impl Iterator<Item = (&JournalReading, &ModuleReading)> {
    let all = reading.journals.iter();
    all.filter_map(|one| Some((one, one.module.as_ref()?)))
}

fn policy(reading: &Reading) -> Family {
    let series = on(reading).map(|(journal, module)| {
        let mut labels = labels(journal);
        labels.push(("policy", module.policy.clone()));
        labels.push(("mode", module.mode.clone()));
        (labels, Value::Number(1.0))
    });
    Family {
        name: "luc_policy_info".into(),
        kind: Kind::Gauge,
        help: "always 1; policy and mode of LUC where it is on".into(),
        series: series.collect(),
    }
}

/// The metric of a counter of the module: its name says the unit, `_ns` becomes seconds.
fn of_module(counter: &Counter, reading: &Reading) -> Family {
    let (stem, unit) = match counter.name.strip_suffix("_ns") {
        Some(stem) => (stem, "_seconds"),
        None => (counter.name, ""),
    };
    let (kind, suffix) = match counter.kind {
        CounterKind::Total => (Kind::Counter, "_total"),
        CounterKind::Max | CounterKind::Gauge => (Kind::Gauge, ""),
    };
    let scale = if unit.is_empty() { 1.0 } else { 1e9 };
    let series = on(reading).filter_map(|(journal, module)| {
        let value = module.counters.get(counter.name)?;
        Some((labels(journal), Value::Number(*value as f64 / scale)))
    });
    Family {
        name: format!("luc_{stem}{unit}{suffix}"),
        kind,
        help: counter.help.into(),
        series: series.collect(),
    }
}
