//! Finds the meter of a machine: an external one if given, else counters of its processor packages,
//! else its batteries.
//!
//! The crate `powercap` (0.3.5) is not used: it hides the names of zones, so that `psys` looks like
//! a package, adds the cores to the package that contains them, and knows no wraps.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::battery::Batteries;
use super::counter::{CounterFile, Counters, Files};
use super::error::MeterError;
use super::external::{External, Stream};
use super::reading::Boundary;
use super::source::Found;
use super::sysfs::{entries, named};

pub fn find(root: &Path, external: Option<&External>) -> Result<Found, MeterError> {
    if let Some(external) = external {
        return Ok(Found {
            boundary: Boundary::ExternalMeter,
            source: Box::new(Stream::start(external)?),
        });
    }
    let powercap = root.join("sys/class/powercap");
    let packages =
        Zones::read(&powercap).or_else(|| Zones::of_hwmon(&root.join("sys/class/hwmon")));
    if let Some(packages) = packages {
        return Ok(Found {
            boundary: packages.boundary,
            source: Box::new(Counters::open(packages.files, Instant::now())?),
        });
    }
    match Batteries::discharging(&root.join("sys/class/power_supply")) {
        Some(batteries) => Ok(Found {
            boundary: Boundary::Battery,
            source: Box::new(batteries?),
        }),
        None => Err(MeterError::NoCounters { powercap }),
    }
}

/// The counters that together are all packages, none of them twice.
struct Zones {
    boundary: Boundary,
    files: Files,
}

impl Zones {
    /// Takes the zones of packages, and of DRAM if each package has it; beside them those of the
    /// cores, if each package has one. Leaves out `uncore`, which is inside a package, `psys`,
    /// which contains all, and the packages that `intel-rapl-mmio` shows again. The names are the
    /// same on processors of AMD.
    fn read(powercap: &Path) -> Option<Self> {
        let mut packages: BTreeMap<String, Package> = BTreeMap::new();
        let zones = named(powercap, "name");
        let zones = || {
            zones.iter().filter_map(|(dir, name)| {
                let id = dir.file_name()?.to_str()?.strip_prefix("intel-rapl:")?;
                Some((dir, id, name.as_str()))
            })
        };
        for (dir, id, name) in zones() {
            let Some(number) = name.strip_prefix("package-") else {
                continue;
            };
            // A package of several dies has a zone for each: package-0-die-1.
            let number = number.split('-').next().unwrap_or(number);
            let package = packages.entry(number.to_owned()).or_default();
            package.own.push(dir.clone());
            let inside = |wanted: &'static str| {
                let inside = zones().filter(move |(_, inner, name)| {
                    *name == wanted && inner.rsplit_once(':').is_some_and(|(outer, _)| outer == id)
                });
                inside.map(|(dir, _, _)| dir.clone())
            };
            package.dram.extend(inside("dram"));
            package.cores.extend(inside("core"));
        }
        if packages.is_empty() {
            return None;
        }
        let count = u32::try_from(packages.len()).unwrap_or(u32::MAX);
        let with_dram = packages.values().all(|package| !package.dram.is_empty());
        let boundary = if with_dram {
            Boundary::PackagesAndDram { packages: count }
        } else {
            Boundary::Packages { packages: count }
        };
        let with_cores = packages.values().all(|package| !package.cores.is_empty());
        let files = |all_have_them: bool, dirs: fn(&Package) -> &[PathBuf]| {
            let packages = packages.values().filter(|_| all_have_them);
            let file = |dir: &PathBuf| -> CounterFile {
                let range = dir.join("max_energy_range_uj");
                (dir.join("energy_uj"), Some(range))
            };
            packages.flat_map(dirs).map(file).collect()
        };
        Some(Self {
            boundary,
            files: Files {
                packages: files(true, |package| &package.own),
                dram: files(with_dram, |package| &package.dram),
                cores: files(with_cores, |package| &package.cores),
            },
        })
    }

    /// Takes the packages ("sockets") of the driver `amd_energy`. Other energy in hwmon is of
    /// parts that its label does not tell.
    fn of_hwmon(hwmon: &Path) -> Option<Self> {
        let mut counters = Vec::new();
        for device in entries(hwmon) {
            for label in entries(&device) {
                let name = label.file_name().and_then(|name| name.to_str());
                let energy = name.filter(|name| name.starts_with("energy"));
                let Some(energy) = energy.and_then(|name| name.strip_suffix("_label")) else {
                    continue;
                };
                if fs::read_to_string(&label).is_ok_and(|label| label.starts_with("Esocket")) {
                    counters.push((device.join(format!("{energy}_input")), None));
                }
            }
        }
        let packages = u32::try_from(counters.len()).ok()?;
        (packages > 0).then_some(Self {
            boundary: Boundary::Packages { packages },
            files: Files {
                packages: counters,
                ..Files::default()
            },
        })
    }
}

/// The zones of one package.
#[derive(Default)]
struct Package {
    own: Vec<PathBuf>,
    dram: Vec<PathBuf>,
    cores: Vec<PathBuf>,
}
