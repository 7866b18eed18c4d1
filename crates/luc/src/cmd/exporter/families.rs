//! The metrics of a reading.

use luc_bpf::{Counts, Histogram, TaskCounts};
use luc_control::{Counter, CounterKind, Dev, counters};
use luc_host::FAULTS;
use luc_power::meter::Sample;
use luc_trace::{Sight, SpanKind};

use super::text::{Family, Kind, Labels, Value};
use luc_watch::sample::{JournalReading, ModuleReading, Reading, WaitingSyncs};

/// Histogram buckets go from 66 us to 8.6 s, one per power of two. They never change, because a
/// rate needs constant buckets. Each is a series per journal; the tracer's own buckets would be
/// nine times as many.
const FIRST_LOG2: u32 = 16;
const LAST_LOG2: u32 = 33;

pub fn families(reading: &Reading) -> Vec<Family> {
    let mut all = vec![
        build_info(reading),
        faults(reading),
        attached(reading),
        Family::new(
            "luc_tracer_lost_total",
            Kind::Counter,
            "events that the tracer lost: other totals are lower bounds",
            reading
                .lost
                .map(|lost| (Labels::new(), Value::Number(lost as f64))),
        ),
    ];
    all.push(fast_commits(reading));
    all.extend(traced(reading));
    all.extend(waits(reading));
    all.extend(waiting(reading));
    all.extend(groups(reading));
    all.push(policy(reading));
    all.extend(counters().iter().map(|counter| of_module(counter, reading)));
    all
}

/// Hooks by means. A means that this host lacks has a series of 0, as it is known to have none.
fn attached(reading: &Reading) -> Family {
    let series = reading.hooks.iter().map(|(means, hooks)| {
        let labels = vec![("means", means.clone())];
        (labels, Value::Number(*hooks as f64))
    });
    Family::new(
        "luc_tracer_attached",
        Kind::Gauge,
        "hooks that count syncs, commits and waits, for each means; without a tracepoint nothing \
         is counted",
        series,
    )
}

/// Each journal has a series per fault; an absent series means unknown.
fn faults(reading: &Reading) -> Family {
    let known = reading.journals.iter();
    let known = known.filter_map(|journal| Some((journal, journal.health.word()?)));
    let series = known.flat_map(|(journal, word)| {
        FAULTS.map(|fault| {
            let mut labels = labels(journal);
            labels.push(("fault", fault.to_owned()));
            (labels, Value::Number(f64::from(u8::from(fault == word))))
        })
    });
    Family::new(
        "luc_file_system_fault",
        Kind::Gauge,
        "1 if the file system takes no writes for this reason: journal aborted, shut down, writes \
         refused after an error, a device suspended or halted, frozen, or a fault of the file \
         system that holds its file",
        series,
    )
}

fn build_info(reading: &Reading) -> Family {
    let module = reading.module_version.clone().unwrap_or_default();
    let labels = vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("module_version", module),
    ];
    Family::new(
        "luc_build_info",
        Kind::Gauge,
        "always 1; versions of the exporter and of the loaded module",
        vec![(labels, Value::Number(1.0))],
    )
}

/// A journal's labels: the kernel's name of its device, and its first mount point.
pub(super) fn labels(journal: &JournalReading) -> Labels {
    let point = journal.mount_points.first();
    let point = point.map_or_else(String::new, |point| point.display().to_string());
    vec![("device", journal.name.clone()), ("mountpoint", point)]
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A total of a journal's counts: name, help, value.
type Total = (&'static str, &'static str, fn(&Counts) -> f64);

const TOTALS: [Total; 5] = [
    (
        "luc_journal_commits_total",
        "journal commits, traced",
        |counts| counts.commits as f64,
    ),
    (
        "luc_journal_commit_seconds_total",
        "time spent in journal commits",
        |counts| seconds(counts.commit_ns),
    ),
    ("luc_syncs_total", "fsync and fdatasync calls", |counts| {
        counts.syncs as f64
    }),
    (
        "luc_syncs_served_total",
        "fsync and fdatasync calls that waited for a commit",
        |counts| sum(&counts.syncs_by_commits[1..]),
    ),
    (
        "luc_syncs_late_total",
        "fsync and fdatasync calls that waited for two commits or more",
        |counts| sum(&counts.syncs_by_commits[2..]),
    ),
];

fn sum(numbers: &[u64]) -> f64 {
    numbers.iter().sum::<u64>() as f64
}

fn traced(reading: &Reading) -> Vec<Family> {
    let family = |name: &str, kind, help: &str, value: &dyn Fn(&Counts) -> Value| {
        let journals = reading.journals.iter();
        let series = journals.filter_map(|one| Some((labels(one), value(one.counts.as_ref()?))));
        Family::new(name, kind, help, series)
    };
    let total = |(name, help, value): &Total| {
        family(name, Kind::Counter, help, &|counts| {
            Value::Number(value(counts))
        })
    };
    let mut all: Vec<Family> = TOTALS.iter().map(total).collect();
    all.push(family(
        "luc_sync_duration_seconds",
        Kind::Histogram,
        "time in fsync and fdatasync calls",
        &|counts| buckets(&counts.sync_hist, counts.sync_ns),
    ));
    // An absent series means unknown; a series of 0 means that nothing happened.
    if Sight::sees(&reading.unseen, SpanKind::WaitBuffer) {
        all.push(family(
            "luc_buffer_wait_duration_seconds",
            Kind::Histogram,
            "time that operations slept because a commit was writing their metadata",
            &|counts| buckets(&counts.wait_hist, counts.wait_ns[0]),
        ));
    }
    all
}

fn buckets(hist: &Histogram, sum_ns: u64) -> Value {
    let bounds = (FIRST_LOG2..=LAST_LOG2).map(|log2| 1_u64 << log2);
    // Each bound is also one of the tracer's, which ascend, so no bucket is split.
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
    let family = |name: &str, help: &str, value: fn(&Counts, usize) -> f64| {
        let seen = SpanKind::WAITS.iter().enumerate();
        let seen = seen.filter(|(_, kind)| Sight::sees(&reading.unseen, **kind));
        let counted = reading.journals.iter();
        let counted = counted.filter_map(|one| Some((one, one.counts.as_ref()?)));
        let series = counted.flat_map(|(one, counts)| {
            seen.clone().map(move |(at, kind)| {
                let mut labels = labels(one);
                labels.push(("kind", kind.text().to_owned()));
                (labels, Value::Number(value(counts, at)))
            })
        });
        Family::new(name, Kind::Counter, help, series)
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

/// Another count than that of the module, which begins when LUC is switched on.
fn fast_commits(reading: &Reading) -> Family {
    let counted = reading.journals.iter();
    let series = counted.filter_map(|one| {
        let number = one.fast_commits? as f64;
        Some((labels(one), Value::Number(number)))
    });
    Family::new(
        "luc_journal_fast_commits_total",
        Kind::Counter,
        "fast commits since the mount, by ext4's own count; no other series has them",
        series,
    )
}

fn waiting(reading: &Reading) -> [Family; 2] {
    let family = |name: &str, help: &str, value: fn(&WaitingSyncs) -> f64| {
        let journals = reading.journals.iter();
        let series = journals.filter_map(|one| {
            let waiting = one.waiting.as_ref()?;
            Some((labels(one), Value::Number(value(waiting))))
        });
        Family::new(name, Kind::Gauge, help, series)
    };
    [
        family(
            "luc_syncs_waiting",
            "fsync and fdatasync calls that are going on",
            |waiting| waiting.syncs as f64,
        ),
        family(
            "luc_sync_waiting_seconds_max",
            "how long the oldest of these calls has lasted, at least",
            |waiting| seconds(waiting.longest_ns),
        ),
    ]
}

/// The label of the groups that have no total of their own; a path begins with a slash.
pub(super) const OTHERS: &str = "others";

/// Sums over all journals, as more labels would be too many series.
fn groups(reading: &Reading) -> Vec<Family> {
    let family = |name: &str, help: &str, value: fn(&TaskCounts) -> f64| {
        let groups = reading.groups.iter().flat_map(|groups| {
            let shown = groups.shown.iter();
            let others = (OTHERS, &groups.others);
            let shown = shown.map(|(path, counts)| (path.as_str(), counts));
            shown.chain([others])
        });
        let series = groups.map(|(group, counts)| {
            let labels = vec![("cgroup", group.to_owned())];
            (labels, Value::Number(value(counts)))
        });
        Family::new(name, Kind::Counter, help, series)
    };
    let mut all = vec![
        family(
            "luc_cgroup_syncs_total",
            "fsync and fdatasync calls by the tasks of a control group",
            |counts| counts.syncs as f64,
        ),
        family(
            "luc_cgroup_sync_seconds_total",
            "time in these calls",
            |counts| seconds(counts.sync_ns),
        ),
        family(
            "luc_cgroup_syncs_late_total",
            "those that waited for two commits or more",
            |counts| counts.syncs_late as f64,
        ),
    ];
    if !reading.unseen.iter().any(|sight| sight.is_wait()) {
        all.push(family(
            "luc_cgroup_wait_seconds_total",
            "time that the tasks of a control group spent in waits inside operations",
            |counts| seconds(counts.wait_ns),
        ));
    }
    all
}

/// The journals that LUC is on for.
pub(super) fn on(reading: &Reading) -> impl Iterator<Item = (&JournalReading, &ModuleReading)> {
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
    Family::new(
        "luc_policy_info",
        Kind::Gauge,
        "always 1; policy and mode of LUC where it is on",
        series,
    )
}

/// The file systems that luc.toml names, among those of the reading.
pub fn wanted(reading: &Reading, wanted: &[Dev]) -> Family {
    let all = reading.journals.iter();
    let series = all
        .filter(|journal| wanted.contains(&journal.device))
        .map(|journal| (labels(journal), Value::Number(1.0)));
    Family::new(
        "luc_wanted_info",
        Kind::Gauge,
        "always 1; mounted file systems that /etc/luc/luc.toml wants LUC on for",
        series,
    )
}

/// Name of the metric of energy.
pub const ENERGY: &str = "luc_energy_joules_total";

/// Energy since the exporter started; no series once its meter lost count.
pub fn energy(sample: &Sample) -> Family {
    let boundary = sample.boundary();
    let labels = vec![("domain", boundary.word().to_owned())];
    Family::new(
        ENERGY,
        Kind::Counter,
        &format!("energy since the exporter started, of {boundary}"),
        sample
            .joules()
            .map(|joules| (labels, Value::Number(joules))),
    )
}

/// The metric for a counter of the module. The name gives the unit: `_ns` becomes seconds.
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
    Family::new(
        format!("luc_{stem}{unit}{suffix}"),
        kind,
        counter.help,
        series,
    )
}
