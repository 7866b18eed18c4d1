//! Loads all programs at once or, if the kernel refuses some of them, the others.
//!
//! libbpf loads all programs of an object and fails if the kernel refuses one. Then a load of the
//! tracepoints alone shows whether the host has BPF at all. Each means is tried on its own and, if
//! it fails as a whole, each of its functions: some ten more loads on a host that refuses fentry.

use crate::error::TracerError;
use crate::hooks::{Hook, Means};
use crate::host::Offer;
use crate::ring;
use crate::said;
use crate::settings::{Detail, SLOTS, Settings};
use crate::sites::SITES;
use libbpf_rs::{Object, ObjectBuilder, OpenMapMut, OpenObject};

/// The compiled programs.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/luc.bpf.o"));

/// The program that reads the kernel's text.
pub(crate) const READER: &str = "read_text";

/// The program that reports operations that are going on, and the one that tells the others that
/// all are attached.
pub(crate) const UNFINISHED: &str = "unfinished";
pub(crate) const ATTACHED: &str = "attached";

/// Size of the ring in a trial, which needs hardly any, KiB.
const TRIAL_RING_KIB: u32 = 1;

/// A hook, its means, and its function's name on this host.
type Way = (Hook, Means, &'static str);

/// A hook whose program for this means the kernel refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub hook: Hook,
    pub means: Means,
    pub why: String,
}

/// Programs in the kernel, not attached yet.
pub(crate) struct Loaded {
    pub object: Object,
    pub refusals: Vec<Refusal>,
}

/// Loads the wanted programs that the kernel accepts; fails without those for the tracepoints.
pub(crate) fn load(settings: &Settings, offer: &Offer) -> Result<Loaded, TracerError> {
    let wanted = Wanted::new(settings, offer);
    if let Ok(object) = wanted.load(settings) {
        let refusals = Vec::new();
        return Ok(Loaded { object, refusals });
    }
    let trial = Settings {
        ring_kib: TRIAL_RING_KIB,
        ..settings.clone()
    };
    Wanted::tracepoints().load(&trial)?;
    let (fitting, refusals) = wanted.sift(&|wanted| wanted.load(&trial).map(drop));
    let object = fitting.load(settings)?;
    Ok(Loaded { object, refusals })
}

/// A set of programs, by their hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wanted {
    tracepoints: bool,
    ways: Vec<Way>,
    /// Whether the programs at calls inside functions are wanted.
    sites: bool,
    /// Whether the programs for operations that are going on are wanted.
    unfinished: bool,
}

impl Wanted {
    /// All programs that may fit this host.
    fn new(settings: &Settings, offer: &Offer) -> Self {
        let mut ways = Vec::new();
        for hook in settings.hooks() {
            let means = offer.means(hook, &settings.means);
            ways.extend(means.into_iter().map(|(means, name)| (*hook, means, name)));
        }
        Self {
            tracepoints: true,
            ways,
            sites: settings.sites_wanted(offer),
            unfinished: true,
        }
    }

    fn tracepoints() -> Self {
        Self {
            tracepoints: true,
            ..Self::default()
        }
    }

    fn ways(ways: Vec<Way>) -> Self {
        Self {
            ways,
            ..Self::default()
        }
    }

    /// Splits the set into programs that `takes` accepts and refusals, by means, then by function.
    fn sift(&self, takes: &dyn Fn(&Self) -> Result<(), TracerError>) -> (Self, Vec<Refusal>) {
        let mut fitting = Self::tracepoints();
        let mut refusals = Vec::new();
        for means in [Means::Fentry, Means::Kprobe] {
            let of_means = self.ways.iter().filter(|(_, by, _)| *by == means);
            let ways: Vec<Way> = of_means.copied().collect();
            // A set that failed as a whole needs no second trial.
            let rest = self.sites || self.unfinished || ways.len() < self.ways.len();
            if rest && takes(&Self::ways(ways.clone())).is_ok() {
                fitting.ways.extend(ways);
                continue;
            }
            for way in ways {
                match takes(&Self::ways(vec![way])) {
                    Ok(()) => fitting.ways.push(way),
                    Err(error) => refusals.push(Refusal {
                        hook: way.0,
                        means,
                        why: error.reason(),
                    }),
                }
            }
        }
        let sites = Self {
            sites: true,
            ..Self::default()
        };
        fitting.sites = self.sites && takes(&sites).is_ok();
        let unfinished = Self {
            unfinished: true,
            ..Self::default()
        };
        fitting.unfinished = self.unfinished && takes(&unfinished).is_ok();
        (fitting, refusals)
    }

    /// Names of the programs, and for fentry their functions.
    fn programs(&self, settings: &Settings) -> Vec<(String, Option<&'static str>)> {
        let mut programs = Vec::new();
        if self.tracepoints {
            let wanted = settings.tracepoints();
            programs.extend(wanted.map(|program| (program.to_owned(), None)));
        }
        for (hook, means, function) in &self.ways {
            let target = (*means == Means::Fentry).then_some(*function);
            programs.push((means.begin(hook), target));
            programs.extend(means.end(hook).map(|program| (program, target)));
        }
        if self.sites {
            let sites = SITES.iter();
            let names = sites.flat_map(|site| [site.at_begin, site.at_end]);
            programs.extend(names.chain([READER]).map(|name| (name.to_owned(), None)));
        }
        if self.unfinished {
            programs.extend([UNFINISHED, ATTACHED].map(|name| (name.to_owned(), None)));
        }
        programs
    }

    fn load(&self, settings: &Settings) -> Result<Object, TracerError> {
        said::listen();
        let mut builder = ObjectBuilder::default();
        let open = builder
            .name("luc")
            .and_then(|builder| builder.open_memory(OBJECT));
        let mut open = open.map_err(|error| TracerError::from_libbpf("opening", &error))?;
        self.choose(&mut open, settings)?;
        for map in open.maps_mut() {
            size(map, settings)?;
        }
        open.load()
            .map_err(|error| TracerError::from_libbpf("loading", &error))
    }

    fn choose(&self, open: &mut OpenObject, settings: &Settings) -> Result<(), TracerError> {
        let programs = self.programs(settings);
        for mut program in open.progs_mut() {
            let mut named = programs.iter();
            let wanted = named.find(|(name, _)| program.name() == name.as_str());
            program.set_autoload(wanted.is_some());
            if let Some((_, Some(function))) = wanted {
                program
                    .set_attach_target(0, Some((*function).to_owned()))
                    .map_err(|error| TracerError::from_libbpf(function, &error))?;
            }
        }
        Ok(())
    }
}

/// Sets the size or the contents of a map by the settings.
fn size(mut map: OpenMapMut<'_>, settings: &Settings) -> Result<(), TracerError> {
    let name = map.name().to_string_lossy().into_owned();
    if name == "spans" {
        let set = map.set_max_entries(ring_places(settings));
        return set.map_err(|error| TracerError::from_libbpf("the ring's size", &error));
    }
    if name == "counts" {
        // Each takes memory on every processor. A map needs at least one entry.
        let slots = u32::try_from(settings.devs.len())
            .unwrap_or(u32::MAX)
            .max(1);
        let set = map.set_max_entries(slots);
        return set.map_err(|error| TracerError::from_libbpf("the size of the counts", &error));
    }
    if !name.ends_with(".rodata") {
        return Ok(());
    }
    let bytes: Vec<u8> = constants(settings)
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect();
    let place = map
        .initial_value_mut()
        .filter(|place| place.len() == bytes.len());
    let place = place.ok_or_else(|| TracerError::Unfit {
        what: "settings".to_owned(),
        why: "the programs expect different settings".to_owned(),
    })?;
    place.copy_from_slice(&bytes);
    Ok(())
}

/// `struct luc_tracer_settings` of `abi/luc_tracer.h`.
fn constants(settings: &Settings) -> Vec<u32> {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let mut values = vec![
        u32::from(settings.detail == Detail::Spans),
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

pub(crate) fn ring_places(settings: &Settings) -> u32 {
    match settings.detail {
        Detail::Spans => ring::places(settings.ring_kib),
        // A map needs at least one entry.
        Detail::Sums => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::HOOKS;
    use std::cell::Cell;

    fn ways() -> Vec<Way> {
        let way = |means| move |hook: &Hook| (*hook, means, hook.functions[0]);
        let fentry = HOOKS.iter().map(way(Means::Fentry));
        fentry.chain(HOOKS.iter().map(way(Means::Kprobe))).collect()
    }

    fn refused() -> TracerError {
        TracerError::Denied {
            why: "Operation not permitted (os error 1)".into(),
        }
    }

    /// Sifts with a fake kernel; counts how often it was asked.
    fn sift(
        wanted: &Wanted,
        takes: impl Fn(&Way) -> bool,
        sites: bool,
    ) -> (Wanted, Vec<Refusal>, usize) {
        let asked = Cell::new(0);
        let kernel = |wanted: &Wanted| {
            asked.set(asked.get() + 1);
            let fits = wanted.ways.iter().all(&takes) && (sites || !wanted.sites);
            fits.then_some(()).ok_or_else(refused)
        };
        let (fitting, refusals) = wanted.sift(&kernel);
        (fitting, refusals, asked.get())
    }

    #[test]
    fn a_means_that_is_refused_leaves_the_other() {
        let wanted = Wanted {
            tracepoints: true,
            ways: ways(),
            sites: true,
            unfinished: true,
        };
        let (fitting, refusals, asked) = sift(&wanted, |way| way.1 == Means::Kprobe, true);
        assert!(fitting.tracepoints && fitting.sites);
        assert_eq!(fitting.ways, wanted.ways[HOOKS.len()..]);
        assert_eq!(refusals.len(), HOOKS.len());
        assert!(refusals.iter().all(|one| one.means == Means::Fentry));
        assert_eq!(refusals[0].why, "Operation not permitted");
        // Fentry together, each function of it, kprobes together, sites, the unfinished.
        assert_eq!(asked, 1 + HOOKS.len() + 3);
    }

    #[test]
    fn one_function_that_is_refused_leaves_the_others() {
        let wanted = Wanted {
            tracepoints: true,
            ways: ways(),
            ..Wanted::default()
        };
        let one = wanted.ways[3];
        let (fitting, refusals, _) = sift(&wanted, |way| *way != one, false);
        assert_eq!(fitting.ways.len(), wanted.ways.len() - 1);
        assert_eq!((refusals.len(), refusals[0].hook), (1, one.0));
    }

    #[test]
    fn a_set_that_failed_as_a_whole_is_not_tried_again() {
        let only_fentry = Wanted {
            tracepoints: true,
            ways: ways()[..HOOKS.len()].to_vec(),
            ..Wanted::default()
        };
        let (fitting, _, asked) = sift(&only_fentry, |_| false, false);
        assert_eq!(fitting, Wanted::tracepoints());
        assert_eq!(asked, HOOKS.len() + 1);
    }
}
