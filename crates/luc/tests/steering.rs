//! `luc on`, `off`, `status` and `set` against a fake kernel: what a
//! person reads, and what the kernel is told.

mod common;

use common::Pretended;
use insta::assert_snapshot;
use luc_base::Stop;
use luc_test::command::dense;
use rustix::io::Errno;

/// A machine with LUC on for /srv/data after some work.
fn working() -> Pretended {
    let machine = Pretended::new();
    machine.run(&["on", "/srv/data"]);
    machine.count(
        "vdb",
        &[
            ("commits", 12_345),
            ("sync_events", 94_110),
            ("commits_held", 8_271),
            ("held_ns", 1_662_471_000),
            ("held_max_ns", 4_048_000),
            ("closed_now", 4_074),
            ("closed_setpoint", 7_444),
            ("closed_idle", 500),
            ("closed_limit", 300),
            ("closed_urgent", 27),
            ("handles", 1_234_567),
            ("writes_delayed", 120),
            ("write_delay_ns", 144_000_000),
            ("write_delay_max_ns", 8_100_000),
            ("buffers_spared", 3_210),
            ("copies", 45_120),
            ("copyout_active", 1),
            ("setpoint_events", 8),
            ("batch_events", 8),
            ("commit_avg_ns", 8_096_000),
        ],
    );
    machine
}

#[test]
fn on_loads_attaches_and_says_so() {
    let machine = Pretended::new();
    assert_snapshot!(machine.run(&["on", "/srv/data"]));
    assert_eq!(
        *machine.acts.borrow(),
        [
            format!(
                "load /lib/modules/{}/extra/luc.ko",
                luc_test::machine::RELEASE
            ),
            "/sys/fs/luc/attach 254:16".to_owned(),
        ]
    );
}

#[test]
fn on_takes_a_device_knobs_and_a_module_file() {
    let machine = Pretended::new();
    machine.put("/root/luc.ko", "ELF");
    let said = machine.run(&[
        "on",
        "/dev/dm-0",
        "--policy",
        "batching",
        "--observe",
        "--set",
        "setpoint_events=9",
        "--set",
        "kp_milli=1",
        "--set",
        "kp_milli=700",
        "--module",
        "/root/luc.ko",
    ]);
    assert_snapshot!(said);
    assert_eq!(
        *machine.acts.borrow(),
        [
            "load /root/luc.ko",
            "/sys/fs/luc/attach 253:0 batching=returns copyout=off mode=observe setpoint_events=9 kp_milli=700",
        ]
    );
}

#[test]
fn a_dry_run_tells_and_changes_nothing() {
    let mut machine = Pretended::new();
    let dry = ["on", "--dry-run", "/srv/data"];
    let mut said = machine.run(&dry) + &machine.run(&[&dry[..], &["--observe"]].concat());
    assert!(
        machine.acts.borrow().is_empty(),
        "the kernel was left alone"
    );
    machine.run(&["on", "/srv/mail"]);
    said += &machine.run(&dry);
    said += &machine.run(&["on", "--dry-run", "/srv/mail"]);
    machine = Pretended::new();
    machine.remove(&format!("/lib/modules/{}", luc_test::machine::RELEASE));
    said += &machine.run(&dry);
    assert_snapshot!(said);
}

#[test]
fn on_refuses_what_it_cannot_steer() {
    let machine = Pretended::new();
    let mut said = String::new();
    for path in ["/srv/nothing", "/srv/xfs", "/srv/plain", "/srv/frozen"] {
        said += &machine.run(&["on", path]);
    }
    assert_snapshot!(said);
    assert!(
        machine.acts.borrow().is_empty(),
        "the kernel was left alone"
    );
}

#[test]
fn on_refuses_bad_knobs_before_it_touches_anything() {
    let machine = Pretended::new();
    let mut said = machine.run(&["on", "/srv/data", "--policy", "fast"]);
    for setting in [
        "kp=1",
        "kp_milli",
        "kp_milli=x",
        "kp_milli=-1",
        "kp_milli=100001",
    ] {
        said += &machine.run(&["on", "/srv/data", "--set", setting]);
    }
    assert_snapshot!(said);
    assert!(
        machine.acts.borrow().is_empty(),
        "the kernel was left alone"
    );
}

#[test]
fn on_twice_is_refused() {
    let machine = Pretended::new();
    machine.run(&["on", "/srv/data"]);
    assert_snapshot!(machine.run(&["on", "/dev/vdb"]));
}

#[test]
fn on_needs_root() {
    let machine = Pretended::new();
    machine.put("/proc/self/status", "CapEff:\t0000000000000000\n");
    assert_snapshot!(machine.run(&["on", "/srv/data"]));
}

#[test]
fn every_answer_of_the_module_has_its_own_line() {
    let mut said = String::new();
    for errno in [
        Errno::NODEV,
        Errno::OPNOTSUPP,
        Errno::NOLINK,
        Errno::ROFS,
        Errno::EXIST,
        Errno::BUSY,
        Errno::NOENT,
        Errno::NOTRECOVERABLE,
        Errno::INVAL,
        Errno::RANGE,
        Errno::PERM,
        Errno::NOMEM,
    ] {
        let mut machine = Pretended::new();
        machine.load();
        machine.hook("jbd2_log_wait_commit", "busy");
        machine.hook("jbd2_complete_transaction", "missing");
        machine.attach_error = Some(errno);
        said += &machine.run(&["on", "/srv/data"]);
    }
    assert_snapshot!(said);
}

#[test]
fn a_module_that_will_not_load_is_explained() {
    let mut said = String::new();
    for errno in [
        Errno::NOEXEC,
        Errno::NOENT,
        Errno::INVAL,
        Errno::OPNOTSUPP,
        Errno::KEYREJECTED,
        Errno::PERM,
        Errno::NOMEM,
    ] {
        let mut machine = Pretended::new();
        machine.put(
            "/dev/kmsg",
            "6,1,2,-;luc: jbd2: journal_s has 1234 bytes, none known\n6,2,3,-;other\n",
        );
        machine.load_error = Some(errno);
        said += &machine.run(&["on", "/srv/data"]);
    }
    // Secure Boot gives this error for a key that is not enrolled.
    let mut machine = Pretended::new();
    machine.put(
        "/sys/kernel/security/lockdown",
        "none [integrity] confidentiality\n",
    );
    machine.load_error = Some(Errno::PERM);
    said += &machine.run(&["on", "/srv/data"]);
    let machine = Pretended::new();
    said += &machine.run(&["on", "/srv/data", "--module", "/root/luc.ko"]);
    machine.remove(&format!("/lib/modules/{}", luc_test::machine::RELEASE));
    said += &machine.run(&["on", "/srv/data"]);
    assert_snapshot!(said);
}

#[test]
fn a_failed_attach_takes_the_module_along() {
    let mut machine = Pretended::new();
    machine.attach_error = Some(Errno::NOMEM);
    machine.run(&["on", "/srv/data"]);
    assert_eq!(
        machine.acts.borrow().last().map(String::as_str),
        Some("unload luc")
    );
    // A module that was loaded before stays.
    machine.load();
    machine.acts.borrow_mut().clear();
    machine.run(&["on", "/srv/data"]);
    assert_eq!(*machine.acts.borrow(), ["/sys/fs/luc/attach 254:16"]);
}

#[test]
fn an_interrupt_between_load_and_attach_leaves_nothing() {
    let mut machine = Pretended::new();
    let stop = Stop::new();
    machine.interrupt_at_load = Some(stop.clone());
    assert_snapshot!(machine.run_until(&["on", "/srv/data"], stop));
    assert_eq!(machine.acts.borrow().len(), 2, "load and unload");
    assert!(!machine.at("/sys/fs/luc").exists());
}

#[test]
fn off_restores_and_tells_what_was_done() {
    let machine = working();
    let said = ["/srv/data", "/srv/data", "/srv/nothing"].map(|path| machine.run(&["off", path]));
    assert_snapshot!(said.concat());
}

#[test]
fn off_all_and_unload() {
    let machine = working();
    machine.run(&["on", "/"]);
    let said = ["/", "--all", "--all"].map(|which| machine.run(&["off", which, "--unload"]));
    assert_snapshot!(said.concat());
}

#[test]
fn a_module_in_use_is_not_torn_out() {
    let mut machine = Pretended::new();
    machine.load();
    machine.pinned = true;
    assert_snapshot!(machine.run(&["off", "--unload"]));
}

#[test]
fn hooks_that_stay_are_told() {
    let mut machine = working();
    machine.detach_error = Some(Errno::NOTRECOVERABLE);
    machine.pinned = true;
    let off = machine.run(&["off", "/srv/data"]);
    machine.hook("jbd2_log_wait_commit", "stuck");
    assert_snapshot!(off + &machine.run(&["off", "--unload"]) + &machine.run(&["status"]));
}

#[test]
fn status_is_for_people() {
    let machine = working();
    machine.run(&["on", "/dev/dm-0", "--observe", "--set", "setpoint_events=4"]);
    let observed = [("commits", 100), ("closed_now", 58), ("closed_forgone", 42)];
    machine.count("dm-0", &observed);
    machine.count("dm-0", &[("copyout_forgone", 7)]);
    let one = ["/srv/mail", "/"].map(|path| machine.run(&["status", path]));
    assert_snapshot!(machine.run(&["status"]) + &one.concat());
}

#[test]
fn hooks_that_others_own_are_named() {
    let machine = Pretended::new();
    machine.load();
    machine.hook("ext4_sync_file", "busy");
    machine.hook("jbd2_fc_end_commit", "missing");
    let said = machine.run(&["on", "/srv/data"]) + &machine.run(&["status"]);
    assert_snapshot!(said);
}

#[test]
fn status_is_for_programs() {
    let machine = working();
    let said = machine.run(&["status", "--json"]);
    let mut report: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let one = report["file_systems"][0]
        .as_object_mut()
        .expect("a file system");
    let knobs = one.remove("knobs").expect("knobs");
    let counters = one.remove("counters").expect("counters");
    assert_eq!(knobs["policy"], "luc");
    assert_eq!(knobs["copyout"], "contended");
    assert_eq!(counters["commits"], 12_345);
    for knob in luc_control::knobs() {
        assert!(!knobs[knob.name].is_null(), "{}", knob.name);
    }
    for counter in luc_control::counters() {
        assert!(counters[counter.name].is_i64(), "{}", counter.name);
    }
    assert_snapshot!(dense(&report.to_string()));
}

/// No commit is held if the mount forbids it, and on stacked file systems a sync may wait twice.
#[test]
fn what_lies_with_the_mount_is_told() {
    let machine = Pretended::new();
    machine.run(&["on", "/srv/mail"]);
    let mounts = std::fs::read_to_string(machine.at("/proc/self/mountinfo")).expect("mounts");
    let line = mounts.lines().find(|line| line.contains(" /srv/data "));
    let line = line.expect("a mount");
    let barred = mounts.replace(line, &format!("{line},max_batch_time=0"));
    machine.put("/proc/self/mountinfo", barred);
    let file = "/sys/class/block/vdb/loop/backing_file";
    machine.put(file, "/srv/mail/disk.img\n");
    let said = machine.run(&["on", "/srv/data"]) + &machine.run(&["status", "/srv/data"]);
    let report = machine.run(&["status", "/srv/data", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let one = &report["file_systems"][0];
    assert_eq!(one["holds_barred_by"], "mount option max_batch_time=0");
    assert_eq!(one["stacked_on"], serde_json::json!(["dm-0"]));
    assert_snapshot!(said);
}

/// A control group is named by its path and given to the module by its id.
#[test]
fn a_group_with_priority_is_named_by_its_path() {
    use std::os::unix::fs::MetadataExt as _;
    let machine = working();
    let set = |group: &str| machine.run(&["set", "/srv/data", "priority_cgroup", group]);
    let unseen = set("app.slice");
    machine.put("/sys/fs/cgroup/app.slice/cgroup.procs", "");
    let mounts = std::fs::read_to_string(machine.at("/proc/self/mountinfo")).expect("mounts");
    let cgroup2 = "99 1 0:40 / /sys/fs/cgroup rw - cgroup2 none rw\n";
    machine.put("/proc/self/mountinfo", mounts + cgroup2);
    let knob = || {
        let knob = machine.at("/sys/fs/luc/vdb/knobs/priority_cgroup");
        std::fs::read_to_string(knob)
            .expect("a knob")
            .trim()
            .to_owned()
    };
    let refused = ["web.slice", "/srv/data", "/", "-3"].map(set).concat();
    assert_eq!(knob(), "0");
    let dir = machine.at("/sys/fs/cgroup/app.slice");
    let id = std::fs::metadata(&dir).expect("a group").ino().to_string();
    let done = set("app.slice");
    assert_eq!(knob(), id);
    machine.count("vdb", &[("priority_events", 31)]);
    let status = |flags: &[&str]| machine.run(&[&["status", "/srv/data"], flags].concat());
    let there = status(&[]);
    assert!(
        there.contains("priority   /app.slice: 31 sync events\n"),
        "{there}"
    );
    let report: serde_json::Value = serde_json::from_str(&status(&["--json"])).expect("JSON");
    let shown = &report["file_systems"][0]["knobs"]["priority_cgroup"];
    assert_eq!(shown, "/app.slice");
    std::fs::remove_dir_all(dir).expect("removed");
    let none = set("0").replace(&id, "ID");
    assert_eq!(knob(), "0");
    assert_snapshot!(format!("{unseen}{refused}{done}{none}"));
}

#[test]
fn status_of_nothing() {
    let machine = Pretended::new();
    let unloaded = machine.run(&["status"]) + &machine.run(&["status", "--json"]);
    machine.load();
    assert_snapshot!(unloaded + &machine.run(&["status"]));
}

#[test]
fn set_lists_changes_and_refuses() {
    let machine = working();
    machine.run(&["set", "/srv/data", "kp_milli", "900"]);
    let list = machine.run(&["set", "/srv/data"]);
    // A heading, the policy, the knobs.
    assert_eq!(list.lines().count(), 2 + luc_control::knobs().len());
    let some = list.lines().filter(|line| {
        ["knob", "policy", "mode", "kp_milli", "copyout"]
            .contains(&line.split(' ').next().expect("a word"))
    });
    let mut said = some.collect::<Vec<_>>().join("\n") + "\n";
    for words in [
        &["policy", "batching"][..],
        &["policy"],
        &["policy", "fast"],
        &["kp", "1"],
        &["kp_milli", "ten"],
        &["kp_milli", "-5"],
        &["kp_milli", "100001"],
        &["kp_milli"],
    ] {
        let line: Vec<_> = ["set", "/srv/data"].iter().chain(words).copied().collect();
        said += &machine.run(&line);
    }
    said += &machine.run(&["set", "/", "kp_milli", "1"]);
    said += &dense(&machine.run(&["set", "/srv/data", "mode", "--json"]));
    assert_snapshot!(said);
}

#[test]
fn every_disk_is_what_its_row_says() {
    for disk in &luc_test::machine::DISKS {
        assert_eq!(
            luc_test::machine::device(disk.name).to_string(),
            disk.device
        );
    }
}
