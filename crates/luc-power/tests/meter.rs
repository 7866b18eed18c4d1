//! Meters of fake machines: trees of files as the kernel shows them.

use std::fmt::Display;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;

use luc_power::meter::{Boundary, Energy, External, Meter, MeterError};
use rustix::process::{Uid, geteuid};
use tempfile::TempDir;

/// 2^32 units of 1/65536 J.
const RANGE_UJ: u64 = 65_532_610_987;

fn machine() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Writes at once, as a meter may look at any time.
fn write(root: &Path, file: &str, text: impl Display) {
    let file = root.join("sys/class").join(file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let new = root.join("new");
    fs::write(&new, format!("{text}\n")).unwrap();
    fs::rename(new, file).unwrap();
}

fn zone(root: &Path, zone: &str, name: &str, energy_uj: u64) {
    write(root, &format!("powercap/{zone}/name"), name);
    write(
        root,
        &format!("powercap/{zone}/max_energy_range_uj"),
        RANGE_UJ,
    );
    count(root, zone, energy_uj);
}

fn count(root: &Path, zone: &str, energy_uj: u64) {
    write(root, &format!("powercap/{zone}/energy_uj"), energy_uj);
}

/// A server with two packages, each with DRAM, and all zones that contain them or are inside.
fn server() -> TempDir {
    let machine = machine();
    let root = machine.path();
    for (id, name) in [
        ("intel-rapl:0", "package-0"),
        ("intel-rapl:0:0", "core"),
        ("intel-rapl:0:1", "dram"),
        ("intel-rapl:1", "package-1"),
        ("intel-rapl:1:0", "dram"),
        ("intel-rapl:2", "psys"),
        ("intel-rapl-mmio:0", "package-0"),
    ] {
        zone(root, id, name, 1_000_000);
    }
    machine
}

fn find(root: &Path) -> Result<Meter, MeterError> {
    Meter::find(root, None)
}

/// Returns the energy of what `happens`.
fn energy(meter: &Meter, happens: impl FnOnce()) -> Energy {
    let before = meter.sample();
    happens();
    before.until(&meter.sample()).energy()
}

fn joules(energy: &Energy) -> f64 {
    energy
        .reading()
        .unwrap_or_else(|| panic!("{energy}"))
        .joules
}

fn assert_joules(energy: &Energy, expected: f64) {
    let joules = joules(energy);
    assert!(
        (joules - expected).abs() < 1e-6,
        "{joules} is not {expected}"
    );
}

#[test]
fn packages_and_dram_count_once() {
    let machine = server();
    let root = machine.path();
    let meter = find(root).unwrap();
    assert_eq!(meter.boundary(), Boundary::PackagesAndDram { packages: 2 });
    let energy = energy(&meter, || {
        for (zone, joules) in [
            ("intel-rapl:0", 8),
            ("intel-rapl:0:0", 5),
            ("intel-rapl:0:1", 2),
            ("intel-rapl:1", 16),
            ("intel-rapl:1:0", 4),
            ("intel-rapl:2", 100),
            ("intel-rapl-mmio:0", 8),
        ] {
            count(root, zone, 1_000_000 + joules * 1_000_000);
        }
    });
    assert_joules(&energy, 30.0);
    let reading = energy.reading().unwrap();
    assert_eq!(
        (reading.boundary, reading.idle_watts),
        (meter.boundary(), None)
    );
    assert_eq!(reading.parts.dram_joules, Some(6.0));
    let told = energy.to_string();
    assert!(told.ends_with("; DRAM took 6.00 J of it"), "{told}");
    let json = serde_json::to_value(&energy).unwrap();
    assert_eq!(json["dram_joules"], 6.0);
}

/// The second package has no counter of its cores at first.
#[test]
fn cores_stand_beside_their_packages() {
    let machine = server();
    let root = machine.path();
    let load = |meter: &Meter| {
        let energy = energy(meter, || {
            for (zone, uj) in [("intel-rapl:0", 9), ("intel-rapl:0:0", 6)] {
                count(root, zone, uj * 1_000_000);
            }
        });
        for zone in ["intel-rapl:0", "intel-rapl:0:0"] {
            count(root, zone, 1_000_000);
        }
        energy
    };
    let without = load(&find(root).unwrap());
    assert_eq!(without.reading().unwrap().parts.cores_joules, None);
    zone(root, "intel-rapl:1:1", "core", 1_000_000);
    let energy = load(&find(root).unwrap());
    assert_joules(&energy, 8.0);
    assert_eq!(energy.reading().unwrap().parts.cores_joules, Some(5.0));
    let told = energy.to_string();
    assert!(
        told.ends_with("without disks; the cores took 5.00 J of it; DRAM took 0.00 J of it"),
        "{told}"
    );
}

#[test]
fn dram_of_one_package_is_no_part_of_a_whole() {
    let machine = server();
    let root = machine.path();
    fs::remove_dir_all(root.join("sys/class/powercap/intel-rapl:1:0")).unwrap();
    let meter = find(root).unwrap();
    assert_eq!(meter.boundary(), Boundary::Packages { packages: 2 });
    let energy = energy(&meter, || {
        count(root, "intel-rapl:0", 2_000_000);
        count(root, "intel-rapl:0:1", 9_000_000);
    });
    assert_joules(&energy, 1.0);
}

#[test]
fn the_dies_of_a_package_are_one_package() {
    let machine = machine();
    let root = machine.path();
    for (id, name) in [
        ("intel-rapl:0", "package-0-die-0"),
        ("intel-rapl:0:0", "dram"),
        ("intel-rapl:1", "package-0-die-1"),
    ] {
        zone(root, id, name, 0);
    }
    let meter = find(root).unwrap();
    assert_eq!(meter.boundary(), Boundary::PackagesAndDram { packages: 1 });
    let energy = energy(&meter, || {
        count(root, "intel-rapl:0", 1_000_000);
        count(root, "intel-rapl:0:0", 2_000_000);
        count(root, "intel-rapl:1", 4_000_000);
    });
    assert_joules(&energy, 7.0);
}

#[test]
fn amd_packages() {
    let machine = machine();
    let root = machine.path();
    zone(root, "intel-rapl:0", "package-0", 0);
    zone(root, "intel-rapl:0:0", "core", 0);
    let meter = find(root).unwrap();
    assert_eq!(meter.boundary(), Boundary::Packages { packages: 1 });
    let energy = energy(&meter, || {
        count(root, "intel-rapl:0", 3_000_000);
        count(root, "intel-rapl:0:0", 2_000_000);
    });
    assert_joules(&energy, 3.0);
}

#[test]
fn amd_sockets_of_hwmon() {
    let machine = machine();
    let root = machine.path();
    for (number, label, energy_uj) in [(1, "Ecore000", 5), (2, "Esocket0", 7), (3, "Esocket1", 9)] {
        write(root, &format!("hwmon/hwmon0/energy{number}_label"), label);
        write(
            root,
            &format!("hwmon/hwmon0/energy{number}_input"),
            energy_uj,
        );
    }
    write(root, "hwmon/hwmon1/energy1_label", "card");
    write(root, "hwmon/hwmon1/energy1_input", 1);
    let meter = find(root).unwrap();
    assert_eq!(meter.boundary(), Boundary::Packages { packages: 2 });
    let energy = energy(&meter, || {
        for number in 1..=3 {
            write(
                root,
                &format!("hwmon/hwmon0/energy{number}_input"),
                1_000_009,
            );
        }
    });
    assert_joules(&energy, 2.000_002);
}

#[test]
fn a_counter_that_wraps_once_counts_on() {
    let machine = machine();
    let root = machine.path();
    zone(root, "intel-rapl:0", "package-0", RANGE_UJ - 400_000);
    let meter = find(root).unwrap();
    let before = meter.sample();
    count(root, "intel-rapl:0", 600_000);
    let wrapped = meter.sample();
    assert_joules(&before.until(&wrapped).energy(), 1.0);
    count(root, "intel-rapl:0", 1_600_000);
    assert_joules(&before.until(&meter.sample()).energy(), 2.0);
}

#[test]
fn a_counter_that_was_reset_is_unknown() {
    let machine = server();
    let root = machine.path();
    count(root, "intel-rapl:1", 40_000_000_000);
    let meter = find(root).unwrap();
    let reset = energy(&meter, || count(root, "intel-rapl:1", 8_000_000_000)).to_string();
    let expected = "intel-rapl:1/energy_uj went from 40000000000 to 8000000000 within";
    assert!(
        reset.starts_with("unknown: ") && reset.contains(expected),
        "{reset}"
    );
    assert!(reset.contains("no wrap explains"), "{reset}");
    let later = energy(&meter, || count(root, "intel-rapl:1", 9_000_000_000));
    assert_eq!(later.reading(), None, "the meter has lost count");
}

#[test]
fn a_counter_that_vanishes_is_unknown() {
    let machine = server();
    let file = machine
        .path()
        .join("sys/class/powercap/intel-rapl:0/energy_uj");
    let meter = find(machine.path()).unwrap();
    let energy = energy(&meter, || fs::remove_file(&file).unwrap()).to_string();
    let expected = format!("unknown: cannot read {}: No such file", file.display());
    assert!(energy.starts_with(&expected), "{energy}");
    let error = find(machine.path()).err().unwrap();
    assert!(matches!(error, MeterError::Unreadable { .. }), "{error}");
}

#[test]
fn a_counter_that_stands_still_is_not_zero_joules() {
    let machine = server();
    let meter = find(machine.path()).unwrap();
    let energy = energy(&meter, || {}).to_string();
    assert_eq!(energy, "unknown: the meter did not move; measure longer");
}

#[test]
fn counters_for_root_alone() {
    let machine = server();
    let root = machine.path();
    fs::set_permissions(root, PermissionsExt::from_mode(0o755)).unwrap();
    let counter = root.join("sys/class/powercap/intel-rapl:0/energy_uj");
    fs::set_permissions(&counter, PermissionsExt::from_mode(0o000)).unwrap();
    let error = thread::scope(|scope| {
        let as_user = scope.spawn(|| {
            if geteuid().is_root() {
                // The call changes this thread alone.
                let user = Some(Uid::from_raw(65_534));
                rustix::thread::set_thread_res_uid(user, user, user).unwrap();
            }
            find(root).err().unwrap()
        });
        as_user.join().unwrap()
    });
    assert!(
        matches!(&error, MeterError::NotPermitted { file } if *file == counter),
        "{error}"
    );
    assert!(error.to_string().contains("run it as root"), "{error}");
}

#[test]
fn a_machine_without_counters() {
    let machine = machine();
    let error = find(machine.path()).err().unwrap();
    assert!(matches!(error, MeterError::NoCounters { .. }));
    let error = error.to_string();
    for words in [
        "no energy counters",
        "intel_rapl_msr",
        "virtual machines",
        "--meter",
    ] {
        assert!(error.contains(words), "{words}: {error}");
    }
}

fn battery(root: &Path, status: &str, energy_uwh: u64) {
    let mouse = "power_supply/hidpp_battery_0";
    for (file, text) in [
        ("type", "Battery"),
        ("scope", "Device"),
        ("status", "Discharging"),
    ] {
        write(root, &format!("{mouse}/{file}"), text);
    }
    write(root, "power_supply/AC/type", "Mains");
    write(root, "power_supply/BAT0/type", "Battery");
    write(root, "power_supply/BAT0/status", status);
    write(root, "power_supply/BAT0/energy_now", energy_uwh);
}

#[test]
fn a_battery_that_discharges_feeds_the_machine() {
    let machine = machine();
    let root = machine.path();
    battery(root, "Discharging", 50_000_000);
    let meter = find(root).unwrap();
    assert_eq!(meter.boundary(), Boundary::Battery);
    let before = meter.sample();
    for step in 1..=10 {
        battery(root, "Discharging", 50_000_000 - step * 10_000);
        let energy = before.until(&meter.sample()).energy();
        assert_eq!(energy.reading().is_some(), step == 10, "{step}: {energy}");
    }
    assert_joules(&before.until(&meter.sample()).energy(), 360.0);
    let plugged = energy(&meter, || battery(root, "Charging", 50_000_000)).to_string();
    assert!(plugged.contains("BAT0 charges"), "{plugged}");
}

#[test]
fn a_battery_that_charges_is_no_meter() {
    for status in ["Charging", "Full", "Not charging"] {
        let machine = machine();
        battery(machine.path(), status, 50_000_000);
        let error = find(machine.path()).err().unwrap();
        assert!(
            matches!(error, MeterError::NoCounters { .. }),
            "{status}: {error}"
        );
    }
}

#[test]
fn a_command_that_prints_watts() {
    let command = "while echo 40; do sleep 0.01; done";
    let meter = Meter::find(Path::new("/"), Some(&External::named(command))).unwrap();
    assert_eq!(meter.boundary(), Boundary::ExternalMeter);
    let before = meter.sample();
    let energy = loop {
        let energy = before.until(&meter.sample()).energy();
        if energy.reading().is_some() {
            break energy;
        }
        assert!(!energy.to_string().contains("ended"), "{energy}");
        thread::yield_now();
    };
    let reading = energy.reading().unwrap();
    assert!((reading.watts - 40.0).abs() < 1e-3, "{reading:?}");
}

#[test]
fn a_command_that_stops_or_prints_garbage_is_unknown() {
    for (command, why) in [
        ("echo 40", "it ended"),
        ("echo 40; echo 41; echo overload", "it gave \"overload\""),
    ] {
        let meter = Meter::find(Path::new("/"), Some(&External::named(command))).unwrap();
        let before = meter.sample();
        let why = format!("meter `{command}`: {why}");
        while !before
            .until(&meter.sample())
            .energy()
            .to_string()
            .contains(&why)
        {
            thread::yield_now();
        }
    }
}
