//! `luc power` on a fake machine whose load and energy follow the clock, with signals, changes by
//! other programs, and crashes.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Instant;

use common::{Load, Pretended, count_energy, ended, set_energy, signal, start};
use luc_test::command::{assert_begins, assert_ends, assert_holds};
use luc_test::waiting::until;
use rustix::process::Signal;

const POLICIES: [&str; 2] = [
    "/sys/devices/system/cpu/cpufreq/policy0",
    "/sys/devices/system/cpu/cpufreq/policy4",
];
const LOCK: &str = "run/luc-settings";

/// A machine with LUC on for /srv/data, and two policies of the clock.
struct Host {
    machine: Pretended,
    root: PathBuf,
}

impl Host {
    fn new() -> Self {
        let machine = Pretended::new();
        machine.run(&["on", "/srv/data"]);
        machine.put("/proc/sys/kernel/random/boot_id", "one\n");
        for (policy, clocks) in POLICIES.iter().zip(["1600000 2400000", "800000 1200000"]) {
            let (min, max) = clocks.split_once(' ').expect("two");
            for (name, text) in [
                ("scaling_min_freq", min),
                ("scaling_max_freq", max),
                ("scaling_available_frequencies", clocks),
                ("scaling_governor", "schedutil"),
            ] {
                machine.put(&format!("{policy}/{name}"), format!("{text}\n"));
            }
        }
        let root = machine.dir.path().to_owned();
        Self { machine, root }
    }

    /// A load that is this much slower at the lower clock; the package takes 40 W or 20 W.
    fn load(&self, at_lower: f64) -> Load {
        count_energy(&self.machine);
        let counted = std::sync::Mutex::new((Instant::now(), 0.0));
        Load::new(&self.root, move |root| {
            let (share, watts) = match khz(root, POLICIES[0]).as_str() {
                "2400000" => (1.0, 40.0),
                "1600000" => (at_lower, 20.0),
                _ => return None,
            };
            let mut counted = counted.lock().expect("one thread");
            let time = counted.0.elapsed();
            counted.0 += time;
            counted.1 += watts * time.as_secs_f64();
            set_energy(root, counted.1);
            Some(2000.0 * share)
        })
    }

    fn clocks(&self) -> [String; 2] {
        POLICIES.map(|policy| khz(&self.root, policy))
    }

    fn start(&self, words: &[&str]) -> Child {
        start(&self.root, words)
    }

    /// Starts a search and waits until it has lowered both clocks.
    fn lowered(&self) -> Child {
        let child = self.start(&["power", "/srv/data"]);
        until("lower clock", || self.clocks() == LOWER);
        child
    }

    fn saved(&self) -> String {
        fs::read_to_string(self.root.join(LOCK)).unwrap_or_default()
    }

    fn is_as_before(&self) {
        assert_eq!(
            (self.clocks(), self.saved()),
            (HIGHEST.map(String::from), String::new())
        );
    }
}

const HIGHEST: [&str; 2] = ["2400000", "1200000"];
const LOWER: [&str; 2] = ["1600000", "800000"];

fn khz(root: &Path, policy: &str) -> String {
    let file = root.join(&policy[1..]).join("scaling_max_freq");
    fs::read_to_string(file)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

#[test]
fn a_load_that_does_not_need_the_clock_gets_the_lowest_until_it_is_restored() {
    let host = Host::new();
    let _load = host.load(1.0);
    let words = [
        "power",
        "/srv/data",
        "--seconds",
        "120",
        "--tolerance",
        "20%",
        "--apply",
    ];
    let (said, code) = ended(host.start(&words));
    assert_eq!(code, Some(0), "{said}");
    for line in [
        "1600/800 MHz",
        "within 20.0%",
        "the lowest clock within 20.0% of the highest is 1600/800 MHz",
        "energy of 1 processor package alone, without DRAM and disks",
        "(1 processor package alone, without DRAM and disks)",
        "the limit is kept until `luc power --restore`, a reboot, or until `luc service`, if it \
         runs, finds that it no longer fits",
        "nothing is traced",
        "the rate decides alone",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    // 20 W less for a year.
    let saved = said
        .split("it saves ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let saved: f64 = saved.and_then(|kwh| kwh.parse().ok()).expect("a number");
    assert!((150.0..200.0).contains(&saved), "{said}");
    assert_eq!(host.clocks(), LOWER);
    assert!(host.saved().contains("\"load\":{\"device\":\"254:16\""));
    let path = format!("{}/scaling_max_freq to 2400000", POLICIES[0]);
    let kept = host.saved();
    let said = host.machine.run(&["power", "--restore"]);
    assert!(said.contains(&path), "{said}");
    host.is_as_before();

    // The same limit, with a service that ends.
    host.machine.put(&format!("/{LOCK}"), kept);
    for (policy, clock) in POLICIES.iter().zip(LOWER) {
        host.machine
            .put(&format!("{policy}/scaling_max_freq"), clock);
    }
    host.machine.put("/etc/luc/luc.toml", "");
    let stop = luc_base::Stop::new();
    stop.set();
    let said = host.machine.run_until(&["service"], stop);
    assert!(said.contains("because the service ends: "), "{said}");
    assert!(said.contains(&path), "{said}");
    host.is_as_before();
    let said = host.machine.run(&["power", "--restore"]);
    assert_eq!(said, "no limit of `luc power` is in place\n");
}

#[test]
fn a_load_that_needs_the_clock_keeps_it() {
    let host = Host::new();
    let _load = host.load(2.0 / 3.0);
    let words = [
        "power",
        "/srv/data",
        "--seconds",
        "120",
        "--json",
        "--apply",
    ];
    let output = host.start(&words).wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let clock = &report["clocks"][0];
    assert_eq!(clock["verdict"], "slower", "{report}");
    let ratio = clock["rate_ratio"]["mean"].as_f64().expect("a ratio");
    assert!((0.6..0.75).contains(&ratio), "{report}");
    let watts = |findings: &serde_json::Value| findings["watts"].as_f64().expect("watts");
    assert!((18.0..23.0).contains(&watts(clock)), "{report}");
    assert!(
        (36.0..42.0).contains(&watts(&report["highest"])),
        "{report}"
    );
    assert!(report["lowest"].is_null() && report["saved_kwh_per_year"].is_null());
    assert!(clock["p99_ratio"].is_null() && report["energy_unknown"].is_null());
    assert_eq!(report["applied"], false);
    host.is_as_before();
}

#[test]
fn a_load_that_is_not_there_gets_no_verdict() {
    let host = Host::new();
    let (said, code) = ended(host.start(&["power", "/srv/data", "--seconds", "60"]));
    assert_eq!(code, Some(31), "{said}");
    assert!(said.contains("undecided: no sync in a window"), "{said}");
    assert!(
        said.contains("energy unknown: no energy counters"),
        "{said}"
    );
    assert!(
        said.contains("no lower clock is shown to stay within"),
        "{said}"
    );
    host.is_as_before();
}

#[test]
fn whatever_ends_it_the_clock_is_put_back() {
    for (how, code) in [
        (Signal::INT, Some(130)),
        (Signal::TERM, Some(130)),
        (Signal::HUP, None),
    ] {
        let host = Host::new();
        let _load = host.load(1.0);
        let child = host.lowered();
        signal(&child, how);
        let (said, got) = ended(child);
        assert_eq!(got, code, "{how:?}: {said}");
        host.is_as_before();
    }
}

#[test]
fn after_a_kill_the_next_command_puts_it_back() {
    for words in [
        &["power", "--restore"][..],
        &["power", "/srv/data", "--seconds", "10"],
    ] {
        let host = Host::new();
        let load = host.load(1.0);
        let mut child = host.lowered();
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        drop(load);
        assert!(host.saved().contains("luc-power-before/1"));
        let (said, _) = ended(host.start(words));
        assert!(
            said.contains("put back after an earlier `luc power`: "),
            "{said}"
        );
        host.is_as_before();
    }
    let host = Host::new();
    let _load = host.load(1.0);
    let mut child = host.lowered();
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    host.machine.put("/proc/sys/kernel/random/boot_id", "two\n");
    let said = host.machine.run(&["power", "--restore"]);
    assert!(said.contains("a reboot has reset the limits"), "{said}");
    assert_eq!(
        (host.clocks(), host.saved().as_str()),
        (LOWER.map(String::from), "")
    );
}

#[test]
fn another_program_ends_it_and_its_setting_stays() {
    for (name, text, named) in [
        ("scaling_max_freq", "2000000", true),
        ("scaling_governor", "performance", false),
        ("scaling_min_freq", "1700000", false),
    ] {
        let host = Host::new();
        let _load = host.load(1.0);
        let child = host.lowered();
        let file = format!("{}/{name}", POLICIES[0]);
        host.machine.put(&file, format!("{text}\n"));
        let (said, code) = ended(child);
        assert_eq!(code, Some(30), "{said}");
        let line = format!("{file} is \"{text}\", no longer \"");
        assert!(said.contains(&line), "{said}");
        assert_eq!(
            said.contains("set by somebody else, and stays"),
            named,
            "{said}"
        );
        let now = fs::read_to_string(host.machine.at(&file)).expect("a file");
        assert_eq!(now.trim(), text);
        // The others are this program's to put back.
        assert_eq!(host.clocks()[1], HIGHEST[1]);
        assert_eq!(host.saved(), "");
    }
}

#[test]
fn a_driver_that_refuses_ends_it_and_changes_nothing() {
    let host = Host::new();
    let _load = host.load(1.0);
    // The second policy's file, of 65536 kHz, is one that nobody may write; the first policy is
    // lowered before it.
    let of_second = |name: &str| format!("{}/{name}", POLICIES[1]);
    for (name, text) in [
        ("scaling_min_freq", "43691\n"),
        ("scaling_available_frequencies", "43691 65536\n"),
    ] {
        host.machine.put(&of_second(name), text);
    }
    let file = of_second("scaling_max_freq");
    let path = host.machine.at(&file);
    fs::remove_file(&path).expect("removed");
    std::os::unix::fs::symlink("/proc/sys/kernel/ngroups_max", &path).expect("made");
    let (said, code) = ended(host.start(&["power", "/srv/data", "--seconds", "60"]));
    assert_eq!(code, Some(30), "{said}");
    assert!(said.contains(&format!("cannot set {file} to ")), "{said}");
    assert_eq!(
        (host.clocks()[0].as_str(), host.saved()),
        (HIGHEST[0], String::new())
    );
}

#[test]
fn one_at_a_time() {
    let host = Host::new();
    let _load = host.load(1.0);
    let first = host.lowered();
    let said = host.machine.run(&["power", "--restore"]);
    assert!(
        said.contains("another run of luc-lab campaign or luc power"),
        "{said}"
    );
    assert!(said.ends_with("[exit 11]\n"), "{said}");
    signal(&first, Signal::INT);
    ended(first);
    host.is_as_before();
}

#[test]
fn what_it_cannot_do_is_told_in_a_line() {
    let host = Host::new();
    let said = |words: &[&str]| host.machine.run(words);
    let none = said(&["power", "/srv/data", "--epp"]);
    let line = "luc: power /srv/data: this machine offers no energy_performance_preference in \
                /sys/devices/system/cpu/cpufreq, so its clock cannot be limited; in a virtual \
                machine or a container only the host can do so; for an answer by the simulator, `luc trace record \
                -o run.luc --on /srv/data --seconds 60` and `luc power --from run.luc`\n[exit 12]\n";
    assert_eq!(none, line);
    let none = said(&["power", "/srv/data", "--min-mhz", "2400"]);
    assert!(none.contains("no clock to try from 2400000") && none.ends_with("[exit 12]\n"));
    let blind = said(&["power", "/srv/mail"]);
    assert!(
        blind.contains("dm-0: LUC is not on") && blind.ends_with("[exit 9]\n"),
        "{blind}"
    );
    host.is_as_before();
    host.machine
        .put("/proc/self/status", "CapEff:\t0000000000000000\n");
    for words in [&["power", "/srv/data"][..], &["power", "--restore"]] {
        let denied = said(words);
        assert!(denied.ends_with("[exit 3]\n"), "{denied}");
    }
}

/// A recording of threads that sync for 4 ms and then do something else for 6 ms, on one processor.
fn recording(file: &Path, threads: u32) {
    use luc_trace::{Header, Span, SpanKind};
    const US: u64 = 1_000;
    let dev = "254:16".parse().expect("a device");
    let spans = (2..400_u32).flat_map(|tid| {
        let begin_ns = u64::from(tid) * 10_000 * US;
        let of = move |kind, pid, begin_ns| Span {
            pid,
            dev,
            tid,
            ..Span::new(kind, begin_ns, begin_ns + 4000 * US)
        };
        let commit = Span {
            marks_ns: [begin_ns + 20 * US; 3],
            ..of(SpanKind::Commit, 1, begin_ns)
        };
        let syncs = (0..threads).map(move |thread| Span {
            done_tid: tid - 1,
            ..of(SpanKind::Fsync, 41 + thread, begin_ns - 10 * US)
        });
        std::iter::once(commit).chain(syncs)
    });
    luc_test::command::record(file, &Header::default().with("cpus", "1"), spans);
}

#[test]
fn a_recording_tells_the_lowest_clock_by_the_simulator() {
    let dir = tempfile::tempdir().expect("temporary folder");
    recording(&dir.path().join("run.luc"), 1);
    let power = |words: &[&str]| {
        let mut command = common::luc();
        command.args(["power", "--from", "run.luc"]).args(words);
        command.current_dir(dir.path());
        luc_test::command::run(&mut command)
    };
    let text = power(&["--tolerance", "5%", "--machine", "e3-server"]);
    assert_begins(&text, "a model, not a measurement: ");
    // At half the clock, 4 ms and 6 ms become 4 ms and 12 ms if the thread computes.
    for line in [
        "\n59.9% of the threads' time lies in gaps ",
        "\nstock, if threads compute in the gaps: 99.9 syncs/s with a p99 of 4.00 ms ",
        "\n0.5    0.62",
        "\nwith LUC, if threads wait in the gaps: ",
        "\nenergy unknown: no open, write or close of the recording tells ",
        "\nstock: the lowest clock within 5.0% is 0.4 to 1.0 of the recorded one: 1.0 if threads \
         compute in the gaps, 0.4 if they wait\n",
    ] {
        assert_holds(&text, line);
    }
    assert_ends(&text, "[exit 0]\n");
    let json = power(&["--json"]);
    assert_holds(&json, "\"model\": true,");
    assert_holds(&json, "\"gaps\": \"compute\",");
    for (words, why) in [
        (&["--machine", "cray"][..], "no machine cray"),
        (&["--apply"], "cannot be used with"),
        (&["/srv/data"], "cannot be used with"),
    ] {
        let said = power(words);
        assert_holds(&said, why);
        assert_ends(&said, "[exit 2]\n");
    }
    // Sixteen threads on one processor could not begin all their syncs within 10 us.
    recording(&dir.path().join("run.luc"), 16);
    let text = power(&["--tolerance", "5%"]);
    assert_holds(&text, " from the recording, too much to be trusted\n");
    let line = "\nwith LUC: no answer, because the simulation of the recording is off by ";
    assert_holds(&text, line);
    fs::write(dir.path().join("run.luc"), "nothing").expect("a file");
    assert_ends(&power(&[]), "[exit 24]\n");
}
