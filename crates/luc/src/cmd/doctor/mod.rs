//! `luc doctor`

mod by_module;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use luc_bpf::{Detail, Settings, Tracer};
use luc_control::Dev;
use luc_host::journal::{self, Journal};
use luc_host::{HostError, System, preconditions, rotation, sysfs, watching};
use luc_model::diagnosis::{Account, Diagnosis, Facts, Luc, Relief, diagnose, render};
use luc_trace::{Header, Trace};
use serde::Serialize;
use serde_json::Value;

use crate::means::ByMeans;
use crate::tracer;
use luc_cli::Context;
use luc_cli::exit::{Code, Failure};
use luc_cli::recordings::recording;
use luc_cli::verb::{Interrupt, Verb};

/// Tell whether journal commits cost time, which kind, and what would help
///
/// Watches a file system for a while, with BPF, and changes nothing; LUC's module is not needed.
/// Attributes the time of syncs and writes to its causes: commits of others (synchronisation
/// delays), commits that block writers (write delays), the data flush, the device, a journal that
/// is too small. Shows with numbers which cause dominates, which processes cause it and which
/// suffer from it, what gain to expect from LUC, and what to type next.
///
/// Without BPF it asks LUC's module, if the module is loaded and on (`luc on --observe`), and says
/// what the module cannot tell.
///
/// Exits with 26 if LUC would help or may, with 34 if something else would, with 35 if only a faster
/// device would, and with 0 if nothing costs time or LUC does already what it can. Ctrl-C ends the
/// watching early; the verdict covers what was seen until then.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc doctor /srv/data\n\
    \x20 luc doctor --seconds 30 /srv/data\n\
    \x20 luc doctor --from run.luc")]
pub struct Args {
    /// A path on the file system, or its block device
    #[arg(
        value_name = "PATH|DEVICE",
        value_hint = ValueHint::AnyPath,
        conflicts_with_all = ["all", "from"]
    )]
    path: Option<PathBuf>,
    /// All ext4 and ext3 file systems that have a journal and are not read-only
    #[arg(long, conflicts_with = "from")]
    all: bool,
    /// Time to watch; less than 5 s misses commits of the journal's own timer
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Judge a recording of `luc trace record` instead, or - for standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    from: Option<PathBuf>,
    #[command(flatten)]
    by: ByMeans,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    /// `tracer`; in the report of a host that cannot trace, `module`.
    source: &'static str,
    /// The best of the file systems'.
    relief: Relief,
    spans_lost: u64,
    unseen: Vec<&'static str>,
    /// Where reading a recording ended early, and why.
    damage: Option<&'a str>,
    file_systems: Vec<Value>,
}

/// A file system with its verdict, from the tracer or from the module.
#[derive(Serialize)]
struct Examined<T> {
    device: String,
    facts: Facts,
    #[serde(flatten)]
    judged: T,
}

impl Examined<Diagnosis> {
    /// The JSON form, with null for unknown fields.
    fn json(&self) -> Result<Value, Failure> {
        let mut value = serde_json::to_value(self).map_err(anyhow::Error::from)?;
        let unseen = &self.judged.unseen;
        super::hide(&mut value["account"], &Account::unknown(unseen));
        super::hide(&mut value["table"], &self.judged.table.absent(unseen));
        Ok(value)
    }
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        if self.path.is_none() && !self.all && self.from.is_none() {
            let why = "name a path or a device, or use --all or --from FILE";
            return Err(Failure::usage("doctor", why));
        }
        let (trace, patients) = if let Some(file) = &self.from {
            let trace = recording(file, context)?;
            if trace.spans.is_empty() {
                return by_module::recorded(self, &trace, context);
            }
            let patients = recorded(&trace, context.system);
            (trace, patients)
        } else {
            let journals = chosen(self, context.system)?;
            let devs = journals.iter().map(|journal| journal.device);
            let mut settings = Settings::new(devs.collect(), Detail::Spans);
            self.by.choose(&mut settings);
            // No note about unseen events: the page lists them.
            match watching::attach(&settings, context.system) {
                Ok(tracer) => watched(self, &journals, (tracer, settings.ring_kib), context)?,
                Err(error) => return by_module::run(self, &journals, error, context),
            }
        };
        let examined: Vec<_> = patients
            .into_iter()
            .map(|(dev, facts)| Examined {
                device: dev.to_string(),
                judged: diagnose(&trace, dev, &facts),
                facts,
            })
            .collect();
        tell(self, &trace, &examined, context)
    }

    fn interrupt(&self) -> Interrupt {
        Interrupt::Asks
    }
}

fn tell(
    args: &Args,
    trace: &Trace,
    examined: &[Examined<Diagnosis>],
    context: &mut Context,
) -> Result<(), Failure> {
    let reliefs: Vec<Relief> = examined.iter().map(|one| one.judged.relief).collect();
    if args.json {
        let report = Report {
            schema: 1,
            source: "tracer",
            relief: best(&reliefs),
            spans_lost: trace.spans_lost,
            unseen: trace.unseen.iter().map(|sight| sight.word()).collect(),
            damage: trace.damage.as_deref(),
            file_systems: examined
                .iter()
                .map(Examined::json)
                .collect::<Result<_, _>>()?,
        };
        context.print_json(&report)?;
    } else {
        print(examined.iter().map(|one| render(&one.judged)), context)?;
    }
    relieved(&reliefs)
}

/// Prints pages, separated by empty lines.
fn print(pages: impl Iterator<Item = String>, context: &mut Context) -> std::io::Result<()> {
    let pages: Vec<String> = pages.collect();
    context.out.write_all(pages.join("\n").as_bytes())
}

fn best(reliefs: &[Relief]) -> Relief {
    reliefs.iter().copied().max().unwrap_or_default()
}

/// Fails with the exit code of the best relief, which tells scripts what would help.
fn relieved(reliefs: &[Relief]) -> Result<(), Failure> {
    let best = best(reliefs);
    let (code, what) = match best {
        Relief::None => return Ok(()),
        Relief::Luc => (Code::LucHelps, "LUC would help or may"),
        Relief::Other => (Code::OtherHelps, "something other than LUC would help"),
        Relief::Device => (Code::DeviceBound, "only a faster device would help"),
    };
    let of = match reliefs.len() {
        1 => "the file system loses time".into(),
        all => {
            let such = reliefs.iter().filter(|relief| **relief == best).count();
            let lose = if such == 1 { "loses" } else { "lose" };
            format!("{such} of {all} file systems {lose} time")
        }
    };
    let line = format!("{of}, and {what}; see above");
    Err(Failure::Coded(code, line))
}

fn chosen(args: &Args, system: &dyn System) -> Result<Vec<Journal>, HostError> {
    match &args.path {
        Some(path) => Ok(vec![journal::steerable(system, path)?]),
        None => with_journal(system),
    }
}

/// Traces file systems and collects facts about them.
fn watched(
    args: &Args,
    journals: &[Journal],
    (tracer, ring_kib): (Tracer, u32),
    context: &mut Context,
) -> Result<(Trace, Vec<(Dev, Facts)>), Failure> {
    let system = context.system;
    let notes = tracer.attached().notes();
    let unseen_why: Vec<String> = notes.iter().map(|note| sentence(note)).collect();
    let luc_obstacle = preconditions::obstacle(system);
    // LUC may be switched on or off meanwhile: it matters whether it acted at all.
    let before: Vec<Luc> = journals.iter().map(|one| luc_of(system, one)).collect();
    let limit = Duration::from_secs(args.seconds);
    let (trace, watched_ns) = tracer::watch(tracer, ring_kib, limit, context)?;
    let patients = journals.iter().zip(before).map(|(journal, before)| {
        let mut facts = facts(system, journal);
        facts.luc = facts.luc.max(Some(before));
        facts.watched_ns = Some(watched_ns);
        facts.unseen_why.clone_from(&unseen_why);
        facts.luc_obstacle.clone_from(&luc_obstacle);
        if let Some(path) = &args.path {
            facts.path = Some(path.display().to_string());
        }
        (journal.device, facts)
    });
    let patients = patients.collect();
    Ok((trace, patients))
}

/// Turns a note into a sentence.
fn sentence(note: &str) -> String {
    let mut chars = note.chars();
    let first = chars.next().map(char::to_uppercase);
    first
        .into_iter()
        .flatten()
        .chain(chars)
        .chain(['.'])
        .collect()
}

fn with_journal(system: &dyn System) -> Result<Vec<Journal>, HostError> {
    let mut journals = journal::journals(system)?;
    journals.retain(|journal| journal.obstacle().is_none());
    if journals.is_empty() {
        return Err(HostError::NotJournaled {
            path: "anything".into(),
            why: "no ext4 file system with a journal is mounted read-write".into(),
        });
    }
    Ok(journals)
}

/// The file systems of a recording. This machine's facts about a device number apply only
/// if the recording was made here since the last boot.
fn recorded(trace: &Trace, system: &dyn System) -> Vec<(Dev, Facts)> {
    let boot = system.read("/proc/sys/kernel/random/boot_id").ok();
    let boot = boot.as_deref().map(str::trim);
    let of_trace = trace.header.pairs.get("boot").map(String::as_str);
    let here = boot.is_some() && boot == of_trace;
    let journals = journal::journals(system).unwrap_or_default();
    let devs: BTreeSet<Dev> = trace.spans.iter().map(|span| span.dev).collect();
    let known = |dev: Dev| {
        let found = journals.iter().find(|one| one.device == dev)?;
        let mut facts = facts(system, found);
        // The recording tells what LUC did then; its state now may differ.
        facts.luc = None;
        facts.luc_obstacle = preconditions::obstacle(system);
        Some(facts)
    };
    let why = trace.header.pairs.get(Header::UNSEEN_WHY);
    let unseen_why: Vec<String> = why.into_iter().map(|why| sentence(why)).collect();
    let facts = |dev| {
        let known = known(dev).filter(|_| here).unwrap_or_default();
        let point = trace.header.mount_point(dev).map(str::to_owned);
        Facts {
            unseen_why: unseen_why.clone(),
            path: point.or(known.path),
            ..known
        }
    };
    devs.into_iter().map(|dev| (dev, facts(dev))).collect()
}

fn facts(system: &dyn System, journal: &Journal) -> Facts {
    let point = journal.mount_points.first();
    Facts {
        path: point.map(|point| point.display().to_string()),
        device: Some(journal.node.clone()),
        device_bytes: journal.device_bytes,
        journal_bytes: journal.journal_bytes,
        block_bytes: journal.block_bytes,
        mount_options: Some(journal.options.clone()),
        watched_ns: None,
        luc: Some(luc_of(system, journal)),
        fast_commit: journal.fast_commit,
        rotational: rotation::turns(system, journal.device),
        unseen_why: Vec::new(),
        luc_obstacle: None,
    }
}

fn luc_of(system: &dyn System, journal: &Journal) -> Luc {
    let attached = sysfs::attached(system).unwrap_or_default();
    let Some(attached) = attached.iter().find(|one| one.device == journal.device) else {
        return Luc::Off;
    };
    match sysfs::knob_word(system, attached, "mode").as_deref() {
        Some("observe") => Luc::Observing,
        // A mode that cannot be read may be steering.
        _ => Luc::Steering,
    }
}
