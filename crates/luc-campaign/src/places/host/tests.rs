//! Tests of the place on machines made of files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use luc_host::Machine;
use luc_host::settings::Change;
use luc_vm::FsType;

use super::commands::SYSTEM_PATH;
use super::guard::{Guard, Locked};
use super::plan::{Wanted, plan, switches};
use super::scratch;
use super::{Host, lost, put_back_at_once, restore};
use crate::cell::Cell;
use crate::check::cell_of_key;
use crate::error::CampaignError;
use crate::places::{Erase, Place, Scratch, Setup};

const CPU: &str = "sys/devices/system/cpu";

/// One test at a time: [`put_back_at_once`] takes all guards of the process.
static ALONE: Mutex<()> = Mutex::new(());

struct Tree(tempfile::TempDir);

impl Tree {
    /// Two cores of two threads each, every switch, and a few disks.
    fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for cpu in 0..4 {
            let (core, sibling) = (cpu % 2, cpu % 2 + 2);
            tree.put(
                &format!("{CPU}/cpu{cpu}/topology/thread_siblings_list"),
                &format!("{core},{sibling}"),
            );
            if cpu > 0 {
                tree.put(&format!("{CPU}/cpu{cpu}/online"), "1");
            }
            let policy = format!("{CPU}/cpufreq/policy{cpu}");
            for (name, text) in [
                ("affected_cpus", cpu.to_string().as_str()),
                ("cpuinfo_min_freq", "1600000"),
                ("cpuinfo_max_freq", "3100000"),
                ("scaling_min_freq", "1600000"),
                ("scaling_max_freq", "2400000"),
                ("scaling_available_frequencies", "3100000 2400000 1600000"),
                ("scaling_governor", "ondemand"),
                ("scaling_available_governors", "ondemand userspace"),
                ("scaling_setspeed", "<unsupported>"),
                ("energy_performance_preference", "balance_power"),
                (
                    "energy_performance_available_preferences",
                    "default performance balance_power power",
                ),
            ] {
                tree.put(&format!("{policy}/{name}"), text);
            }
        }
        tree.put(&format!("{CPU}/smt/control"), "on");
        tree.put(&format!("{CPU}/intel_pstate/no_turbo"), "0");
        tree.put("proc/sys/vm/dirty_writeback_centisecs", "500");
        tree.put("proc/sys/kernel/random/boot_id", "one");
        tree.put("proc/sys/kernel/osrelease", "6.12.0");
        tree.put("proc/self/status", "CapEff:\t000001ffffffffff");
        tree.put("proc/cpuinfo", "model name\t: Toy 1\n");
        tree.put("proc/swaps", "Filename Type\n/dev/sdd partition 1 0 -2\n");
        tree.put(
            "proc/self/mountinfo",
            "22 1 8:33 / / rw - ext4 /dev/sdc1 rw\n23 1 0:40 / /b rw - btrfs /dev/sdf rw\n",
        );
        fs::create_dir_all(tree.at("sys/dev/block")).unwrap();
        for (number, name) in [
            ("8:16", "sdb"),
            ("8:32", "sdc"),
            ("8:48", "sdd"),
            ("8:64", "sde"),
            ("8:80", "sdf"),
            ("8:96", "sdg"),
        ] {
            tree.put(&format!("sys/class/block/{name}/dev"), number);
            tree.put(&format!("sys/class/block/{name}/size"), "4096");
            let link = tree.at(&format!("sys/dev/block/{number}"));
            symlink(format!("../../class/block/{name}"), link).unwrap();
            tree.put(&format!("dev/{name}"), &"\0".repeat(300 << 10));
        }
        tree.put("sys/class/block/sdc/sdc1/partition", "1");
        tree.put("sys/class/block/sdc1/dev", "8:33");
        tree.put("sys/class/block/sde/holders/dm-0/dev", "253:0");
        tree.put("sys/class/block/sdg/ro", "1");
        tree
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn get(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    fn machine(&self) -> Machine {
        Machine::new(self.0.path())
    }

    /// Every setting that may change.
    fn settings(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        let mut folders = vec![self.at(CPU), self.at("proc/sys/vm")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    all.insert(path.clone(), fs::read_to_string(path).unwrap());
                }
            }
        }
        // This is not a value unless the governor has a speed to set.
        all.retain(|path, _| !path.ends_with("scaling_setspeed"));
        all
    }

    fn set(&self, out: &Path) -> crate::Result<Guard> {
        let changes = plan(&self.machine(), &all()).unwrap();
        let locked = Locked::take(self.0.path())?;
        Guard::set(locked, out, Path::new(""), &changes)
    }
}

fn all() -> Wanted {
    Wanted {
        frequency_khz: Some(3_100_000),
        frequency_max_khz: None,
        governor: None,
        epp: None,
        cores: Some(1),
        turbo_off: true,
        smt_off: true,
        writeback_off: true,
    }
}

#[test]
fn changes_are_made_in_an_order_that_the_kernel_takes() {
    let tree = Tree::new();
    let changes = plan(&tree.machine(), &all()).unwrap();
    let shown: Vec<String> = changes
        .iter()
        .map(|Change { path, to, .. }| {
            let name = path.rsplit("/cpu/").next().unwrap();
            format!("{name} {}", to.as_deref().unwrap_or("is kept"))
        })
        .collect();
    assert_eq!(
        shown,
        [
            "cpu1/online is kept",
            "cpu2/online is kept",
            "cpu3/online is kept",
            "smt/control off",
            // The second thread of core 0 goes with SMT; core 1 needs a change.
            "cpu1/online 0",
            "intel_pstate/no_turbo 1",
            "cpufreq/policy0/scaling_governor userspace",
            "cpufreq/policy0/scaling_max_freq 3100000",
            "cpufreq/policy0/scaling_min_freq 3100000",
            "cpufreq/policy0/scaling_setspeed 3100000",
            "/proc/sys/vm/dirty_writeback_centisecs 0",
        ]
    );
    assert_eq!(switches(&tree.machine()), "turbo smt frequency writeback");
    assert_eq!(plan(&tree.machine(), &Wanted::default()), Ok(Vec::new()));
}

/// A governor and its bounds, in the place of a fixed clock.
fn chosen() -> Wanted {
    Wanted {
        frequency_khz: None,
        frequency_max_khz: Some(1_600_000),
        governor: Some("userspace".into()),
        epp: Some("power".into()),
        ..all()
    }
}

#[test]
fn a_governor_is_set_before_what_it_may_choose() {
    let tree = Tree::new();
    tree.put(
        &format!("{CPU}/cpufreq/policy0/scaling_min_freq"),
        "2400000",
    );
    let changes = plan(&tree.machine(), &chosen()).unwrap();
    let of_policy = changes.iter().filter_map(|Change { path, to, .. }| {
        let (_, name) = path.split_once("/cpufreq/policy0/")?;
        Some(format!("{name} {}", to.as_deref().unwrap_or("is kept")))
    });
    assert_eq!(
        of_policy.collect::<Vec<_>>(),
        [
            "energy_performance_preference is kept",
            "scaling_governor userspace",
            "energy_performance_preference power",
            "scaling_min_freq 1600000",
            "scaling_max_freq 1600000",
        ]
    );
    let why = |change: &dyn Fn(&mut Wanted)| {
        let mut wanted = chosen();
        change(&mut wanted);
        plan(&tree.machine(), &wanted).unwrap_err()
    };
    for (said, expected) in [
        (
            why(&|wanted| wanted.governor = Some("schedutil".into())),
            "governor schedutil: policy0 supports ondemand userspace",
        ),
        (
            why(&|wanted| wanted.epp = Some("fast".into())),
            "epp fast: policy0 supports default performance balance_power power",
        ),
        (
            why(&|wanted| wanted.frequency_max_khz = Some(1)),
            "frequency_max_khz 1: policy0 supports 1600000 to 3100000",
        ),
        (
            why(&|wanted| wanted.frequency_khz = Some(2_400_000)),
            "governor userspace: frequency_khz 2400000 already fixes the clock",
        ),
    ] {
        assert_eq!(said, expected);
    }
    let none = format!("{CPU}/cpufreq/policy0/energy_performance_available_preferences");
    fs::remove_file(tree.at(&none)).unwrap();
    assert_eq!(
        why(&|_| ()),
        "epp power: policy0 has no energy_performance_available_preferences"
    );
}

#[test]
fn a_setting_that_another_program_changes_is_seen_and_stays() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (tree, out) = (Tree::new(), tempfile::tempdir().unwrap());
    let before = tree.settings();
    let changes = plan(&tree.machine(), &chosen()).unwrap();
    let locked = Locked::take(tree.0.path()).unwrap();
    let guard = Guard::set(locked, out.path(), Path::new(""), &changes).unwrap();
    assert_eq!(lost(&changes, &tree.machine()), None);
    let file = format!("{CPU}/cpufreq/policy0/scaling_governor");
    tree.put(&file, "performance");
    assert_eq!(
        lost(&changes, &tree.machine()).unwrap(),
        format!("/{file} is performance, no longer userspace")
    );
    guard.put_back().unwrap();
    assert_eq!(tree.get(&file), "performance");
    tree.put(&file, "ondemand");
    assert_eq!(tree.settings(), before);
}

#[test]
fn settings_that_a_machine_cannot_have_are_refused() {
    let tree = Tree::new();
    let why = |change: &dyn Fn(&mut Wanted)| {
        let mut wanted = all();
        change(&mut wanted);
        plan(&tree.machine(), &wanted).unwrap_err()
    };
    assert_eq!(
        why(&|wanted| wanted.cores = Some(3)),
        "cores 3: this machine has 2 online with SMT off"
    );
    assert_eq!(
        why(&|wanted| wanted.frequency_khz = Some(2_000_000)),
        "frequency_khz 2000000: policy0 supports 1600000, 2400000, 3100000"
    );
    assert_eq!(
        why(&|wanted| wanted.frequency_khz = Some(4_000_000)),
        "frequency_khz 4000000: policy0 supports 1600000 to 3100000"
    );
    fs::remove_dir_all(tree.at(&format!("{CPU}/cpufreq"))).unwrap();
    let why = plan(&tree.machine(), &all()).unwrap_err();
    assert!(why.contains("this machine cannot set frequencies"), "{why}");
    let without = Wanted {
        frequency_khz: None,
        ..all()
    };
    assert!(plan(&tree.machine(), &without).is_ok());
}

#[test]
fn whatever_ends_a_cell_the_machine_is_as_before() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (tree, out) = (Tree::new(), tempfile::tempdir().unwrap());
    let before = tree.settings();
    let (kept, lock) = (out.path().join("host-before.json"), "run/luc-settings");
    let as_before = |how: &str| {
        assert_eq!(tree.settings(), before, "{how}");
        assert!(!kept.exists() && tree.get(lock).is_empty(), "{how}");
    };

    let guard = tree.set(out.path()).unwrap();
    assert_eq!(tree.get(&format!("{CPU}/cpu1/online")), "0");
    assert_eq!(tree.get(&format!("{CPU}/smt/control")), "off");
    let (file, copy) = (fs::read_to_string(&kept).unwrap(), tree.get(lock));
    assert_eq!(file, copy);
    let busy = Locked::take(tree.0.path()).err().unwrap().to_string();
    assert!(busy.contains("is changing them"), "{busy}");
    guard.put_back().unwrap();
    as_before("success");

    drop(tree.set(out.path()).unwrap());
    as_before("failure");

    let panicked = std::panic::catch_unwind(|| {
        let _guard = tree.set(out.path()).unwrap();
        panic!("as was asked for");
    });
    assert!(panicked.is_err());
    as_before("panic");

    let guard = tree.set(out.path()).unwrap();
    put_back_at_once();
    as_before("signal");
    drop(guard);
    as_before("signal, and then the end");

    // If the kernel refuses a change in the middle, the others are undone.
    let setspeed = tree.at(&format!("{CPU}/cpufreq/policy0/scaling_setspeed"));
    fs::remove_file(&setspeed).unwrap();
    let why = tree.set(out.path()).err().unwrap().to_string();
    assert!(
        why.contains("cannot set") && why.contains("setspeed"),
        "{why}"
    );
    as_before("refusal");
    fs::write(&setspeed, "<unsupported>").unwrap();

    // Killed: the values stay changed, and the files that record them stay.
    let killed = || {
        let guard = tree.set(out.path()).unwrap();
        let changed = tree.settings();
        drop(guard);
        for (path, text) in &changed {
            fs::write(path, text).unwrap();
        }
        fs::write(&kept, &file).unwrap();
    };
    killed();
    tree.put(lock, &copy);
    let done = restore(tree.0.path(), Path::new("")).unwrap().unwrap();
    assert!(done.values.len() > 5 && !done.booted, "{done:?}");
    as_before("killed, by the machine's file");
    killed();
    assert!(restore(tree.0.path(), out.path()).unwrap().is_some());
    as_before("killed, by the file of the folder");
    assert_eq!(restore(tree.0.path(), out.path()).unwrap(), None);

    // After a reboot the old values no longer apply.
    let now = tree.settings();
    fs::write(&kept, &file).unwrap();
    tree.put("proc/sys/kernel/random/boot_id", "two");
    tree.put("proc/sys/vm/dirty_writeback_centisecs", "700");
    let done = restore(tree.0.path(), out.path()).unwrap().unwrap();
    assert!(done.booted && done.told().contains("booted"), "{done:?}");
    assert_eq!(tree.get("proc/sys/vm/dirty_writeback_centisecs"), "700");
    assert_eq!(now.len(), tree.settings().len());
}

#[test]
fn devices_that_hold_anything_are_refused() {
    let tree = Tree::new();
    let checked = |device: &str, erase: Erase| {
        let scratch = Scratch {
            device: device.into(),
            erase,
        };
        scratch::checked(&tree.machine(), &scratch).map(|device| device.identity)
    };
    let refusal = |device: &str| checked(device, Erase::Blank).unwrap_err();
    assert_eq!(checked("/dev/sdb", Erase::Blank), Ok("sdb, 2 MiB".into()));
    assert_eq!(
        checked("/dev/sdb", Erase::No).unwrap_err(),
        "/dev/sdb: everything on it would be lost; allow that with `--erase`"
    );
    assert_eq!(refusal("/dev/sdz"), "/dev/sdz: No such file or directory");
    assert_eq!(refusal("/proc/swaps"), "/proc/swaps: not a block device");
    assert_eq!(refusal("/dev/sdc"), "/dev/sdc: mounted at /");
    assert_eq!(refusal("/dev/sdf"), "/dev/sdf: mounted at /b");
    assert_eq!(refusal("/dev/sdd"), "/dev/sdd: in use as swap");
    assert_eq!(refusal("/dev/sde"), "/dev/sde: sde is part of dm-0");
    assert_eq!(refusal("/dev/sdg"), "/dev/sdg: read-only");

    let device = tree.at("dev/sdb");
    let blank = || vec![0; 2 << 20];
    let made_by = |tool: &str, words: &[&str]| {
        fs::write(&device, blank()).unwrap();
        let mut command = std::process::Command::new(tool);
        command.args(words).arg(&device).env("PATH", SYSTEM_PATH);
        let made = command.output().unwrap();
        assert!(made.status.success(), "{tool}: {made:?}");
    };
    let with_table = || {
        let mut bytes = blank();
        // A Linux partition of 1024 sectors from sector 64.
        bytes[446..462].copy_from_slice(&[0, 0, 2, 0, 0x83, 0, 2, 0, 64, 0, 0, 0, 0, 4, 0, 0]);
        bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
        fs::write(&device, bytes).unwrap();
    };
    for (make, word) in [
        (
            &(|| made_by("mke2fs", &["-q", "-F", "-t", "ext4"])) as &dyn Fn(),
            "ext4",
        ),
        (&|| made_by("mke2fs", &["-q", "-F", "-t", "ext2"]), "ext2"),
        (&|| made_by("mkswap", &[]), "swap"),
        (&with_table, "dos"),
    ] {
        make();
        assert_eq!(
            refusal("/dev/sdb"),
            format!("/dev/sdb: holds {word}; allow its loss with `--erase={word}`")
        );
        assert!(checked("/dev/sdb", Erase::Known(word.into())).is_ok());
        assert!(checked("/dev/sdb", Erase::Known("ntfs".into())).is_err());
    }
    made_by("mke2fs", &["-q", "-F", "-t", "ext4", "-L", "my home"]);
    assert!(refusal("/dev/sdb").contains("holds ext4 called my home;"));
    made_by("mke2fs", &["-q", "-F", "-t", "ext4", "-L", "luc-scratch"]);
    assert!(
        checked("/dev/sdb", Erase::Blank).is_ok(),
        "an earlier cell's"
    );
}

#[test]
fn mounts_keep_the_kernel_from_writing_by_itself() {
    let of = |kind, chosen| scratch::options(kind, chosen, Some(3600));
    assert_eq!(of(FsType::Ext4, ""), "noinit_itable,commit=3600");
    assert_eq!(
        of(FsType::Ext3, "noatime,commit=5"),
        "noatime,commit=5,noinit_itable"
    );
    assert_eq!(of(FsType::Ext4NoJournal, ""), "noinit_itable");
    for kind in [FsType::Ext2, FsType::Xfs, FsType::Btrfs] {
        assert_eq!(of(kind, ""), "", "{kind:?}");
    }
}

#[test]
fn a_machine_that_cannot_measure_says_so_in_a_line() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (tree, out) = (Tree::new(), tempfile::tempdir().unwrap());
    let machine: BTreeMap<&str, &str> = Host
        .factors()
        .iter()
        .map(|factor| (factor.name, factor.default.unwrap()))
        .collect();
    let key = serde_json::json!({
        "place": "host", "machine": machine, "bench": "create-fsync {dir}",
        "arms": [{ "name": "stock" }], "repeat": 1, "seed": 1,
    });
    let cell = cell_of_key(&key.to_string()).unwrap();
    let mut setup = Setup {
        sysroot: tree.0.path().to_owned(),
        out: out.path().to_owned(),
        ..Setup::default()
    };
    for (factor, value, refused) in [
        ("mkfs", "-J size=4", false),
        ("mkfs", "-J device=nvme:64M:none", true),
        ("mkfs", "-l logdev=/dev/sda", true),
        ("mkfs", "/dev/sda", true),
        ("mount", "nodev,noatime", false),
        ("mount", "noatime,logdev=sda", true),
        ("mount", "journal_path=log", true),
        ("mount", "journal_dev=0x801", true),
    ] {
        let mut cell = cell.clone();
        cell.machine.insert(factor.to_owned(), value.to_owned());
        let why = Host.check(&cell).err().unwrap_or_default();
        assert_eq!(why.contains("is another device"), refused, "{value}: {why}");
    }
    let before = tree.settings();
    let why = |setup: &Setup, cell: &Cell| {
        let error = Host.measure(cell, setup, &mut luc_vm::Silent).unwrap_err();
        assert!(
            matches!(
                error,
                CampaignError::Unavailable { .. } | CampaignError::Host(_)
            ),
            "{error}"
        );
        error.to_string()
    };
    assert!(why(&setup, &cell).contains("name it with `--device DEVICE --erase`"));
    let versions = Host.versions(&cell, &setup).unwrap();
    assert_eq!(versions["device"], "none");
    setup.scratch = Some(Scratch {
        device: "/dev/sdb".into(),
        erase: Erase::Blank,
    });
    let versions = Host.versions(&cell, &setup).unwrap();
    assert_eq!(versions["device"], "sdb, 2 MiB");
    assert_eq!(versions["kernel"], "6.12.0");
    assert!(versions["processor"].starts_with("Toy 1"));
    assert!(why(&setup, &cell).contains("a tree of files has no kernel"));
    let mut attached = cell.clone();
    attached.arms[0].arm.on = Some(String::new());
    let why_not = why(&setup, &attached);
    assert!(
        why_not.contains("not installed for kernel 6.12.0"),
        "{why_not}"
    );
    assert_eq!(Host.versions(&attached, &setup).unwrap()["module"], "none");
    assert!(!versions.contains_key("energy"));
    let zone = "sys/class/powercap/intel-rapl:0";
    let energy_of = |bench: &str| {
        let bench = bench.to_owned();
        let cell = Cell {
            bench,
            ..cell.clone()
        };
        Host.versions(&cell, &setup).unwrap()["energy"].clone()
    };
    assert_eq!(energy_of("create-fsync --energy {dir}"), "none");
    for (file, text) in [
        ("name", "package-0"),
        ("energy_uj", "1"),
        ("max_energy_range_uj", "9000000000"),
    ] {
        tree.put(&format!("{zone}/{file}"), text);
    }
    assert_eq!(energy_of("create-fsync --energy {dir}"), "packages");
    let external = energy_of("create-fsync --energy --meter toy {dir}");
    assert_eq!(external, "external_meter");
    tree.put("sys/fs/luc/attach", "");
    assert!(why(&setup, &cell).contains("the module luc is loaded"));
    tree.put("proc/self/status", "CapEff:\t0000000000000000");
    assert!(why(&setup, &cell).contains("not permitted; run it as root"));
    assert_eq!(tree.settings(), before, "nothing was changed");
    assert!(Host.needs(&cell).alone);
}
