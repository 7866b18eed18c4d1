//! The measurement of one cell: a workload on a disk, in one arm of the comparison.

use luc_lab::{DiskSpec, FsType};
use serde::{Deserialize, Serialize};

use super::arm::Arm;

/// How long a workload runs, in milliseconds of virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Times {
    /// Length of the measurement.
    pub measure_ms: u32,
    /// Time before the measurement.
    pub warmup_ms: u32,
}

impl Times {
    /// A measurement behind a warm-up.
    pub const fn new(measure_ms: u32, warmup_ms: u32) -> Self {
        Self {
            measure_ms,
            warmup_ms,
        }
    }

    /// A measurement behind a warm-up of a quarter of its length: long enough for a controller to
    /// learn the disk.
    pub const fn of(measure_ms: u32) -> Self {
        Self::new(measure_ms, measure_ms / 4)
    }
}

/// A workload and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "workload", rename_all = "kebab-case")]
pub enum Load {
    /// `luc bench create-fsync`.
    CreateFsync {
        threads: u32,
        #[serde(flatten)]
        times: Times,
    },
    /// `luc bench write-delay`: writers beside one fsync stream.
    WriteDelay {
        writers: u32,
        #[serde(flatten)]
        times: Times,
    },
    /// `luc bench burst`.
    Burst {
        threads: u32,
        /// Time within which the threads wake, microseconds.
        spread_us: u32,
        /// Bursts measured.
        bursts: u32,
        /// Duration of one commit, milliseconds; the workload says how it is used.
        commit_ms: u32,
    },
    /// `luc bench write-burst`.
    WriteBurst {
        threads: u32,
        /// Time within which the threads wake, microseconds.
        spread_us: u32,
        /// Bursts measured.
        bursts: u32,
    },
    /// `luc bench fsync-cost`.
    FsyncCost {
        /// Operations of each loop.
        ops: u32,
        /// Metadata buffers of the large commits.
        buffers: u32,
    },
    /// `luc bench scaling`; the times are those of each number of threads.
    Scaling {
        #[serde(flatten)]
        times: Times,
    },
    /// `luc bench run varmail --preset paper`.
    Varmail {
        threads: u32,
        #[serde(flatten)]
        times: Times,
    },
    /// `luc bench run oltp --preset paper`, made to fit one virtual processor.
    Oltp {
        /// Readers, one process each.
        readers: u32,
        /// Database writers, one process each; the log writer comes on top.
        db_writers: u32,
        #[serde(flatten)]
        times: Times,
    },
    /// `luc bench run shared-files`.
    SharedFiles {
        threads: u32,
        #[serde(flatten)]
        times: Times,
    },
    /// `luc bench metarates`.
    Metarates {
        /// Processes.
        procs: u32,
        /// Files of each process in the name of the case.
        files: u32,
        /// The case is measured with this many times as many files.
        rounds: u32,
    },
    /// `luc bench iozone`, initial write of 128 KiB in records of 32 KiB.
    Iozone {
        /// Processes.
        threads: u32,
    },
}

/// Turns of the empty loop that a reader of oltp thinks in the lab. The 200,000 of the file are a
/// millisecond of one processor at 1000 MIPS for each reader: all readers together would do
/// nothing else.
const THINK_TURNS: u32 = 5000;
/// Size of each of oltp's data files in the lab: the published 10 MiB are in the page cache just
/// as well, but take minutes to make on a slow disk.
const DATA_FILE: &str = "1m";

/// Milliseconds as the workloads read seconds.
fn seconds(ms: u32) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(String::from).collect()
}

impl Load {
    /// The command that measures it on the file system at `dir`.
    pub fn argv(&self, seed: u32, dir: &str) -> Vec<String> {
        let times = self.times().map_or_else(String::new, |times| {
            let (measure_s, warmup_s) = (seconds(times.measure_ms), seconds(times.warmup_ms));
            format!("--seconds {measure_s} --warmup-s {warmup_s}")
        });
        let settled = format!("{times} --settle --seed {seed}");
        let bench = match self {
            Self::CreateFsync { threads, .. } => {
                format!("create-fsync --threads {threads} {times}")
            }
            Self::WriteDelay { writers, .. } => format!("write-delay --writers {writers} {times}"),
            Self::Burst {
                threads,
                spread_us,
                bursts,
                commit_ms,
            } => format!(
                "burst --threads {threads} --spread-us {spread_us} --bursts {bursts} \
                 --commit-ms {commit_ms} --seed {seed}"
            ),
            Self::WriteBurst {
                threads,
                spread_us,
                bursts,
            } => format!(
                "write-burst --threads {threads} --spread-us {spread_us} --bursts {bursts} \
                 --seed {seed}"
            ),
            Self::FsyncCost { ops, buffers } => {
                format!("fsync-cost --ops {ops} --buffers {buffers}")
            }
            Self::Scaling { .. } => format!("scaling {times}"),
            Self::Varmail { threads, .. } => {
                format!("run varmail --preset paper -D nthreads={threads} {settled}")
            }
            Self::Oltp {
                readers,
                db_writers,
                ..
            } => format!(
                "run oltp --preset paper -D nshadows={readers} -D ndbwriters={db_writers} \
                 -D usermode={THINK_TURNS} -D filesize={DATA_FILE} --aio-wait half {settled}"
            ),
            Self::SharedFiles { threads, .. } => {
                format!("run shared-files -D nthreads={threads} {settled}")
            }
            Self::Metarates {
                procs,
                files,
                rounds,
            } => format!("metarates --procs {procs} --files {}", files * rounds),
            Self::Iozone { threads } => format!("iozone -s 128k -r 32k -e -c -t {threads}"),
        };
        let option = if self.is_real() { "--dir " } else { "" };
        // The file system goes away with its cell: removing the files first would be wasted time.
        words(&format!("luc bench {bench} --keep --json {option}{dir}"))
    }

    fn times(&self) -> Option<Times> {
        match self {
            Self::CreateFsync { times, .. }
            | Self::WriteDelay { times, .. }
            | Self::Scaling { times }
            | Self::Varmail { times, .. }
            | Self::SharedFiles { times, .. }
            | Self::Oltp { times, .. } => Some(*times),
            _ => None,
        }
    }

    /// Whether it is one of the real workloads, which take their directory as an option.
    pub(crate) fn is_real(&self) -> bool {
        matches!(
            self,
            Self::Varmail { .. }
                | Self::Oltp { .. }
                | Self::SharedFiles { .. }
                | Self::Metarates { .. }
                | Self::Iozone { .. }
        )
    }

    /// Whether an arm can be measured: only some workloads can leave their fsyncs out.
    pub fn suits(&self, arm: Arm) -> bool {
        arm != Arm::Nofsync || self.is_real() && !matches!(self, Self::Iozone { .. })
    }

    /// Whether both ask for the same, however long each was measured: kept results stay readable
    /// when a later version measures longer.
    pub fn alike(&self, other: &Self) -> bool {
        self.name() == other.name()
    }

    /// Name within the name of a cell: everything but the times.
    pub fn name(&self) -> String {
        match self {
            Self::CreateFsync { threads, .. } => format!("create-fsync-{threads}"),
            Self::WriteDelay { writers, .. } => format!("write-delay-{writers}"),
            Self::Burst {
                threads, spread_us, ..
            } => format!("burst-{threads}-{spread_us}us"),
            Self::WriteBurst {
                threads, spread_us, ..
            } => format!("write-burst-{threads}-{spread_us}us"),
            Self::FsyncCost { buffers, .. } => format!("fsync-cost-{buffers}"),
            Self::Scaling { .. } => "scaling".to_owned(),
            Self::Varmail { threads, .. } => format!("varmail-{threads}"),
            Self::Oltp {
                readers,
                db_writers,
                ..
            } => format!("oltp-{readers}-{db_writers}"),
            Self::SharedFiles { threads, .. } => format!("shared-files-{threads}"),
            Self::Metarates { procs, files, .. } => format!("metarates-{procs}x{files}"),
            Self::Iozone { threads } => format!("iozone-{threads}"),
        }
    }
}

/// Purpose of a cell. Tables of one purpose show no cell of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// To measure LUC's gain.
    #[default]
    Figures,
    /// To measure how well the model predicts that gain.
    Model,
}

/// One cell: measured once, on a file system of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Measurement {
    /// Disk, as the lab writes it: `4ms:1`.
    pub disk: String,
    #[serde(flatten)]
    pub load: Load,
    #[serde(rename = "mode")]
    pub arm: Arm,
    /// Number of the repetition, from 1; also the seed of the workload.
    pub repeat: u32,
    #[serde(default)]
    pub purpose: Purpose,
}

/// Where the cell's file system is mounted in the guest.
const DIR: &str = "/mnt/0";
/// Where the second file system is mounted, if the arm needs one.
const ELSEWHERE: &str = "/mnt/1";

/// Prints every counter of the one attached file system as `name value`.
const COUNTERS: &str = "cd /sys/fs/luc/*/counters && for f in *; do echo $f $(cat $f); done";

impl Measurement {
    /// Name of the cell; unique within a job.
    pub fn name(&self) -> String {
        format!(
            "{}-{}-{}-r{}",
            self.load.name(),
            self.disk.replace(':', "x"),
            self.arm.name().to_lowercase(),
            self.repeat
        )
    }

    /// Its disks with their file systems: the measured one, and a second one if the arm needs it.
    ///
    /// # Errors
    /// The lab cannot make the disk that `disk` names.
    pub fn disk_specs(&self) -> luc_lab::error::Result<Vec<DiskSpec>> {
        let mut spec: DiskSpec = self.disk.parse()?;
        if self.arm == Arm::Nojc {
            spec.fs_type = FsType::Ext4NoJournal;
        }
        let options = self.arm.mount_options();
        if !options.is_empty() {
            options.clone_into(&mut spec.mount_opts);
        }
        let mut specs = vec![spec];
        if self.arm == Arm::Elsewhere {
            specs.push("0ns:1:64M".parse()?);
        }
        Ok(specs)
    }

    /// Guest memory that it needs, MiB: file systems live in guest memory.
    pub fn memory_mib(&self) -> u32 {
        match self.load {
            Load::Metarates { .. } => 1024,
            _ if self.load.is_real() => 2048,
            _ => 1024,
        }
    }

    /// The commands to run, and the index of the one that prints the workload's result.
    pub fn steps(&self) -> (Vec<Vec<String>>, usize) {
        let mut bench = self.load.argv(self.repeat, DIR);
        if self.arm == Arm::Nofsync {
            bench.push("--no-fsync".to_owned());
        }
        let while_watching = |verb: &str| {
            let mut argv = words(&format!("luc trace {verb} -o /tmp/watched --on {DIR} --"));
            argv.extend(bench.clone());
            argv
        };
        let options = match self.arm {
            Arm::Stock | Arm::Nofsync | Arm::Nojc | Arm::KernelBatching => {
                return (vec![bench], 0);
            }
            Arm::Counted => return (vec![while_watching("count")], 0),
            Arm::Traced => return (vec![while_watching("record")], 0),
            Arm::Modelled => {
                let mut model = words("luc trace model --json /tmp/watched");
                // The figures leave the time before the measurement out: so must the model.
                if let Some(times) = self.load.times() {
                    model.extend(["--last-s".to_owned(), seconds(times.measure_ms)]);
                }
                return (vec![while_watching("record"), model], 0);
            }
            Arm::Loaded => {
                let load = words(&format!("insmod {}", luc_lab::image::LUC_MODULE_PATH));
                return (vec![load, bench, words("rmmod luc")], 1);
            }
            Arm::Observe => " --observe",
            Arm::Static => " --policy static",
            Arm::Pid => " --policy pid",
            Arm::Copyout => " --policy copyout",
            Arm::Luc | Arm::Elsewhere => "",
        };
        let dir = if self.arm == Arm::Elsewhere {
            ELSEWHERE
        } else {
            DIR
        };
        let on = words(&format!("luc on {dir}{options}"));
        let counters = ["sh", "-c", COUNTERS].map(String::from).into();
        // Unloading leaves the next cell a machine as if LUC had never been there.
        let off = words(&format!("luc off {dir} --unload"));
        (vec![on, bench, counters, off], 1)
    }
}

/// Measurements that share one boot of one kernel at one speed, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Name in the list of kernels.
    pub kernel: String,
    /// Million instructions per second of the virtual processor.
    pub cpu_mips: u32,
    /// Virtual processors.
    pub vcpus: u32,
    /// Whether instructions are counted; else virtual processors run in parallel, in host time.
    pub virtual_time: bool,
    pub cells: Vec<Measurement>,
}

#[cfg(test)]
mod tests;
