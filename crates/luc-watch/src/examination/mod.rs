//! The input of `luc doctor`: events of file systems, from the tracer, from LUC's module where
//! nothing can be traced, or from a recording, and this machine's facts about each file system.

mod module;
mod tracer;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use luc_base::Stop;
use luc_base::words::counted;
use luc_bpf::{Detail, Means, Settings, Tracer, TracerError};
use luc_control::Dev;
use luc_host::io_limits::{self, Measured};
use luc_host::io_shares::{self, Delayed, Favour};
use luc_host::journal::{self, Journal};
use luc_host::layout::Layouts;
use luc_host::mapped::{self, Hindrance};
use luc_host::processor_waits::ProcessorWaits;
use luc_host::{
    System, arrays, disk_work, going_on, kernel, preconditions, process, processor_waits, rotation,
    sysfs, watching,
};
use luc_model::diagnosis::{
    Busiest, BusyArray, CpuLimit, DiskWork, Facts, HinderingDevice, IoLimit, Limiter, Luc,
    ThreadWait, Work,
};
use luc_power::meter::{Energy, Meter as EnergyMeter};
use luc_trace::{Header, Trace};

use crate::WatchError;
use crate::recording::{ModuleEvents, with_loops};
pub use module::ModuleRecord;

/// Events of file systems, with facts about each.
pub struct Examined {
    pub events: Events,
    pub file_systems: Vec<(Dev, Facts)>,
    /// Energy of the machine while it was watched; `None` if it has no counters.
    pub energy: Option<Energy>,
    /// Losses of events, one line each.
    pub notes: Vec<String>,
}

/// Events from one source.
pub enum Events {
    Traced(Trace),
    Counted(ModuleRecord),
}

/// An examination that can begin.
pub struct Examiner {
    file_systems: Vec<(Dev, Facts)>,
    /// Devices of journals that lie on another than their file system.
    logs: BTreeMap<Dev, Dev>,
    source: Source,
    /// Missing sources, one line each.
    pub lacks: Vec<String>,
}

enum Source {
    Tracer(Box<Tracer>, Settings),
    /// LUC's module: why nothing is traced, and whether the module's records can be read.
    Module(String, bool),
}

/// Why nothing can be examined, and what could be done instead.
pub struct Refused {
    pub error: TracerError,
    pub hint: Option<&'static str>,
}

impl Examiner {
    /// Prepares to watch these journals, of which the module knows only those with LUC on.
    pub fn new(
        journals: &[Journal],
        means: Option<Means>,
        system: &dyn System,
    ) -> Result<Self, Refused> {
        let mut file_systems = facts(journals, system);
        let devs = journals.iter().map(|journal| journal.device);
        let logs = journals.iter();
        let logs = logs.filter_map(|journal| Some((journal.device, journal.log_device?)));
        let logs: BTreeMap<Dev, Dev> = logs.collect();
        let mut settings = Settings::new(devs.collect(), Detail::Spans);
        settings.means = means.map_or(settings.means, |one| vec![one]);
        let error = match watching::attach(&settings, system) {
            Ok(tracer) => {
                let notes = tracer.attached().notes();
                for (_, facts) in &mut file_systems {
                    facts.unseen_why = notes.iter().map(|note| sentence(note)).collect();
                }
                return Ok(Self {
                    file_systems,
                    logs,
                    source: Source::Tracer(Box::new(tracer), settings),
                    // A diagnosis lists unseen events itself.
                    lacks: Vec::new(),
                });
            }
            Err(error) => error,
        };
        // Other errors are about the arguments: the module cannot help there.
        let host_lacks = matches!(
            error,
            TracerError::NoBtf
                | TracerError::NoBpf
                | TracerError::Denied { .. }
                | TracerError::Elsewhere
                | TracerError::Unfit { .. }
        );
        let loadable = file_systems.iter().all(|(_, it)| it.luc_obstacle.is_none());
        file_systems.retain(|(_, facts)| facts.luc != Some(Luc::Off));
        if file_systems.is_empty() || !host_lacks {
            let hint = "without tracing, LUC's module can measure a part of this without changing \
                        anything: luc on --observe PATH";
            let hint = (host_lacks && loadable).then_some(hint);
            return Err(Refused { error, hint });
        }
        let untraced = error.to_string();
        let mut lacks = vec![format!(
            "the verdict rests only on what LUC's module counts: {untraced}"
        )];
        let left_out = journals.len() - file_systems.len();
        if left_out > 0 {
            let left_out = counted(left_out as u64, "file system", "file systems");
            lacks.push(format!("not examined: {left_out} with LUC off"));
        }
        let obstacle = ModuleEvents::obstacle(system);
        let source = Source::Module(untraced, obstacle.is_none());
        lacks.extend(obstacle.map(|why| format!("only the module's counters are read: {why}")));
        Ok(Self {
            file_systems,
            logs,
            source,
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
        let mut file_systems = self.file_systems;
        let devices: Vec<Dev> = file_systems.iter().map(|(dev, _)| *dev).collect();
        let groups = io_limits::groups(system);
        let limits = io_limits::measure(system, &devices, &groups);
        let delayed = io_shares::measure(system, &devices, &groups);
        let processors = processor_waits::measure(system, &devices, &groups);
        let logs = |device: &Dev| (*device, self.logs.get(device).copied());
        let with_logs: Vec<_> = devices.iter().map(logs).collect();
        let counting = disk_work::count(system, &with_logs);
        let fast_commits = |dev: Dev| journal::fast_commits(system, dev);
        let fast_before: Vec<Option<u64>> = devices.iter().map(|dev| fast_commits(*dev)).collect();
        let mut notes = Vec::new();
        let meter = EnergyMeter::find(&system.path("/"), None).ok();
        let energy_before = meter.as_ref().map(EnergyMeter::sample);
        let events = match self.source {
            Source::Tracer(mut tracer, settings) => {
                let seen = tracer::watch(&mut tracer, &settings, limit, stop, system, &mut notes);
                let (mut trace, watched_ns) =
                    seen.map_err(|error| WatchError::untraceable(error, system))?;
                let sync_waits = sync_waits(&trace, system);
                for (dev, facts) in &mut file_systems {
                    facts.watched_ns = Some(watched_ns);
                    facts.sync_waits.clone_from(&sync_waits);
                    facts.commit_waits_for = commit_waits_for(*dev, system);
                }
                trace.header = with_loops(trace.header, system);
                trace.cgroups = process::cgroups(system);
                trace.blocks = Layouts::default().blocks(system, &trace.waited_blocks());
                Events::Traced(trace)
            }
            Source::Module(untraced, records) => {
                let mut attached = sysfs::attached(system).unwrap_or_default();
                attached.retain(|one| file_systems.iter().any(|(dev, _)| *dev == one.device));
                let events = records.then(|| ModuleEvents::new(system, module::BUFFER_KIB));
                let events = events.transpose()?;
                let record = module::watch(&attached, untraced, events, limit, stop, system)?;
                Events::Counted(record)
            }
        };
        let mut disk_work = counting.end(system);
        let processor_waits = processors.end(system);
        let energy = meter.zip(energy_before);
        let energy = energy.map(|(meter, before)| before.until(&meter.sample()).energy());
        for ((dev, facts), before) in file_systems.iter_mut().zip(fast_before) {
            let both = before.zip(fast_commits(*dev));
            // The count begins again with a mount.
            facts.fast_commits = both.and_then(|(before, now)| now.checked_sub(before));
        }
        // LUC may be switched on or off meanwhile: it matters whether it acted at all.
        for (dev, facts) in &mut file_systems {
            facts.luc = facts.luc.max(Some(mode(*dev, system)));
            facts.io_limits = limits
                .get(dev)
                .map_or_else(Vec::new, |all| used(all, system));
            let delayed = delayed.get(dev).map(Vec::as_slice).unwrap_or_default();
            facts.io_limits.extend(stalled(delayed, system));
            facts.hindering_devices = hindering(*dev, system);
            facts.busy_arrays = busy_arrays(*dev, system);
            let work = disk_work.remove(dev).unwrap_or_default();
            facts.disk_work = work.into_iter().map(competing).collect();
            for_processors(*dev, &processor_waits, facts);
        }
        Ok(Examined {
            events,
            file_systems,
            energy,
            notes,
        })
    }
}

/// The file systems of a recording. This machine's facts about a device number apply only if the
/// recording was made here since the last boot. A recording of the module alone knows none.
pub fn recorded(trace: Trace, system: &dyn System) -> Result<Examined, WatchError> {
    if trace.each_span().next().is_none() {
        return module::recorded(trace);
    }
    let boot = kernel::boot_id(system);
    let here = boot.is_some() && boot.as_ref() == trace.header.pairs.get("boot");
    let journals = if here {
        journal::journals(system).unwrap_or_default()
    } else {
        Vec::new()
    };
    let known = facts(&journals, system);
    let why = trace.header.pairs.get(Header::UNSEEN_WHY);
    let unseen_why: Vec<String> = why.into_iter().map(|why| sentence(why)).collect();
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
    let devs: BTreeSet<Dev> = trace.each_span().map(|span| span.dev).collect();
    Ok(Examined {
        file_systems: devs.into_iter().map(|dev| (dev, facts(dev))).collect(),
        events: Events::Traced(trace),
        energy: None,
        notes: Vec::new(),
    })
}

/// How far limits were used.
fn used(limits: &[Measured], system: &dyn System) -> Vec<IoLimit> {
    let used = limits.iter().filter_map(|measured| {
        Some(IoLimit {
            by: Limiter::Max,
            of: measured.limit.cgroup.clone(),
            setting: measured.limit.setting.clone(),
            used_share: measured.used_share(system)?,
        })
    });
    used.collect()
}

/// How long groups stalled in favour of others.
fn stalled(delayed: &[Delayed], system: &dyn System) -> Vec<IoLimit> {
    let stalled = delayed.iter().filter_map(|delayed| {
        let (by, setting) = match &delayed.by {
            Favour::Latency { of, setting } => {
                let favoured = of.clone();
                (Limiter::Latency { favoured }, setting)
            }
            Favour::Weight { setting } => (Limiter::Weight, setting),
        };
        Some(IoLimit {
            by,
            of: delayed.cgroup.clone(),
            setting: setting.clone(),
            used_share: delayed.share(system)?,
        })
    });
    stalled.collect()
}

fn hindering(dev: Dev, system: &dyn System) -> Vec<HinderingDevice> {
    let hindering = mapped::hindering(system, dev).into_iter();
    let device = hindering.map(|device| {
        let (by, delay) = match device.by {
            Hindrance::Delay(longest) => (Limiter::Delay, Some(longest)),
            Hindrance::NoPath => (Limiter::NoPath, None),
            Hindrance::NoSpace => (Limiter::NoSpace, None),
        };
        HinderingDevice {
            node: device.node,
            by,
            delay_ns: delay.map(|delay| u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX)),
        }
    });
    device.collect()
}

fn busy_arrays(dev: Dev, system: &dyn System) -> Vec<BusyArray> {
    let busy = arrays::busy(system, dev).into_iter();
    let array = busy.map(|arrays::BusyArray { node, action }| BusyArray { node, action });
    array.collect()
}

fn competing(work: disk_work::DiskWork) -> DiskWork {
    DiskWork {
        work: match work.work {
            disk_work::Work::Reads => Work::Reads,
            disk_work::Work::Discards => Work::Discards,
            disk_work::Work::Others => Work::Others,
        },
        node: work.node,
        in_progress_mean: work.in_progress_mean,
        requests_per_s: work.requests_per_s,
        bytes_per_s: work.bytes_per_s,
        by: work.by,
    }
}

/// Adds the waits for processors.
fn for_processors(dev: Dev, waits: &ProcessorWaits, facts: &mut Facts) {
    facts.journal_thread = waits.threads.get(&dev).map(|wait| ThreadWait {
        pid: wait.pid,
        waited_share: wait.waited_share,
        ran_share: wait.ran_share,
    });
    facts.processors_busy_share = waits.busy_share;
    facts.busiest = waits.busiest.as_ref().map(|busiest| Busiest {
        name: busiest.process.name.clone(),
        cgroup: busiest.process.cgroup.clone(),
        used_share: busiest.used_share,
    });
    let limits = waits.limits.iter().map(|limit| CpuLimit {
        of: limit.cgroup.clone(),
        setting: limit.setting.clone(),
        throttled_share: limit.throttled_share,
    });
    facts.cpu_limits = limits.collect();
}

/// Causes of the waits of syncs that are going on, by thread.
fn sync_waits(trace: &Trace, system: &dyn System) -> BTreeMap<u32, String> {
    let syncs = trace.partial.iter().filter(|span| span.is_unfinished());
    let known = syncs.filter_map(|sync| {
        let cause = going_on::sync_waits_for(system, sync.tgid, sync.pid)?;
        Some((sync.pid, cause.to_owned()))
    });
    known.collect()
}

/// The cause of the wait of a file system's running commit.
fn commit_waits_for(dev: Dev, system: &dyn System) -> Option<String> {
    let thread = journal::thread_of(system, dev)?;
    going_on::commit_waits_for(system, thread).map(str::to_owned)
}

/// Turns a note into a sentence.
fn sentence(note: &str) -> String {
    let mut chars = note.chars();
    let first = chars.next().map(char::to_uppercase);
    let sentence = first.into_iter().flatten().chain(chars).chain(['.']);
    sentence.collect()
}

/// This machine's facts about its journals.
pub fn facts(journals: &[Journal], system: &dyn System) -> Vec<(Dev, Facts)> {
    let luc_obstacle = preconditions::obstacle(system);
    let release = kernel::release(system).unwrap_or_default();
    let facts = |journal: &Journal| {
        let point = journal.mount_points.first();
        // If it is not mounted here, it is known by its device.
        let place = point.map_or_else(
            || journal.name.replace('!', "/"),
            |point| point.display().to_string(),
        );
        let facts = Facts {
            path: Some(place),
            device: Some(journal.node.clone()),
            device_bytes: journal.device_bytes,
            journal_bytes: journal.journal_bytes,
            journal_device: journal.journal_device.clone(),
            leaves_data_cached: journal.leaves_data_cached(&release),
            block_bytes: journal.block_bytes,
            mount_options: Some(journal.options.clone()),
            luc: Some(mode(journal.device, system)),
            fast_commit: journal.fast_commit,
            rotational: rotation::turns(system, journal.device),
            luc_obstacle: luc_obstacle.clone(),
            ..Facts::default()
        };
        (journal.device, facts)
    };
    journals.iter().map(facts).collect()
}

/// LUC's mode on a file system.
fn mode(dev: Dev, system: &dyn System) -> Luc {
    match sysfs::mode(system, dev).as_deref() {
        None => Luc::Off,
        Some("observe") => Luc::Observing,
        // A mode that cannot be read may be steering.
        Some(_) => Luc::Steering,
    }
}

#[cfg(test)]
mod tests {
    use luc_host::Machine;

    use super::*;

    const MOUNTS: &str = "\
30 1 253:0 / /srv/mail rw - ext4 /dev/mapper/vg-mail rw
31 1 254:16 / /srv/data rw - ext4 /dev/vdb rw
";

    #[test]
    fn remedies_name_a_mapped_device_by_its_own_name() {
        let dir = tempfile::tempdir().expect("a folder");
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        put("proc/self/mountinfo", MOUNTS);
        put("sys/class/block/dm-0/dm/name", "vg-mail\n");
        let links = dir.path().join("sys/dev/block");
        std::fs::create_dir_all(&links).expect("made");
        for (name, number) in [("dm-0", "253:0"), ("vdb", "254:16")] {
            put(&format!("sys/class/block/{name}/dev"), number);
            let node = format!("../../class/block/{name}");
            std::os::unix::fs::symlink(node, links.join(number)).expect("linked");
        }
        let system = Machine::new(dir.path());
        let journals = journal::journals(&system).expect("mounts");
        assert_eq!(journals[0].name, "dm-0");
        let devices = facts(&journals, &system);
        let devices: Vec<_> = devices.iter().map(|(_, it)| it.device.as_deref()).collect();
        assert_eq!(devices, [Some("/dev/mapper/vg-mail"), Some("/dev/vdb")]);
    }
}
