//! `luc try` and `luc guard` on a fake file system whose load follows the mode, with signals,
//! changes by hand, and crashes.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Load, Pretended, count_energy, ended, next_line, set_energy, signal, start};
use luc_test::command::{assert_ends, assert_holds};
use luc_test::waiting::until;
use rustix::process::Signal;

const DIR: &str = "sys/fs/luc/vdb";

/// A load with given rates of commits with and without LUC.
fn load(root: &Path, on_per_s: f64, off_per_s: f64) -> Load {
    Load::new(root, move |root| match mode_in(&root.join(DIR)).as_str() {
        "steer" => Some(on_per_s),
        "observe" => Some(off_per_s),
        _ => None,
    })
}

fn mode_in(dir: &Path) -> String {
    let text = fs::read_to_string(dir.join("knobs/mode")).unwrap_or_default();
    text.trim().to_owned()
}

/// A machine with LUC on for /srv/data.
struct Host {
    machine: Pretended,
    root: PathBuf,
}

impl Host {
    fn new() -> Self {
        let machine = Pretended::new();
        machine.run(&["on", "/srv/data"]);
        machine.put("/proc/sys/kernel/random/boot_id", "one\n");
        machine.put("/sys/fs/ext4/vdb/journal_task", "77\n");
        machine.put("/proc/77/schedstat", "5000000 1 1\n");
        let root = machine.dir.path().to_owned();
        Self { machine, root }
    }

    fn load(&self, on_per_s: f64, off_per_s: f64) -> Load {
        load(&self.root, on_per_s, off_per_s)
    }

    fn start(&self, words: &[&str]) -> Child {
        start(&self.root, words)
    }

    fn mode(&self) -> String {
        mode_in(&self.root.join(DIR))
    }

    fn knob(&self, name: &str) -> String {
        let text = fs::read_to_string(self.root.join(DIR).join("knobs").join(name));
        text.expect("a knob").trim().to_owned()
    }

    fn set(&self, knob: &str, value: &str) {
        self.machine
            .put(&format!("/{DIR}/knobs/{knob}"), format!("{value}\n"));
    }

    fn notes(&self) -> Option<String> {
        let read =
            |ending| fs::read_to_string(self.root.join(format!("run/luc/vdb.{ending}.json")));
        read("try").or_else(|_| read("guard")).ok()
    }

    fn in_a_window_off(&self) {
        until("window off", || self.mode() == "observe");
    }

    /// Stops the child in a window in which LUC is off, so that the window lasts until the child
    /// is continued.
    fn stopped_in_a_window_off(&self, child: &Child) {
        let stat = format!("/proc/{}/stat", child.id());
        let is = |state: &str| fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(state));
        until("stop in a window off", || {
            self.in_a_window_off();
            // It has read the mode back before it sleeps.
            until("sleep", || is(") S "));
            signal(child, Signal::STOP);
            until("stop", || is(") T "));
            let off = self.mode() == "observe";
            if !off {
                signal(child, Signal::CONT);
            }
            off
        });
    }
}

#[test]
fn a_trial_tells_what_luc_gives_and_leaves_it_as_it_was() {
    for mode in ["steer", "observe"] {
        let host = Host::new();
        host.set("mode", mode);
        let _load = host.load(2000.0, 1000.0);
        let (said, code) = ended(host.start(&["try", "/srv/data", "--minutes", "0.15"]));
        assert_eq!(code, Some(0), "{said}");
        assert_holds(&said, "LUC helps here: it gives ");
        assert_holds(&said, "sync calls per second");
        assert_holds(&said, "energy unknown: ");
        assert!(
            said.contains("nothing is traced"),
            "what is not seen is told: {said}"
        );
        assert_eq!((host.mode().as_str(), host.notes()), (mode, None));
    }
}

#[test]
fn a_trial_for_programs() {
    let host = Host::new();
    count_energy(&host.machine);
    let since = Instant::now();
    let _load = Load::new(&host.root, move |root| {
        set_energy(root, 40.0 * since.elapsed().as_secs_f64());
        match mode_in(&root.join(DIR)).as_str() {
            "steer" => Some(900.0),
            "observe" => Some(1000.0),
            _ => None,
        }
    });
    let words = [
        "try",
        "/srv/data",
        "--minutes",
        "0.2",
        "--json",
        "--policy",
        "batching",
    ];
    let child = host.start(&words);
    until("window without copies", || host.knob("copyout") == "off");
    let Output { status, stdout, .. } = child.wait_with_output().expect("it ends");
    assert_eq!(status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&stdout).expect("JSON");
    let ratio = report["ratio"]["mean"].as_f64().expect("a ratio");
    assert!((0.8..0.99).contains(&ratio), "{report}");
    assert_eq!(report["policy"], "batching");
    assert_eq!(report["measure"], "rate");
    assert!(report["latency_ratio"].is_null() && report["luc"]["fsync_mean_ns"].is_null());
    // Nothing is traced, so the 99th percentile is unknown.
    assert!(report["luc"]["fsync_p99_ns"].is_null(), "{report}");
    assert!(report["p99_verdict"].is_null(), "{report}");
    let calls = report["stock"]["sync_calls_per_s"]
        .as_f64()
        .expect("a rate");
    assert!((500.0..1500.0).contains(&calls), "{report}");
    assert_eq!(report["luc"]["journal_thread_ns_per_s"], 0.0);
    assert_eq!(report["energy_of"]["of"], "packages");
    assert!(report["energy_unknown"].is_null(), "{report}");
    for side in ["luc", "stock"] {
        let number = |name: &str| report[side][name].as_f64().expect("a number");
        assert!((20.0..80.0).contains(&number("watts")), "{report}");
        // 40 W over 900 or 1000 calls per second.
        let joules = number("joules_per_sync_call");
        assert!((0.02..0.08).contains(&joules), "{report}");
    }
    // The policy is restored, too.
    assert_eq!(
        (host.knob("copyout").as_str(), host.mode().as_str()),
        ("contended", "steer")
    );
}

#[test]
fn whatever_ends_it_luc_is_put_back() {
    for (how, code) in [
        (Signal::INT, Some(130)),
        (Signal::TERM, Some(130)),
        // These signals end the process itself, after it has restored LUC.
        (Signal::HUP, None),
        (Signal::QUIT, None),
    ] {
        let host = Host::new();
        let _load = host.load(2000.0, 1000.0);
        let child = host.start(&["try", "/srv/data", "--policy", "batching"]);
        host.in_a_window_off();
        signal(&child, how);
        let (said, got) = ended(child);
        assert_eq!(got, code, "{how:?}: {said}");
        assert_eq!(
            (host.mode().as_str(), host.notes()),
            ("steer", None),
            "{how:?}"
        );
        assert_eq!(host.knob("copyout"), "contended");
    }
}

#[test]
fn after_a_kill_the_next_command_puts_it_back() {
    for words in [
        &["set", "/srv/data", "kp_milli", "700"][..],
        &["on", "/srv/mail"],
        &["try", "/srv/data", "--minutes", "0.05"],
    ] {
        let host = Host::new();
        let _load = host.load(2000.0, 1000.0);
        let mut child = host.start(&["try", "/srv/data", "--policy", "batching"]);
        host.in_a_window_off();
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        assert!(host.notes().is_some());
        let said = if words[0] == "try" {
            ended(host.start(words)).0
        } else {
            host.machine.run(words)
        };
        assert_holds(
            &said,
            "a `luc try` of vdb was killed; LUC is restored to its earlier state",
        );
        assert_eq!((host.mode().as_str(), host.notes()), ("steer", None));
        assert_eq!(host.knob("copyout"), "contended");
    }
}

#[test]
fn notes_of_another_boot_mean_nothing() {
    let host = Host::new();
    let _load = host.load(2000.0, 1000.0);
    let mut child = host.start(&["try", "/srv/data"]);
    host.stopped_in_a_window_off(&child);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    host.machine.put("/proc/sys/kernel/random/boot_id", "two\n");
    let said = host.machine.run(&["set", "/srv/data", "kp_milli", "700"]);
    assert!(!said.contains("killed"), "{said}");
    assert_eq!(host.mode(), "observe");
}

#[test]
fn one_at_a_time() {
    let host = Host::new();
    let _load = host.load(2000.0, 1000.0);
    let first = host.start(&["try", "/srv/data"]);
    host.in_a_window_off();
    for words in [&["try", "/srv/data"][..], &["guard"]] {
        let (said, code) = ended(host.start(words));
        assert_eq!(code, Some(11), "{said}");
        assert_holds(&said, "vdb: luc try, process ");
    }
    assert!(host.notes().is_some(), "the first goes on");
    signal(&first, Signal::INT);
    ended(first);
}

#[test]
fn a_guard_tells_that_it_waits_or_that_luc_cannot_run() {
    let host = Host::new();
    host.machine.run(&["off", "--all"]);
    let mut child = host.start(&["guard"]);
    let said = next_line(&mut child);
    signal(&child, Signal::TERM);
    ended(child);
    assert_holds(&said, "LUC is on for no file system; waiting");
    let without = Pretended::new();
    let configuration = format!("/boot/config-{}", luc_test::machine::RELEASE);
    without.put(&configuration, "# CONFIG_MODULES is not set\n");
    let said = without.run(&["guard"]);
    assert_ends(&said, "[exit 12]\n");
}

#[test]
fn a_change_by_hand_ends_it_and_stays() {
    let host = Host::new();
    let _load = host.load(2000.0, 1000.0);
    for (mode, value, what) in [(Some("steer"), "3", "the mode"), (None, "4", "a knob")] {
        let child = host.start(&["try", "/srv/data"]);
        host.stopped_in_a_window_off(&child);
        if let Some(mode) = mode {
            host.set("mode", mode);
        }
        host.set("kp_milli", value);
        signal(&child, Signal::CONT);
        let (said, code) = ended(child);
        assert_eq!(code, Some(30), "{said}");
        assert_holds(&said, &format!("{what} was set by hand, and stays"));
        assert_eq!(
            (host.mode().as_str(), host.knob("kp_milli").as_str()),
            ("steer", value)
        );
    }
}

#[test]
fn off_by_hand_ends_it() {
    let host = Host::new();
    let load = host.load(2000.0, 1000.0);
    let child = host.start(&["try", "/srv/data"]);
    host.in_a_window_off();
    drop(load);
    fs::remove_dir_all(host.root.join(DIR)).expect("switched off");
    let (said, code) = ended(child);
    assert_eq!((code, host.notes()), (Some(30), None), "{said}");
    assert_holds(&said, "LUC was switched off meanwhile");
}

#[test]
fn an_idle_file_system_cannot_be_tried() {
    let host = Host::new();
    let _load = host.load(0.0, 0.0);
    let (said, code) = ended(host.start(&["try", "/srv/data", "--minutes", "0.05"]));
    assert_eq!(code, Some(31), "{said}");
    assert_holds(&said, "too few sync calls to compare");
    assert_eq!(host.mode(), "steer");
}

#[test]
fn nothing_is_changed_that_cannot_be_put_back() {
    let host = Host::new();
    let _load = host.load(2000.0, 1000.0);
    // A folder in the way stops the write, as a full file system would.
    host.machine.put("/run/luc/vdb.try.json/x", "");
    host.machine.put("/run/luc/vdb.guard.json/x", "");
    let (said, code) = ended(host.start(&["try", "/srv/data"]));
    assert_eq!(code, Some(1), "{said}");
    assert_holds(&said, "nothing was changed");
    assert_eq!(host.mode(), "steer");

    let mut child = host.start(&["guard"]);
    assert_holds(&next_line(&mut child), "guarded; ");
    let said = next_line(&mut child);
    assert_holds(&said, "LUC stays on, but the guard does not try it");
    sleep(Duration::from_secs(3));
    assert_eq!(host.mode(), "steer", "it goes on steering");
    signal(&child, Signal::TERM);
    let (rest, _) = ended(child);
    assert!(!rest.contains("does not try it"), "said once: {rest}");
}

#[test]
fn where_luc_was_off_it_is_off_again() {
    let machine = Pretended::new();
    machine.put("/proc/sys/kernel/random/boot_id", "one\n");
    let root = machine.dir.path().to_owned();
    let _load = load(&root, 2000.0, 1000.0);
    let said = machine.run(&[
        "try",
        "/srv/data",
        "--minutes",
        "0.1",
        "--policy",
        "batching",
    ]);
    assert!(
        said.contains("LUC gives ") || said.contains("LUC helps here"),
        "{said}"
    );
    let acts = machine.acts.borrow();
    assert!(acts[0].starts_with("load "), "{acts:?}");
    assert!(
        acts[1].starts_with("/sys/fs/luc/attach 254:16 batching=returns"),
        "{acts:?}"
    );
    let last = &acts[acts.len() - 2..];
    assert_eq!(last, ["/sys/fs/luc/detach 254:16", "unload luc"]);
    assert!(!root.join("run/luc/vdb.try.json").exists());
}

#[test]
fn a_guard_goes_on_after_a_kill_and_leaves_luc_at_rest() {
    let host = Host::new();
    let _load = host.load(2000.0, 1000.0);
    let mut child = host.start(&["guard"]);
    host.stopped_in_a_window_off(&child);
    let status = host.machine.run(&["status"]);
    assert_holds(&status, "guard      no verdict yet: 0 pairs so far");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(host.mode(), "observe", "LUC goes on in its last mode");
    let child = host.start(&["guard"]);
    until("end of the window", || host.mode() == "steer");
    signal(&child, Signal::TERM);
    let (said, code) = ended(child);
    assert_eq!((code, host.mode().as_str()), (Some(0), "steer"));
    assert_holds(
        &said,
        "/srv/data (vdb): guarded again, from where it stopped",
    );
    assert!(host.notes().is_some(), "its verdict stays");
    // A trial leaves the guard's notes, too.
    ended(host.start(&["try", "/srv/data", "--minutes", "0.05"]));
    assert!(
        host.notes()
            .is_some_and(|notes| notes.contains("\"guard\""))
    );
    let page = host.machine.run(&["exporter", "--once"]);
    for metric in [
        "luc_guard_stance_info{device=\"vdb\",mountpoint=\"/srv/data\",stance=\"trying\"} 1",
        "luc_guard_running{device=\"vdb\",mountpoint=\"/srv/data\"} 0",
        "luc_guard_pairs_total{",
    ] {
        assert!(page.contains(metric), "{metric} is not in\n{page}");
    }
    assert!(!page.contains("luc_guard_p99_evidence_for{"), "{page}");
}

#[test]
fn a_guard_says_that_it_drops_its_notes() {
    let host = Host::new();
    let _load = host.load(2000.0, 1000.0);
    let file = "/run/luc/vdb.guard.json";
    let guarded = || {
        let before = host.notes();
        let child = host.start(&["guard"]);
        until("notes", || host.notes() != before);
        signal(&child, Signal::TERM);
        ended(child).0
    };
    let first = guarded();
    assert!(!first.contains("guarded from"), "{first}");
    let mut notes: serde_json::Value =
        serde_json::from_str(&host.notes().expect("notes")).expect("JSON");
    // LUC was on for longer before than it is now.
    notes["guard"]["commits"] = u64::MAX.into();
    host.machine.put(file, notes.to_string());
    assert_holds(&guarded(), "(vdb): guarded from the start: ");
    notes["device"] = "254:17".into();
    for dropped in ["{".to_owned(), notes.to_string()] {
        host.machine.put(file, dropped);
        assert_holds(&guarded(), "(vdb): guarded from the start: ");
    }
}

#[test]
fn a_trial_comes_in_between_the_pairs_of_a_guard() {
    let host = Host::new();
    let _load = host.load(2000.0, 1000.0);
    let guard = host.start(&["guard"]);
    host.in_a_window_off();
    let second = ended(host.start(&["guard", "/srv/data"]));
    assert!(
        second.1 == Some(11) && second.0.contains("vdb: luc guard, process "),
        "{second:?}"
    );
    let (said, code) = ended(host.start(&["try", "/srv/data", "--minutes", "0.1"]));
    assert_eq!(code, Some(0), "{said}");
    assert_holds(&said, "the trial begins after it");
    // The guard does not take the trial's writes for changes by hand, and goes on.
    host.in_a_window_off();
    signal(&guard, Signal::TERM);
    let (said, code) = ended(guard);
    assert_eq!((code, host.mode().as_str()), (Some(0), "steer"), "{said}");
    assert!(!said.contains("by hand"), "{said}");
}

#[test]
fn a_guard_notices_hands_and_the_end_of_luc() {
    let host = Host::new();
    let load = host.load(2000.0, 1000.0);
    let child = host.start(&["guard"]);
    host.stopped_in_a_window_off(&child);
    host.set("mode", "steer");
    signal(&child, Signal::CONT);
    until("note of a hand", || {
        host.notes()
            .is_some_and(|notes| notes.contains("\"left_alone\":true"))
    });
    let status = host.machine.run(&["status"]);
    assert_holds(&status, "left alone: the mode was set by hand");
    drop(load);
    fs::remove_dir_all(host.root.join(DIR)).expect("switched off");
    until("end of the notes", || host.notes().is_none());
    signal(&child, Signal::TERM);
    let (said, code) = ended(child);
    assert_eq!(code, Some(0), "{said}");
    let lines = [
        "guarded; judged by throughput alone",
        "the mode was set by hand: left alone until LUC is switched on again",
        "LUC was switched off or the file system unmounted; no longer guarded",
    ];
    for line in lines {
        assert!(said.contains(line), "{line} is not in\n{said}");
    }
}

#[test]
fn refusals_come_before_any_change() {
    let machine = Pretended::new();
    for (words, code) in [
        (&["try", "/srv/nothing"][..], 5),
        (&["try", "/srv/plain"], 6),
        (&["try", "/srv/frozen"], 7),
        (&["try", "/srv/data", "--policy", "fast"], 10),
        (&["guard", "/srv/data"], 9),
    ] {
        let said = machine.run(words);
        assert!(
            said.ends_with(&format!("[exit {code}]\n")),
            "{words:?}: {said}"
        );
    }
    machine.put("/proc/self/status", "CapEff:\t0000000000000000\n");
    for words in [&["try", "/srv/data"][..], &["guard"]] {
        let said = machine.run(words);
        assert!(said.ends_with("[exit 3]\n"), "{words:?}: {said}");
    }
    assert!(machine.acts.borrow().is_empty());
}
