//! Samples of journals and processes: the one source of the numbers of
//! `luc top`, `luc exporter` and `luc status --live`.
//!
//! A [`Sampler`] takes [`Reading`]s, which are totals; a [`Snapshot`] is the
//! difference of two. There are two sources: the tracer, which needs
//! privileges but not the module, and the module's counters, which anybody may
//! read. The snapshot has a line about a missing source.

mod groups;
mod processes;
mod reading;
mod snapshot;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "toys"))]
pub mod toys;

use std::time::Instant;

use luc_bpf::{Attached, Counts, Detail, Means, Settings, Tracer, TracerError};
use luc_control::Dev;
use luc_host::health::HealthCheck;
use luc_host::journal::{self, Journal};
use luc_host::{System, kernel, sysfs, watching};
use luc_power::meter::Meter as EnergyMeter;
use luc_trace::{Unseen, printable};

use crate::WatchError;
use crate::time::now_ns;

pub use groups::GroupTotals;
use groups::Groups;
use processes::Processes;
pub use reading::{JournalReading, ModuleReading, ProcessReading, Reading, WaitingSyncs};
pub use snapshot::{JournalSample, LucSample, ProcessSample, REASONS, Snapshot};

/// The tracer, or why there is none, and what it does not see.
struct Tracing {
    tracer: Result<Tracer, TracerError>,
    /// Number of the tracer: a new one starts to count from 0.
    generation: u32,
    /// The file systems that it was attached for, whether it watches them all or not.
    asked: Vec<Dev>,
    lacks: Vec<String>,
    /// Kinds of events that the tracer does not see.
    unseen: Unseen,
}

pub struct Sampler {
    /// The means by which to watch functions; any if `None`.
    means: Option<Means>,
    /// The processes; `None` if nobody asks for them.
    processes: Option<Processes>,
    /// The control groups; `None` if nobody asked for them.
    groups: Option<Groups>,
    begin: Instant,
    kernel: String,
    only: Option<Dev>,
    /// The mount table and the live file systems as last read; while they stay the same, the
    /// superblocks need no second look.
    mounts: (String, Vec<String>),
    journals: Vec<Journal>,
    health: HealthCheck,
    /// The meter of energy, or why there is none; `None` if nobody asked for it.
    energy: Option<Result<EnergyMeter, String>>,
    tracing: Tracing,
    before: Option<Reading>,
}

impl Sampler {
    /// Attaches to every ext4 and ext3 journal that can commit, or to one. Needs tracer or module.
    pub fn new(
        only: Option<Dev>,
        means: Option<Means>,
        system: &dyn System,
    ) -> Result<Self, WatchError> {
        let sampler = Self::even_blind(only, means, system)?;
        match sampler.tracing.tracer {
            Err(error) if !sysfs::loaded(system) => Err(WatchError::untraceable(error, system)),
            _ => Ok(sampler),
        }
    }

    /// Like [`Sampler::new`], but works with neither, for a caller that runs until there is one.
    pub fn even_blind(
        only: Option<Dev>,
        means: Option<Means>,
        system: &dyn System,
    ) -> Result<Self, WatchError> {
        let mut sampler = Sampler {
            means,
            processes: Some(Processes::default()),
            groups: None,
            begin: Instant::now(),
            kernel: kernel::release(system).unwrap_or_default(),
            only,
            mounts: (String::new(), Vec::new()),
            journals: Vec::new(),
            health: HealthCheck::new(system),
            energy: None,
            tracing: Tracing {
                tracer: Err(TracerError::Elsewhere),
                generation: 0,
                asked: Vec::new(),
                lacks: Vec::new(),
                unseen: Unseen::new(),
            },
            before: None,
        };
        sampler.look(system)?;
        sampler.attach(system);
        Ok(sampler)
    }

    /// Leaves processes out, for totals of journals only.
    #[must_use]
    pub fn without_processes(self) -> Self {
        Sampler {
            processes: None,
            ..self
        }
    }

    /// Reads the totals of control groups, too.
    #[must_use]
    pub fn with_groups(self) -> Self {
        Sampler {
            groups: Some(Groups::default()),
            ..self
        }
    }

    /// Reads the energy of the machine, too, as far as it has counters.
    #[must_use]
    pub fn with_energy(self, system: &dyn System) -> Self {
        let meter = EnergyMeter::find(&system.path("/"), None);
        Sampler {
            energy: Some(meter.map_err(|error| error.to_string())),
            ..self
        }
    }

    /// Finds the journals, if any was mounted or unmounted.
    fn look(&mut self, system: &dyn System) -> Result<(), WatchError> {
        let mounts = system.read("/proc/self/mountinfo")?;
        let mounts = (mounts, journal::live(system));
        if mounts == self.mounts {
            return Ok(());
        }
        let mut journals = journal::journals(system)?;
        let healths = self.health.look(system, &journals);
        // An error makes a file system read-only, too.
        let mut unsound = healths.iter().map(|health| health.fault().is_some());
        journals.retain(|one| unsound.next() == Some(true) || one.obstacle().is_none());
        journals.retain(|one| self.only.is_none_or(|only| one.device == only));
        self.mounts = mounts;
        self.journals = journals;
        Ok(())
    }

    fn attach(&mut self, system: &dyn System) {
        let devices: Vec<Dev> = self.journals.iter().map(|one| one.device).collect();
        let mut lacks = Vec::new();
        let tracer = attach(&devices, self.means, system, &mut lacks);
        let unseen = match &tracer {
            Ok(tracer) => tracer.attached().unseen(),
            Err(_) => Unseen::new(),
        };
        if let Err(error) = &tracer {
            lacks.push(format!("nothing is traced: {error}"));
        }
        // Another tracer counts from 0.
        self.groups = self.groups.take().map(|_| Groups::default());
        self.processes = self.processes.take().map(|_| Processes::default());
        self.tracing = Tracing {
            tracer,
            generation: self.tracing.generation + 1,
            asked: devices,
            lacks,
            unseen,
        };
    }

    /// Reads the totals at this moment.
    pub fn read(&mut self, system: &dyn System) -> Result<Reading, WatchError> {
        self.look(system)?;
        // An unmounted journal costs nothing; a new one needs another tracer.
        let new = |one: &Journal| !self.tracing.asked.contains(&one.device);
        // A refusal stays one; asking again at each mount would be noise.
        let refused = matches!(self.tracing.tracer, Err(TracerError::Denied { .. }));
        if !refused && self.journals.iter().any(new) {
            self.attach(system);
        }
        let attached = self.tracing.tracer.as_ref().map(Tracer::attached);
        let mut reading = Reading {
            hooks: attached.map_or_else(|_| Attached::default().by_means(), Attached::by_means),
            at: self.begin.elapsed(),
            module_version: sysfs::version(system),
            module_loaded: sysfs::loaded(system),
            lacks: self.tracing.lacks.clone(),
            unseen: self.tracing.unseen.clone(),
            energy: self.energy.as_ref().map(|meter| match meter {
                Ok(meter) => Ok(meter.sample()),
                Err(why) => Err(why.clone()),
            }),
            ..Reading::default()
        };
        let attached = sysfs::attached(system).unwrap_or_default();
        let healths = self.health.look(system, &self.journals);
        for (journal, health) in self.journals.iter().zip(healths) {
            let one = attached.iter().find(|one| one.device == journal.device);
            reading.journals.push(JournalReading {
                device: journal.device,
                name: printable(&journal.name.replace('!', "/")),
                kind: journal.kind.clone(),
                mount_points: journal.mount_points.clone(),
                health,
                counts: None,
                waiting: None,
                fast_commits: journal::fast_commits(system, journal.device),
                module: one.and_then(|one| ModuleReading::read(system, one)),
            });
        }
        self.read_tracer(system, &mut reading)
            .map_err(|error| WatchError::untraceable(error, system))?;
        if !reading.module_loaded {
            let line = "the module is not loaded: set points, holds and copies are unknown";
            reading.lacks.push(line.into());
        }
        Ok(reading)
    }

    /// Returns what the tracer has counted for a journal; `None` without a tracer.
    pub fn counts(&self, device: Dev) -> Option<Counts> {
        self.tracing.tracer.as_ref().ok()?.counts(device).ok()?
    }

    fn read_tracer(
        &mut self,
        system: &dyn System,
        reading: &mut Reading,
    ) -> Result<(), TracerError> {
        let Ok(tracer) = &self.tracing.tracer else {
            return Ok(());
        };
        reading.generation = Some(self.tracing.generation);
        reading.lost = Some(tracer.lost()?);
        let (going_on, now_ns) = (tracer.going_on()?, now_ns());
        for journal in &mut reading.journals {
            journal.counts = tracer.counts(journal.device)?;
            let going_on = going_on.as_ref().and_then(|all| all.get(&journal.device));
            journal.waiting = going_on.map(|one| WaitingSyncs::new(one, now_ns));
        }
        if let Some(groups) = &mut self.groups {
            reading.groups = groups.read(tracer, system)?;
        }
        if let Some(processes) = &mut self.processes {
            reading.processes = processes.read(tracer, system)?;
        }
        Ok(())
    }

    /// The events since the last call; at the first call rates are unknown.
    pub fn sample(&mut self, system: &dyn System) -> Result<Snapshot, WatchError> {
        let now = self.read(system)?;
        let snapshot = Snapshot::between(&self.kernel, self.before.as_ref(), &now);
        self.before = Some(now);
        Ok(snapshot)
    }
}

fn attach(
    devices: &[Dev],
    means: Option<Means>,
    system: &dyn System,
    lacks: &mut Vec<String>,
) -> Result<Tracer, TracerError> {
    let devs: Vec<_> = devices.to_vec();
    let settings = |devs| {
        let mut settings = Settings::new(devs, Detail::Sums);
        settings.means = means.map_or(settings.means, |one| vec![one]);
        settings
    };
    let tracer = match watching::attach(&settings(devs.clone()), system) {
        Err(TracerError::TooMany { most, .. }) => {
            lacks.push(format!(
                "only {most} of {} file systems are traced: those mounted first",
                devs.len()
            ));
            let first = devs.into_iter().take(most).collect();
            watching::attach(&settings(first), system)?
        }
        other => other?,
    };
    lacks.extend(tracer.attached().notes());
    Ok(tracer)
}
