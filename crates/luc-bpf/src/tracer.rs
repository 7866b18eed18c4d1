//! Loading, attaching, reading.

use crate::counts::{COUNTS_BYTES, Counts, ProcessCounts};
use crate::error::TracerError;
use crate::hooks::{HOOKS, Hook, Means, Offer, TRACEPOINTS};
use crate::ring::{self, Ring};
use crate::sites::{Place, SITES, Site};
use crate::{host, misses, said, text};
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder, ProgramMut};
use luc_control::Dev;
use luc_trace::SPAN_BYTES;
use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::PathBuf;
use std::time::Duration;

/// The compiled programs.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/luc.bpf.o"));

/// File systems that can be watched at once, as `abi/luc_tracer.h` says.
const SLOTS: usize = 64;
const CGROUPS_MAX: usize = 16;
const PROCESSES_MAX: usize = 1024;
/// The program that reads the kernel's text.
const READER: &str = "read_text";
/// How long a program may be held up between a span's begin and its end, when all are leaving.
const STRAGGLERS: u32 = 20;
const STRAGGLER_PAUSE: Duration = Duration::from_millis(5);

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A span of every operation, commit and wait.
    Timeline,
    /// Sums and histograms.
    Counts,
}

/// What to watch, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// File systems.
    pub devs: Vec<Dev>,
    /// Spans or counts.
    pub mode: Mode,
    /// Only operations of these processes; empty: of all.
    pub processes: Vec<u32>,
    /// Only operations of tasks in these control groups, or below them; empty: of all.
    pub cgroups: Vec<PathBuf>,
    /// Size of the ring of spans, KiB; rounded up to a power of two of spans.
    pub ring_kib: u32,
    /// Means that may be taken, for tests and for hosts with trouble.
    pub means: Vec<Means>,
}

impl Settings {
    /// All operations on these file systems.
    pub fn new(devs: Vec<Dev>, mode: Mode) -> Self {
        Self {
            devs,
            mode,
            processes: Vec::new(),
            cgroups: Vec::new(),
            ring_kib: 16 * 1024,
            means: vec![Means::Fentry, Means::Kprobe],
        }
    }
}

/// A function that could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// Which.
    pub hook: Hook,
    /// Why not.
    pub why: String,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let functions = self.hook.functions.join(" or ");
        write!(f, "{}: {functions}: {}", self.hook.what, self.why)
    }
}

/// What was attached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attached {
    /// Functions and by which means.
    pub hooks: Vec<(Hook, Means)>,
    /// Calls inside of functions, by kprobes.
    pub sites: Vec<Site>,
    /// Those that are missing.
    pub lacks: Vec<Lack>,
}

/// Programs in the kernel. They leave with it.
pub struct Tracer {
    attached: Attached,
    devs: Vec<Dev>,
    /// None where only counts are wanted.
    ring: Option<Ring>,
    // Links go before the programs that they lead to.
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
    /// No types, no rights, too much asked for, or a kernel that nothing fits. A function that
    /// cannot be had is no error: see [`Tracer::attached`].
    pub fn attach(settings: &Settings) -> Result<Self, TracerError> {
        Self::attach_with(settings, &host::offer())
    }

    /// The same with what a host is known to offer.
    ///
    /// # Errors
    /// As [`Tracer::attach`].
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
        said::listen();
        let object = match load(settings, offer, &settings.means) {
            // A function of a module whose types lack it, say.
            Err(TracerError::Unfit { .. }) if offer.kprobes => {
                load(settings, offer, &only(&settings.means, Means::Kprobe))?
            }
            other => other?,
        };
        fill(&object, settings)?;
        let ring = match settings.mode {
            Mode::Timeline => Some(ring(&object, settings)?),
            Mode::Counts => None,
        };
        let mut tracer = Self {
            attached: Attached::default(),
            devs: settings.devs.clone(),
            ring,
            links: Vec::new(),
            object,
        };
        tracer.attach_all(settings, offer)?;
        Ok(tracer)
    }

    /// What it attached to, and what it does without.
    pub fn attached(&self) -> &Attached {
        &self.attached
    }

    /// The file systems that it watches.
    pub fn devs(&self) -> &[Dev] {
        &self.devs
    }

    fn attach_all(&mut self, settings: &Settings, offer: &Offer) -> Result<(), TracerError> {
        let timeline = settings.mode == Mode::Timeline;
        if sites_wanted(settings, offer) {
            // What cannot be had has a stand-in among the functions.
            for site in &SITES {
                if let Ok(links) = self.attach_site(site, offer) {
                    self.links.extend(links);
                    self.attached.sites.push(*site);
                }
            }
        }
        // Functions first: an operation seen at its end only would have no begin, but one
        // whose waits were missed would be wrong.
        for hook in HOOKS.iter().filter(|hook| timeline || !hook.timeline_only) {
            let by_calls = |site: &Site| Some(site.wait) == hook.stands_in;
            if self.attached.sites.iter().any(by_calls) {
                continue;
            }
            let mut why = "this kernel has no such function to attach to".to_owned();
            let mut by = None;
            for (means, function) in offer.means(hook, &settings.means) {
                match self.attach_hook(hook, means, function) {
                    Ok(()) => {
                        by = Some(means);
                        break;
                    }
                    Err(error) => why = error,
                }
            }
            match by {
                Some(means) => self.attached.hooks.push((*hook, means)),
                None => self.attached.lacks.push(Lack { hook: *hook, why }),
            }
        }
        self.settle_alternatives();
        for tracepoint in TRACEPOINTS.iter().filter(|t| timeline || !t.timeline_only) {
            let link = self
                .link(tracepoint.program)
                .map_err(|why| TracerError::Unfit {
                    what: format!("tracepoint of {}", tracepoint.program),
                    why,
                })?;
            self.links.push(link);
        }
        Ok(())
    }

    /// Kernels use one of two functions to wait for a locked transaction: one is enough.
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
        let (begin, end) = places.ok_or("its calls are not where they are looked for")?;
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
        // The end first: a begin without an end would be remembered for ever.
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

    /// Hands out the spans that came since the last call, some at a time, where they lie.
    pub fn poll(&self, mut each: impl FnMut(&[[u8; SPAN_BYTES]])) {
        let Some(ring) = &self.ring else { return };
        ring.take(&mut each);
        if !self.links.is_empty() {
            return;
        }
        // These are the last. A program that was preempted while it wrote one goes on.
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

    /// Ends tracing; what is in the ring can still be polled.
    pub fn detach(&mut self) {
        // Begins first: one whose end nobody sees any more would count as lost.
        while let Some(link) = self.links.pop() {
            drop(link);
        }
    }

    /// What was lost since the begin: spans without room in the ring, and events that a
    /// program was not run for.
    ///
    /// # Errors
    /// The counts cannot be read.
    pub fn lost(&self) -> Result<u64, TracerError> {
        let lost = self.percpu("lost", 0)?;
        let lost = lost.iter().filter_map(|bytes| bytes.first_chunk());
        let no_room: u64 = lost.map(|bytes| u64::from_ne_bytes(*bytes)).sum();
        let loaded = self.object.progs().filter(libbpf_rs::Program::autoload);
        let missed: u64 = loaded.map(|program| misses::of(program.as_fd())).sum();
        let given_up = self.ring.as_ref().map_or(0, Ring::given_up);
        Ok(no_room + missed + given_up)
    }

    /// Whether spans found the ring full, as far as it was emptied.
    pub fn ring_was_full(&self) -> bool {
        self.ring.as_ref().is_some_and(Ring::was_full)
    }

    /// What was counted on a file system; None if it is not watched.
    ///
    /// # Errors
    /// The counts cannot be read.
    pub fn counts(&self, dev: Dev) -> Result<Option<Counts>, TracerError> {
        let Some(slot) = self.devs.iter().position(|watched| *watched == dev) else {
            return Ok(None);
        };
        let mut counts = Counts::default();
        for bytes in self.percpu("counts", u32::try_from(slot).unwrap_or(0))? {
            // The kernel rounds a processor's part up to eight bytes, which it is.
            if !counts.add_bytes(bytes.get(..COUNTS_BYTES).unwrap_or(&bytes)) {
                return Err(TracerError::Read {
                    what: "counts",
                    why: format!("a record has {} bytes", bytes.len()),
                });
            }
        }
        Ok(Some(counts))
    }

    /// What processes did and lost on all watched file systems, by their number.
    ///
    /// # Errors
    /// The counts cannot be read.
    pub fn processes(&self) -> Result<Vec<(u32, ProcessCounts)>, TracerError> {
        let map = self.map("processes")?;
        let mut list = Vec::new();
        for key in map.keys() {
            // It may be gone by now.
            let Ok(Some(value)) = map.lookup(&key, MapFlags::ANY) else {
                continue;
            };
            let id = key.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
            list.extend(id.zip(ProcessCounts::from_bytes(&value)));
        }
        list.sort_unstable_by_key(|(id, _)| *id);
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

/// Whether calls inside of functions are to be looked for.
fn sites_wanted(settings: &Settings, offer: &Offer) -> bool {
    settings.means.contains(&Means::Kprobe) && offer.kprobes
}

fn only(means: &[Means], one: Means) -> Vec<Means> {
    means.iter().copied().filter(|m| *m == one).collect()
}

/// Loads the tracepoints' programs and those of all means that a function may be had by.
fn load(settings: &Settings, offer: &Offer, means: &[Means]) -> Result<Object, TracerError> {
    let timeline = settings.mode == Mode::Timeline;
    // Programs, and the function that those for fentry are for.
    let mut wanted: Vec<(String, Option<&str>)> = TRACEPOINTS
        .iter()
        .filter(|tracepoint| timeline || !tracepoint.timeline_only)
        .map(|tracepoint| (tracepoint.program.to_owned(), None))
        .collect();
    for hook in HOOKS.iter().filter(|hook| timeline || !hook.timeline_only) {
        for (means, function) in offer.means(hook, means) {
            let target = (means == Means::Fentry).then_some(function);
            wanted.push((means.begin(hook), target));
            wanted.extend(means.end(hook).map(|program| (program, target)));
        }
    }
    if sites_wanted(settings, offer) {
        let programs = SITES
            .iter()
            .flat_map(|site| [site.at_begin, site.at_end])
            .chain([READER]);
        wanted.extend(programs.map(|program| (program.to_owned(), None)));
    }
    let mut builder = ObjectBuilder::default();
    let open = builder
        .name("luc")
        .and_then(|builder| builder.open_memory(OBJECT));
    let mut open = open.map_err(|error| TracerError::of("opening", &error))?;
    for mut program in open.progs_mut() {
        let wanted = wanted
            .iter()
            .find(|(name, _)| program.name() == name.as_str());
        program.set_autoload(wanted.is_some());
        if let Some((_, Some(function))) = wanted {
            program
                .set_attach_target(0, Some((*function).to_owned()))
                .map_err(|error| TracerError::of(function, &error))?;
        }
    }
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if name == "spans" {
            let set = map.set_max_entries(ring_places(settings));
            set.map_err(|error| TracerError::of("the ring's size", &error))?;
        } else if name.ends_with(".rodata") {
            let bytes: Vec<u8> = constants(settings)
                .iter()
                .flat_map(|value| value.to_ne_bytes())
                .collect();
            let place = map
                .initial_value_mut()
                .filter(|place| place.len() == bytes.len());
            let place = place.ok_or_else(|| TracerError::Unfit {
                what: "settings".to_owned(),
                why: "the programs expect others".to_owned(),
            })?;
            place.copy_from_slice(&bytes);
        }
    }
    open.load()
        .map_err(|error| TracerError::of("loading", &error))
}

/// `struct luc_tracer_settings` of `abi/luc_tracer.h`.
fn constants(settings: &Settings) -> Vec<u32> {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let mut values = vec![
        u32::from(settings.mode == Mode::Timeline),
        u32::from(!settings.processes.is_empty()),
        count(settings.cgroups.len()),
        count(settings.devs.len()),
        ring_places(settings),
    ];
    let heads = values.len();
    values.extend(settings.devs.iter().map(|dev| luc_trace::encode(*dev)));
    values.resize(heads + SLOTS, 0);
    values
}

/// Names what is to be watched.
fn fill(object: &Object, settings: &Settings) -> Result<(), TracerError> {
    let put = |name: &'static str, key: u32, value: &[u8]| {
        map(object, name)?
            .update(&key.to_ne_bytes(), value, MapFlags::ANY)
            .map_err(|error| TracerError::of(name, &error))
    };
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
            .map_err(|_| bad("it lies in no cgroup2 file system".to_owned()))?;
    }
    Ok(())
}

fn map(object: &Object, name: &'static str) -> Result<MapHandle, TracerError> {
    let found = object.maps().find(|map| map.name() == name);
    let found = found.ok_or_else(|| TracerError::Unfit {
        what: format!("map {name}"),
        why: "the programs have none of that name".to_owned(),
    })?;
    MapHandle::try_from(&found).map_err(|error| TracerError::of(name, &error))
}

/// Where no span is written one place will do.
fn ring_places(settings: &Settings) -> u32 {
    match settings.mode {
        Mode::Timeline => ring::places(settings.ring_kib),
        Mode::Counts => 1,
    }
}

fn ring(object: &Object, settings: &Settings) -> Result<Ring, TracerError> {
    let (control, spans) = (map(object, ".data.ring")?, map(object, "spans")?);
    Ring::new(control.as_fd(), spans.as_fd(), ring_places(settings))
}
