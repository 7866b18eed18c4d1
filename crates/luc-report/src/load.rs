//! What is measured in one cell: a workload on a disk, in a mode.

use luc_lab::{DiskSpec, FsType};
use serde::{Deserialize, Serialize};

pub use crate::mode::{Mode, POLICIES};

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
    /// `luc bench fsync-cost`.
    FsyncCost {
        /// Operations of each loop.
        ops: u32,
        /// Metadata buffers of the large commits.
        buffers: u32,
    },
    /// `luc bench scaling`.
    Scaling {
        /// Length of the measurement of each number of threads, milliseconds.
        measure_ms: u32,
        /// Time before it, milliseconds.
        warmup_ms: u32,
    },
    /// `luc bench run varmail --preset paper`.
    Varmail {
        /// Threads.
        threads: u32,
        /// Length of the measurement, milliseconds.
        measure_ms: u32,
        /// Time before it, milliseconds.
        warmup_ms: u32,
    },
    /// `luc bench run oltp --preset paper`, made to fit one virtual processor.
    Oltp {
        /// Readers, one process each.
        readers: u32,
        /// Database writers, one process each; the log writer comes on top.
        db_writers: u32,
        /// Length of the measurement, milliseconds.
        measure_ms: u32,
        /// Time before it, milliseconds.
        warmup_ms: u32,
    },
    /// `luc bench run shared-files`.
    SharedFiles {
        /// Threads.
        threads: u32,
        /// Length of the measurement, milliseconds.
        measure_ms: u32,
        /// Time before it, milliseconds.
        warmup_ms: u32,
    },
    /// `luc bench metarates`.
    Metarates {
        /// Processes.
        procs: u32,
        /// Files of each process as the case is known by.
        files: u32,
        /// How many times as many files it is measured with.
        rounds: u32,
    },
    /// `luc bench iozone`, initial write of 128 KiB in records of 32 KiB.
    Iozone {
        /// Processes.
        threads: u32,
    },
}

/// Turns of the empty loop that a reader of oltp thinks in the lab. The 200,000 of the file are a
/// millisecond each of one processor at 1000 MIPS: all readers together would do nothing else.
const THINK_TURNS: u32 = 5000;
/// Size of each of oltp's data files in the lab: the published 10 MiB are in the page cache just
/// as well, but take minutes to make on a slow disk.
const DATA_FILE: &str = "1m";

/// Milliseconds as the workloads read seconds.
fn seconds(ms: u32) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

impl Load {
    /// The command that measures it on the file system at `dir`.
    pub fn argv(&self, seed: u32, dir: &str) -> Vec<String> {
        let mut argv: Vec<String> = ["luc", "bench"].map(String::from).into();
        let mut add = |words: &[&dyn ToString]| {
            for word in words {
                argv.extend(word.to_string().split(' ').map(String::from));
            }
        };
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
            Self::FsyncCost { ops, buffers } => {
                add(&[&"fsync-cost", &"--ops", ops, &"--buffers", buffers]);
            }
            Self::Scaling {
                measure_ms,
                warmup_ms,
            } => add(&[
                &"scaling --seconds",
                &seconds(*measure_ms),
                &"--warmup-s",
                &seconds(*warmup_ms),
            ]),
            Self::Varmail { .. }
            | Self::Oltp { .. }
            | Self::SharedFiles { .. }
            | Self::Metarates { .. }
            | Self::Iozone { .. } => self.add_real(seed, &mut add),
        }
        // The file system goes away with its cell: removing the files first would be wasted time.
        add(&[&"--keep", &"--json"]);
        if self.names_dir() {
            add(&[&"--dir"]);
        }
        argv.push(dir.to_owned());
        argv
    }

    /// The words of a real workload; of the others, none.
    fn add_real(&self, seed: u32, add: &mut impl FnMut(&[&dyn ToString])) {
        match self {
            Self::Varmail {
                threads,
                measure_ms,
                warmup_ms,
            } => add(&[
                &"run varmail --preset paper -D",
                &format!("nthreads={threads}"),
                &"--seconds",
                &seconds(*measure_ms),
                &"--warmup-s",
                &seconds(*warmup_ms),
                &"--settle --seed",
                &seed,
            ]),
            Self::Oltp {
                readers,
                db_writers,
                measure_ms,
                warmup_ms,
            } => add(&[
                &"run oltp --preset paper -D",
                &format!("nshadows={readers}"),
                &"-D",
                &format!("ndbwriters={db_writers}"),
                &"-D",
                &format!("usermode={THINK_TURNS}"),
                &"-D",
                &format!("filesize={DATA_FILE}"),
                &"--aio-wait half --seconds",
                &seconds(*measure_ms),
                &"--warmup-s",
                &seconds(*warmup_ms),
                &"--settle --seed",
                &seed,
            ]),
            Self::SharedFiles {
                threads,
                measure_ms,
                warmup_ms,
            } => add(&[
                &"run shared-files -D",
                &format!("nthreads={threads}"),
                &"--seconds",
                &seconds(*measure_ms),
                &"--warmup-s",
                &seconds(*warmup_ms),
                &"--settle --seed",
                &seed,
            ]),
            Self::Metarates {
                procs,
                files,
                rounds,
            } => add(&[&"metarates --procs", procs, &"--files", &(files * rounds)]),
            Self::Iozone { threads } => {
                add(&[&"iozone -s 128k -r 32k -e -c -t", threads]);
            }
            _ => {}
        }
    }

    /// Length of the measurement, where it has one.
    fn measure_ms(&self) -> Option<u32> {
        match self {
            Self::CreateFsync { measure_ms, .. }
            | Self::WriteDelay { measure_ms, .. }
            | Self::Varmail { measure_ms, .. }
            | Self::SharedFiles { measure_ms, .. }
            | Self::Oltp { measure_ms, .. } => Some(*measure_ms),
            _ => None,
        }
    }

    /// Whether its directory comes as an option.
    fn names_dir(&self) -> bool {
        matches!(
            self,
            Self::Varmail { .. }
                | Self::Oltp { .. }
                | Self::SharedFiles { .. }
                | Self::Metarates { .. }
                | Self::Iozone { .. }
        )
    }

    /// Whether it can be measured in a mode: only some workloads can leave their fsyncs out.
    pub fn suits(&self, mode: Mode) -> bool {
        let can_leave_fsync_out = matches!(
            self,
            Self::Varmail { .. }
                | Self::Oltp { .. }
                | Self::SharedFiles { .. }
                | Self::Metarates { .. }
        );
        mode != Mode::Nofsync || can_leave_fsync_out
    }

    /// Whether both ask for the same, however long each was measured: kept results stay readable
    /// when a later version measures longer.
    pub fn alike(&self, other: &Self) -> bool {
        self.name() == other.name()
    }

    /// Its name within a cell's: everything but the times of measuring.
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

/// What a cell is measured for. Tables of one purpose show nothing of another's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// To know what LUC gives.
    #[default]
    Figures,
    /// To know how well the model foretells that.
    Model,
}

/// One cell: measured once, on a file system of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Measurement {
    /// Disk, as the lab writes it: `4ms:1`.
    pub disk: String,
    /// The workload.
    #[serde(flatten)]
    pub load: Load,
    pub mode: Mode,
    /// Which repetition, from 1; also the seed of what the workload draws.
    pub repeat: u32,
    /// What it is measured for.
    #[serde(default)]
    pub purpose: Purpose,
}

/// Where the cell's file system is mounted in the guest.
const DIR: &str = "/mnt/0";
/// Another one, where the mode needs one.
const ELSEWHERE: &str = "/mnt/1";

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

    /// Its disks with their file systems: the one that is measured, and where the mode needs it
    /// another one.
    ///
    /// # Errors
    /// When `disk` is none that the lab can make.
    pub fn disk_specs(&self) -> luc_lab::error::Result<Vec<DiskSpec>> {
        let mut specs = vec![self.disk_spec()?];
        if self.mode == Mode::Elsewhere {
            specs.push("0ns:1:64M".parse()?);
        }
        Ok(specs)
    }

    fn disk_spec(&self) -> luc_lab::error::Result<DiskSpec> {
        let mut spec: DiskSpec = self.disk.parse()?;
        if self.mode == Mode::Nojc {
            spec.fs_type = FsType::Ext4NoJournal;
        }
        let options = self.mode.mount_options();
        if !options.is_empty() {
            options.clone_into(&mut spec.mount_opts);
        }
        Ok(spec)
    }

    /// Guest memory that it needs, MiB: file systems live in it.
    pub fn memory_mib(&self) -> u32 {
        match self.load {
            Load::Varmail { .. }
            | Load::Oltp { .. }
            | Load::SharedFiles { .. }
            | Load::Iozone { .. } => 2048,
            _ => 1024,
        }
    }

    /// The commands to run, and which of them prints the workload's result.
    pub fn steps(&self) -> (Vec<Vec<String>>, usize) {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let mut bench = self.load.argv(self.repeat, DIR);
        if self.mode == Mode::Nofsync {
            bench.push("--no-fsync".to_owned());
        }
        let while_watching = |verb: &str| {
            let mut argv = words(&format!("luc trace {verb} -o /tmp/watched --on {DIR} --"));
            argv.extend(bench.clone());
            argv
        };
        let dir = if self.mode == Mode::Elsewhere {
            ELSEWHERE
        } else {
            DIR
        };
        let on = |how: &str| words(format!("luc on {dir}{how}").as_str());
        let before = match self.mode {
            Mode::Stock | Mode::Nofsync | Mode::Nojc | Mode::KernelBatching => {
                return (vec![bench], 0);
            }
            Mode::Counted => return (vec![while_watching("count")], 0),
            Mode::Traced => return (vec![while_watching("record")], 0),
            Mode::Modelled => {
                let mut model = words("luc trace model --json /tmp/watched");
                // What came before the measurement is no part of the figures either.
                if let Some(ms) = self.load.measure_ms() {
                    model.extend(["--last-s".to_owned(), seconds(ms)]);
                }
                return (vec![while_watching("record"), model], 0);
            }
            Mode::Loaded => {
                let load = words(&format!("insmod {MODULE}"));
                return (vec![load, bench, words("rmmod luc")], 1);
            }
            Mode::Observe => on(" --observe"),
            Mode::Static => on(" --policy static"),
            Mode::Pid => on(" --policy pid"),
            Mode::Copyout => on(" --policy copyout"),
            Mode::Luc | Mode::Elsewhere => on(""),
        };
        let counters = vec!["sh".to_owned(), "-c".to_owned(), COUNTERS.to_owned()];
        // Unloading leaves the next cell a machine as if LUC had never been there.
        let off = words(&format!("luc off {dir} --unload"));
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
    /// Virtual processors.
    pub vcpus: u32,
    /// Whether instructions are counted; else virtual processors run in parallel, in host time.
    pub virtual_time: bool,
    pub cells: Vec<Measurement>,
}

#[cfg(test)]
mod tests;
