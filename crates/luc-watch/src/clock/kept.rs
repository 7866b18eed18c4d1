//! A limit on the clock that `luc power --apply` left in place, and what ends it. A limit that a
//! killed search left ends at once.
//!
//! The limit was found for one load. It is given back when that load changes, when the machine
//! begins or ceases to run on its battery, when its file system is gone, when somebody else or a
//! thermal limit has changed a clock, and when a processor was too hot to keep its clock, because
//! the load then gets another clock than the one found. The writes to the file system's disk stand
//! for the load: the kernel counts them on every machine, and each sync causes some.

use std::time::Duration;

use luc_control::Dev;
use luc_host::settings::{LOCK, Lock, OldValues, value};
use luc_host::{HostError, System};
use luc_power::meter::on_battery;
use serde::{Deserialize, Serialize};

use super::limit::{self, Limit, SCHEMA};
use crate::time::now;

/// Time over which writes are counted: a pause between two bursts is no change of the load.
const WINDOW: Duration = Duration::from_secs(60);
/// The load has changed if it makes this many times the writes, or one in as many.
const CHANGE: f64 = 2.0;
/// Windows in a row that must show it.
const WINDOWS: u32 = 2;

/// The load that a limit was found for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The file system's.
    pub device: String,
    /// Writes to its disk; `None` if the kernel does not count them.
    pub writes_per_s: Option<f64>,
}

/// A limit that stays, as it is saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    old: OldValues,
    load: Load,
    on_battery: bool,
    /// How often the processors were too hot so far; `None` if the kernel does not count it.
    #[serde(default)]
    too_hot: Option<u64>,
}

/// Keeps a limit for this load, until [`KeptLimit`] finds that it no longer fits.
///
/// # Errors
/// That cannot be saved; the old limits are back.
pub fn keep(system: &dyn System, limit: Limit, load: Load) -> Result<(), HostError> {
    limit.keep(|old| Kept::new(system, old.clone(), load))
}

impl Kept {
    fn new(system: &dyn System, old: OldValues, load: Load) -> Self {
        Self {
            old,
            load,
            on_battery: on_battery(&system.path("/")),
            too_hot: too_hot(system),
        }
    }
}

/// How often a core or a package was too hot to keep its clock, since the machine booted.
fn too_hot(system: &dyn System) -> Option<u64> {
    const CPUS: &str = "/sys/devices/system/cpu";
    let names = system.list(CPUS).ok()?.into_iter();
    let counts = names.flat_map(|name| {
        ["core", "package"].map(|part| {
            let file = format!("{CPUS}/{name}/thermal_throttle/{part}_throttle_count");
            value(system, &file).parse::<u64>().ok()
        })
    });
    counts.flatten().reduce(u64::saturating_add)
}

/// Counts the writes to a disk from its creation on.
pub struct WriteMeter {
    device: String,
    begun: Duration,
    writes: Option<u64>,
}

impl WriteMeter {
    pub fn new(system: &dyn System, device: Dev) -> Self {
        Self::of(system, device.to_string())
    }

    fn of(system: &dyn System, device: String) -> Self {
        Self {
            begun: now(),
            writes: writes(system, &device),
            device,
        }
    }

    fn length(&self) -> Duration {
        now().saturating_sub(self.begun)
    }

    /// The load since then.
    pub fn load(&self, system: &dyn System) -> Load {
        let seconds = self.length().as_secs_f64();
        let made = writes(system, &self.device)
            .zip(self.writes)
            .and_then(|(after, before)| after.checked_sub(before));
        Load {
            device: self.device.clone(),
            writes_per_s: made.map(|made| made as f64 / seconds.max(f64::MIN_POSITIVE)),
        }
    }
}

/// Writes that a disk has done: the fifth number of its counters.
fn writes(system: &dyn System, device: &str) -> Option<u64> {
    let stat = system.read(&format!("/sys/dev/block/{device}/stat")).ok()?;
    stat.split_whitespace().nth(4)?.parse().ok()
}

/// Watches over the kept limit of this machine, if there is one.
pub struct KeptLimit {
    length: Duration,
    window: Option<WriteMeter>,
    changed: u32,
    /// Why it cannot be given back; not said twice.
    refused: String,
}

impl Default for KeptLimit {
    fn default() -> Self {
        Self {
            length: WINDOW,
            window: None,
            changed: 0,
            refused: String::new(),
        }
    }
}

impl KeptLimit {
    /// Gives the limit back if it no longer fits. Returns a line about that.
    pub fn look(&mut self, system: &dyn System) -> Option<String> {
        self.give_back(system, Self::misfit)
    }

    /// Gives the limit back, because nobody watches over it any longer.
    pub fn end(&mut self, system: &dyn System) -> Option<String> {
        self.give_back(system, |_, _, _| Some("the service ends".into()))
    }

    fn give_back(
        &mut self,
        system: &dyn System,
        why: impl FnOnce(&mut Self, &dyn System, &Kept) -> Option<String>,
    ) -> Option<String> {
        // Most machines have no limit; do not even make the lock's file there.
        if value(system, LOCK).is_empty() {
            *self = Self {
                length: self.length,
                ..Self::default()
            };
            return None;
        }
        // A search or a campaign that runs has the lock.
        let mut lock = Lock::take(system).ok()?;
        let text = lock.left(system, SCHEMA).ok()?;
        let old: OldValues = serde_json::from_str(&text).ok()?;
        if old.booted(system) {
            return None;
        }
        let why = match serde_json::from_str(&text) {
            Ok(kept) => why(self, system, &kept)?,
            // A search keeps its limit for no load before it ends.
            Err(_) => "its search was killed".into(),
        };
        let outcome = match limit::put_back(system, &mut lock, &old) {
            Ok(done) => limit::told(&done),
            Err(error) if self.refused == error.to_string() => return None,
            Err(error) => {
                self.refused = error.to_string();
                self.refused.clone()
            }
        };
        self.window = None;
        Some(format!(
            "the limit of `luc power` on the clock ends, because {why}: {outcome}"
        ))
    }

    /// Why the limit no longer fits.
    fn misfit(&mut self, system: &dyn System, kept: &Kept) -> Option<String> {
        if let Some(foreign) = kept.old.foreign(system) {
            return Some(format!("somebody else or a thermal limit set {foreign}"));
        }
        if on_battery(&system.path("/")) != kept.on_battery {
            let no_longer = if kept.on_battery { "no longer " } else { "" };
            return Some(format!("the machine {no_longer}runs on its battery"));
        }
        let hot = too_hot(system).zip(kept.too_hot);
        if hot.is_some_and(|(now, before)| now > before) {
            return Some("a processor was too hot to keep its clock".into());
        }
        let found = kept.load.writes_per_s?;
        let window = self
            .window
            .get_or_insert_with(|| WriteMeter::of(system, kept.load.device.clone()));
        if window.device != kept.load.device {
            self.window = None;
            return None;
        }
        let Some(now_per_s) = window.load(system).writes_per_s else {
            return Some(format!("{} is gone", kept.load.device));
        };
        if window.length() < self.length {
            return None;
        }
        self.window = None;
        let is_same = (found / CHANGE..=found * CHANGE).contains(&now_per_s);
        self.changed = if is_same { 0 } else { self.changed + 1 };
        (self.changed >= WINDOWS).then(|| {
            self.changed = 0;
            format!("its load makes {now_per_s:.0} writes a second, not {found:.0}")
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use luc_host::Machine;

    use super::*;

    const MAX: &str = "/sys/policy0/scaling_max_freq";
    const BOOT: &str = "/proc/sys/kernel/random/boot_id";
    const BATTERY: &str = "/sys/class/power_supply/BAT0";

    struct Host {
        _tree: tempfile::TempDir,
        machine: Machine,
    }

    impl Host {
        /// A machine with a limit that was found at this many writes a second.
        fn new(writes_per_s: Option<f64>) -> Self {
            Self::with(writes_per_s, None)
        }

        /// A machine that was too hot seven times, by the count in this file.
        fn hot(count: &str) -> Self {
            Self::with(Some(50.0), Some(count))
        }

        fn with(writes_per_s: Option<f64>, throttled: Option<&str>) -> Self {
            Self::limited(throttled, |system, old| {
                let load = Load {
                    device: "254:16".into(),
                    writes_per_s,
                };
                serde_json::to_vec(&Kept::new(system, old, load))
            })
        }

        /// A machine whose search was killed.
        fn killed() -> Self {
            Self::limited(None, |_, old| serde_json::to_vec(&old))
        }

        /// A machine with a limit, and with this text about it.
        fn limited(
            throttled: Option<&str>,
            saved: impl FnOnce(&dyn System, OldValues) -> serde_json::Result<Vec<u8>>,
        ) -> Self {
            let tree = tempfile::tempdir().expect("a folder");
            let machine = Machine::new(tree.path());
            let host = Self {
                _tree: tree,
                machine,
            };
            host.put(MAX, "2400000");
            host.put(BOOT, "one");
            host.writes(1000);
            if let Some(count) = throttled {
                host.put(count, "7");
            }
            let system = &host.machine;
            let mut old = OldValues::new(system, SCHEMA, "luc power --restore");
            old.add(system, MAX, &["800000".into(), "Linux".into()]);
            let saved = saved(system, old).expect("JSON");
            let mut lock = Lock::take(system).expect("nobody has it");
            lock.save(&saved).expect("written");
            host.put(MAX, "800000");
            host
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.machine.path(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }

        fn writes(&self, number: u64) {
            let stat = format!("1 2 3 4 {number} 6 7\n");
            self.put("/sys/dev/block/254:16/stat", &stat);
        }

        fn max(&self) -> String {
            value(&self.machine, MAX)
        }
    }

    /// Looks at the end of a window in which the disk did this many writes.
    fn window(host: &Host, limit: &mut KeptLimit, writes: u64) -> Option<String> {
        host.writes(0);
        limit.length = WINDOW;
        assert_eq!(limit.look(&host.machine), None);
        host.writes(writes);
        limit.length = Duration::ZERO;
        limit.look(&host.machine)
    }

    #[test]
    fn a_load_that_changes_for_two_windows_ends_it() {
        // Windows of a test last far less than a second: any write is too many, or none too few.
        for (found, writes) in [(1e-3, 1000), (1e9, 0)] {
            let host = Host::new(Some(found));
            let mut limit = KeptLimit::default();
            assert_eq!(window(&host, &mut limit, writes), None);
            assert_eq!((host.max().as_str(), limit.changed), ("800000", 1));
            let line = window(&host, &mut limit, writes).expect("two windows");
            assert!(line.contains("because its load makes "), "{line}");
            assert!(line.ends_with(&format!("{MAX} to 2400000")), "{line}");
            assert_eq!(
                (host.max().as_str(), value(&host.machine, LOCK)),
                ("2400000", String::new())
            );
            assert_eq!(limit.look(&host.machine), None);
        }
    }

    #[test]
    fn a_battery_a_hand_and_the_end_of_the_service_end_it() {
        let host = Host::new(None);
        let mut limit = KeptLimit::default();
        assert_eq!(limit.look(&host.machine), None);
        host.put(&format!("{BATTERY}/type"), "Battery");
        host.put(&format!("{BATTERY}/energy_now"), "9000000");
        host.put(&format!("{BATTERY}/status"), "Discharging");
        let line = limit.look(&host.machine).expect("a battery");
        assert!(
            line.contains("because the machine runs on its battery: "),
            "{line}"
        );
        assert_eq!(host.max(), "2400000");

        let host = Host::new(Some(50.0));
        host.put(MAX, "1200000");
        let line = limit.look(&host.machine).expect("a hand");
        assert!(
            line.contains("thermal limit set /sys/policy0/scaling_max_freq is 1200000: "),
            "{line}"
        );
        assert_eq!(host.max(), "1200000");

        let host = Host::new(Some(50.0));
        let count = "/sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count";
        for before in ["", "7"] {
            host.put(count, before);
        }
        assert_eq!(limit.look(&host.machine), None, "nobody counted before");

        let host = Host::hot(count);
        assert_eq!(limit.look(&host.machine), None);
        host.put(count, "8");
        let line = limit.look(&host.machine).expect("heat");
        assert!(
            line.contains("because a processor was too hot to keep"),
            "{line}"
        );
        assert_eq!(host.max(), "2400000");

        let host = Host::new(Some(50.0));
        let line = limit.end(&host.machine).expect("a limit");
        assert!(line.contains("because the service ends: "), "{line}");
        assert_eq!(host.max(), "2400000");
    }

    #[test]
    fn a_disk_that_is_gone_ends_it_and_a_reboot_is_none_of_its_business() {
        let host = Host::new(Some(50.0));
        fs::remove_dir_all(host.machine.path("/sys/dev")).expect("removed");
        let line = KeptLimit::default().look(&host.machine).expect("no disk");
        assert!(line.contains("because 254:16 is gone: "), "{line}");

        let host = Host::new(Some(50.0));
        host.put(BOOT, "two");
        assert_eq!(KeptLimit::default().end(&host.machine), None);
    }

    #[test]
    fn what_a_killed_search_left_ends_at_once() {
        let host = Host::killed();
        let line = KeptLimit::default().look(&host.machine).expect("a limit");
        assert!(line.contains("because its search was killed: "), "{line}");
        assert_eq!(
            (host.max().as_str(), value(&host.machine, LOCK)),
            ("2400000", String::new())
        );

        let host = Host::killed();
        let lock = Lock::take(&host.machine).expect("free");
        assert_eq!(KeptLimit::default().look(&host.machine), None);
        drop(lock);
        host.put(BOOT, "two");
        assert_eq!(KeptLimit::default().look(&host.machine), None);
    }

    #[test]
    fn it_stays_while_a_search_or_a_campaign_has_the_lock() {
        let host = Host::new(Some(50.0));
        let lock = Lock::take(&host.machine).expect("free");
        assert_eq!(KeptLimit::default().end(&host.machine), None);
        drop(lock);
        assert!(KeptLimit::default().end(&host.machine).is_some());
    }

    #[test]
    fn a_refusal_is_said_once() {
        let host = Host::new(Some(50.0));
        // A file that nobody may write, and whose text counts as our own.
        let path = host.machine.path(MAX);
        fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink("/proc/sys/kernel/ostype", &path).expect("made");
        let mut limit = KeptLimit::default();
        let line = limit.end(&host.machine).expect("it is refused");
        assert!(line.contains("`luc power --restore` tries again"), "{line}");
        assert_eq!(limit.end(&host.machine), None);
    }

    #[test]
    fn without_a_limit_there_is_nothing_to_do() {
        let tree = tempfile::tempdir().expect("a folder");
        let machine = Machine::new(tree.path());
        assert_eq!(KeptLimit::default().look(&machine), None);
        assert!(!machine.path(LOCK).exists());
    }
}
