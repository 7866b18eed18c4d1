//! The difference of two readings.

use std::path::PathBuf;
use std::time::Duration;

use luc_bpf::{Counts, TaskCounts};
use luc_control::{CounterKind, Dev, counters};
use luc_host::as_text;
use luc_host::health::Health;
use luc_power::meter::Energy;
use luc_trace::{Sight, SpanKind, Unseen};
use serde::Serialize;

use super::reading::{JournalReading, ModuleReading, ProcessReading, Reading, WaitingSyncs};

/// The events between two readings.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Snapshot {
    pub schema: u32,
    pub kernel: String,
    /// Time between the readings, s; 0 if there was only one.
    pub interval_s: f64,
    pub tracing: bool,
    pub module_version: Option<String>,
    pub module_loaded: bool,
    /// Events that the tracer lost in the interval: sums are lower bounds.
    pub events_lost: Option<u64>,
    /// Sources that are missing, one line each.
    pub lacks: Vec<String>,
    /// Kinds of events that the tracer cannot see, as trace exports name them.
    pub unseen: Vec<&'static str>,
    /// Energy of the machine in the interval; `None` if nobody asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<Energy>,
    /// The journals, in the order of their mounts.
    pub journals: Vec<JournalSample>,
    /// Processes that did something.
    pub processes: Vec<ProcessSample>,
}

#[derive(Clone, Debug, Serialize)]
pub struct JournalSample {
    #[serde(serialize_with = "as_text")]
    pub device: Dev,
    /// The kernel's name of the device.
    pub name: String,
    /// `ext4` or `ext3`.
    #[serde(rename = "type")]
    pub kind: String,
    pub mount_points: Vec<PathBuf>,
    /// Whether it takes writes; null if unknown.
    pub health: Health,
    /// The tracer's counts; `None` if it did not watch for the whole interval.
    pub traced: Option<Traced>,
    /// Syncs that were going on at the end; `None` if unknown.
    pub waiting: Option<WaitingSyncs>,
    /// Fast commits, which are in none of the tracer's counts; `None` if unknown.
    pub fast_commits_per_s: Option<f64>,
    /// The module's state and rates, if LUC is on.
    pub luc: Option<LucSample>,
}

/// The tracer's counts of a journal.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Traced {
    pub syncs_per_s: f64,
    pub commits_per_s: f64,
    /// Calls that a commit served, per commit.
    pub syncs_per_commit: Option<f64>,
    /// Median of the calls' durations.
    pub sync_p50_ns: Option<u64>,
    /// 99th percentile of the calls' durations.
    pub sync_p99_ns: Option<u64>,
    pub sync_max_ns: Option<u64>,
    /// Share of calls that waited for two commits or more, among those that waited.
    pub late_share: Option<f64>,
    pub commit_mean_ns: Option<u64>,
    pub waits: Vec<Wait>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Wait {
    /// Kind, as trace exports name it.
    pub kind: &'static str,
    /// Waits per second; `None` if they cannot be seen.
    pub per_s: Option<f64>,
    pub mean_ns: Option<u64>,
}

/// The module's state for a journal; `None` for a counter that an older module lacks.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LucSample {
    pub policy: String,
    /// `steer` or `observe`.
    pub mode: String,
    pub setpoint_automatic: bool,
    /// Sync events per commit aimed for; `None` before the first commit.
    pub setpoint_events: Option<i64>,
    /// Sync events that the last commit served.
    pub batch_events: Option<i64>,
    /// Time that the next commit may be held.
    pub hold_ns: Option<i64>,
    /// Whether metadata is copied out now.
    pub copyout_active: Option<bool>,
    /// Rates of its counters; `None` if they started anew in the interval.
    pub rates: Option<LucRates>,
}

/// Rates of LUC's counters for a journal; `None` for a counter that an older module lacks.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LucRates {
    pub commits_per_s: Option<f64>,
    pub sync_events_per_s: Option<f64>,
    pub sync_events_per_commit: Option<f64>,
    pub held_per_s: Option<f64>,
    pub held_mean_ns: Option<u64>,
    pub writes_delayed_per_s: Option<f64>,
    pub write_delay_mean_ns: Option<u64>,
    pub copies_per_s: Option<f64>,
    /// Why commits started, the most frequent reason first.
    pub reasons: Vec<Reason>,
}

/// Commits that started for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct Reason {
    /// The reason, as the counters name it: `setpoint` of `closed_setpoint`.
    pub name: &'static str,
    #[serde(skip)]
    pub text: &'static str,
    pub commits: u64,
}

/// A process that did something.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProcessSample {
    pub pid: u32,
    pub name: String,
    /// Its control group, if known.
    pub cgroup: Option<String>,
    pub syncs_per_s: f64,
    /// Calls per second that waited for two commits or more.
    pub late_per_s: f64,
    /// Time in all sync calls, of all its threads, per second.
    pub sync_ns_per_s: f64,
    /// Time in waits inside operations, of all its threads, per second.
    /// `None` if waits of some kind cannot be seen.
    pub lost_ns_per_s: Option<f64>,
}

/// Why commits start: the counter, and its reason in short and in long.
pub const REASONS: [(&str, &str, &str); 6] = [
    ("closed_now", "at once", "nothing to wait for"),
    ("closed_setpoint", "set point", "set point met"),
    ("closed_idle", "no more", "no more syncs came"),
    ("closed_limit", "time up", "time limit reached"),
    ("closed_urgent", "urgent", "urgent"),
    ("closed_forgone", "would hold", "would have been held"),
];

impl Snapshot {
    pub fn between(kernel: &str, before: Option<&Reading>, now: &Reading) -> Self {
        let time = before.map_or(Duration::ZERO, |before| now.at.saturating_sub(before.at));
        // Totals of another tracer, or of none, cannot be compared with those of this one.
        let traced = before.filter(|b| now.generation.is_some() && b.generation == now.generation);
        let journals = now.journals.iter().map(|journal| {
            let find = |reading: &Reading| {
                let mut all = reading.journals.iter();
                all.find(|one| one.device == journal.device).cloned()
            };
            sample(
                journal,
                before.and_then(find).as_ref(),
                traced.is_some().then_some(&now.unseen),
                time,
            )
        });
        let all_waits = !now.unseen.iter().any(|sight| sight.is_wait());
        let processes = traced.map_or_else(Vec::new, |before| {
            let all = now.processes.iter();
            let known = |pid| before.processes.get(pid);
            all.filter_map(|(pid, process)| {
                process_sample(*pid, known(pid), process, time, all_waits)
            })
            .collect()
        });
        Snapshot {
            schema: 1,
            kernel: kernel.to_owned(),
            interval_s: time.as_secs_f64(),
            tracing: now.generation.is_some(),
            module_version: now.module_version.clone(),
            module_loaded: now.module_loaded,
            events_lost: traced.and_then(|before| Some(now.lost?.saturating_sub(before.lost?))),
            lacks: now.lacks.clone(),
            unseen: now.unseen.iter().map(|sight| sight.word()).collect(),
            energy: before.and_then(|before| energy(before, now)),
            journals: journals.collect(),
            processes,
        }
    }
}

fn energy(before: &Reading, now: &Reading) -> Option<Energy> {
    match (before.energy.as_ref()?, now.energy.as_ref()?) {
        (Ok(before), Ok(now)) => Some(before.until(now).energy()),
        (Err(why), _) | (_, Err(why)) => Some(Energy::Unknown {
            unknown: why.clone(),
        }),
    }
}

/// A rate; 0 if no time has passed.
fn per_s(count: u64, time: Duration) -> f64 {
    let time_s = time.as_secs_f64();
    if time_s > 0.0 {
        count as f64 / time_s
    } else {
        0.0
    }
}

/// Compares two readings of a journal. `of_tracer` lists what their common tracer, if any, does
/// not see.
fn sample(
    now: &JournalReading,
    before: Option<&JournalReading>,
    of_tracer: Option<&Unseen>,
    time: Duration,
) -> JournalSample {
    let counts = before.and_then(|before| {
        let unseen = of_tracer?;
        let (before, now) = (before.counts.as_ref()?, now.counts.as_ref()?);
        Some(traced(&now.since(before), unseen, time))
    });
    let earlier = before.and_then(|before| before.module.as_ref());
    let fast = before
        .and_then(|before| before.fast_commits)
        .zip(now.fast_commits);
    JournalSample {
        device: now.device,
        name: now.name.clone(),
        kind: now.kind.clone(),
        mount_points: now.mount_points.clone(),
        health: now.health.clone(),
        traced: counts,
        waiting: now.waiting,
        fast_commits_per_s: fast
            .and_then(|(before, now)| now.checked_sub(before))
            .map(|made| per_s(made, time)),
        luc: now
            .module
            .as_ref()
            .map(|module| luc_sample(module, earlier, time)),
    }
}

fn traced(counts: &Counts, unseen: &Unseen, time: Duration) -> Traced {
    let waits = SpanKind::WAITS
        .iter()
        .zip(counts.waits.iter().zip(&counts.wait_ns));
    Traced {
        syncs_per_s: per_s(counts.syncs, time),
        commits_per_s: per_s(counts.commits, time),
        syncs_per_commit: counts.syncs_per_commit(),
        sync_p50_ns: counts.sync_hist.quantile_ns(0.5),
        sync_p99_ns: counts.sync_hist.quantile_ns(0.99),
        sync_max_ns: counts.sync_hist.quantile_ns(1.0),
        late_share: counts.late_share(),
        commit_mean_ns: counts.commit_ns.checked_div(counts.commits),
        waits: waits
            .map(|(kind, (waits, ns))| Wait {
                kind: kind.text(),
                per_s: Sight::sees(unseen, *kind).then(|| per_s(*waits, time)),
                mean_ns: ns.checked_div(*waits),
            })
            .collect(),
    }
}

fn luc_sample(now: &ModuleReading, before: Option<&ModuleReading>, time: Duration) -> LucSample {
    let asked = now.setpoint_asked.unwrap_or(0);
    let aimed = now.get("setpoint_events").filter(|aimed| *aimed > 0);
    LucSample {
        policy: now.policy.clone(),
        mode: now.mode.clone(),
        setpoint_automatic: asked == 0,
        setpoint_events: if asked == 0 { aimed } else { Some(asked) },
        batch_events: now.get("batch_events"),
        hold_ns: now.get("hold_ns"),
        copyout_active: now.get("copyout_active").map(|active| active != 0),
        rates: before
            .filter(|before| !restarted(before, now))
            .map(|before| luc_rates(now, before, time)),
    }
}

/// Tells whether LUC was switched off and on again meanwhile, or the module
/// reloaded: totals never shrink otherwise.
fn restarted(before: &ModuleReading, now: &ModuleReading) -> bool {
    counters()
        .iter()
        .filter(|counter| counter.kind == CounterKind::Total)
        .any(|counter| now.get(counter.name) < before.get(counter.name))
}

fn luc_rates(now: &ModuleReading, before: &ModuleReading, time: Duration) -> LucRates {
    let gained = |name: &str| {
        let (before, now) = before.get(name).zip(now.get(name))?;
        u64::try_from(now.saturating_sub(before)).ok()
    };
    let rate = |name| Some(per_s(gained(name)?, time));
    let mean = |of: &str, by| gained(of)?.checked_div(gained(by)?);
    let each = gained("sync_events").zip(gained("commits"));
    let mut reasons: Vec<Reason> = REASONS
        .into_iter()
        .filter_map(|(counter, text, _)| {
            let name = counter.strip_prefix("closed_")?;
            let commits = gained(counter)?;
            Some(Reason {
                name,
                text,
                commits,
            })
        })
        .filter(|reason| reason.commits > 0)
        .collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.commits));
    LucRates {
        commits_per_s: rate("commits"),
        sync_events_per_s: rate("sync_events"),
        sync_events_per_commit: each
            .filter(|(_, commits)| *commits > 0)
            .map(|(events, commits)| events as f64 / commits as f64),
        held_per_s: rate("commits_held"),
        held_mean_ns: mean("held_ns", "commits_held"),
        writes_delayed_per_s: rate("writes_delayed"),
        write_delay_mean_ns: mean("write_delay_ns", "writes_delayed"),
        copies_per_s: rate("copies"),
        reasons,
    }
}

/// The work of a process, if it did any. A new process did all of it in
/// the interval. So did one whose counts shrank, because it is another process
/// with the same ID.
fn process_sample(
    pid: u32,
    before: Option<&ProcessReading>,
    now: &ProcessReading,
    time: Duration,
    all_waits: bool,
) -> Option<ProcessSample> {
    let then = before.map_or_else(TaskCounts::default, |before| before.counts);
    let c = now.counts;
    let shrank = c.syncs < then.syncs || c.sync_ns < then.sync_ns || c.wait_ns < then.wait_ns;
    let then = if shrank { TaskCounts::default() } else { then };
    let rate = |now: u64, then: u64| per_s(now.saturating_sub(then), time);
    (c != then).then(|| ProcessSample {
        pid,
        name: now.process.name.clone(),
        cgroup: now.process.cgroup.clone(),
        syncs_per_s: rate(c.syncs, then.syncs),
        late_per_s: rate(c.syncs_late, then.syncs_late),
        sync_ns_per_s: rate(c.sync_ns, then.sync_ns),
        lost_ns_per_s: all_waits.then(|| rate(c.wait_ns, then.wait_ns)),
    })
}
