//! A model of a machine's energy: watts of its parts, and how long each did what.
//!
//! P = rest + processors + memory + disks, at the wall. A busy core at a clock of f GHz and a
//! voltage V draws `static_w` x V + `dynamic_w` x f x V^2. An idle core draws a share of its static
//! power, which depends on the idle state: the deepest one for which its period was long enough, as
//! if the kernel's governor of idle states always foresaw the length. Each idle period costs the
//! energy of its wake-up. A disk draws its idle power, and more while it is busy, whatever it does:
//! the one manual that tells seeks from transfers has them within 1.3 W of each other
//! (`nehalem-hdd`), and no source has the power of a flush.
//!
//! The parameters of each machine and their sources are in `machines.toml`.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::activity::{Activity, DiskActivity, ProcessorActivity};

/// A clock with the voltage that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    pub mhz: f64,
    pub volts: f64,
}

/// A state of an idle core.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdleState {
    pub name: String,
    /// Shortest idle period for which the kernel chooses it, microseconds.
    pub from_us: f64,
    /// Share of the static power that the core still draws.
    pub share: f64,
    /// Energy to enter and leave it, microjoules.
    pub wake_uj: f64,
}

/// A machine's parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerModel {
    pub title: String,
    pub cores: u32,
    /// In ascending order of clocks.
    pub points: Vec<Point>,
    /// Instructions that a core executes per cycle: how a clock becomes a speed.
    pub instructions_per_cycle: f64,
    /// Power of everything but processors, memory in use and disks, watts.
    pub rest_w: f64,
    /// Static power of a core that is busy, watts per volt.
    pub static_w: f64,
    /// Dynamic power of a core that is busy, watts per GHz and square volt.
    pub dynamic_w: f64,
    /// Power of memory for each busy core, watts.
    pub memory_busy_w: f64,
    /// From the shallowest to the deepest; the first one takes any period.
    pub idle: Vec<IdleState>,
    /// Power of a disk that idles, and what it draws more while it is busy, watts.
    pub disk_idle_w: f64,
    pub disk_busy_w: f64,
    pub sources: String,
}

/// Energy of a measurement by part, joules.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    pub processors_j: f64,
    pub memory_j: f64,
    pub disks_j: f64,
    pub rest_j: f64,
}

impl Energy {
    pub fn total_j(&self) -> f64 {
        self.processors_j + self.memory_j + self.disks_j + self.rest_j
    }
}

/// Why a text names no machine.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum MachineError {
    #[error("no machine {name}; the model has {known}")]
    Unknown { name: String, known: String },
    #[error("machine {machine}: '{change}' is not {known}=NUMBER, of at least {least}")]
    Change {
        machine: String,
        change: String,
        known: String,
        least: f64,
    },
}

/// The table of machines by name.
pub static MACHINES: LazyLock<BTreeMap<String, PowerModel>> = LazyLock::new(|| {
    // The table is part of the program, and a test parses it.
    toml::from_str(include_str!("../machines.toml")).unwrap_or_default()
});

/// Parameters that can be changed where a machine is named, with their least values.
type Change = fn(&mut PowerModel) -> &mut f64;
const CHANGES: [(&str, f64, Change); 8] = [
    ("ipc", 0.01, |machine| &mut machine.instructions_per_cycle),
    ("idle_w", 0.0, |machine| &mut machine.rest_w),
    ("rest_w", 0.0, |machine| &mut machine.rest_w),
    ("static_w", 0.0, |machine| &mut machine.static_w),
    ("dynamic_w", 0.0, |machine| &mut machine.dynamic_w),
    ("memory_busy_w", 0.0, |machine| &mut machine.memory_busy_w),
    ("disk_idle_w", 0.0, |machine| &mut machine.disk_idle_w),
    ("disk_busy_w", 0.0, |machine| &mut machine.disk_busy_w),
];

impl FromStr for PowerModel {
    type Err = MachineError;

    /// Parses a name of the table with changes: `r710`, `r710:ipc=0.5:idle_w=50`. `idle_w` is the
    /// power of the idle machine with one disk; it changes `rest_w`.
    fn from_str(text: &str) -> Result<Self, MachineError> {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let mut machine = MACHINES.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = MACHINES.keys().map(String::as_str).collect();
            MachineError::Unknown {
                name: name.to_owned(),
                known: known.join(", "),
            }
        })?;
        for change in words {
            machine.change(name, change)?;
        }
        Ok(machine)
    }
}

impl PowerModel {
    fn change(&mut self, machine: &str, change: &str) -> Result<(), MachineError> {
        let (knob, value) = change.split_once('=').unwrap_or((change, ""));
        let known = CHANGES.iter().find(|(name, ..)| *name == knob);
        let idle_w = self.idle_w();
        let least = match known {
            Some(("idle_w", ..)) => idle_w - self.rest_w,
            Some((_, least, _)) => *least,
            None => 0.0,
        };
        let value: Option<f64> = value.parse().ok();
        let value = value.filter(|value| value.is_finite() && *value >= least);
        let Some(((_, _, of), value)) = known.zip(value) else {
            let all: Vec<&str> = CHANGES.iter().map(|(name, ..)| *name).collect();
            return Err(MachineError::Change {
                machine: machine.to_owned(),
                change: change.to_owned(),
                known: known.map_or_else(|| all.join("|"), |(name, ..)| (*name).to_owned()),
                least,
            });
        };
        *of(self) = if knob == "idle_w" {
            value - least
        } else {
            value
        };
        Ok(())
    }

    /// Returns the speeds at its clocks, MIPS.
    pub fn clocks_mips(&self) -> Vec<f64> {
        let mips = |point: &Point| point.mhz * self.instructions_per_cycle;
        self.points.iter().map(mips).collect()
    }

    /// Returns the power of the machine with one disk while nothing happens, watts.
    pub fn idle_w(&self) -> f64 {
        let state = self.idle.last();
        let volts = self.points.first().map_or(0.0, |point| point.volts);
        let core_w = state.map_or(0.0, |state| state.share) * self.static_w * volts;
        self.rest_w + f64::from(self.cores) * core_w + self.disk_idle_w
    }

    /// Returns the energy of an activity. Cores that it does not mention idle in the deepest state.
    pub fn energy(&self, activity: &Activity) -> Energy {
        let elapsed_s = activity.elapsed_ns as f64 / 1e9;
        let used = activity.processors.iter();
        let used_j: f64 = used
            .map(|processor| self.processor_j(processor, activity.elapsed_ns))
            .sum();
        let idle = ProcessorActivity::default();
        let unused = (self.cores as usize).saturating_sub(activity.processors.len());
        let unused_j = unused as f64 * self.processor_j(&idle, activity.elapsed_ns);
        Energy {
            processors_j: used_j + unused_j,
            memory_j: self.memory_busy_w * activity.busy_ns() as f64 / 1e9,
            disks_j: self.disks_j(&activity.disks, elapsed_s),
            rest_j: self.rest_w * elapsed_s,
        }
    }

    fn processor_j(&self, processor: &ProcessorActivity, elapsed_ns: u64) -> f64 {
        let busy = processor.busy.iter();
        let busy_j: f64 = busy
            .map(|at| {
                let (ghz, volts) = self.point(at.kips);
                let watts = self.static_w * volts + self.dynamic_w * ghz * volts * volts;
                watts * at.busy_ns as f64 / 1e9
            })
            .sum();
        let idle_ns = elapsed_ns.saturating_sub(processor.busy_ns()) as f64;
        let seen_ns: u64 = processor.idle.iter().map(|at| at.sum_ns).sum();
        if seen_ns == 0 {
            let deepest = self.idle.last();
            let lowest = self.points.first().map_or(0.0, |point| point.volts);
            return busy_j + self.idle_j(deepest, lowest, idle_ns, 0);
        }
        // Periods that began before the measurement, or end after it, are like those within.
        let scale = idle_ns / seen_ns as f64;
        let idle = processor.idle.iter().map(|at| {
            let mean_us = at.sum_ns as f64 / at.count.max(1) as f64 / 1e3;
            let (_, volts) = self.point(at.kips);
            scale * self.idle_j(self.idle_state(mean_us), volts, at.sum_ns as f64, at.count)
        });
        busy_j + idle.sum::<f64>()
    }

    fn idle_j(&self, state: Option<&IdleState>, volts: f64, ns: f64, wakes: u64) -> f64 {
        state.map_or(0.0, |state| {
            state.share * self.static_w * volts * ns / 1e9 + state.wake_uj * wakes as f64 / 1e6
        })
    }

    fn idle_state(&self, us: f64) -> Option<&IdleState> {
        let deep_enough = self.idle.iter().rfind(|state| state.from_us <= us);
        deep_enough.or(self.idle.first())
    }

    fn disks_j(&self, disks: &DiskActivity, elapsed_s: f64) -> f64 {
        let idle_j = self.disk_idle_w * disks.disks as f64 * elapsed_s;
        idle_j + self.disk_busy_w * disks.busy_ns as f64 / 1e9
    }

    /// Returns the clock in GHz and the voltage of a speed; the voltage lies between those of the
    /// clocks beside it, and stays the same beyond the last ones.
    fn point(&self, kips: u64) -> (f64, f64) {
        let mhz = kips as f64 / 1e3 / self.instructions_per_cycle;
        let above = self.points.iter().position(|point| point.mhz >= mhz);
        let volts = match (above, self.points.first().zip(self.points.last())) {
            (Some(at), _) if at > 0 => {
                let (low, high) = (self.points[at - 1], self.points[at]);
                let part = (mhz - low.mhz) / (high.mhz - low.mhz);
                low.volts + part * (high.volts - low.volts)
            }
            (Some(_), Some((first, _))) => first.volts,
            (None, Some((_, last))) => last.volts,
            (_, None) => 0.0,
        };
        (mhz / 1e3, volts)
    }
}

#[cfg(test)]
#[allow(
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]
mod tests {
    use super::*;
    use crate::activity::{AtClock, IdlePeriods};

    const S: u64 = 1_000_000_000;

    fn machine(text: &str) -> PowerModel {
        text.parse().unwrap()
    }

    /// All cores at this share of busy time and speed, in periods of this length; one disk.
    fn load(machine: &PowerModel, mips: f64, busy: f64, idle_us: u64, disk_busy: f64) -> Activity {
        let busy_ns = (busy * S as f64) as u64;
        let kips = (mips * 1e3) as u64;
        let idle = IdlePeriods {
            kips,
            log2_ns: (idle_us * 1000).ilog2(),
            count: (S - busy_ns) / (idle_us * 1000),
            sum_ns: S - busy_ns,
        };
        let processor = ProcessorActivity {
            busy: vec![AtClock { kips, busy_ns }],
            idle: vec![idle],
        };
        Activity {
            elapsed_ns: S,
            processors: vec![processor; machine.cores as usize],
            disks: DiskActivity {
                disks: 1,
                busy_ns: (disk_busy * S as f64) as u64,
                ..DiskActivity::default()
            },
        }
    }

    fn watts(machine: &PowerModel, activity: &Activity) -> f64 {
        machine.energy(activity).total_j()
    }

    #[test]
    fn every_machine_of_the_table_is_sound() {
        let table: BTreeMap<String, PowerModel> =
            toml::from_str(include_str!("../machines.toml")).unwrap();
        assert_eq!(table.len(), MACHINES.len());
        for (name, machine) in &table {
            assert!(
                machine
                    .points
                    .is_sorted_by(|a, b| a.mhz < b.mhz && a.volts <= b.volts),
                "{name}"
            );
            assert!(
                machine
                    .idle
                    .is_sorted_by(|a, b| a.from_us < b.from_us && a.share >= b.share)
            );
            assert_eq!(machine.idle[0].from_us, 0.0, "{name}");
            assert!(!machine.sources.is_empty() && machine.cores > 0);
        }
    }

    /// The study's own totals: 214 W for the idle node and 279 W at most, beside 7 to 22 W for its
    /// disk; 94 W for its second machine.
    #[test]
    fn totals_are_those_of_the_study() {
        let first = machine("sc1425");
        let idle = load(&first, 2800.0, 0.0, 1000, 0.0);
        assert!(
            (watts(&first, &idle) - (214.0 + 7.0)).abs() < 2.0,
            "{}",
            watts(&first, &idle)
        );
        let processors_j = |load: &Activity| first.energy(load).processors_j;
        assert!((processors_j(&idle) - 86.0).abs() < 1.0);
        let full = load(&first, 2800.0, 1.0, 1000, 1.0);
        assert!(
            (watts(&first, &full) - (279.0 + 22.0)).abs() < 2.0,
            "{}",
            watts(&first, &full)
        );
        // The study states 165 W, of a node that draws 14 W less than that: `machines.toml`.
        assert!((processors_j(&full) - (165.0 - 14.0)).abs() < 1.0);
        // Its disk's average, 14 W, is one that is busy for half of the time.
        let half = load(&first, 2800.0, 0.0, 1000, 0.5);
        let disk_w = first.energy(&half).disks_j;
        assert!((disk_w - 14.0).abs() < 1.0, "{disk_w}");
        let second = machine("r710");
        let idle = load(&second, 1596.0, 0.0, 100_000, 0.0);
        assert!(
            (watts(&second, &idle) - 94.0).abs() < 5.0,
            "{}",
            watts(&second, &idle)
        );
        let full = load(&second, 2394.0, 1.0, 1000, 0.0);
        let package_w = watts(&second, &full) - watts(&second, &idle);
        assert!((60.0..80.0).contains(&package_w), "{package_w}");
    }

    /// Idle and full load as published, of runs of `SPECpower_ssj2008`.
    #[test]
    fn totals_of_servers_are_those_of_their_published_results() {
        for (name, mips, idle_w, full_w) in [
            ("e3-server", 3500.0, 13.1, 56.1),
            ("epyc-server", 2400.0, 128.0, 817.0),
        ] {
            let server = machine(name);
            let full = load(&server, mips, 1.0, 1000, 0.0);
            for (found_w, published_w) in
                [(server.idle_w(), idle_w), (watts(&server, &full), full_w)]
            {
                let off = found_w / published_w - 1.0;
                assert!(off.abs() < 0.01, "{name}: {found_w} W, {published_w} W");
            }
        }
    }

    /// All cores at work stay within what is stated for the packages, and leave some of it to
    /// the rest of a package.
    #[test]
    fn packages_are_within_their_power() {
        for (name, packages_w) in [
            ("nehalem-hdd", 130.0),
            ("sandybridge-hdd", 80.0),
            ("nehalem-raid10", 160.0),
            ("epyc-server", 720.0),
        ] {
            let system = machine(name);
            let mips = system.clocks_mips()[system.points.len() - 1];
            let full = load(&system, mips, 1.0, 1000, 1.0);
            let of_packages = system.energy(&full).processors_j / packages_w;
            assert!((0.75..0.95).contains(&of_packages), "{name}: {of_packages}");
        }
    }

    #[test]
    fn a_slower_clock_takes_less_energy_for_the_same_work() {
        let server = machine("e3-server");
        let fast = load(&server, 3600.0, 0.2, 1000, 0.0);
        let slow = load(&server, 1800.0, 0.4, 1000, 0.0);
        let processors_j = |activity| server.energy(activity).processors_j;
        assert!(processors_j(&slow) < 0.8 * processors_j(&fast));
        assert_eq!(server.energy(&slow).rest_j, server.energy(&fast).rest_j);
    }

    #[test]
    fn short_idle_periods_cost_more_than_long_ones() {
        let server = machine("e3-server");
        let joules = |us| {
            server
                .energy(&load(&server, 2000.0, 0.0, us, 0.0))
                .processors_j
        };
        assert!(joules(10) > joules(100) && joules(100) > joules(100_000));
    }

    #[test]
    fn cores_and_periods_that_nobody_saw_idle() {
        let server = machine("e3-server");
        let nothing = Activity {
            elapsed_ns: S,
            ..Activity::default()
        };
        let idle_w = server.idle_w() - server.disk_idle_w;
        assert!((watts(&server, &nothing) - idle_w).abs() < 1e-9);
        // Half of the idle time lies in a period across the border: it counts like the rest.
        let mut seen = load(&server, 2000.0, 0.0, 1000, 0.0);
        let whole_w = watts(&server, &seen);
        for processor in &mut seen.processors {
            processor.idle[0].sum_ns /= 2;
            processor.idle[0].count /= 2;
        }
        assert!((watts(&server, &seen) - whole_w).abs() < 1e-6);
    }

    #[test]
    fn changes_are_parsed_and_bad_ones_refused_in_a_line() {
        let changed = machine("e3-server:ipc=0.5:idle_w=100:dynamic_w=2");
        assert!((changed.idle_w() - 100.0).abs() < 1e-9);
        assert_eq!(changed.clocks_mips()[0], 400.0);
        assert_eq!(changed.dynamic_w, 2.0);
        for (text, why) in [
            (
                "cray",
                "no machine cray; the model has e3-server, epyc-server, nehalem-hdd, nehalem-raid10, r710, ",
            ),
            ("r710:ipc=0", "'ipc=0' is not ipc=NUMBER, of at least 0.01"),
            ("r710:ipc", "'ipc' is not ipc=NUMBER"),
            ("r710:cores=2", "'cores=2' is not ipc|idle_w|"),
            ("r710:rest_w=nan", "'rest_w=nan'"),
            (
                "r710:idle_w=1",
                "'idle_w=1' is not idle_w=NUMBER, of at least",
            ),
        ] {
            let error = text.parse::<PowerModel>().unwrap_err().to_string();
            assert!(
                error.contains(why) && !error.contains('\n'),
                "{text}: {error}"
            );
        }
    }
}
