//! An examination without tracing: it asks LUC's module, which is on for the file systems.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use luc_base::Stop;
use luc_control::Dev;
use luc_host::System;
use luc_host::sysfs::{Attached, counter_values};
use luc_model::diagnosis::{Facts, ModuleCounts};
use luc_trace::{Event, Record, Trace, parse_line};

use super::{Events, Examined};
use crate::WatchError;
use crate::recording::{ModuleEvents, PAUSE};

/// Size of each processor's buffer for the module's events, KiB.
pub(super) const BUFFER_KIB: u32 = 16_384;

type Counters = BTreeMap<&'static str, i64>;

/// The module's counts and records.
pub struct ModuleRecord {
    /// Why nothing was traced.
    pub untraced: String,
    pub counts: BTreeMap<Dev, ModuleCounts>,
    /// The module's records; `None` if they cannot be read.
    pub lines: Option<Vec<Record>>,
    pub lines_lost: u64,
}

/// Watches file systems that LUC is on for: their counters, and the module's events if there are
/// any.
pub(super) fn watch(
    attached: &[Attached],
    untraced: String,
    events: Option<ModuleEvents>,
    limit: Duration,
    stop: &Stop,
    system: &dyn System,
) -> Result<ModuleRecord, WatchError> {
    let read = || attached.iter().map(|one| counter_values(system, one));
    let before: Vec<Counters> = read().collect();
    let begin = Instant::now();
    let (lines, lines_lost) = listen(events, limit, stop)?;
    let duration_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let counts = attached.iter().zip(before.iter().zip(read()));
    let counts = counts.map(|(one, (before, now))| (one.device, since(before, &now, duration_ns)));
    Ok(ModuleRecord {
        untraced,
        counts: counts.collect(),
        lines,
        lines_lost,
    })
}

/// Like [`watch`], for a recording that holds only records of the module.
pub(super) fn recorded(trace: Trace) -> Result<Examined, WatchError> {
    let dev = |line: &Record| match line.event {
        Event::Commit { dev, .. } | Event::WriteDelay { dev, .. } | Event::Decision { dev, .. } => {
            Some(dev)
        }
        Event::Lost { .. } => None,
    };
    let devs: BTreeSet<Dev> = trace.lines.iter().filter_map(dev).collect();
    let count = |dev| (dev, ModuleCounts::from_lines(&trace.lines, dev));
    let counts: BTreeMap<Dev, ModuleCounts> = devs.into_iter().map(count).collect();
    if counts.is_empty() {
        let why = "holds neither a span nor a decision";
        return Err(WatchError::trace("the recording", why));
    }
    Ok(Examined {
        file_systems: counts.keys().map(|dev| (*dev, Facts::default())).collect(),
        events: Events::Counted(ModuleRecord {
            untraced: "the recording holds no span".into(),
            counts,
            lines_lost: trace.lines_lost.events,
            lines: Some(trace.lines),
        }),
        energy: None,
        notes: Vec::new(),
    })
}

/// The growth of each counter: `None` if the module lacks it or the file system is gone.
fn since(before: &Counters, now: &Counters, duration_ns: u64) -> ModuleCounts {
    let gained = |name| {
        let (before, now) = before.get(name).zip(now.get(name))?;
        u64::try_from(now.saturating_sub(*before).max(0)).ok()
    };
    let average = now.get("commit_avg_ns");
    ModuleCounts {
        duration_ns,
        commits: gained("commits"),
        sync_events: gained("sync_events"),
        handles: gained("handles"),
        writes_delayed: gained("writes_delayed"),
        write_delay_ns: gained("write_delay_ns"),
        commit_avg_ns: average.and_then(|ns| u64::try_from(*ns).ok()),
    }
}

/// Collects the module's records, and counts lost ones.
fn listen(
    mut events: Option<ModuleEvents>,
    limit: Duration,
    stop: &Stop,
) -> Result<(Option<Vec<Record>>, u64), WatchError> {
    let mut lines = Vec::new();
    let mut take = |line: &[u8]| {
        let text = String::from_utf8_lossy(line);
        if let Ok(Some(record)) = parse_line(text.trim_end(), 0) {
            lines.push(record);
        }
        Ok(())
    };
    let begin = Instant::now();
    while begin.elapsed() < limit && !stop.is_set() {
        std::thread::sleep(PAUSE.min(limit));
        if let Some(events) = &mut events {
            events.lines(&mut take)?;
        }
    }
    let Some(events) = events else {
        return Ok((None, 0));
    };
    let lost = events.end(&mut take)?;
    Ok((Some(lines), lost.iter().map(|(_, lost)| lost).sum()))
}
