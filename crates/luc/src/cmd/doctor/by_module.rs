//! The doctor without tracing: it asks LUC's module, if the module is loaded and on for the file
//! system.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use luc_bpf::TracerError;
use luc_control::Dev;
use luc_host::journal::Journal;
use luc_host::sysfs::{self, Attached, counter_values};
use luc_host::{System, preconditions};
use luc_model::diagnosis::{Facts, Glimpse, ModuleCounts, Relief, glimpse, render_glimpse};
use luc_trace::{Event, Record, Trace, parse_line};
use serde::Serialize;

use super::{Args, Examined, facts, luc_of, print};
use crate::cmd::trace::module_events::ModuleEvents;
use luc_cli::Context;
use luc_cli::exit::Failure;
use luc_cli::progress::Bar;
use luc_cli::units::counted;

use crate::tracer;

/// Size of each processor's buffer for the module's events, KiB.
const BUFFER_KIB: u32 = 16_384;

type Counters = BTreeMap<&'static str, i64>;

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    source: &'static str,
    /// Why nothing was traced.
    untraced: &'a str,
    relief: Relief,
    /// Records of the module that were lost.
    lines_lost: u64,
    file_systems: &'a [Examined<Glimpse>],
}

/// Watches the file systems that LUC is on for, and prints a report.
pub fn run(
    args: &Args,
    journals: &[Journal],
    error: TracerError,
    context: &mut Context,
) -> Result<(), Failure> {
    let system = context.system;
    // Other errors are about the arguments: the module cannot help there.
    let host_lacks = matches!(
        error,
        TracerError::NoBtf
            | TracerError::NoBpf
            | TracerError::Denied { .. }
            | TracerError::Elsewhere
            | TracerError::Unfit { .. }
    );
    let patients = if host_lacks {
        on(journals, system)
    } else {
        Vec::new()
    };
    if patients.is_empty() {
        if host_lacks && preconditions::obstacle(system).is_none() {
            context.note(format_args!(
                "without tracing, LUC's module can measure a part of this and changes nothing: luc \
                 on --observe PATH"
            ))?;
        }
        return Err(tracer::untraceable("doctor", error, system));
    }
    let untraced = error.to_string();
    context.note(format_args!(
        "the verdict rests only on what LUC's module counts: {untraced}"
    ))?;
    let left_out = journals.len() - patients.len();
    if left_out > 0 {
        let left_out = counted(left_out as u64, "file system", "file systems");
        context.note(format_args!("left out: {left_out} with LUC off"))?;
    }
    let mut before = Vec::new();
    for (journal, attached) in &patients {
        before.push((luc_of(system, journal), counter_values(system, attached)));
    }
    let begin = Instant::now();
    let (lines, lines_lost) = listen(Duration::from_secs(args.seconds), context)?;
    let duration_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut examined = Vec::new();
    for ((journal, attached), (luc, before)) in patients.iter().zip(before) {
        let dev = journal.device;
        let mut facts = facts(system, journal);
        facts.luc = facts.luc.max(Some(luc));
        if let Some(path) = &args.path {
            facts.path = Some(path.display().to_string());
        }
        let counts = since(&before, &counter_values(system, attached), duration_ns);
        examined.push(Examined {
            device: dev.to_string(),
            judged: glimpse(counts, lines.as_deref(), dev, &facts),
            facts,
        });
    }
    tell(args, &untraced, lines_lost, &examined, context)
}

/// As [`run`], for a recording that holds only records of the module.
pub fn recorded(args: &Args, trace: &Trace, context: &mut Context) -> Result<(), Failure> {
    let devs = devs(&trace.lines);
    if devs.is_empty() {
        return Err(Failure::trace(
            "the recording",
            "holds neither a span nor a decision",
        ));
    }
    let mut examined = Vec::new();
    for dev in devs {
        let counts = ModuleCounts::of(&trace.lines, dev);
        let facts = Facts::default();
        examined.push(Examined {
            device: dev.to_string(),
            judged: glimpse(counts, Some(&trace.lines), dev, &facts),
            facts,
        });
    }
    let why = "the recording holds no span";
    tell(args, why, trace.lines_lost.events, &examined, context)
}

fn devs(lines: &[Record]) -> Vec<Dev> {
    let dev = |line: &Record| match line.event {
        Event::Commit { dev, .. } | Event::WriteDelay { dev, .. } | Event::Decision { dev, .. } => {
            Some(dev)
        }
        Event::Lost { .. } => None,
    };
    let mut devs: Vec<Dev> = lines.iter().filter_map(dev).collect();
    devs.sort_unstable();
    devs.dedup();
    devs
}

fn on<'a>(journals: &'a [Journal], system: &dyn System) -> Vec<(&'a Journal, Attached)> {
    let attached = sysfs::attached(system).unwrap_or_default();
    let find = |journal: &'a Journal| {
        let found = attached.iter().find(|one| one.device == journal.device)?;
        Some((journal, found.clone()))
    };
    journals.iter().filter_map(find).collect()
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

/// Collects the module's records, `None` if they cannot be read, and counts lost ones.
fn listen(limit: Duration, context: &mut Context) -> Result<(Option<Vec<Record>>, u64), Failure> {
    let mut events = match ModuleEvents::obstacle(context.system) {
        None => Some(ModuleEvents::new(context.system, BUFFER_KIB)?),
        Some(failure) => {
            context.note(format_args!(
                "only the module's counters are read: {failure}"
            ))?;
            None
        }
    };
    let mut lines = Vec::new();
    let mut take = |line: &[u8]| {
        let text = String::from_utf8_lossy(line);
        if let Ok(Some(record)) = parse_line(text.trim_end(), 0) {
            lines.push(record);
        }
        Ok(())
    };
    let begin = Instant::now();
    let bar = Bar::wait("watching", limit);
    while begin.elapsed() < limit && !context.stopped() {
        std::thread::sleep(tracer::PAUSE.min(limit));
        if let Some(events) = &mut events {
            events.lines(&mut take)?;
        }
    }
    drop(bar);
    let Some(events) = events else {
        return Ok((None, 0));
    };
    let lost = events.end(&mut take)?;
    Ok((Some(lines), lost.iter().map(|(_, lost)| lost).sum()))
}

fn tell(
    args: &Args,
    untraced: &str,
    lines_lost: u64,
    examined: &[Examined<Glimpse>],
    context: &mut Context,
) -> Result<(), Failure> {
    let reliefs: Vec<Relief> = examined.iter().map(|one| one.judged.relief).collect();
    if args.json {
        let report = Report {
            schema: 1,
            source: "module",
            untraced,
            relief: super::best(&reliefs),
            lines_lost,
            file_systems: examined,
        };
        context.print_json(&report)?;
    } else {
        print(
            examined.iter().map(|one| render_glimpse(&one.judged)),
            context,
        )?;
        if lines_lost > 0 {
            let (one, many) = ("record of the module was", "records of the module were");
            let lost = counted(lines_lost, one, many);
            context.note(format_args!("{lost} lost"))?;
        }
    }
    super::relieved(&reliefs)
}
