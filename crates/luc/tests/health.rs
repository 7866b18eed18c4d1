//! File systems that take no writes, on a fake machine.

mod common;

use common::Pretended;
use insta::assert_snapshot;
use luc_base::Stop;
use luc_host::System as _;
use luc_test::command::{assert_ends, assert_holds};
use serde_json::Value;

/// A machine with LUC on for /srv/data and /srv/mail.
fn working() -> Pretended {
    let machine = Pretended::new();
    machine.run(&["on", "/srv/data"]);
    machine.run(&["on", "/srv/mail"]);
    machine
}

/// Adds an option of the file system on /srv/data, as the kernel does after a fault.
fn add_option(machine: &Pretended, option: &str) {
    let file = "/proc/self/mountinfo";
    let table = machine.read(file).expect("a mount table");
    let changed = table.replace("/dev/vdb rw", &format!("/dev/vdb rw,{option}"));
    assert_ne!(table, changed);
    machine.put(file, changed);
}

/// Records an error in the superblock of the journal of /srv/data.
fn abort(machine: &Pretended, errno: i32) {
    let file = "/dev/vdb";
    let mut device = machine.read_bytes(file).expect("a device");
    device.resize(3 * 1024, 0);
    // The journal begins at the second block of 1 KiB.
    device[1024 + 0x10c] = 2;
    device[2048..2052].copy_from_slice(&0xc03b_3998_u32.to_be_bytes());
    device[2048 + 0x20..2048 + 0x24].copy_from_slice(&(-errno).to_be_bytes());
    machine.put(file, device);
}

/// The answers of all verbs for /srv/data.
fn asked(machine: &Pretended) -> String {
    let mut said = String::new();
    for words in [
        &["on", "/srv/data"][..],
        &["doctor", "/srv/data"],
        &["try", "/srv/data"],
        &["guard", "/srv/data"],
        &["status", "/srv/data"],
    ] {
        said += &machine.run(words);
    }
    let mut row = |words: &[&str]| {
        let page = machine.run(words);
        let row = page.lines().find(|line| line.starts_with("/srv/data "));
        said += row.expect("a row");
        said += "\n";
    };
    row(&["probe"]);
    row(&["top", "--once", "--interval", "0.2"]);
    said
}

#[test]
fn options_that_tell_of_a_fault_are_heeded() {
    let machine = working();
    add_option(&machine, "emergency_ro");
    let refused = asked(&machine);
    let machine = working();
    add_option(&machine, "shutdown");
    assert_snapshot!(refused + &asked(&machine));
}

#[test]
fn the_journals_superblock_tells_of_an_abort() {
    let machine = working();
    abort(&machine, 5);
    assert_snapshot!(asked(&machine));
    abort(&machine, 0);
    assert_holds(&machine.run(&["status", "/srv/data"]), "luc, steering");
}

#[test]
fn a_device_that_keeps_requests_is_a_fault() {
    let machine = working();
    let put = |file: &str, text: &str| {
        machine.put(&format!("/sys/dev/block/254:16/{file}"), text);
    };
    put("dev", "254:16\n");
    put("device/state", "blocked\n");
    let halted = machine.run(&["status", "/srv/data"]);
    let told = "/dev/vdb takes no requests (its state is \"blocked\"), so writers wait; ";
    assert_holds(&halted, told);
    put("dm/name", "data\n");
    put("dm/suspended", "1\n");
    assert_snapshot!(asked(&machine));
    put("dm/suspended", "0\n");
    put("device/state", "running\n");
    assert_holds(&machine.run(&["status", "/srv/data"]), "luc, steering");
}

#[test]
fn a_fault_of_the_file_system_below_is_its_own() {
    let machine = working();
    machine.put(
        "/sys/dev/block/254:16/loop/backing_file",
        "/srv/images/disk.img\n",
    );
    let file = "/proc/self/mountinfo";
    let table = machine.read(file).expect("a mount table");
    let outer = "40 1 8:1 / /srv/images rw - ext4 /dev/sda1 rw\n";
    machine.put(file, table + outer);
    machine.put("/sys/dev/block/8:1/dev", "8:1\n");
    assert_holds(&machine.run(&["status", "/srv/data"]), "luc, steering");
    machine.put("/sys/dev/block/8:1/device/state", "blocked\n");
    assert_snapshot!(asked(&machine));
}

/// Without BPF, a file system without a visible fault may have an invisible one.
#[test]
fn health_is_unknown_or_told_for_programs() {
    let machine = working();
    let health = |verb: &[&str], list: &str| {
        let said = machine.run(verb);
        let json: Value = serde_json::Deserializer::from_str(&said)
            .into_iter()
            .next()
            .expect("a value")
            .expect("JSON");
        let all = json[list].as_array().expect("a list").clone();
        let data = all.iter().find(|one| one["name"] == "vdb");
        data.expect("/srv/data")["health"].clone()
    };
    let status = || health(&["status", "--json"], "file_systems");
    let probe = || health(&["probe", "--json"], "journals");
    assert_eq!((status(), probe()), (Value::Null, Value::Null));
    let series = "luc_file_system_fault{device=\"vdb\",mountpoint=\"/srv/data\",fault=";
    assert!(!machine.run(&["exporter", "--once"]).contains(series));
    add_option(&machine, "shutdown");
    assert_eq!(
        (status(), probe()),
        ("shut_down".into(), "shut_down".into())
    );
    let page = machine.run(&["exporter", "--once"]);
    assert_holds(&page, &format!("{series}\"shut_down\"}} 1\n"));
    assert_holds(&page, &format!("{series}\"frozen\"}} 0\n"));
}

#[test]
fn the_doctor_of_all_lists_faults_first_and_goes_on() {
    let machine = working();
    add_option(&machine, "shutdown");
    let all = ["doctor", "--all", "--seconds", "1"];
    let said = machine.run(&all);
    let fault = said.find("/srv/data: it takes no writes, because it was shut down by force; ");
    assert!(fault.is_some() && fault < said.find("/srv/mail"), "{said}");
    let end = "luc: 1 of 2 file systems takes no writes; see above\n[exit 36]\n";
    assert_ends(&said, end);
    let said = machine.run(&[&all[..], &["--json"]].concat());
    let begin = said.find('{').expect("JSON");
    let json = serde_json::Deserializer::from_str(&said[begin..])
        .into_iter()
        .next();
    let json: Value = json.expect("a value").expect("JSON");
    let first = &json["file_systems"][0];
    assert_eq!(first["device"], "254:16");
    assert_eq!(first["facts"]["health"], "shut_down");
    assert_eq!(json["file_systems"][1]["facts"]["health"], Value::Null);
}

/// The guard of all file systems does not end because of one.
#[test]
fn the_guard_of_all_waits_for_those_with_a_fault() {
    let machine = working();
    add_option(&machine, "shutdown");
    let stop = Stop::new();
    stop.set();
    let said = machine.run_until(&["guard"], stop);
    assert!(said.contains("/srv/mail (dm-0): guarded"), "{said}");
    assert!(!said.contains("[exit"), "{said}");
}
