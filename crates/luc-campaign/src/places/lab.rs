//! The lab: a stock kernel in a virtual machine, on virtual time unless host time is asked for.

use std::collections::BTreeMap;
use std::path::Path;

use luc_power::activity::{Activity, ProcessorActivity};
use luc_sim::SimError;
use luc_sim_loads::Load;
use luc_vm::cache::Cache;
use luc_vm::{Content, DiskSpec, GuestFile, KernelList, LabError, RunSpec, Step, tree};
use luc_workload::{BenchReport, apps};

use super::file_system::{self, text};
use super::{Factor, Needs, Place, Setup, whole};
use crate::cell::{Cell, NamedArm, Versions};
use crate::error::{CampaignError, Result};
use crate::result::{ArmResult, Measured};
use crate::steps::{self, Steps};

pub struct Lab;

/// The guest's copy of a workload file of this machine.
const WORKLOAD_FILE: &str = "/workload.f";

/// Folder of the guest with the root file system of a real program.
const APP_ROOT: &str = "/app";

const FACTORS: &[Factor] = &[
    Factor {
        name: "kernel",
        help: "name in kernels.toml",
        default: None,
        check: |name| {
            let list = KernelList::builtin().map_err(|error| error.to_string())?;
            list.get(name).map(drop).map_err(|error| error.to_string())
        },
    },
    Factor {
        name: "vcpus",
        help: "virtual processors",
        default: Some("1"),
        check: |text| whole(text, 1, 64),
    },
    Factor {
        name: "mips",
        help: "million instructions per second of a virtual processor: 1000, 500, 250, 125 ...",
        default: Some("1000"),
        check: |text| match text {
            "1000" | "500" | "250" | "125" | "62.5" | "31.25" => Ok(()),
            _ => Err("must be 1000, 500, 250, 125, 62.5 or 31.25".into()),
        },
    },
    Factor {
        name: "time",
        help: "virtual (repeatable) or host (processors in parallel)",
        default: Some("virtual"),
        check: |text| match text {
            "virtual" | "host" => Ok(()),
            _ => Err("must be virtual or host".into()),
        },
    },
    Factor {
        name: "disk",
        help: "a disk as in `luc-lab run --disk`: 4ms:1, hdd-7200",
        default: None,
        check: |text| disk(text).map(drop),
    },
    file_system::FS,
    file_system::MKFS,
    file_system::MOUNT,
    Factor {
        name: "memory_mib",
        help: "memory of the guest, which holds its disks",
        default: Some("1024"),
        check: |text| whole(text, 256, 65_536),
    },
];

/// Parses a disk of the lab; recognizes disks that only the simulator has.
///
/// # Errors
/// It is not a disk of the lab.
pub fn disk(text: &str) -> std::result::Result<DiskSpec, String> {
    if luc_sim::disk::is_only_simulated(text) {
        return Err(format!(
            "disk {text}: the lab has single disks; arrays and the documents' systems are \
             simulated: `luc-lab sim run --disk`, or place sim in a campaign"
        ));
    }
    text.parse().map_err(|error: LabError| error.to_string())
}

/// A number that the factor's check has accepted.
fn number<T: std::str::FromStr + Default>(cell: &Cell, factor: &str) -> T {
    cell.machine
        .get(factor)
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

/// The arm's disks: the measured one, and a small one if LUC is to be attached elsewhere.
fn disks(cell: &Cell, named: &NamedArm) -> std::result::Result<Vec<DiskSpec>, LabError> {
    let mut disk: DiskSpec = text(cell, "disk").parse()?;
    let (kind, mount) = file_system::kind_and_mount(cell, named);
    disk.fs_type = kind;
    if !mount.is_empty() {
        mount.clone_into(&mut disk.mount_opts);
    }
    disk.mkfs_args
        .extend(file_system::mkfs_arguments(cell, named));
    let mut disks = vec![disk];
    if named.arm.elsewhere {
        disks.push("0ns:1:64M".parse()?);
    }
    Ok(disks)
}

/// The program of a cell whose benchmark is a real program.
fn app(cell: &Cell) -> Option<&str> {
    let mut words = cell.bench.split_whitespace();
    words.next().filter(|bench| *bench == "app")?;
    words.next()
}

/// Makes the guest's root file system with the real program of the cell, if it has one.
fn root(cell: &Cell, progress: &mut dyn luc_vm::Progress) -> luc_vm::error::Result<Vec<GuestFile>> {
    let Some(name) = app(cell) else {
        return Ok(Vec::new());
    };
    let apps = apps::builtin();
    let packages = apps
        .packages(name)
        .map_err(|why| LabError::bad_input(format!("app {name}"), why.to_string()))?;
    let unwanted: Vec<_> = apps.root.unwanted.iter().map(String::as_str).collect();
    let guest = KernelList::builtin()?.guest;
    let root = tree::programs(&Cache::open()?, &guest, &packages, &unwanted, progress)?;
    Ok(vec![GuestFile::new(APP_ROOT, Content::Folder(root))])
}

impl Place for Lab {
    fn name(&self) -> &'static str {
        "lab"
    }

    fn factors(&self) -> &'static [Factor] {
        FACTORS
    }

    fn check(&self, cell: &Cell) -> std::result::Result<(), String> {
        for named in &cell.arms {
            let disks = disks(cell, named).map_err(|error| error.to_string())?;
            disks
                .iter()
                .try_for_each(DiskSpec::check)
                .map_err(|error| error.to_string())?;
        }
        files_fit(cell)?;
        if let Some(name) = app(cell) {
            let found = apps::builtin().find(name);
            found.map_err(|error| format!("app {name}: {error}"))?;
        }
        file_system::check(cell)
    }

    fn needs(&self, cell: &Cell) -> Needs {
        let in_host_time = text(cell, "time") == "host";
        Needs {
            // In virtual time the virtual processors share one thread.
            processors: if in_host_time {
                number(cell, "vcpus")
            } else {
                1
            },
            // QEMU needs some memory for itself.
            memory_mib: number::<u64>(cell, "memory_mib") + 128,
            alone: in_host_time,
        }
    }

    fn versions(&self, cell: &Cell, setup: &Setup) -> Result<Versions> {
        let unavailable = |error: LabError| unavailable(&error);
        let list = KernelList::builtin().map_err(unavailable)?;
        let kernel = list.get(text(cell, "kernel")).map_err(unavailable)?;
        let module = luc_vm::module_digest(&setup.source).map_err(unavailable)?;
        Ok(BTreeMap::from([
            ("luc".to_owned(), env!("LUC_SOURCES").to_owned()),
            (
                "kernel".to_owned(),
                kernel
                    .verified
                    .clone()
                    .unwrap_or_else(|| "newest".to_owned()),
            ),
            ("module".to_owned(), module),
        ]))
    }

    fn measure(
        &self,
        cell: &Cell,
        setup: &Setup,
        progress: &mut dyn luc_vm::Progress,
    ) -> Result<Measured> {
        let all: Vec<(&NamedArm, Steps)> = steps::order(cell)
            .map(|named| (named, steps::commands(cell, named, &paths(cell, named))))
            .collect();
        let mut spec = spec(cell, &all).map_err(|error| failed(&error))?;
        spec.timeout_host_s = setup.limit_s;
        spec.luc_lab.clone_from(&setup.luc_lab);
        let kernel = text(cell, "kernel");
        let module = luc_vm::build_module(&spec.kernels, kernel, &setup.source, progress);
        spec.files = root(cell, progress).map_err(|error| failed(&error))?;
        let workload = cell.workload_file().map(Content::Host);
        let workload = workload.map(|file| GuestFile::new(WORKLOAD_FILE, file));
        spec.files.extend(workload);
        spec.luc_module = Some(module.map_err(|error| failed(&error))?);
        let result = luc_vm::run(&spec, progress).map_err(|error| failed(&error))?;
        if let [first, rest @ ..] = result.failures().as_slice() {
            return Err(CampaignError::Failed {
                why: match rest.len() {
                    0 => first.clone(),
                    more => format!("{first} (and {more} more)"),
                },
                log: Some(result.kernel_log),
            });
        }
        let mut arms: Vec<(usize, ArmResult)> = Vec::new();
        for ((named, steps), guest) in all.iter().zip(&result.report.cells) {
            let at = cell.arms.iter().position(|arm| arm.name == named.name);
            let gave_up = guest.steps.iter().any(|step| !step.success());
            if gave_up && named.arm.bound {
                continue;
            }
            let outputs: Vec<&str> = guest
                .steps
                .iter()
                .map(|step| step.stdout.as_str())
                .collect();
            let mut arm = steps.read(&named.name, &outputs)?;
            arm.report.activity = activity(&arm.report, cell);
            arms.push((at.unwrap_or(0), arm));
        }
        // In the campaign's order.
        arms.sort_by_key(|(at, _)| *at);
        Ok(Measured {
            kernel_release: result.report.kernel_release,
            arms: arms.into_iter().map(|(_, arm)| arm).collect(),
        })
    }
}

/// Checks the workload file of the cell, if it runs one, and that its files fit on the disk.
fn files_fit(cell: &Cell) -> std::result::Result<(), String> {
    let words = shlex::split(&cell.bench).unwrap_or_default();
    if words.first().is_none_or(|bench| bench != "run") {
        return Ok(());
    }
    let said = |error: SimError| error.to_string();
    let Load::File(load) = luc_sim_loads::load(words).map_err(said)? else {
        return Ok(());
    };
    let bytes = load.prepared_bytes().map_err(said)?;
    let disk = disk(text(cell, "disk"))?;
    if bytes <= u64::from(disk.size_mib) << 20 {
        return Ok(());
    }
    Err(format!(
        "{} makes {} of files, which do not fit on disk {disk}; give a larger disk, or fewer files \
         by -D",
        load.source,
        luc_base::words::bytes(bytes)
    ))
}

fn spec(cell: &Cell, all: &[(&NamedArm, Steps)]) -> luc_vm::error::Result<RunSpec> {
    let workload = cell.workload_file();
    let in_guest = |argv: &Vec<String>| -> Vec<String> {
        let word = |word: &String| {
            let is_workload = workload
                .as_deref()
                .is_some_and(|file| file == Path::new(word));
            if is_workload {
                WORKLOAD_FILE.to_owned()
            } else {
                word.clone()
            }
        };
        argv.iter().map(word).collect()
    };
    let cells: luc_vm::error::Result<_> = all
        .iter()
        .map(|(named, steps)| {
            let step = |argv: &Vec<String>| Step {
                allow_failure: named.arm.bound,
                ..Step::new(in_guest(argv))
            };
            Ok(luc_vm::Cell {
                name: named.name.clone(),
                disks: disks(cell, named)?,
                env: BTreeMap::new(),
                steps: steps.commands.iter().map(step).collect(),
            })
        })
        .collect();
    let mut spec = RunSpec::new(text(cell, "kernel"), cells?)?;
    spec.vcpus = number(cell, "vcpus");
    spec.cpu_mips = number(cell, "mips");
    spec.virtual_time = text(cell, "time") == "virtual";
    spec.memory_mib = number(cell, "memory_mib");
    spec.seed = cell.seed;
    Ok(spec)
}

/// The activity of the guest's parts, all processors alike, and their idle periods of the mean
/// length; without their number, they are long ones. `None` in host time, which no speed describes,
/// and for disks that do not tell what they do.
fn activity(report: &BenchReport, cell: &Cell) -> Option<Activity> {
    let cpus = number::<u64>(cell, "vcpus").max(1);
    let mips: f64 = text(cell, "mips").parse().ok()?;
    let busy_ns = report.cpu_busy_ns? / cpus;
    // The factor's check allows six speeds, all above 0.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let kips = (mips * 1e3) as u64;
    let elapsed_ns = report.cpu_elapsed_ns?;
    let sum_ns = elapsed_ns.saturating_sub(busy_ns);
    let count = report.cpu_idle_periods.unwrap_or_default() / cpus;
    let mut processor = ProcessorActivity::default();
    processor.was_busy(kips, busy_ns);
    processor.was_idle_often(kips, count, sum_ns);
    let cpus = usize::try_from(cpus).ok()?;
    (text(cell, "time") == "virtual").then_some(Activity {
        elapsed_ns,
        processors: vec![processor; cpus],
        disks: report.disks?,
    })
}

/// The guest's paths.
fn paths(cell: &Cell, named: &NamedArm) -> steps::Paths {
    let elsewhere = Path::new("/mnt/1").to_owned();
    steps::Paths {
        dir: "/mnt/0".into(),
        out: "/tmp/watched".into(),
        module: Some(luc_vm::image::LUC_MODULE_PATH.into()),
        root: app(cell).map(|_| APP_ROOT.into()),
        elsewhere: named.arm.elsewhere.then_some(elsewhere),
    }
}

/// A fault of this machine ends the campaign (a program or a file is missing, its disk is full): it
/// is no fact about the cell, and would be kept as one.
fn failed(error: &LabError) -> CampaignError {
    if error.is_missing_prerequisite() || matches!(error, LabError::Io { .. }) {
        return unavailable(error);
    }
    CampaignError::Failed {
        why: error.to_string(),
        log: None,
    }
}

fn unavailable(error: &LabError) -> CampaignError {
    CampaignError::Unavailable {
        place: "lab".into(),
        why: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::File;

    use luc_power::activity::IdlePeriods;

    use super::*;
    use crate::{campaigns, points};

    const S: u64 = 1_000_000_000;
    const REPORT: &str = include_str!("../../tests/data/create-fsync.json");

    fn cell(time: &str) -> Cell {
        let machine = [("vcpus", "2"), ("mips", "500"), ("time", time)];
        Cell {
            place: "lab".to_owned(),
            machine: BTreeMap::from(machine.map(|(k, v)| (k.to_owned(), v.to_owned()))),
            bench: String::new(),
            arms: Vec::new(),
            repeat: 1,
            seed: 1,
        }
    }

    /// Busy time of both processors together, ns, within this time.
    fn report(busy_ns: u64, elapsed_ns: Option<u64>, disks: bool) -> BenchReport {
        let mut report: serde_json::Value = serde_json::from_str(REPORT).unwrap();
        report["cpu_busy_ns"] = busy_ns.into();
        report["cpu_elapsed_ns"] = elapsed_ns.into();
        if disks {
            report["disks"] = serde_json::json!({
                "disks": 1, "busy_ns": 7, "read_bytes": 1, "written_bytes": 2, "flushes": 3,
            });
        }
        serde_json::from_value(report).unwrap()
    }

    #[test]
    fn a_fault_of_this_machine_is_none_of_the_cell() {
        let missing = std::io::ErrorKind::NotFound.into();
        let ends = failed(&LabError::io("find", "the programs of LUC")(missing));
        assert!(matches!(ends, CampaignError::Unavailable { .. }), "{ends}");
        let cell = failed(&LabError::BadResults("none".to_owned()));
        assert!(matches!(cell, CampaignError::Failed { .. }), "{cell}");
    }

    #[test]
    fn energy_needs_processors_and_disks_that_tell_what_they_did() {
        let found = activity(&report(400_000_000, Some(S), true), &cell("virtual")).unwrap();
        assert_eq!((found.busy_ns(), found.elapsed_ns), (400_000_000, S));
        assert_eq!(found.disks.busy_ns, 7);
        let [first, second] = &found.processors[..] else {
            panic!("{found:?}");
        };
        assert_eq!(first, second);
        assert_eq!(first.busy[0].kips, 500_000);
        assert_eq!(first.idle, [], "their number is not known");
        let mut counted = report(400_000_000, Some(S), true);
        counted.cpu_idle_periods = Some(2000);
        let found = activity(&counted, &cell("virtual")).unwrap();
        let periods = IdlePeriods {
            kips: 500_000,
            log2_ns: 19,
            count: 1000,
            sum_ns: 800_000_000,
        };
        assert_eq!(found.processors[1].idle, [periods]);
        for (report, time) in [
            (report(400_000_000, Some(S), true), "host"),
            (report(400_000_000, Some(S), false), "virtual"),
            (report(400_000_000, None, true), "virtual"),
        ] {
            assert_eq!(activity(&report, &cell(time)), None);
        }
    }

    /// An arm's own arguments of mkfs replace the cell's.
    #[test]
    fn arms_have_formats_of_their_own() {
        let mut cell = cell("virtual");
        for (factor, value) in [("disk", "nvme:1G"), ("fs", "ext4"), ("mkfs", "-b 2048")] {
            cell.machine.insert(factor.to_owned(), value.to_owned());
        }
        let named = |mkfs: &str| NamedArm {
            name: "arm".to_owned(),
            arm: crate::arms::Arm {
                mkfs: mkfs.to_owned(),
                ..crate::arms::Arm::default()
            },
        };
        let arguments = |mkfs| disks(&cell, &named(mkfs)).unwrap()[0].mkfs_args.clone();
        assert_eq!(arguments(""), ["-b", "2048"]);
        assert_eq!(arguments("-I 1024"), ["-I", "1024"]);
        cell.arms = vec![named("'-b")];
        assert_eq!(
            file_system::check(&cell).unwrap_err(),
            "arm arm: mkfs: a quote is not closed"
        );
    }

    /// Each format of a campaign is one that its program makes on a disk of that size. One that
    /// fails would fail the cell, and all of its other arms.
    #[test]
    fn every_format_can_be_made() {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("disk");
        let mut formats: BTreeMap<String, DiskSpec> = BTreeMap::new();
        for (name, text) in campaigns::ALL {
            let campaign = campaigns::parse(name, text).unwrap();
            for point in points::all(&campaign) {
                let cell = point.cell(1);
                let arms = cell.arms.iter().filter(|_| cell.place == "lab");
                for disk in arms.flat_map(|named| disks(&cell, named).unwrap()) {
                    let format = (disk.fs_type, &disk.mkfs_args, disk.size_mib);
                    formats.insert(format!("{format:?}"), disk);
                }
            }
        }
        assert!(formats.len() > 20, "{formats:?}");
        for (format, disk) in formats {
            let Some((maker, package)) = disk.fs_type.maker() else {
                continue;
            };
            // mke2fs takes no journal in a file.
            if disk.journal_disk().unwrap().is_some() {
                continue;
            }
            File::create(&image)
                .and_then(|file| file.set_len(u64::from(disk.size_mib) << 20))
                .unwrap();
            let made = std::process::Command::new(maker)
                .args(disk.fs_type.maker_arguments())
                .args(&disk.mkfs_args)
                .arg(&image)
                .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
                .output();
            match made {
                Err(error) => luc_test::skip("format", &format!("{maker}: {error}: {package}")),
                Ok(made) => assert!(made.status.success(), "{format}: {made:?}"),
            }
        }
    }

    /// The guest gets a copy of a workload file of this machine, and its commands name the copy.
    #[test]
    fn a_workload_file_goes_along() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mine.f");
        std::fs::write(&file, "define process name=p { thread name=t, memsize=1m { flowop hog name=h, value=1 } }\nrun 1\n").unwrap();
        let mut cell = cell("virtual");
        for (factor, value) in [("disk", "nvme:1G"), ("fs", "ext4"), ("kernel", "6.12")] {
            cell.machine.insert(factor.to_owned(), value.to_owned());
        }
        cell.bench = format!("run {} --dir {{dir}}", file.display());
        let named = NamedArm {
            name: "stock".to_owned(),
            arm: crate::arms::Arm::default(),
        };
        cell.arms = vec![named.clone()];
        assert_eq!(cell.workload_file(), Some(file));
        assert_eq!(files_fit(&cell), Ok(()));
        let steps = steps::commands(&cell, &named, &paths(&cell, &named));
        let spec = spec(&cell, &[(&named, steps)]).unwrap();
        let bench = &spec.cells[0].steps[1].argv;
        assert_eq!(bench[..4], ["luc-lab", "bench", "run", WORKLOAD_FILE]);
        cell.bench = "run varmail --dir {dir}".to_owned();
        assert_eq!(cell.workload_file(), None);
    }
}
