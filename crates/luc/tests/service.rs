//! `luc service` on a fake machine: what it switches, what it says, and what it leaves alone.

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::{sleep, spawn};
use std::time::Duration;

use common::Pretended;
use luc_base::Stop;
use luc_test::command::{assert_begins, assert_ends, assert_holds};
use luc_test::waiting::until;
use rustix::io::Errno;

const MAIN: &str = "/etc/luc/luc.toml";
const DATA: &str =
    "[[file_system]]\npath = \"/srv/data\"\nguard = false\nset = { delay_limit_us = 7000 }\n";
const MAIL: &str = "[[file_system]]\npath = \"/srv/mail\"\nguard = false\n";
const MEMORY: &str = "/run/luc/service.json";

fn machine(config: &str) -> Pretended {
    let machine = Pretended::new();
    machine.put(MAIN, config);
    machine
}

/// Runs the service, calls `beside` on the tree after its first look, and ends it.
fn serve(machine: &Pretended, beside: impl FnOnce(&Path) + Send + 'static) -> String {
    let (stop, root) = (Stop::new(), machine.dir.path().to_owned());
    let ends = stop.clone();
    let other = spawn(move || {
        sleep(Duration::from_millis(300));
        beside(&root);
        ends.set();
    });
    let said = machine.run_until(&["service"], stop);
    other.join().expect("it ends");
    said
}

/// The service's memory, in the fake machine's tree.
fn remembered(root: &Path) -> PathBuf {
    root.join(MEMORY.trim_start_matches('/'))
}

fn attached(machine: &Pretended) -> Vec<String> {
    let acts = machine.acts.borrow();
    let of_module = acts
        .iter()
        .filter_map(|act| act.strip_prefix("/sys/fs/luc/"));
    of_module.map(String::from).collect()
}

#[test]
fn it_switches_on_what_is_named_and_off_at_the_end() {
    let machine = machine(DATA);
    machine.put("/etc/luc/luc.toml.d/mail.toml", MAIL);
    machine.put("/etc/luc/luc.toml.d/README", "no configuration");
    let said = serve(&machine, |root| {
        until("LUC", || root.join("sys/fs/luc/vdb/knobs").exists());
    });
    assert_eq!(
        said,
        "luc: service: /srv/data: LUC is on\nluc: service: /srv/mail: LUC is on\n\
         luc: service: /srv/data: LUC is off\nluc: service: /srv/mail: LUC is off\n"
    );
    assert_eq!(
        attached(&machine),
        [
            "attach 254:16 delay_limit_us=7000",
            "attach 253:0",
            "detach 254:16",
            "detach 253:0"
        ]
    );
    assert!(!machine.at(MEMORY).exists(), "nothing is left");
}

/// The service starts its guard after LUC, and ends it before LUC.
#[test]
fn what_it_switches_on_is_guarded() {
    let machine = machine(&DATA.replace("guard = false\n", ""));
    let said = serve(&machine, |root| {
        let notes = root.join("run/luc/vdb.guard.json");
        until("guard", || notes.exists());
    });
    let lines: Vec<&str> = said.lines().collect();
    let [on, guarded, off] = lines[..] else {
        panic!("{said}");
    };
    assert_eq!(on, "luc: service: /srv/data: LUC is on");
    assert!(
        guarded.starts_with("luc: service: /srv/data (vdb): guarded"),
        "{said}"
    );
    assert_eq!(off, "luc: service: /srv/data: LUC is off");
}

#[test]
fn a_uuid_is_a_name_too_and_two_names_are_one_too_many() {
    let link = |machine: &Pretended| {
        let dir = machine.at("/dev/disk/by-uuid");
        fs::create_dir_all(&dir).expect("folder");
        std::os::unix::fs::symlink("../../vdb", dir.join("AB-12")).expect("link");
    };
    let one = machine("[[file_system]]\nuuid = \"ab-12\"\nguard = false\n");
    link(&one);
    assert!(serve(&one, |_| {}).contains("UUID ab-12: LUC is on"));
    let two = machine(&format!("{DATA}[[file_system]]\nuuid = \"ab-12\"\n"));
    link(&two);
    let said = serve(&two, |_| {});
    assert_holds(&said, "/srv/data and UUID ab-12 are the same file system");
    assert_eq!(attached(&two), Vec::<String>::new());
    // The service waits for a file system that is not there.
    let absent = machine("[[file_system]]\nuuid = \"00-00\"\n");
    assert_eq!(serve(&absent, |_| {}), "");
}

#[test]
fn what_was_switched_by_hand_is_left_alone() {
    let mine = machine(DATA);
    mine.run(&["on", "/srv/data"]);
    let said = serve(&mine, |_| {});
    assert_holds(&said, "someone else switched LUC on");
    assert_eq!(attached(&mine), ["attach 254:16"]);
    // Switched off by hand while the service runs: LUC stays off.
    let off = machine(DATA);
    let said = serve(&off, |root| {
        until("memory", || remembered(root).exists());
        fs::remove_dir_all(root.join("sys/fs/luc/vdb")).expect("off");
        sleep(Duration::from_millis(2500));
    });
    assert_holds(&said, "LUC was switched off by hand");
    assert_eq!(attached(&off), ["attach 254:16 delay_limit_us=7000"]);
}

#[test]
fn a_service_that_was_killed_knows_its_own_work() {
    let machine = machine(DATA);
    serve(&machine, |root| {
        // As after a kill: the memory is there, and LUC is on.
        until("memory", || remembered(root).exists());
        fs::copy(remembered(root), root.join("kept.json")).expect("a memory");
    });
    machine.run(&["on", "--set", "delay_limit_us=7000", "/srv/data"]);
    fs::rename(machine.at("/kept.json"), machine.at(MEMORY)).expect("put back");
    // The next service has a new sandbox, in which mounts have other numbers.
    let table = machine.at("/proc/self/mountinfo");
    let mounts = fs::read_to_string(&table).expect("mounts");
    fs::write(&table, mounts.replace("21 1 254:16", "121 1 254:16")).expect("written");
    let said = serve(&machine, |_| {});
    assert_eq!(said, "luc: service: /srv/data: LUC is off\n");
}

/// The file system is remounted between two looks, and the kernel gives it the same device number.
#[test]
fn a_mount_is_another_one_by_its_journal() {
    let machine = machine(DATA);
    let said = serve(&machine, |root| {
        until("memory", || remembered(root).exists());
        fs::remove_dir_all(root.join("sys/fs/luc/vdb")).expect("gone with its mount");
        fs::write(root.join("sys/fs/ext4/vdb/journal_task"), "78\n").expect("written");
        sleep(Duration::from_millis(2500));
    });
    let on = "luc: service: /srv/data: LUC is on\n";
    assert_eq!(
        said,
        format!("{on}{on}luc: service: /srv/data: LUC is off\n")
    );
}

/// The service ends where LUC cannot run, so that systemd shows a failed unit.
#[test]
fn a_machine_that_refuses_luc_ends_it() {
    let mut unloadable = machine(&format!("{DATA}{MAIL}"));
    unloadable.load_error = Some(Errno::NOEXEC);
    let without = machine("[[file_system]]\npath = \"/srv/later\"\n");
    let configuration = format!("/boot/config-{}", luc_test::machine::RELEASE);
    without.put(&configuration, "# CONFIG_MODULES is not set\n");
    for (machine, line, end) in [
        (unloadable, "luc: kernel module luc: ", "[exit 4]\n"),
        (
            without,
            "luc: LUC cannot run on this machine: ",
            "[exit 12]\n",
        ),
    ] {
        let said = machine.run(&["service"]);
        assert!(said.starts_with(line) && said.ends_with(end), "{said}");
        assert_eq!(said.lines().count(), 2, "{said}");
        assert!(!machine.at(MEMORY).exists(), "nothing is left");
    }
    // Nothing is asked of LUC here.
    let idle = machine("");
    idle.put(&configuration, "# CONFIG_MODULES is not set\n");
    assert_eq!(serve(&idle, |_| {}), "");
}

#[test]
fn a_full_run_costs_the_memory_alone() {
    let machine = machine(DATA);
    machine.put("/run/luc", "no folder");
    let said = serve(&machine, |_| {});
    assert_ends(&said, "/srv/data: LUC is off\n");
}

/// The mount table differs at each look, and sometimes lacks the file system.
#[test]
fn mounts_come_and_go_under_it() {
    let machine = machine(DATA);
    let said = serve(&machine, |root| {
        let table = root.join("proc/self/mountinfo");
        let whole = fs::read_to_string(&table).expect("mounts");
        let without = whole.lines().filter(|line| !line.contains("/srv/data"));
        let without: Vec<&str> = without.collect();
        for turn in 0..200 {
            let text = if turn % 2 == 0 {
                without.join("\n")
            } else {
                whole.replace("21 1 254:16", &format!("{} 1 254:16", 100 + turn))
            };
            let beside = root.join("beside");
            fs::write(&beside, text).expect("written");
            fs::rename(&beside, &table).expect("renamed");
            sleep(Duration::from_millis(12));
        }
    });
    assert!(!said.contains("panic"), "{said}");
}

/// A control group may be made after LUC is on: its knob follows.
#[test]
fn a_group_that_appears_later_gets_its_priority() {
    let set = "set = { priority_cgroup = \"db.slice\" }\n";
    let machine = machine(&format!("{MAIL}{set}"));
    let mounts = fs::read_to_string(machine.at("/proc/self/mountinfo")).expect("mounts");
    let cgroup2 = "99 1 0:40 / /sys/fs/cgroup rw - cgroup2 none rw\n";
    machine.put("/proc/self/mountinfo", mounts + cgroup2);
    machine.put("/sys/fs/cgroup/cgroup.procs", "");
    let said = serve(&machine, |root| {
        let group = root.join("sys/fs/cgroup/db.slice");
        fs::create_dir(&group).expect("a group");
        let id = format!("{}\n", fs::metadata(group).expect("there").ino());
        let knob = root.join("sys/fs/luc/dm-0/knobs/priority_cgroup");
        let is_set = || fs::read_to_string(&knob).is_ok_and(|now| now.trim() == id.trim());
        until("the next look", is_set);
    });
    assert_holds(&said, "/srv/mail: priority_cgroup is db.slice\n");
    let checked = machine.run(&["service", "--check"]);
    assert_begins(&checked, "/srv/mail: priority_cgroup=db.slice, no guard");
}

#[test]
fn a_configuration_is_checked_without_a_machine() {
    let good = machine(&format!("{DATA}{MAIL}"));
    assert_eq!(
        good.run(&["service", "--check"]),
        format!(
            "/srv/data: delay_limit_us=7000, no guard ({0}:1)\n\
             /srv/mail: default knobs, no guard ({0}:5)\n",
            good.at(MAIN).display()
        )
    );
    assert!(
        machine("")
            .run(&["service", "--check"])
            .contains("LUC stays off")
    );
    for (config, words) in [
        (
            "[[file_system]]\npaht = \"/a\"\n",
            "luc.toml:2: unknown field",
        ),
        (
            &format!("{DATA}{DATA}"),
            "luc.toml:5: /srv/data already has an entry",
        ),
    ] {
        let said = machine(config).run(&["service"]);
        assert_holds(&said, words);
        assert_ends(&said, "[exit 32]\n");
        assert_eq!(said.lines().count(), 2, "{said}");
    }
    // The template names no file system.
    let fresh = Pretended::new().run(&["service", "--template"]);
    assert!(
        machine(&fresh)
            .run(&["service", "--check"])
            .contains("LUC stays off"),
        "{fresh}"
    );
    let none = Pretended::new().run(&["service"]);
    assert_holds(&none, "cannot read");
    assert_ends(&none, "[exit 32]\n");
}

#[test]
fn a_check_refuses_what_is_mounted_and_has_no_journal() {
    for (path, why) in [
        ("/srv/xfs", "the file system is xfs"),
        ("/srv/plain", "the ext4 file system has no journal"),
    ] {
        let machine = machine(&format!("\n[[file_system]]\npath = \"{path}\"\n"));
        let said = machine.run(&["service", "--check"]);
        let line = format!("luc.toml:2: {path}: {why}");
        assert_holds(&said, &line);
        assert_ends(&said, "[exit 32]\n");
    }
    // An absent or read-only mount may change.
    let later = DATA.replace("/srv/data", "/srv/later") + &DATA.replace("/srv/data", "/srv/frozen");
    let said = machine(&later).run(&["service", "--check"]);
    assert_holds(&said, "/srv/later: ");
    assert_holds(&said, "/srv/frozen: ");
}

#[test]
fn a_relative_folder_is_looked_for_here() {
    let dir = tempfile::tempdir().expect("temporary folder");
    fs::create_dir(dir.path().join("mine")).expect("folder");
    fs::write(
        dir.path().join("mine/luc.toml"),
        DATA.replace("/srv/data", "/srv/later"),
    )
    .expect("file");
    let mut command = common::luc();
    command.args(["service", "--check", "--config", "mine"]);
    let said = luc_test::command::run(command.current_dir(dir.path()));
    assert_begins(&said, "/srv/later: ");
    assert_ends(&said, "[exit 0]\n");
}

/// Each unit runs its verb; systemd itself judges its sandbox.
#[test]
fn the_units_run_the_verbs_and_are_closed() {
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    for (unit, verb) in [("luc", "service"), ("luc-exporter", "exporter")] {
        let file = units.join(format!("{unit}.service"));
        let text = fs::read_to_string(&file).expect("a unit");
        assert_holds(&text, &format!("ExecStart=/usr/bin/luc {verb}\n"));
        let Ok(output) = std::process::Command::new("systemd-analyze")
            .args(["security", "--offline=true"])
            .arg(&file)
            .output()
        else {
            luc_test::skip("units", "systemd-analyze is not there");
            continue;
        };
        let said = String::from_utf8_lossy(&output.stdout);
        let last = said.lines().last().unwrap_or_default();
        let level = last
            .split_whitespace()
            .find_map(|word| word.parse::<f64>().ok());
        assert!(level.is_some_and(|level| level <= 3.0), "{unit}: {last}");
    }
}
