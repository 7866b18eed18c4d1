//! Attaches the programs and reads their results.

use crate::counts::{COUNTS_BYTES, Counts, OTHER_CGROUPS, TaskCounts};
use crate::error::TracerError;
use crate::going_on::{EARLIER_MAX, EarlierSync, GoingOn};
use crate::hooks::{Hook, Means};
use crate::host::{self, Offer};
use crate::load::{self, ATTACHED, Loaded, READER, Refusal, UNFINISHED};
use crate::ring::Ring;
use crate::settings::{Detail, SLOTS, Settings};
use crate::sites::{Place, SITES, Site};
use crate::{misses, text};
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, Object, ProgramInput, ProgramMut};
use luc_control::Dev;
use luc_trace::{SPAN_BYTES, Sight, Unseen};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::Duration;

const CGROUPS_MAX: usize = 16;
const PROCESSES_MAX: usize = 1024;
/// How often, and how long each time, to wait after the end for a preempted program's span.
const STRAGGLERS: u32 = 20;
const STRAGGLER_PAUSE: Duration = Duration::from_millis(5);

/// A function that could not be hooked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    pub hook: Hook,
    /// A clause for each means.
    pub why: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attached {
    pub hooks: Vec<(Hook, Means)>,
    /// Calls inside functions, by kprobes.
    pub sites: Vec<Site>,
    pub lacks: Vec<Lack>,
    pub tracepoints: usize,
}

impl Attached {
    /// Number of hooks by the name of their means.
    pub fn by_means(&self) -> BTreeMap<String, usize> {
        let of = |means| self.hooks.iter().filter(|(_, by)| *by == means).count();
        BTreeMap::from([
            ("tracepoint".to_owned(), self.tracepoints),
            (Means::Fentry.to_string(), of(Means::Fentry)),
            (
                Means::Kprobe.to_string(),
                of(Means::Kprobe) + self.sites.len(),
            ),
        ])
    }

    /// Kinds of events that are not seen for lack of hooks.
    pub fn unseen(&self) -> Unseen {
        self.lacks.iter().map(|lack| lack.hook.sight).collect()
    }

    /// Notes for people on the events that are not seen, a line for each reason.
    pub fn notes(&self) -> Vec<String> {
        let mut by_reason: Vec<(&str, Unseen)> = Vec::new();
        for Lack { hook, why } in &self.lacks {
            match by_reason.iter_mut().find(|(reason, _)| reason == why) {
                Some((_, unseen)) => _ = unseen.insert(hook.sight),
                None => by_reason.push((why, Unseen::from([hook.sight]))),
            }
        }
        let note = |(why, unseen): (&str, Unseen)| {
            format!("not seen here: {}: {why}", Sight::texts(&unseen))
        };
        by_reason.into_iter().map(note).collect()
    }
}

/// The programs in the kernel. They leave it when this is dropped.
pub struct Tracer {
    attached: Attached,
    devs: Vec<Dev>,
    /// `None` if only sums are wanted.
    ring: Option<Ring>,
    /// Names of threads whose syncs it follows, not yet handed out.
    introductions: Cell<Vec<[u8; SPAN_BYTES]>>,
    // Dropped in this order: links before the programs that they attach.
    links: Vec<Link>,
    object: Object,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer")
            .field("attached", &self.attached)
            .field("devs", &self.devs)
            .finish_non_exhaustive()
    }
}

impl Tracer {
    /// Loads the programs and attaches them.
    ///
    /// # Errors
    /// No types, no rights, too many file systems, processes or control groups, or a kernel that
    /// the programs do not fit. A missing function is no error: see [`Tracer::attached`].
    pub fn attach(settings: &Settings) -> Result<Self, TracerError> {
        Self::attach_with(settings, &host::offer())
    }

    /// Like [`Tracer::attach`], for a host whose offer is known.
    pub fn attach_with(settings: &Settings, offer: &Offer) -> Result<Self, TracerError> {
        if !offer.btf {
            return Err(TracerError::NoBtf);
        }
        for (what, count, most) in [
            ("file systems", settings.devs.len(), SLOTS),
            ("processes", settings.processes.len(), PROCESSES_MAX),
            ("control groups", settings.cgroups.len(), CGROUPS_MAX),
        ] {
            if count > most {
                return Err(TracerError::TooMany { what, most });
            }
        }
        let Loaded { object, refusals } = load::load(settings, offer)?;
        fill(&object, settings)?;
        let ring = match settings.detail {
            Detail::Spans => Some(ring(&object, settings)?),
            Detail::Sums => None,
        };
        let mut tracer = Self {
            attached: Attached::default(),
            devs: settings.devs.clone(),
            ring,
            introductions: Cell::default(),
            links: Vec::new(),
            object,
        };
        tracer.attach_all(settings, offer, &refusals)?;
        // Without it, some operations that wait for commits are not counted.
        let _ = tracer.run(ATTACHED);
        Ok(tracer)
    }

    pub fn attached(&self) -> &Attached {
        &self.attached
    }

    pub fn devs(&self) -> &[Dev] {
        &self.devs
    }

    fn attach_all(
        &mut self,
        settings: &Settings,
        offer: &Offer,
        refusals: &[Refusal],
    ) -> Result<(), TracerError> {
        if settings.sites_wanted(offer) {
            // A missing site has a stand-in among the hooks.
            for site in &SITES {
                if let Ok(links) = self.attach_site(site, offer) {
                    self.links.extend(links);
                    self.attached.sites.push(*site);
                }
            }
        }
        // Hooks before tracepoints: a sync whose waits were missed would be wrong, while an
        // operation of which only the end is seen makes no span.
        for hook in settings.hooks() {
            let by_calls = |site: &Site| Some(site.wait) == hook.stands_in;
            if self.attached.sites.iter().any(by_calls) {
                continue;
            }
            match self.attach_by_any(hook, settings, offer, refusals) {
                Ok(means) => self.attached.hooks.push((*hook, means)),
                Err(why) => self.attached.lacks.push(Lack { hook: *hook, why }),
            }
        }
        self.settle_alternatives();
        for program in settings.tracepoints() {
            let link = self.link(program).map_err(|why| TracerError::Unfit {
                what: format!("tracepoint of {program}"),
                why,
            })?;
            self.links.push(link);
            self.attached.tracepoints += 1;
        }
        Ok(())
    }

    /// Attaches by the first means that works; the error has a reason for each.
    fn attach_by_any(
        &mut self,
        hook: &Hook,
        settings: &Settings,
        offer: &Offer,
        refusals: &[Refusal],
    ) -> Result<Means, String> {
        let mut reasons = Vec::new();
        for means in [Means::Fentry, Means::Kprobe] {
            let function = match offer.function(hook, means, &settings.means) {
                Ok(function) => function,
                Err(why) => {
                    reasons.push(why.to_owned());
                    continue;
                }
            };
            let mut refused = refusals.iter();
            let refused = refused.find(|one| one.hook == *hook && one.means == means);
            let tried = match refused {
                Some(refusal) => Err(refusal.why.clone()),
                None => self.attach_hook(hook, means, function),
            };
            match tried {
                Ok(()) => return Ok(means),
                Err(why) => reasons.push(format!("the kernel refuses {means} ({why})")),
            }
        }
        // Both may fail for one reason.
        reasons.dedup();
        Err(reasons.join(", and "))
    }

    /// A kernel uses one of two functions to wait for a locked transaction: one is enough.
    fn settle_alternatives(&mut self) {
        let has = |suffix: &str| self.attached.hooks.iter().any(|(h, _)| h.suffix == suffix);
        if has("wait") || has("wait_exclusive") {
            self.attached
                .lacks
                .retain(|lack| !["wait", "wait_exclusive"].contains(&lack.hook.suffix));
        }
    }

    fn attach_site(&self, site: &Site, offer: &Offer) -> Result<Vec<Link>, String> {
        let reader = self.program(READER)?;
        let pieces = self.map("text").map_err(|error| error.to_string())?;
        let extent = |name: &str| offer.extent(name);
        let places = site.places(&extent, &|extent| text::read(&reader, &pieces, extent));
        let (begin, end) = places.ok_or("its calls were not found")?;
        let attach = |program: &str, places: &[Place]| -> Result<Vec<Link>, String> {
            let program = self.program(program)?;
            let places = places.iter();
            places.map(|place| text::attach(&program, *place)).collect()
        };
        let mut links = attach(site.at_end, &end)?;
        links.extend(attach(site.at_begin, &begin)?);
        Ok(links)
    }

    fn attach_hook(&mut self, hook: &Hook, means: Means, function: &str) -> Result<(), String> {
        let link = |program: &str, at_end| match means {
            // The function was named when the program was loaded.
            Means::Fentry => self.link(program),
            Means::Kprobe => self
                .program(program)?
                .attach_kprobe(at_end, function)
                .map_err(|error| error.to_string()),
        };
        // The end first: a begin without an end would stay in the table of tasks.
        let end = means.end(hook);
        let end = end.map(|program| link(&program, true)).transpose()?;
        let begin = link(&means.begin(hook), false)?;
        self.links.extend(end);
        self.links.push(begin);
        Ok(())
    }

    fn program(&self, name: &str) -> Result<ProgramMut<'_>, String> {
        let found = self.object.progs_mut().find(|p| p.name() == name);
        found
            .filter(|program| program.autoload())
            .ok_or_else(|| format!("program {name} is not loaded"))
    }

    fn link(&self, program: &str) -> Result<Link, String> {
        let program = self.program(program)?;
        program.attach().map_err(|error| error.to_string())
    }

    /// Hands out the spans since the last call, several at a time, without a copy.
    pub fn poll(&self, mut each: impl FnMut(&[[u8; SPAN_BYTES]])) {
        let Some(ring) = &self.ring else { return };
        let introductions = self.introductions.take();
        if !introductions.is_empty() {
            each(&introductions);
        }
        ring.take(&mut each);
        if !self.links.is_empty() {
            return;
        }
        // These are the last. A program may have been preempted while it wrote one.
        for _ in 0..STRAGGLERS {
            if ring.is_empty() {
                return;
            }
            std::thread::sleep(STRAGGLER_PAUSE);
            ring.take(&mut each);
        }
        while ring.give_up_one() {
            ring.take(&mut each);
        }
    }

    /// Ends tracing, and reports operations that are going on as unfinished spans. Spans in the
    /// ring can still be polled.
    pub fn detach(&mut self) {
        if self.ring.is_some() && !self.links.is_empty() {
            // Before the links go, which takes the kernel some time. A kernel that refuses the
            // program has none to run.
            let _ = self.run(UNFINISHED);
        }
        // Begins first: a begin whose end is not seen would count as lost.
        while self.links.pop().is_some() {}
    }

    fn run(&self, program: &str) -> Result<(), String> {
        let program = self.program(program)?;
        let output = program.test_run(ProgramInput::default());
        output.map(drop).map_err(|error| error.to_string())
    }

    /// Follows syncs that began before the tracer was attached, at most [`EARLIER_MAX`] of them.
    pub fn follow(&self, syncs: &[EarlierSync]) -> Result<(), TracerError> {
        let map = self.map("earlier_syncs")?;
        let followed = syncs.iter().take(EARLIER_MAX);
        let introductions = followed.clone().map(EarlierSync::introduction);
        self.introductions.set(introductions.collect());
        for sync in followed {
            map.update(&sync.pid.to_ne_bytes(), &sync.to_bytes(), MapFlags::ANY)
                .map_err(|error| TracerError::from_libbpf("earlier_syncs", &error))?;
        }
        Ok(())
    }

    /// The threads whose followed syncs have not been seen to end.
    pub fn followed(&self) -> Result<Vec<u32>, TracerError> {
        let map = self.map("earlier_syncs")?;
        let keys = map.keys().filter_map(|key| key.try_into().ok());
        Ok(keys.map(u32::from_ne_bytes).collect())
    }

    /// Stops following the sync of a thread, whose end was not seen.
    pub fn unfollow(&self, pid: u32) -> Result<(), TracerError> {
        // It may have ended just now, too.
        let _ = self.map("earlier_syncs")?.delete(&pid.to_ne_bytes());
        Ok(())
    }

    /// The syncs of files that are going on; `None` if the kernel cannot tell, or the file system
    /// is not watched.
    pub fn going_on(&self) -> Result<Option<BTreeMap<Dev, GoingOn>>, TracerError> {
        if self.run(UNFINISHED).is_err() {
            return Ok(None);
        }
        let map = self.map("syncs_going_on")?;
        let mut found = BTreeMap::new();
        for (slot, dev) in (0_u32..).zip(&self.devs) {
            let bytes = map.lookup(&slot.to_ne_bytes(), MapFlags::ANY);
            let bytes =
                bytes.map_err(|error| TracerError::from_libbpf("syncs_going_on", &error))?;
            if let Some(going_on) = bytes.as_deref().and_then(GoingOn::from_bytes) {
                found.insert(*dev, going_on);
            }
        }
        Ok(Some(found))
    }

    /// Lost since the start: spans that found no room or were never finished, and events that the
    /// kernel skipped.
    pub fn lost(&self) -> Result<u64, TracerError> {
        let lost = self.percpu("lost", 0)?;
        let lost = lost.iter().filter_map(|bytes| bytes.first_chunk());
        let no_room: u64 = lost.map(|bytes| u64::from_ne_bytes(*bytes)).sum();
        let loaded = self.object.progs().filter(libbpf_rs::Program::autoload);
        let missed: u64 = loaded.map(|program| misses::count(program.as_fd())).sum();
        let given_up = self.ring.as_ref().map_or(0, Ring::given_up);
        Ok(no_room + missed + given_up)
    }

    /// Whether spans found the ring full, as far as the reader has looked.
    pub fn ring_was_full(&self) -> bool {
        self.ring.as_ref().is_some_and(Ring::was_full)
    }

    /// The sums of a file system; `None` if it is not watched.
    pub fn counts(&self, dev: Dev) -> Result<Option<Counts>, TracerError> {
        let Some(slot) = self.devs.iter().position(|watched| *watched == dev) else {
            return Ok(None);
        };
        let mut counts = Counts::default();
        for bytes in self.percpu("counts", u32::try_from(slot).unwrap_or(0))? {
            // The kernel rounds a processor's record up to eight bytes, of which it is a multiple.
            if !counts.add_bytes(bytes.get(..COUNTS_BYTES).unwrap_or(&bytes)) {
                return Err(TracerError::Read {
                    what: "counts",
                    why: format!("a record has {} bytes", bytes.len()),
                });
            }
        }
        Ok(Some(counts))
    }

    /// The sums of processes on all watched file systems, by process ID.
    pub fn processes(&self) -> Result<Vec<(u32, TaskCounts)>, TracerError> {
        let all = self.task_counts("processes")?.into_iter();
        let mut list: Vec<_> = all.map(|(id, one)| (u32::from_ne_bytes(id), one)).collect();
        list.sort_unstable_by_key(|(id, _)| *id);
        Ok(list)
    }

    /// The sums of control groups on all watched file systems, by their ids.
    pub fn cgroups(&self) -> Result<Vec<(u64, TaskCounts)>, TracerError> {
        let all = self.task_counts("cgroups")?.into_iter();
        Ok(all.map(|(id, one)| (u64::from_ne_bytes(id), one)).collect())
    }

    /// Forgets the sums of a process, to make room for another.
    pub fn forget_process(&self, id: u32) -> Result<(), TracerError> {
        self.forget("processes", &id.to_ne_bytes())
    }

    /// Forgets the sums of a control group, to make room for another.
    pub fn forget_cgroup(&self, id: u64) -> Result<(), TracerError> {
        self.forget("cgroups", &id.to_ne_bytes())
    }

    fn forget(&self, map: &'static str, key: &[u8]) -> Result<(), TracerError> {
        // Nothing is left to do if it is not there.
        let _ = self.map(map)?.delete(key);
        Ok(())
    }

    fn task_counts<const N: usize>(
        &self,
        map: &'static str,
    ) -> Result<Vec<([u8; N], TaskCounts)>, TracerError> {
        let map = self.map(map)?;
        let mut list = Vec::new();
        for key in map.keys() {
            // It may be gone by now.
            let Ok(Some(value)) = map.lookup(&key, MapFlags::ANY) else {
                continue;
            };
            let id = key.first_chunk().copied();
            list.extend(id.zip(TaskCounts::from_bytes(&value)));
        }
        Ok(list)
    }

    fn percpu(&self, map: &'static str, key: u32) -> Result<Vec<Vec<u8>>, TracerError> {
        let values = self
            .map(map)?
            .lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| TracerError::Read {
                what: map,
                why: error.to_string(),
            })?;
        Ok(values.unwrap_or_default())
    }

    fn map(&self, name: &'static str) -> Result<MapHandle, TracerError> {
        map(&self.object, name)
    }
}

/// Tells the programs which processes and control groups to watch, and makes room for the sums of
/// groups that have no room of their own.
fn fill(object: &Object, settings: &Settings) -> Result<(), TracerError> {
    let put_bytes = |name: &'static str, key: &[u8], value: &[u8]| {
        map(object, name)?
            .update(key, value, MapFlags::ANY)
            .map_err(|error| TracerError::from_libbpf(name, &error))
    };
    let put = |name, key: u32, value: &[u8]| put_bytes(name, &key.to_ne_bytes(), value);
    let others = OTHER_CGROUPS.to_ne_bytes();
    put_bytes("cgroups", &others, &[0; size_of::<TaskCounts>()])?;
    for process in &settings.processes {
        put("chosen_processes", *process, &[1])?;
    }
    for (number, path) in (0_u32..).zip(&settings.cgroups) {
        let shown = path.display().to_string();
        let bad = |why: String| TracerError::NoCgroup {
            path: shown.clone(),
            why,
        };
        let dir = File::open(path).map_err(|error| bad(error.to_string()))?;
        let fd = dir.as_fd().as_raw_fd().to_ne_bytes();
        put("chosen_cgroups", number, &fd)
            .map_err(|_| bad("it is not in a cgroup2 file system".to_owned()))?;
    }
    Ok(())
}

fn map(object: &Object, name: &'static str) -> Result<MapHandle, TracerError> {
    let found = object.maps().find(|map| map.name() == name);
    let found = found.ok_or_else(|| TracerError::Unfit {
        what: format!("map {name}"),
        why: "the programs have no such map".to_owned(),
    })?;
    MapHandle::try_from(&found).map_err(|error| TracerError::from_libbpf(name, &error))
}

fn ring(object: &Object, settings: &Settings) -> Result<Ring, TracerError> {
    let (control, spans) = (map(object, ".data.ring")?, map(object, "spans")?);
    Ring::new(control.as_fd(), spans.as_fd(), load::ring_places(settings))
}
