//! The table of a fleet: machines, loads, and how often each is drawn.

use serde::{Deserialize, Serialize};

use luc_sim::disk::DiskKind;
use luc_sim::random;

/// The table that comes with the program.
pub const BUILTIN: &str = include_str!("fleet.toml");

/// Rows of each kind; a node draws one row of each, and all programs have the same parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetTable {
    #[serde(rename = "disk")]
    pub disks: Vec<Disk>,
    #[serde(rename = "machine")]
    pub machines: Vec<Processors>,
    #[serde(rename = "load")]
    pub loads: Vec<Load>,
    #[serde(rename = "service")]
    pub services: Vec<Service>,
    pub program: Parallel,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    pub spec: String,
    pub weight: u32,
    /// Simulated time of a node with this disk.
    pub seconds: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processors {
    pub name: String,
    pub cpus: u16,
    /// The lowest and the highest speed.
    pub mips: [u32; 2],
    pub weight: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    pub name: String,
    /// The arguments of a benchmark, with `{threads}` and `{seconds}`.
    pub bench: String,
    pub threads: Vec<u32>,
    pub weight: u32,
}

/// A service beside a parallel program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    pub name: String,
    /// Time between two fsyncs, each after a write; 0 if there is no service.
    pub period_ms: u32,
    pub weight: u32,
}

/// A parallel program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parallel {
    pub ranks_max: u16,
    /// Bytes of each file.
    pub bytes: u32,
    pub compute_ms: u32,
    /// Ranks leave the barrier within this time.
    pub leave_us: u32,
}

/// A node: the indices of its rows in the table, and the values drawn within a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    pub disk: usize,
    pub machine: usize,
    pub mips: u32,
    pub load: usize,
    /// Index in the load's list.
    pub threads: usize,
    pub service: usize,
    /// Seed of the node's own run.
    pub seed: u64,
}

/// The purpose of a node's random draw; its number keeps draws independent of each other.
#[derive(Clone, Copy)]
enum Purpose {
    Seed,
    Disk,
    Machine,
    Mips,
    Load,
    Threads,
    Service,
}

/// Limits: a disk's seconds, a machine's processors, a load's threads, a processor's speed.
const SECONDS_MAX: f64 = 10_000.0;
const CPUS_MAX: u16 = 1024;
const THREADS_MAX: u32 = 65_536;
const MIPS_MAX: u32 = 1_000_000;

impl FleetTable {
    /// Parses and checks a table, except for its benchmarks.
    ///
    /// # Errors
    /// One line: what is wrong, and where.
    pub fn read(text: &str) -> Result<Self, String> {
        let table: Self = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            format!("line {line}: {}", error.message().replace('\n', "; "))
        })?;
        table.check()?;
        Ok(table)
    }

    fn check(&self) -> Result<(), String> {
        weigh("disk", self.disks.iter().map(|row| row.weight))?;
        weigh("machine", self.machines.iter().map(|row| row.weight))?;
        weigh("load", self.loads.iter().map(|row| row.weight))?;
        weigh("service", self.services.iter().map(|row| row.weight))?;
        for row in &self.disks {
            let kind: Result<DiskKind, _> = row.spec.parse();
            kind.map_err(|error| error.to_string())?;
            if !(row.seconds > 0.0 && row.seconds <= SECONDS_MAX) {
                return Err(format!(
                    "disk {}: seconds must be above 0 and at most {SECONDS_MAX}",
                    row.spec
                ));
            }
        }
        for row in &self.machines {
            let [low, high] = row.mips;
            if !(1..=CPUS_MAX).contains(&row.cpus) {
                return Err(format!(
                    "machine {}: cpus must be 1 to {CPUS_MAX}",
                    row.name
                ));
            }
            if low == 0 || low > high || high > MIPS_MAX {
                return Err(format!(
                    "machine {}: mips must be two speeds from 1 to {MIPS_MAX}, the lower first",
                    row.name
                ));
            }
        }
        for row in &self.loads {
            let fits = |threads: &u32| (1..=THREADS_MAX).contains(threads);
            if row.threads.is_empty() || !row.threads.iter().all(fits) {
                return Err(format!(
                    "load {}: threads must be numbers from 1 to {THREADS_MAX}",
                    row.name
                ));
            }
        }
        if !(1..=CPUS_MAX).contains(&self.program.ranks_max) {
            return Err(format!("program: ranks_max must be 1 to {CPUS_MAX}"));
        }
        if self.program.bytes == 0 || self.program.bytes > 1 << 30 {
            return Err("program: bytes must be from 1 to 1 GiB".to_owned());
        }
        Ok(())
    }

    /// Draws node `node` of the fleet with this seed, independently of all other nodes.
    pub fn draw(&self, seed: u64, node: u32) -> Drawn {
        let own = random::below(seed, u64::from(node), u64::MAX);
        let below = |purpose: Purpose, bound| random::below(own, purpose as u64, bound);
        let machine = by_weight(self.machines.iter().map(|row| row.weight), |all| {
            below(Purpose::Machine, all)
        });
        let load = by_weight(self.loads.iter().map(|row| row.weight), |all| {
            below(Purpose::Load, all)
        });
        let [low, high] = self.machines[machine].mips;
        let above = below(Purpose::Mips, u64::from(high - low) + 1);
        let threads = below(Purpose::Threads, self.loads[load].threads.len() as u64);
        Drawn {
            disk: by_weight(self.disks.iter().map(|row| row.weight), |all| {
                below(Purpose::Disk, all)
            }),
            machine,
            mips: low + u32::try_from(above).unwrap_or(0),
            load,
            threads: usize::try_from(threads).unwrap_or(0),
            service: by_weight(self.services.iter().map(|row| row.weight), |all| {
                below(Purpose::Service, all)
            }),
            seed: below(Purpose::Seed, u64::MAX),
        }
    }

    /// Returns the arguments of the benchmark that a node runs.
    pub fn words(&self, drawn: &Drawn) -> Vec<String> {
        let load = &self.loads[drawn.load];
        let threads = load.threads[drawn.threads].to_string();
        let seconds = self.disks[drawn.disk].seconds.to_string();
        let filled = load.bench.replace("{threads}", &threads);
        let filled = filled.replace("{seconds}", &seconds);
        filled.split_whitespace().map(String::from).collect()
    }

    /// Returns the command that simulates a node again.
    pub fn command(&self, drawn: &Drawn) -> String {
        format!(
            "luc-lab sim run --disk {} --cpus {} --mips {} --seed {} -- {}",
            self.disks[drawn.disk].spec,
            self.machines[drawn.machine].cpus,
            drawn.mips,
            drawn.seed,
            self.words(drawn).join(" ")
        )
    }
}

fn weigh(kind: &str, weights: impl Iterator<Item = u32>) -> Result<(), String> {
    let sum: u64 = weights.map(u64::from).sum();
    if sum == 0 {
        return Err(format!("no {kind} has a weight above 0; give one"));
    }
    Ok(())
}

/// Draws a number below the sum of all weights, and returns the index of the row it falls on.
fn by_weight(weights: impl Iterator<Item = u32> + Clone, draw: impl FnOnce(u64) -> u64) -> usize {
    let mut left = draw(weights.clone().map(u64::from).sum());
    for (at, weight) in weights.enumerate() {
        let weight = u64::from(weight);
        if left < weight {
            return at;
        }
        left -= weight;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> FleetTable {
        FleetTable::read(BUILTIN).unwrap()
    }

    #[test]
    fn draws_follow_the_weights_and_the_number_of_the_node() {
        let table = table();
        let all: Vec<Drawn> = (0..10_000).map(|node| table.draw(1, node)).collect();
        let weights: u32 = table.disks.iter().map(|disk| disk.weight).sum();
        for (at, disk) in table.disks.iter().enumerate() {
            let share = all.iter().filter(|node| node.disk == at).count() as f64 / 1e4;
            let asked = f64::from(disk.weight) / f64::from(weights);
            assert!((share - asked).abs() < 0.02, "{}: {share}", disk.spec);
        }
        for node in &all {
            let [low, high] = table.machines[node.machine].mips;
            assert!((low..=high).contains(&node.mips));
            assert!(node.threads < table.loads[node.load].threads.len());
        }
        assert_eq!(all[77], table.draw(1, 77));
        assert_ne!(all[77], table.draw(2, 77));
        // Draws of different purposes are independent.
        let both = |node: &&Drawn| node.disk == 0 && node.machine == 0;
        let share = all.iter().filter(both).count() as f64 / 1e4;
        assert!((share - 0.15 * 0.4).abs() < 0.01, "{share}");
    }

    #[test]
    fn tables_that_are_none_are_told_in_a_line() {
        for (from, to, why) in [
            (
                "weight = 15\nseconds = 20",
                "seconds = 20",
                "line 8: missing field `weight`",
            ),
            ("seconds = 20", "seconds = 0", "disk hdd-7200: seconds"),
            ("seconds = 20", "seconds = nan", "disk hdd-7200: seconds"),
            ("seconds = 20", "minutes = 20", "unknown field `minutes`"),
            ("\"hdd-7200\"", "\"hdd\"", "no preset is named 'hdd'"),
            ("cpus = 2", "cpus = 0", "machine small: cpus"),
            ("[1000, 2000]", "[2000, 1000]", "machine small: mips"),
            (
                "threads = [4, 16, 64]",
                "threads = []",
                "load bursts: threads",
            ),
            ("ranks_max = 16", "ranks_max = 0", "ranks_max"),
            ("bytes = 65536", "bytes = 0", "bytes"),
            ("[program]", "[programme]", "unknown field `programme`"),
        ] {
            let text = BUILTIN.replacen(from, to, 1);
            assert_ne!(text, BUILTIN, "{from}");
            let error = FleetTable::read(&text).unwrap_err();
            assert!(error.contains(why) && !error.contains('\n'), "{error}");
        }
        let no_weight = BUILTIN.replace("weight = 70", "weight = 0");
        let no_weight = no_weight.replace("weight = 25\n\n[[service", "weight = 0\n\n[[service");
        let no_weight =
            no_weight.replace("weight = 5\n\n# A parallel", "weight = 0\n\n# A parallel");
        assert_eq!(
            FleetTable::read(&no_weight).unwrap_err(),
            "no service has a weight above 0; give one"
        );
        assert!(FleetTable::read("").unwrap_err().contains("missing field"));
    }
}
