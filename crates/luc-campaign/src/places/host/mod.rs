//! Bare metal: this machine itself, configured as the cell asks and restored afterwards.
//!
//! A cell has the machine to itself. It switches off turbo, SMT and periodic writeback, sets
//! frequency and processors ([`plan`]), makes each arm's file system on a scratch device that the
//! user named ([`scratch`]), and runs the arm's commands ([`commands`]). [`guard`] restores
//! everything, whatever ends the cell.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use luc_base::Programs;
use luc_host::kernel::{self, Capability, capable};
use luc_host::settings::Change;
use luc_host::{HostError, Machine, System, plain, sysfs};
use luc_power::meter::{Boundary, Meter};
use luc_vm::FsType;
use sha2::{Digest, Sha256};

use super::file_system::{self, text};
use super::{Factor, Needs, Place, Setup, shown, whole};
use crate::cell::{Cell, NamedArm, Versions};
use crate::error::{CampaignError, Result};
use crate::result::{ArmResult, Measured};
use crate::steps::{self, Paths};
use crate::store;
use commands::{Broken, Runner};
use guard::{Guard, Locked, unavailable};
use plan::Wanted;
use scratch::Device;

mod commands;
mod guard;
mod plan;
mod scratch;
#[cfg(test)]
mod tests;

pub use guard::{PutBack, put_back_at_once};

pub struct Host;

/// Value that leaves a factor as it is on the machine.
const AS_IS: &str = "as-is";
/// File in the results folder that names the device they were measured on.
const DEVICE_FILE: &str = "host-device";
/// Size of the file system that LUC is attached to if an arm attaches it elsewhere.
const ELSEWHERE_BYTES: u64 = 64 << 20;
/// Version of this place's method, part of the versions of its results.
const RULES: &str = "1";

fn off_or_as_is(text: &str) -> std::result::Result<(), String> {
    match text {
        "off" | AS_IS => Ok(()),
        _ => Err("must be off or as-is".into()),
    }
}

fn khz(text: &str) -> std::result::Result<(), String> {
    match text {
        AS_IS => Ok(()),
        _ => whole(text, 1, 100_000_000),
    }
}

/// The machine lists what it has.
fn word(text: &str) -> std::result::Result<(), String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    if !text.is_empty() && text.chars().all(is_part) {
        return Ok(());
    }
    Err("must be a name, such as powersave, or as-is".into())
}

const FACTORS: &[Factor] = &[
    Factor {
        name: "frequency_khz",
        help: "frequency of every processor in kHz, or as-is",
        default: Some(AS_IS),
        check: khz,
    },
    Factor {
        name: "frequency_max_khz",
        help: "highest frequency that a governor may choose in kHz (scaling_max_freq), or as-is",
        default: Some(AS_IS),
        check: khz,
    },
    Factor {
        name: "governor",
        help: "cpufreq governor of every processor, or as-is",
        default: Some(AS_IS),
        check: word,
    },
    Factor {
        name: "epp",
        help: "energy_performance_preference of every processor, or as-is",
        default: Some(AS_IS),
        check: word,
    },
    Factor {
        name: "cores",
        help: "number of processors that stay online, or all",
        default: Some("all"),
        check: |text| match text {
            "all" => Ok(()),
            _ => whole(text, 1, 65_536),
        },
    },
    Factor {
        name: "turbo",
        help: "frequencies above the nominal one: off, or as-is",
        default: Some("off"),
        check: off_or_as_is,
    },
    Factor {
        name: "smt",
        help: "simultaneous multithreading (SMT): off, or as-is",
        default: Some("off"),
        check: off_or_as_is,
    },
    Factor {
        name: "writeback",
        help: "the kernel's periodic writeback: off, or as-is",
        default: Some("off"),
        check: off_or_as_is,
    },
    Factor {
        name: "commit_s",
        help: "seconds after which a journal commits by itself, or as-is",
        default: Some("3600"),
        check: |text| match text {
            AS_IS => Ok(()),
            _ => whole(text, 1, 86_400),
        },
    },
    file_system::FS,
    file_system::MKFS,
    file_system::MOUNT,
];

/// A number that the factor's check has accepted; `None` if the value is a word.
fn number<T: std::str::FromStr>(cell: &Cell, factor: &str) -> Option<T> {
    text(cell, factor).parse().ok()
}

fn wanted(cell: &Cell) -> Wanted {
    let is_off = |factor| text(cell, factor) == "off";
    let word = |factor| Some(text(cell, factor).to_owned()).filter(|word| word != AS_IS);
    Wanted {
        frequency_khz: number(cell, "frequency_khz"),
        frequency_max_khz: number(cell, "frequency_max_khz"),
        governor: word("governor"),
        epp: word("epp"),
        cores: number(cell, "cores"),
        turbo_off: is_off("turbo"),
        smt_off: is_off("smt"),
        writeback_off: is_off("writeback"),
    }
}

/// File system and mount options: the arm's, or else the cell's.
fn file_system(cell: &Cell, named: &NamedArm) -> (FsType, String) {
    let (kind, mount) = file_system::kind_and_mount(cell, named);
    let options = scratch::options(kind, mount, number(cell, "commit_s"));
    (kind, options)
}

fn failed(why: String) -> CampaignError {
    CampaignError::Failed { why, log: None }
}

/// Restores what a killed run could not: see [`PutBack`]. `out` is a folder of results that may
/// hold its record.
///
/// # Errors
/// It is not permitted, a run is under way, or a value cannot be restored.
pub fn restore(sysroot: &Path, out: &Path) -> Result<Option<PutBack>> {
    permitted(&Machine::new(sysroot), "put this machine back")?;
    Locked::take(sysroot)?.recover(out)
}

fn permitted(system: &dyn System, what: &str) -> Result<()> {
    if capable(system, Capability::SysAdmin) {
        return Ok(());
    }
    Err(CampaignError::Host(HostError::NotPermitted {
        what: what.into(),
        fix: "run it as root, outside of containers".into(),
    }))
}

impl PutBack {
    /// Describes it in one line.
    pub fn told(&self) -> String {
        if self.booted {
            return "a run was killed, but the machine has been rebooted since; there is nothing to \
                    restore"
                .into();
        }
        let mut parts = Vec::new();
        if self.unmounted > 0 {
            parts.push("the scratch device was unmounted".to_owned());
        }
        parts.extend(self.values.iter().cloned());
        if parts.is_empty() {
            parts.push("every value was already as before".into());
        }
        format!("restored after a killed run: {}", parts.join(", "))
    }
}

/// Parts of the words by which mkfs and mount name a second device.
const OTHER_DEVICE: [&str; 4] = ["dev=", "device=", "journal_path=", "/dev/"];

impl Place for Host {
    fn name(&self) -> &'static str {
        "host"
    }

    fn factors(&self) -> &'static [Factor] {
        FACTORS
    }

    /// Also refuses what would overwrite a device that nobody has given up.
    fn check(&self, cell: &Cell) -> std::result::Result<(), String> {
        file_system::check(cell)?;
        for named in &cell.arms {
            let arguments = file_system::mkfs_arguments(cell, named);
            let (_, options) = file_system::kind_and_mount(cell, named);
            let of_mkfs = arguments.iter().map(|word| ("mkfs", word.as_str()));
            let of_mount = options.split(',').map(|word| ("mount", word));
            let another =
                |(_, word): &(&str, &str)| OTHER_DEVICE.iter().any(|it| word.contains(it));
            if let Some((program, word)) = of_mkfs.chain(of_mount).find(another) {
                return Err(format!(
                    "arm {}: {program}: {word} is another device: on this machine only the one \
                     after --device is used",
                    named.name
                ));
            }
        }
        Ok(())
    }

    fn needs(&self, _cell: &Cell) -> Needs {
        Needs {
            processors: 1,
            memory_mib: 0,
            alone: true,
        }
    }

    fn versions(&self, cell: &Cell, setup: &Setup) -> Result<Versions> {
        let machine = Machine::new(setup.sysroot());
        let release = kernel::release(&machine).map_err(|error| {
            unavailable(format!(
                "cannot tell which kernel is running: {}",
                plain(&error)
            ))
        })?;
        let mut versions = BTreeMap::from([
            ("luc".to_owned(), env!("LUC_SOURCES").to_owned()),
            ("kernel".to_owned(), release.clone()),
            ("processor".to_owned(), processor(&machine)),
            ("device".to_owned(), device(&machine, setup)),
            ("switches".to_owned(), plan::switches(&machine)),
            ("rules".to_owned(), RULES.to_owned()),
        ]);
        if cell.bench.contains("--energy") {
            versions.insert("energy".to_owned(), boundary(cell, setup).to_owned());
        }
        if cell.arms.iter().any(needs_module) {
            let digest = match kernel::installed(&machine, &release) {
                Some(file) => machine
                    .read_bytes(&file)
                    .map(|bytes| format!("{:.16x}", Sha256::digest(bytes)))
                    .map_err(|error| unavailable(format!("{file}: {}", plain(&error))))?,
                None => "none".into(),
            };
            versions.insert("module".to_owned(), digest);
        }
        Ok(versions)
    }

    fn measure(
        &self,
        cell: &Cell,
        setup: &Setup,
        progress: &mut dyn luc_vm::Progress,
    ) -> Result<Measured> {
        let machine = Machine::new(setup.sysroot());
        permitted(&machine, "measure on this machine")?;
        let mut locked = Locked::take(setup.sysroot())?;
        if let Some(done) = locked.recover(&setup.out)? {
            progress.note(&done.told());
        }
        let device = checked(&machine, cell, setup)?;
        let changes = plan::plan(&machine, &wanted(cell)).map_err(unavailable)?;
        if setup.sysroot() != Path::new("/") {
            return Err(unavailable("a tree of files has no kernel to measure"));
        }
        store::write(
            &setup.out.join(DEVICE_FILE),
            format!("{}\n", device.identity).as_bytes(),
        )?;
        let folder = tempfile::Builder::new()
            .prefix(guard::FOLDER)
            .tempdir()
            .map_err(CampaignError::file("make folder in", &std::env::temp_dir()))?;
        let guard = Guard::set(locked, &setup.out, folder.path(), &changes)?;
        let bench = Bench {
            cell,
            setup,
            machine: &machine,
            device: &device,
            folder: folder.path(),
            changes: &changes,
            deadline: Instant::now() + Duration::from_secs(setup.limit_s),
        };
        let measured = bench.all(&guard, progress);
        let put_back = guard.put_back();
        let arms = measured?;
        put_back?;
        let release = kernel::release(&machine).map_err(|error| failed(plain(&error)))?;
        Ok(Measured {
            kernel_release: release,
            arms,
        })
    }
}

/// Checks all that must hold before anything is changed.
fn checked(machine: &Machine, cell: &Cell, setup: &Setup) -> Result<Device> {
    let Some(scratch) = &setup.scratch else {
        return Err(unavailable(
            "a device that may be overwritten is needed; name it with `--device DEVICE --erase`",
        ));
    };
    let device = scratch::checked(machine, scratch).map_err(unavailable)?;
    if sysfs::loaded(machine) {
        return Err(unavailable(
            "the module luc is loaded, so no arm would be stock; run `luc off --all --unload` \
             first",
        ));
    }
    let release = kernel::release(machine).unwrap_or_default();
    let without = kernel::installed(machine, &release).is_none();
    if let Some(named) = cell.arms.iter().find(|named| needs_module(named))
        && without
    {
        return Err(unavailable(format!(
            "arm {}: the module luc is not installed for kernel {release}",
            named.name
        )));
    }
    Ok(device)
}

fn needs_module(named: &NamedArm) -> bool {
    named.arm.attached() || named.arm.loaded
}

/// The parts of the machine whose energy the cell measures: joules of others cannot be averaged
/// with them.
fn boundary(cell: &Cell, setup: &Setup) -> &'static str {
    if cell.bench.contains("--meter") {
        return Boundary::ExternalMeter.word();
    }
    Meter::find(setup.sysroot(), None).map_or("none", |meter| meter.boundary().word())
}

/// Model of the processors, as the kernel calls it, and which are present.
fn processor(system: &dyn System) -> String {
    let text = system.read("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown", |(_, model)| model.trim());
    let present = luc_host::settings::value(system, "/sys/devices/system/cpu/present");
    format!("{model}, processors {present}")
}

/// Identity of the given scratch device, or else of the one that the results were measured on.
fn device(machine: &Machine, setup: &Setup) -> String {
    let given = setup.scratch.as_ref();
    let given = given.and_then(|scratch| scratch::identity_of(machine, &scratch.device));
    given
        .or_else(|| {
            let kept = std::fs::read_to_string(setup.out.join(DEVICE_FILE)).ok()?;
            Some(kept.trim().to_owned())
        })
        .unwrap_or_else(|| "none".into())
}

/// The first setting that did not last, because another program or a thermal limit changed it.
fn lost(changes: &[Change], machine: &Machine) -> Option<String> {
    // A later change of the same file replaces an earlier one.
    let is_last = |at: usize| {
        changes[at + 1..]
            .iter()
            .all(|it| it.path != changes[at].path)
    };
    let mut last = (0..changes.len()).filter(|at| is_last(*at));
    last.find_map(|at| changes[at].lost(machine))
}

/// A cell on a machine that is configured for it.
struct Bench<'a> {
    cell: &'a Cell,
    setup: &'a Setup,
    machine: &'a Machine,
    device: &'a Device,
    folder: &'a Path,
    changes: &'a [Change],
    deadline: Instant,
}

impl Bench<'_> {
    /// Measures every arm; returns the results in the order of the cell.
    fn all(&self, guard: &Guard, progress: &mut dyn luc_vm::Progress) -> Result<Vec<ArmResult>> {
        self.make_folders()?;
        let mut arms: Vec<(usize, ArmResult)> = Vec::new();
        for named in steps::order(self.cell) {
            progress.stage(&format!("{}, arm {}", shown(self.cell), named.name));
            let measured = self.arm(guard, named);
            let left = guard::unmount_below(self.machine, self.folder);
            if let Some(lost) = lost(self.changes, self.machine) {
                return Err(failed(format!("arm {}: {lost}", named.name)));
            }
            match measured {
                Ok(result) => {
                    let at = self.cell.arms.iter().position(|arm| arm.name == named.name);
                    arms.push((at.unwrap_or(0), result));
                }
                // Some workloads cannot run under a bound.
                Err(CampaignError::Failed { .. }) if named.arm.bound => {}
                Err(error) => return Err(error),
            }
            left.map_err(|why| failed(format!("arm {}: cannot unmount {why}", named.name)))?;
        }
        arms.sort_by_key(|(at, _)| *at);
        Ok(arms.into_iter().map(|(_, arm)| arm).collect())
    }

    fn make_folders(&self) -> Result<()> {
        for name in ["bin", "mnt", "elsewhere"] {
            let path = self.folder.join(name);
            std::fs::create_dir(&path).map_err(CampaignError::file("make folder", &path))?;
        }
        // The commands name the programs without a path, as in the lab.
        let programs = Programs::beside(self.setup.luc_lab.as_deref()).map_err(
            CampaignError::file("find the programs in", Path::new("/proc/self/exe")),
        )?;
        for (name, program) in [("luc", &programs.luc), ("luc-lab", &programs.luc_lab)] {
            let link = self.folder.join("bin").join(name);
            std::os::unix::fs::symlink(program, &link)
                .map_err(CampaignError::file("make", &link))?;
        }
        Ok(())
    }

    fn arm(&self, guard: &Guard, named: &NamedArm) -> Result<ArmResult> {
        let told = |why: String| failed(format!("arm {}: {why}", named.name));
        if self.setup.stop.is_set() {
            return Err(CampaignError::Interrupted);
        }
        let (kind, options) = file_system(self.cell, named);
        let arguments = file_system::mkfs_arguments(self.cell, named);
        scratch::format(&self.device.node, kind, &arguments).map_err(told)?;
        let dir = self.folder.join("mnt");
        scratch::mount(&self.device.node, &dir, kind, &options).map_err(told)?;
        let elsewhere = if named.arm.elsewhere {
            Some(self.elsewhere().map_err(told)?)
        } else {
            None
        };
        let release = kernel::release(self.machine).unwrap_or_default();
        let paths = Paths {
            dir,
            out: self.folder.join("watched"),
            module: kernel::installed(self.machine, &release).map(PathBuf::from),
            root: None,
            elsewhere,
        };
        let steps = steps::commands(self.cell, named, &paths);
        let runner = Runner {
            folder: self.folder,
            guard,
            stop: &self.setup.stop,
            deadline: self.deadline,
            limit_s: self.setup.limit_s,
        };
        let mut outputs = Vec::new();
        for words in &steps.commands {
            outputs.push(runner.output(words).map_err(|broken| match broken {
                Broken::Stopped => CampaignError::Interrupted,
                Broken::Failed { why, log } => CampaignError::Failed {
                    why: format!("arm {}: {why}", named.name),
                    log: Some(log),
                },
            })?);
        }
        let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
        steps.read(&named.name, &outputs)
    }

    /// Makes and mounts a small file system that nothing else uses.
    fn elsewhere(&self) -> std::result::Result<PathBuf, String> {
        let (image, at) = (self.folder.join("image"), self.folder.join("elsewhere"));
        std::fs::File::create(&image)
            .and_then(|file| file.set_len(ELSEWHERE_BYTES))
            .map_err(|error| format!("{}: {}", image.display(), plain(&error)))?;
        scratch::format(&image, FsType::Ext4, &[])?;
        scratch::mount(&image, &at, FsType::Ext4, "loop,noinit_itable")?;
        Ok(at)
    }
}
