//! What `luc doctor` judges: events of file systems, from the tracer, from LUC's module where
//! nothing can be traced, or from a recording, and this machine's facts about each file system.

mod module;
mod tracer;

use std::collections::BTreeSet;
use std::time::Duration;

use luc_base::Stop;
use luc_bpf::{Settings, Tracer, TracerError};
use luc_control::Dev;
use luc_host::journal::{self, Journal};
use luc_host::sysfs::{self, Attached};
use luc_host::{System, preconditions, rotation, watching};
use luc_model::diagnosis::{Facts, Luc};
use luc_trace::{Header, Trace};

use crate::WatchError;
use crate::recording::ModuleEvents;
pub use module::ModuleRecord;

/// Events of file systems, with facts about each.
pub struct Examined {
    pub events: Events,
    pub file_systems: Vec<(Dev, Facts)>,
    /// What was lost, one line each.
    pub notes: Vec<String>,
}

/// Events from one source.
pub enum Events {
    Traced(Trace),
    Counted(ModuleRecord),
}

/// An examination that can begin.
pub struct Examiner {
    journals: Vec<Journal>,
    source: Source,
    /// What the examination has to do without, one line each.
    pub lacks: Vec<String>,
}

enum Source {
    Tracer {
        tracer: Tracer,
        ring_kib: u32,
    },
    Module {
        attached: Vec<Attached>,
        untraced: String,
        records: bool,
    },
}

impl Examiner {
    /// Prepares to watch these journals, of which the module knows only those with LUC on.
    ///
    /// # Errors
    /// Nothing can be traced, and the module does not help.
    pub fn new(
        mut journals: Vec<Journal>,
        settings: &Settings,
        system: &dyn System,
    ) -> Result<Self, TracerError> {
        let error = match watching::attach(settings, system) {
            Ok(tracer) => {
                let ring_kib = settings.ring_kib;
                return Ok(Self {
                    journals,
                    source: Source::Tracer { tracer, ring_kib },
                    // A diagnosis lists unseen events itself.
                    lacks: Vec::new(),
                });
            }
            Err(error) => error,
        };
        let all = journals.len();
        let attached = sysfs::attached(system).unwrap_or_default();
        journals.retain(|one| attached.iter().any(|it| it.device == one.device));
        if journals.is_empty() || !host_cannot_trace(&error) {
            return Err(error);
        }
        let untraced = error.to_string();
        let mut lacks = vec![format!(
            "the verdict rests only on what LUC's module counts: {untraced}"
        )];
        let left_out = all - journals.len();
        if left_out > 0 {
            let left_out = luc_base::words::counted(left_out as u64, "file system", "file systems");
            lacks.push(format!("left out: {left_out} with LUC off"));
        }
        let obstacle = ModuleEvents::obstacle(system);
        let records = obstacle.is_none();
        lacks.extend(obstacle.map(|why| format!("only the module's counters are read: {why}")));
        Ok(Self {
            journals,
            source: Source::Module {
                attached,
                untraced,
                records,
            },
            lacks,
        })
    }

    /// Watches until the time is over or an interrupt comes.
    pub fn watch(
        self,
        limit: Duration,
        stop: &Stop,
        system: &dyn System,
    ) -> Result<Examined, WatchError> {
        // LUC may be switched on or off meanwhile: it matters whether it acted at all.
        let before = facts(&self.journals, system);
        let mut known = Facts::default();
        let mut notes = Vec::new();
        let events = match self.source {
            Source::Tracer { tracer, ring_kib } => {
                known.unseen_why = sentences(&tracer.attached().notes());
                let traced = tracer::watch(tracer, ring_kib, limit, stop, system)?;
                known.watched_ns = Some(traced.watched_ns);
                notes = traced.notes;
                Events::Traced(traced.trace)
            }
            Source::Module {
                attached,
                untraced,
                records,
            } => Events::Counted(module::watch(
                &attached, untraced, records, limit, stop, system,
            )?),
        };
        let file_systems = facts(&self.journals, system).into_iter().zip(before);
        let file_systems = file_systems.map(|((dev, facts), (_, before))| {
            let facts = Facts {
                luc: facts.luc.max(before.luc),
                watched_ns: known.watched_ns,
                unseen_why: known.unseen_why.clone(),
                ..facts
            };
            (dev, facts)
        });
        Ok(Examined {
            events,
            file_systems: file_systems.collect(),
            notes,
        })
    }
}

/// The way to examine a machine that cannot trace, if LUC's module could be loaded there.
pub fn instead(error: &TracerError, system: &dyn System) -> Option<&'static str> {
    (host_cannot_trace(error) && preconditions::obstacle(system).is_none()).then_some(
        "without tracing, LUC's module can measure a part of this and changes nothing: luc on \
         --observe PATH",
    )
}

/// Other errors are about the arguments: the module cannot help there.
fn host_cannot_trace(error: &TracerError) -> bool {
    matches!(
        error,
        TracerError::NoBtf
            | TracerError::NoBpf
            | TracerError::Denied { .. }
            | TracerError::Elsewhere
            | TracerError::Unfit { .. }
    )
}

/// The file systems of a recording. This machine's facts about a device number apply only if the
/// recording was made here since the last boot. A recording of the module alone knows none.
pub fn recorded(trace: Trace, system: &dyn System) -> Result<Examined, WatchError> {
    if trace.spans.is_empty() {
        return module::recorded(trace);
    }
    let boot = system.read("/proc/sys/kernel/random/boot_id").ok();
    let boot = boot.as_deref().map(str::trim);
    let here = boot.is_some() && boot == trace.header.pairs.get("boot").map(String::as_str);
    let journals = if here {
        journal::journals(system).unwrap_or_default()
    } else {
        Vec::new()
    };
    let known = facts(&journals, system);
    let unseen_why: Vec<&String> = trace
        .header
        .pairs
        .get(Header::UNSEEN_WHY)
        .into_iter()
        .collect();
    let unseen_why = sentences(&unseen_why);
    let facts = |dev: Dev| {
        let known = known.iter().find(|(of, _)| *of == dev);
        let known = known.map_or_else(Facts::default, |(_, facts)| facts.clone());
        let point = trace.header.mount_point(dev).map(str::to_owned);
        Facts {
            unseen_why: unseen_why.clone(),
            path: point.or(known.path),
            // The recording tells what LUC did then; its state now may differ.
            luc: None,
            ..known
        }
    };
    let devs: BTreeSet<Dev> = trace.spans.iter().map(|span| span.dev).collect();
    Ok(Examined {
        file_systems: devs.into_iter().map(|dev| (dev, facts(dev))).collect(),
        events: Events::Traced(trace),
        notes: Vec::new(),
    })
}

/// Turns notes into sentences.
fn sentences(notes: &[impl AsRef<str>]) -> Vec<String> {
    let sentence = |note: &str| {
        let mut chars = note.chars();
        let first = chars.next().map(char::to_uppercase);
        let sentence = first.into_iter().flatten().chain(chars).chain(['.']);
        sentence.collect()
    };
    notes.iter().map(|note| sentence(note.as_ref())).collect()
}

/// What this machine tells about its journals.
fn facts(journals: &[Journal], system: &dyn System) -> Vec<(Dev, Facts)> {
    let attached = sysfs::attached(system).unwrap_or_default();
    let luc_obstacle = preconditions::obstacle(system);
    let facts = |journal: &Journal| {
        let point = journal.mount_points.first();
        let luc = match attached.iter().find(|one| one.device == journal.device) {
            None => Luc::Off,
            Some(attached) => match sysfs::knob_word(system, attached, "mode").as_deref() {
                Some("observe") => Luc::Observing,
                // A mode that cannot be read may be steering.
                _ => Luc::Steering,
            },
        };
        let facts = Facts {
            path: point.map(|point| point.display().to_string()),
            device: Some(journal.node.clone()),
            device_bytes: journal.device_bytes,
            journal_bytes: journal.journal_bytes,
            block_bytes: journal.block_bytes,
            mount_options: Some(journal.options.clone()),
            luc: Some(luc),
            fast_commit: journal.fast_commit,
            rotational: rotation::turns(system, journal.device),
            luc_obstacle: luc_obstacle.clone(),
            ..Facts::default()
        };
        (journal.device, facts)
    };
    journals.iter().map(facts).collect()
}
