//! Numbers as the view writes them, and a snapshot as plain text.

use std::io::{self, Write};

use luc_base::words::three;
use luc_cli::units::{UNKNOWN, counted, duration, known_time, rounded, table};
use luc_model::blame::{Asker, Commits, WaitedFor, Waiter};
use luc_watch::blame::BlameSample;
use luc_watch::sample::{JournalSample, LucSample, ProcessSample, Snapshot};

/// A rate or a ratio with about three significant digits.
pub fn rate(value: f64) -> String {
    match value {
        // Six characters at most: columns are narrow.
        value if value >= 999_950_000.0 => "lots".into(),
        value if value >= 999_950.0 => format!("{:.1}M", value / 1e6),
        value if value >= 9_999.5 => format!("{:.1}k", value / 1e3),
        // A rate above 0 is never shown as 0.
        value if value > 0.0 && value < 0.005 => "<0.01".into(),
        value if value > 0.0 => three(value),
        _ => "0".into(),
    }
}

fn known(value: Option<f64>) -> String {
    value.map_or_else(|| UNKNOWN.into(), rate)
}

/// Formats time spent per second.
pub fn time_per_s(ns_per_s: f64) -> String {
    let ns = rounded(ns_per_s);
    if ns == 0 { "0".into() } else { duration(ns) }
}

/// The name that users see: the first mount point.
pub fn place(journal: &JournalSample) -> String {
    let point = journal.mount_points.first();
    let shown = point.map_or_else(|| journal.name.clone(), |point| point.display().to_string());
    // Mount points may hold control characters, which a terminal would obey.
    let plain = |c: char| if c.is_control() { '?' } else { c };
    shown.chars().map(plain).collect()
}

pub const JOURNAL_HEADS: [&str; 9] = [
    "journal",
    "commits/s",
    "per/set",
    "p50",
    "p99",
    "slowest",
    "late",
    "delayed/s",
    "LUC",
];

pub fn journal_cells(journal: &JournalSample) -> [String; 9] {
    let traced = journal.traced.as_ref();
    let luc = journal.luc.as_ref();
    let rates = luc.and_then(|luc| luc.rates.as_ref());
    let commits = traced.map(|traced| traced.commits_per_s);
    let commits = commits.or(rates.and_then(|rates| rates.commits_per_s));
    let each = match (traced, rates) {
        (Some(traced), _) => traced.syncs_per_commit,
        (None, Some(rates)) => rates.sync_events_per_commit,
        (None, None) => None,
    };
    let set = luc.and_then(|luc| luc.setpoint_events);
    let set = set.map_or_else(|| UNKNOWN.into(), |events| events.to_string());
    // Without LUC, the tracer still counts delayed writes.
    let buffer = traced.and_then(|traced| traced.waits.first());
    let delayed = rates.and_then(|rates| rates.writes_delayed_per_s);
    let delayed = delayed.or(buffer.and_then(|wait| wait.per_s));
    let late = traced.and_then(|traced| traced.late_share);
    let ended = traced.and_then(|traced| traced.sync_max_ns);
    let waiting = journal.waiting.map(|waiting| waiting.longest_ns);
    let slowest = match waiting.filter(|longest| ended.is_none_or(|ended| *longest > ended)) {
        Some(longest @ 1..) => format!(">{}", duration(longest)),
        _ => known_time(ended),
    };
    [
        place(journal),
        known(commits),
        format!("{}/{set}", known(each)),
        known_time(traced.and_then(|traced| traced.sync_p50_ns)),
        known_time(traced.and_then(|traced| traced.sync_p99_ns)),
        slowest,
        late.map_or_else(|| UNKNOWN.into(), |late| format!("{:.0}%", late * 100.0)),
        known(delayed),
        match (journal.health.fault(), luc) {
            (Some(fault), _) => fault.short().into(),
            (None, luc) => luc.map_or_else(|| "off".into(), luc_cell),
        },
    ]
}

/// Text like `luc: set point`, with the policy in parentheses if it only observes.
fn luc_cell(luc: &LucSample) -> String {
    let policy = if luc.mode == "observe" {
        format!("({})", luc.policy)
    } else {
        luc.policy.clone()
    };
    let reasons = luc.rates.as_ref().map(|rates| &rates.reasons);
    match reasons.and_then(|reasons| reasons.first()) {
        Some(reason) => format!("{policy}: {}", reason.text),
        None => policy,
    }
}

/// Policy, set point, holds and copies of a journal, in one line; or why it takes no writes.
pub fn luc_line(journal: &JournalSample) -> String {
    if let Some(fault) = journal.health.fault() {
        return fault.to_string();
    }
    let Some(luc) = &journal.luc else {
        return "LUC off".into();
    };
    let mode = match luc.mode.as_str() {
        "steer" => "steering",
        "observe" => "observing only",
        other => other,
    };
    let set = luc.setpoint_events.map(|events| events.to_string());
    let set = match (luc.setpoint_automatic, set) {
        (true, Some(set)) => format!("set point {set} (automatic)"),
        (_, Some(set)) => format!("set point {set}"),
        (_, None) => "set point automatic".into(),
    };
    let mut parts = vec![format!("policy {}, {mode}", luc.policy), set];
    if let Some(rates) = &luc.rates {
        let held = known(rates.held_per_s);
        parts.push(match rates.held_mean_ns {
            Some(mean) => format!("held {held}/s for {}", duration(mean)),
            None => format!("held {held}/s"),
        });
        parts.push(format!("copies {}/s", known(rates.copies_per_s)));
        let all: u64 = rates.reasons.iter().map(|reason| reason.commits).sum();
        let shown: Vec<_> = rates
            .reasons
            .iter()
            .map(|reason| {
                let percent = reason.commits as f64 * 100.0 / all.max(1) as f64;
                format!("{} {percent:.0}%", reason.text)
            })
            .collect();
        if !shown.is_empty() {
            parts.push(format!("started: {}", shown.join(", ")));
        }
    }
    parts.join("; ")
}

pub const PROCESS_HEADS: [&str; 7] = [
    "pid",
    "process",
    "fsyncs/s",
    "late/s",
    "in fsync/s",
    "lost/s",
    "control group",
];

pub fn process_cells(process: &ProcessSample) -> [String; 7] {
    [
        process.pid.to_string(),
        process.name.clone(),
        rate(process.syncs_per_s),
        rate(process.late_per_s),
        time_per_s(process.sync_ns_per_s),
        process
            .lost_ns_per_s
            .map_or_else(|| UNKNOWN.into(), time_per_s),
        process.cgroup.clone().unwrap_or_else(|| UNKNOWN.into()),
    ]
}

pub const BLAME_HEADS: [&str; 7] = [
    "process",
    "commits/s",
    "caused",
    "waits/s",
    "of sync",
    "most for",
    "control group",
];

pub const GROUP_HEADS: [&str; 7] = {
    let mut heads = BLAME_HEADS;
    heads[0] = "group";
    heads
};

/// Describes a party of a blame over this time, in which the journal made this many commits.
pub fn blame_cells(waiter: &Waiter, covered_s: f64, commits: u64) -> [String; 7] {
    let per_s = |value: f64| {
        if covered_s > 0.0 {
            value / covered_s
        } else {
            0.0
        }
    };
    let percent = |part: f64, whole: f64| match part / whole * 100.0 {
        _ if whole <= 0.0 => UNKNOWN.into(),
        // A share above 0 is never shown as 0.
        percent if percent > 0.0 && percent < 1.0 => "<1%".into(),
        percent => format!("{percent:.0}%"),
    };
    // A sum of nothing is -0.
    let sum = |of: fn(&WaitedFor) -> f64| waiter.waited_for.iter().map(of).sum::<f64>() + 0.0;
    let (lost_ns, in_syncs_ns) = (sum(WaitedFor::total_ns), sum(WaitedFor::sync_ns));
    let most = waiter.waited_for.first().map(|other| {
        let name = match (other.asker, &other.name) {
            (Asker::Known, Some(name)) => name.as_str(),
            (Asker::Nobody, _) => "no sync",
            _ => "unknown",
        };
        let share = percent(other.total_ns(), lost_ns);
        format!("{name} {share}")
    });
    [
        waiter.name.clone(),
        rate(per_s(waiter.commits_asked as f64)),
        percent(waiter.commits_asked as f64, commits as f64),
        time_per_s(per_s(lost_ns)),
        percent(in_syncs_ns, waiter.sync_ns),
        most.unwrap_or_default(),
        waiter.cgroup.clone().unwrap_or_else(|| UNKNOWN.into()),
    ]
}

/// The line above a blame.
pub fn blame_line(sample: &BlameSample, commits: &Commits) -> String {
    let covered_s = sample.covered.as_secs_f64();
    let commits_in_all = counted(commits.all, "commit", "commits");
    let mut parts = vec![format!(
        "whose commits they wait for, in {covered_s:.0} s: {commits_in_all}"
    )];
    if commits.unasked > 0 {
        parts.push(format!("{} by no sync", commits.unasked));
    }
    if commits.unknown > 0 {
        parts.push(format!("{} unknown", commits.unknown));
    }
    if sample.lost > 0 {
        parts.push(counted(sample.lost, "event lost", "events lost"));
    }
    parts.join(", ")
}

/// Tells whether LUC is loaded and for how many journals it is on.
pub fn luc_state(snapshot: &Snapshot) -> String {
    let on = snapshot.journals.iter().filter(|one| one.luc.is_some());
    match (snapshot.module_loaded, on.count()) {
        (false, _) => "LUC not loaded".into(),
        (true, 0) => "LUC off".into(),
        (true, on) => format!("LUC on for {on} of {}", snapshot.journals.len()),
    }
}

const PROCESSES_MAX: usize = 20;

pub fn print(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    let state = luc_state(snapshot);
    let (kernel, interval_s) = (&snapshot.kernel, snapshot.interval_s);
    writeln!(out, "Linux {kernel}, {interval_s:.1} s, {state}")?;
    for lack in &snapshot.lacks {
        writeln!(out, "note: {lack}")?;
    }
    if let Some(lost @ 1..) = snapshot.events_lost {
        let lost = counted(lost, "event was", "events were");
        writeln!(out, "note: {lost} lost; sums are lower bounds")?;
    }
    if let Some(energy) = &snapshot.energy {
        writeln!(out, "energy: {energy}")?;
    }
    if snapshot.journals.is_empty() {
        writeln!(out, "no ext4 journal is mounted read-write")?;
        return Ok(());
    }
    writeln!(out)?;
    let rows: Vec<_> = snapshot.journals.iter().map(journal_cells).collect();
    table(out, JOURNAL_HEADS, &rows)?;
    for journal in &snapshot.journals {
        print_details(journal, out)?;
    }
    let mut processes: Vec<_> = snapshot.processes.iter().collect();
    processes.sort_by(|a, b| b.syncs_per_s.total_cmp(&a.syncs_per_s));
    if !processes.is_empty() {
        writeln!(out)?;
        let shown = processes.into_iter().take(PROCESSES_MAX);
        let rows: Vec<_> = shown.map(process_cells).collect();
        table(out, PROCESS_HEADS, &rows)?;
    }
    Ok(())
}

fn print_details(journal: &JournalSample, out: &mut dyn Write) -> io::Result<()> {
    if journal.luc.is_some() || journal.health.fault().is_some() {
        writeln!(out, "{}: {}", place(journal), luc_line(journal))?;
    }
    match events_line(journal) {
        Some(events) => writeln!(out, "{}: {events}", place(journal)),
        None => Ok(()),
    }
}

/// Lists the waits inside operations and the fast commits in one line; `None` if there were none.
pub fn events_line(journal: &JournalSample) -> Option<String> {
    let waits = journal.traced.iter().flat_map(|traced| &traced.waits);
    let fast = journal.fast_commits_per_s.filter(|per_s| *per_s > 0.0);
    let fast = fast.map(|per_s| format!("fast commits {}/s, not traced", rate(per_s)));
    let shown: Vec<_> = waits
        .filter_map(|wait| {
            let per_s = wait.per_s.filter(|per_s| *per_s > 0.0)?;
            let mean = known_time(wait.mean_ns);
            Some(format!("{} {}/s, mean {mean}", wait.kind, rate(per_s)))
        })
        .chain(fast)
        .collect();
    (!shown.is_empty()).then(|| shown.join("; "))
}
