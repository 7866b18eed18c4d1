//! What is measured in one cell: a workload on a disk, in a mode.

use serde::{Deserialize, Serialize};

/// How far LUC is involved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The module is not loaded.
    Stock,
    /// The module is loaded but attached to nothing.
    Loaded,
    /// Attached; decides and records but changes nothing.
    Observe,
    /// Policy `static`.
    Static,
    /// Policy `pid`.
    Pid,
    /// Policy `copyout`.
    Copyout,
    /// As `luc on` leaves it: policy `luc`, automatic set point, no knob touched.
    Luc,
}

impl Mode {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Loaded => "loaded",
            Self::Observe => "observe",
            Self::Static => "static",
            Self::Pid => "pid",
            Self::Copyout => "copyout",
            Self::Luc => "LUC",
        }
    }

    /// Whether LUC is attached to the file system.
    pub fn attached(self) -> bool {
        !matches!(self, Self::Stock | Self::Loaded)
    }
}

/// A workload and its arguments. Times are virtual.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "workload", rename_all = "kebab-case")]
pub enum Load {
    /// `luc bench create-fsync`.
    CreateFsync {
        /// Threads.
        threads: u32,
        /// Length of the measurement, milliseconds.
        measure_ms: u32,
        /// Time before it, milliseconds.
        warmup_ms: u32,
    },
    /// `luc bench write-delay`.
    WriteDelay {
        /// Writers beside one fsync stream.
        writers: u32,
        /// Length of the measurement, milliseconds.
        measure_ms: u32,
        /// Time before it, milliseconds.
        warmup_ms: u32,
    },
    /// `luc bench burst`.
    Burst {
        /// Threads.
        threads: u32,
        /// Time within which they wake, microseconds.
        spread_us: u32,
        /// Bursts measured.
        bursts: u32,
        /// Duration of one commit, milliseconds; see the workload for what it is for.
        commit_ms: u32,
    },
    /// `luc bench write-burst`.
    WriteBurst {
        /// Threads.
        threads: u32,
        /// Time within which they wake, microseconds.
        spread_us: u32,
        /// Bursts measured.
        bursts: u32,
    },
}

impl Load {
    /// The command that measures it on the file system at `dir`.
    pub fn argv(&self, seed: u32, dir: &str) -> Vec<String> {
        let seconds = |ms: u32| format!("{}.{:03}", ms / 1000, ms % 1000);
        let mut argv: Vec<String> = ["luc", "bench"].map(String::from).into();
        let mut add = |words: &[&dyn ToString]| argv.extend(words.iter().map(|w| w.to_string()));
        match self {
            Self::CreateFsync {
                threads,
                measure_ms,
                warmup_ms,
            } => add(&[
                &"create-fsync",
                &"--threads",
                threads,
                &"--seconds",
                &seconds(*measure_ms),
                &"--warmup-s",
                &seconds(*warmup_ms),
            ]),
            Self::WriteDelay {
                writers,
                measure_ms,
                warmup_ms,
            } => add(&[
                &"write-delay",
                &"--writers",
                writers,
                &"--seconds",
                &seconds(*measure_ms),
                &"--warmup-s",
                &seconds(*warmup_ms),
            ]),
            Self::Burst {
                threads,
                spread_us,
                bursts,
                commit_ms,
            } => add(&[
                &"burst",
                &"--threads",
                threads,
                &"--spread-us",
                spread_us,
                &"--bursts",
                bursts,
                &"--commit-ms",
                commit_ms,
                &"--seed",
                &seed,
            ]),
            Self::WriteBurst {
                threads,
                spread_us,
                bursts,
            } => add(&[
                &"write-burst",
                &"--threads",
                threads,
                &"--spread-us",
                spread_us,
                &"--bursts",
                bursts,
                &"--seed",
                &seed,
            ]),
        }
        // The file system goes away with its cell: removing the files first would be wasted time.
        add(&[&"--keep", &"--json", &dir]);
        argv
    }

    /// Whether both ask for the same, however long each was measured: kept results stay readable
    /// when a later version measures longer.
    pub fn alike(&self, other: &Self) -> bool {
        self.name() == other.name()
    }

    /// Its name within a cell's: everything but the times of measuring.
    fn name(&self) -> String {
        match self {
            Self::CreateFsync { threads, .. } => format!("create-fsync-{threads}"),
            Self::WriteDelay { writers, .. } => format!("write-delay-{writers}"),
            Self::Burst {
                threads, spread_us, ..
            } => format!("burst-{threads}-{spread_us}us"),
            Self::WriteBurst {
                threads, spread_us, ..
            } => format!("write-burst-{threads}-{spread_us}us"),
        }
    }
}

/// One cell: measured once, on a file system of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Measurement {
    /// Disk, as the lab writes it: `4ms:1`.
    pub disk: String,
    /// The workload.
    #[serde(flatten)]
    pub load: Load,
    /// The mode.
    pub mode: Mode,
    /// Which repetition, from 1; also the seed of what the workload draws.
    pub repeat: u32,
}

/// Where the cell's file system is mounted in the guest.
const DIR: &str = "/mnt/0";

/// Where the lab puts the module in the guest.
const MODULE: &str = "/lib/luc/luc.ko";

/// Prints every counter of the one attached file system as `name value`.
const COUNTERS: &str = "cd /sys/fs/luc/*/counters && for f in *; do echo $f $(cat $f); done";

impl Measurement {
    /// Name of the cell; unique within a job.
    pub fn name(&self) -> String {
        format!(
            "{}-{}-{}-r{}",
            self.load.name(),
            self.disk.replace(':', "x"),
            self.mode.name().to_lowercase(),
            self.repeat
        )
    }

    /// The commands to run, and which of them prints the workload's result.
    pub fn steps(&self) -> (Vec<Vec<String>>, usize) {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let bench = self.load.argv(self.repeat, DIR);
        let on = |how: &str| words(format!("luc on {DIR}{how}").as_str());
        let before = match self.mode {
            Mode::Stock => return (vec![bench], 0),
            Mode::Loaded => {
                let load = words(&format!("insmod {MODULE}"));
                return (vec![load, bench, words("rmmod luc")], 1);
            }
            Mode::Observe => on(" --observe"),
            Mode::Static => on(" --policy static"),
            Mode::Pid => on(" --policy pid"),
            Mode::Copyout => on(" --policy copyout"),
            Mode::Luc => on(""),
        };
        let counters = vec!["sh".to_owned(), "-c".to_owned(), COUNTERS.to_owned()];
        // Unloading leaves the next cell a machine as if LUC had never been there.
        let off = words(&format!("luc off {DIR} --unload"));
        (vec![before, bench, counters, off], 1)
    }
}

/// Measurements that share one boot of one kernel at one speed, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Kernel by its name in the list of kernels.
    pub kernel: String,
    /// Million instructions per second of the virtual processor.
    pub cpu_mips: u32,
    /// The cells.
    pub cells: Vec<Measurement>,
}

#[cfg(test)]
mod tests {
    use super::{Load, Measurement, Mode};

    #[test]
    fn commands_of_a_steered_cell() {
        let cell = Measurement {
            disk: "4ms:1".to_owned(),
            load: Load::CreateFsync {
                threads: 4,
                measure_ms: 2000,
                warmup_ms: 50,
            },
            mode: Mode::Pid,
            repeat: 2,
        };
        assert_eq!(cell.name(), "create-fsync-4-4msx1-pid-r2");
        let (steps, bench) = cell.steps();
        let lines: Vec<String> = steps.iter().map(|step| step.join(" ")).collect();
        assert_eq!(lines[0], "luc on /mnt/0 --policy pid");
        assert_eq!(
            lines[bench],
            "luc bench create-fsync --threads 4 --seconds 2.000 --warmup-s 0.050 --keep --json /mnt/0"
        );
        assert_eq!(lines[3], "luc off /mnt/0 --unload");
    }

    #[test]
    fn stock_cells_know_nothing_of_luc_but_its_workload() {
        let cell = Measurement {
            disk: "4ms:8".to_owned(),
            load: Load::WriteBurst {
                threads: 16,
                spread_us: 5000,
                bursts: 40,
            },
            mode: Mode::Stock,
            repeat: 3,
        };
        let (steps, bench) = cell.steps();
        assert_eq!((steps.len(), bench), (1, 0));
        assert!(steps[0].join(" ").contains("--bursts 40 --seed 3 --keep"));
    }
}
