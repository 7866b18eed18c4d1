//! `luc doctor`

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use luc_control::Dev;
use luc_host::health::HealthCheck;
use luc_host::journal::Journal;
use luc_host::{Fault, HostError, System, steerable};
use luc_model::diagnosis::{Account, Diagnosis, Facts, Glimpse, Relief};
use luc_model::diagnosis::{diagnose, glimpse, render, render_glimpse};
use luc_power::meter::Energy;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};

use super::failed;
use super::means::ByMeans;
use luc_cli::progress::Bar;
use luc_cli::recordings::recording;
use luc_cli::units::counted;
use luc_cli::{Code, Context, Failure, Interrupt, Verb};
use luc_watch::WatchError;
use luc_watch::examination::{self, Events, Examined, Examiner, Refused};

/// Show whether journal commits cost time, in which way, and what would help
///
/// Watches a file system with BPF for a while. Changes nothing and does not need LUC's module.
/// Attributes the time of syncs and writes to causes: commits for other tasks (sync delays),
/// commits that block writers (write delays), the data flush, the device, a journal that is too
/// small. Shows which cause dominates, which processes cause it, which processes suffer from it,
/// the gain to expect from LUC, and the command to type next. Where the machine counts energy, shows
/// what the whole machine took meanwhile.
///
/// Without BPF, it reads the counters of LUC's module if LUC is on (`luc on --observe`), and names
/// what these cannot show.
///
/// A file system that takes no writes, because its journal is aborted, because it is shut down or
/// frozen, or because a device below it keeps requests waiting, gets that as its verdict, with exit
/// code 36.
///
/// Exits with 26 if LUC would or might help, with 34 if something else would help, with 35 if only
/// a faster device would help, and with 0 if nothing costs time or LUC already does all it can.
/// Ctrl-C stops watching early; the verdict covers the time until then.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc doctor /srv/data\n\
    \x20 luc doctor --seconds 30 /srv/data\n\
    \x20 luc doctor --from run.luc")]
pub struct Args {
    /// A path on the file system, or its block device, as in /dev/vdb, vdb or 254:16
    #[arg(
        value_name = "PATH|DEVICE",
        value_hint = ValueHint::AnyPath,
        conflicts_with_all = ["all", "from"]
    )]
    path: Option<PathBuf>,
    /// Examine all writable ext4 and ext3 file systems that have a journal
    #[arg(long, conflicts_with = "from")]
    all: bool,
    /// Seconds to watch, 1 to 3600; less than 5 misses commits by the journal's timer
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Recording of `luc trace record` to examine instead; - for standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    from: Option<PathBuf>,
    #[command(flatten)]
    by: ByMeans,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        if self.path.is_none() && !self.all && self.from.is_none() {
            let why = "name a path or a device, or use --all or --from FILE";
            return Err(Failure::usage("doctor", why));
        }
        let (examined, unsound) = if let Some(file) = &self.from {
            let trace = recording(file, context)?;
            let examined = examination::recorded(trace, context.system);
            (Some(examined.map_err(failed("doctor"))?), Vec::new())
        } else {
            self.watched(context)?
        };
        let report = Report::new(examined, unsound);
        if self.json {
            context.print_json(&report)?;
        } else {
            report.print(context)?;
        }
        report.sound()?;
        report.relieved()
    }

    fn interrupt(&self) -> Interrupt {
        Interrupt::Asks
    }
}

impl Args {
    /// Watches the file systems asked for that take writes, and lists the others.
    fn watched(&self, context: &mut Context) -> Result<(Option<Examined>, Vec<Unsound>), Failure> {
        let system = context.system;
        let (journals, unsound) = match &self.path {
            Some(path) => (vec![steerable::at(system, path)?], Vec::new()),
            None => steerable::all(system)?,
        };
        let mut unsound: Vec<Unsound> = unsound
            .into_iter()
            .map(|(journal, fault)| Unsound::new(&journal, &fault, system))
            .collect();
        if journals.is_empty() {
            return Ok((None, unsound));
        }
        let examiner = match Examiner::new(&journals, self.by.chosen(), system) {
            Ok(examiner) => examiner,
            Err(Refused { error, hint }) => {
                if let Some(hint) = hint {
                    context.note(hint)?;
                }
                return Err(failed("doctor")(WatchError::untraceable(error, system)));
            }
        };
        for lack in &examiner.lacks {
            context.note(lack)?;
        }
        let limit = Duration::from_secs(self.seconds);
        let bar = Bar::wait("watching", limit);
        let seen = examiner.watch(limit, &context.stop, system);
        drop(bar);
        let mut seen = seen.map_err(failed("doctor"))?;
        for note in &seen.notes {
            context.note(note)?;
        }
        // It may have broken or been frozen meanwhile: then its verdict tells nothing.
        let healths = HealthCheck::new(system).look(system, &journals);
        for (journal, health) in journals.iter().zip(healths) {
            let Some(fault) = health.fault() else {
                let mut of = seen.file_systems.iter_mut();
                if let Some((_, facts)) = of.find(|(dev, _)| *dev == journal.device) {
                    facts.health = health.word();
                }
                continue;
            };
            if let Some(path) = &self.path {
                let path = path.display().to_string();
                let fault = fault.clone();
                return Err(HostError::Unsound { path, fault }.into());
            }
            seen.file_systems.retain(|(dev, _)| *dev != journal.device);
            unsound.push(Unsound::new(journal, fault, system));
        }
        if let Some(path) = &self.path {
            for (_, facts) in &mut seen.file_systems {
                facts.path = Some(path.display().to_string());
            }
        }
        Ok((Some(seen), unsound))
    }
}

/// A file system that takes no writes, so that nothing on it can be judged.
#[derive(Serialize)]
struct Unsound {
    device: String,
    facts: Facts,
    /// Why, and the remedy.
    fault: String,
}

impl Unsound {
    fn new(journal: &Journal, fault: &Fault, system: &dyn System) -> Self {
        let facts = examination::facts(std::slice::from_ref(journal), system);
        let (_, facts) = facts.into_iter().next().unwrap_or_default();
        Self {
            device: journal.device.to_string(),
            facts: Facts {
                health: Some(fault.word()),
                ..facts
            },
            fault: fault.to_string(),
        }
    }

    fn page(&self) -> String {
        let Facts { path, device, .. } = &self.facts;
        let name = path.as_ref().or(device.as_ref()).unwrap_or(&self.device);
        format!("{name}: {}\n", self.fault)
    }
}

/// The verdicts, from the tracer or from the module.
#[derive(Serialize)]
struct Report {
    schema: u32,
    /// `tracer` or `module`; null if there was nothing to watch.
    source: Option<&'static str>,
    /// Why nothing was traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    untraced: Option<String>,
    /// The best of the file systems'.
    relief: Relief,
    #[serde(flatten)]
    gaps: Option<Gaps>,
    /// Energy of the machine while it was watched; null if it has no counters.
    energy: Option<Energy>,
    /// That energy by the syncs of all these file systems; null if one of the two is unknown.
    joules_per_sync: Option<f64>,
    /// First those that take no writes.
    file_systems: Vec<Judged>,
}

/// Events that the source of a report lacks.
#[derive(Serialize)]
#[serde(untagged)]
enum Gaps {
    Tracer {
        spans_lost: u64,
        unseen: Vec<&'static str>,
        /// Where reading a recording ended early, and why.
        damage: Option<String>,
    },
    Module {
        /// Records of the module that were lost.
        lines_lost: u64,
    },
}

/// A file system with its verdict.
#[derive(Serialize)]
#[serde(untagged)]
enum Judged {
    Unsound(Unsound),
    #[serde(serialize_with = "with_nulls")]
    Traced(WithFacts<Diagnosis>),
    Counted(WithFacts<Glimpse>),
}

#[derive(Serialize)]
struct WithFacts<T> {
    device: String,
    facts: Facts,
    #[serde(flatten)]
    verdict: Box<T>,
}

/// The JSON form, with null for unknown fields.
fn with_nulls<S: Serializer>(judged: &WithFacts<Diagnosis>, to: S) -> Result<S::Ok, S::Error> {
    let mut value = serde_json::to_value(judged).map_err(S::Error::custom)?;
    let Diagnosis { unseen, table, .. } = &*judged.verdict;
    super::hide(&mut value["account"], &Account::unknown(unseen));
    super::hide(&mut value["table"], &table.absent(unseen));
    value.serialize(to)
}

impl Judged {
    fn relief(&self) -> Relief {
        match self {
            Self::Unsound(_) => Relief::None,
            Self::Traced(it) => it.verdict.relief,
            Self::Counted(it) => it.verdict.relief,
        }
    }

    /// The number of its syncs, if they were traced.
    fn syncs(&self) -> Option<u64> {
        match self {
            Self::Traced(it) => Some(it.verdict.table.sync.count),
            Self::Unsound(_) | Self::Counted(_) => None,
        }
    }

    fn page(&self) -> String {
        match self {
            Self::Unsound(it) => it.page(),
            Self::Traced(it) => render(&it.verdict),
            Self::Counted(it) => render_glimpse(&it.verdict),
        }
    }
}

impl Report {
    fn new(examined: Option<Examined>, unsound: Vec<Unsound>) -> Self {
        let unsound = unsound.into_iter().map(Judged::Unsound);
        let Some(examined) = examined else {
            return Self {
                schema: 1,
                source: None,
                untraced: None,
                relief: Relief::None,
                gaps: None,
                energy: None,
                joules_per_sync: None,
                file_systems: unsound.collect(),
            };
        };
        let judge = |(dev, facts): (Dev, Facts)| {
            let device = dev.to_string();
            match &examined.events {
                Events::Traced(trace) => Judged::Traced(WithFacts {
                    device,
                    verdict: Box::new(diagnose(trace, dev, &facts)),
                    facts,
                }),
                Events::Counted(record) => {
                    let counts = record.counts.get(&dev).copied().unwrap_or_default();
                    let verdict = glimpse(counts, record.lines.as_deref(), dev, &facts);
                    Judged::Counted(WithFacts {
                        device,
                        verdict: Box::new(verdict),
                        facts,
                    })
                }
            }
        };
        let judged = examined.file_systems.into_iter().map(judge);
        let file_systems: Vec<Judged> = unsound.chain(judged).collect();
        let reliefs = file_systems.iter().map(Judged::relief);
        let relief = reliefs.max().unwrap_or_default();
        let read = examined.energy.as_ref().and_then(Energy::reading);
        let syncs: u64 = file_systems.iter().filter_map(Judged::syncs).sum();
        let joules_per_sync = read
            .filter(|_| syncs > 0)
            .map(|read| read.joules / syncs as f64);
        let (source, untraced, gaps) = match examined.events {
            Events::Traced(trace) => {
                let gaps = Gaps::Tracer {
                    spans_lost: trace.spans_lost,
                    unseen: trace.unseen.iter().map(|sight| sight.word()).collect(),
                    damage: trace.damage,
                };
                ("tracer", None, gaps)
            }
            Events::Counted(record) => {
                let lines_lost = record.lines_lost;
                ("module", Some(record.untraced), Gaps::Module { lines_lost })
            }
        };
        Self {
            schema: 1,
            source: Some(source),
            untraced,
            relief,
            gaps: Some(gaps),
            energy: examined.energy,
            joules_per_sync,
            file_systems,
        }
    }

    /// Prints pages, separated by empty lines.
    fn print(&self, context: &mut Context) -> std::io::Result<()> {
        let pages: Vec<String> = self.file_systems.iter().map(Judged::page).collect();
        context.out.write_all(pages.join("\n").as_bytes())?;
        if let Some(energy) = &self.energy {
            let per_sync = self.joules_per_sync;
            let per_sync = per_sync.map(|joules| format!("; {joules:.4} J per sync"));
            writeln!(
                context.out,
                "\nenergy: {energy}{}",
                per_sync.unwrap_or_default()
            )?;
        }
        if let Some(Gaps::Module {
            lines_lost: lost @ 1..,
        }) = self.gaps
        {
            let (one, many) = ("record of the module was", "records of the module were");
            context.note(format_args!("{} lost", counted(lost, one, many)))?;
        }
        Ok(())
    }

    /// Fails if a file system takes no writes: that comes before any loss of time.
    fn sound(&self) -> Result<(), Failure> {
        let is_unsound = |one: &&Judged| matches!(one, Judged::Unsound(_));
        let unsound = self.file_systems.iter().filter(is_unsound).count();
        if unsound == 0 {
            return Ok(());
        }
        let all = self.file_systems.len();
        let take = if unsound == 1 { "takes" } else { "take" };
        let line = format!("{unsound} of {all} file systems {take} no writes; see above");
        Err(Failure::Coded(Code::Unsound, line))
    }

    /// Fails with the exit code of the best relief, which tells scripts what would help.
    fn relieved(&self) -> Result<(), Failure> {
        let (code, what) = match self.relief {
            Relief::None => return Ok(()),
            Relief::Luc => (Code::LucHelps, "LUC would or might help"),
            Relief::Other => (Code::OtherHelps, "something other than LUC would help"),
            Relief::Device => (Code::DeviceBound, "only a faster device would help"),
        };
        let of = match self.file_systems.len() {
            1 => "the file system loses time".into(),
            all => {
                let is_such = |one: &&Judged| one.relief() == self.relief;
                let such = self.file_systems.iter().filter(is_such).count();
                let lose = if such == 1 { "loses" } else { "lose" };
                format!("{such} of {all} file systems {lose} time")
            }
        };
        let line = format!("{of}, and {what}; see above");
        Err(Failure::Coded(code, line))
    }
}
