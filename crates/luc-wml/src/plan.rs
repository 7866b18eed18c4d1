//! A workload file, checked, with every variable resolved.
//!
//! A [`Plan`] is all that an engine needs: it holds no text to parse and no name to look up. A
//! random variable, which is drawn anew at each use, is an index into [`Plan::randoms`].

use serde::Serialize;

/// A checked workload file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plan {
    // In the order in which they were defined.
    pub filesets: Vec<Fileset>,
    pub processes: Vec<Process>,
    pub randoms: Vec<Random>,
    /// Statements that do something, in the file's order.
    pub actions: Vec<Action>,
    /// Events per second for flowops that wait for events; `None` without an `eventgen`. Zero means
    /// no limit.
    pub event_rate_per_s: Option<Value>,
    pub quit: Quit,
    /// True after `enable lathist`.
    pub latency_histograms: bool,
    /// Parts of the file that have no effect, each with its position and the reason, in one line.
    #[serde(skip)]
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct FilesetId(pub usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct RandomId(pub usize);

/// A number, or a random variable that is drawn at each use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Value {
    Fixed(u64),
    Random(RandomId),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Random {
    /// Its name, without the dollar sign.
    pub name: String,
    /// The kind, as in the attribute `type`.
    #[serde(skip)]
    pub kind: &'static str,
    pub distribution: Distribution,
}

/// Distributions, with their parameters after all conversions.
///
/// `Cvar...` are those of `set $x = cvar(...)`, the others those of `define randvar`: the two
/// families draw from different generators and scale differently.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Distribution {
    /// `randvar type=uniform`.
    Uniform(Randvar),
    /// `randvar type=gamma`; the shape is the attribute `gamma` divided by 1000.
    Gamma { randvar: Randvar, shape: f64 },
    /// `randvar type=tabular`: shares of a hundred, each uniform over its range.
    Table {
        randvar: Randvar,
        rows: Vec<TableRow>,
    },
    CvarUniform {
        lower: f64,
        upper: f64,
        #[serde(flatten)]
        bounds: Bounds,
    },
    /// The shape is the parameter `gamma` unchanged.
    CvarGamma {
        mean: f64,
        shape: f64,
        #[serde(flatten)]
        bounds: Bounds,
    },
    CvarNormal {
        mean: f64,
        sigma: f64,
        #[serde(flatten)]
        bounds: Bounds,
    },
    CvarLognormal {
        shape: f64,
        scale: f64,
        #[serde(flatten)]
        bounds: Bounds,
    },
    CvarExponential {
        mean: f64,
        #[serde(flatten)]
        bounds: Bounds,
    },
    /// The mean is the parameter that the file calls `rate`.
    CvarErlang {
        shape: u32,
        mean: f64,
        #[serde(flatten)]
        bounds: Bounds,
    },
    CvarTriangular {
        lower: f64,
        upper: f64,
        mode: f64,
        #[serde(flatten)]
        bounds: Bounds,
    },
    CvarWeibull {
        shape: f64,
        scale: f64,
        #[serde(flatten)]
        bounds: Bounds,
    },
}

/// A cvar's value is first rounded, then clamped to `min` and `max`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// Values are multiples of this; zero allows any value.
    pub round: f64,
    pub min: f64,
    pub max: f64,
}

/// Fields of every `randvar`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Randvar {
    /// Mean of the values; zero for the table's own mean (tabular only).
    pub mean: f64,
    pub min: f64,
    /// Values are multiples of this; zero allows any value.
    pub round: f64,
    pub source: RandomSource,
}

/// Source of a `randvar`'s random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum RandomSource {
    /// The run's own generator (`randsrc=urandom`).
    Run,
    /// The variable's own 48-bit linear congruential generator, with this seed (`randsrc=rand48`).
    Rand48 { seed: u64 },
}

/// One row of a tabular `randvar`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TableRow {
    /// Share of the draws, percent; the rows of a table add up to 100.
    pub percent: u32,
    pub min: u64,
    pub max: u64,
}

/// A set of files (`define fileset`), or one file (`define file`).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an attribute of its own"
)]
pub struct Fileset {
    /// Its name, unique among filesets.
    pub name: String,
    /// Directory in which the fileset's directory (or the file) is made.
    pub path: String,
    /// True for `define file`: one file of that name, no directories.
    pub single_file: bool,
    pub entries: Value,
    /// Number of directories without entries of their own (`leafdirs`).
    pub leaf_dirs: Value,
    /// Mean number of entries per directory; zero for one flat directory.
    pub dir_width: Value,
    /// Shape of the gamma distribution of width and depth, thousandths; zero for a fixed width.
    pub dir_gamma: Value,
    /// Mean depth, drawn per directory, instead of the one that follows from the width.
    pub dir_depth: Option<Value>,
    /// Size of each file, bytes, drawn once per entry.
    pub size: Value,
    /// Share of the files that exist before the run, percent.
    pub prealloc_percent: Value,
    /// Whether several threads write the files.
    pub parallel_alloc: bool,
    /// Whether to keep files that exist and are large enough.
    pub reuse: bool,
    /// Whether to trust an existing tree without checking it.
    pub trust_tree: bool,
    pub read_only: bool,
    pub write_only: bool,
}

/// `define process`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Process {
    pub name: String,
    /// Number of processes to start; at least 1.
    pub instances: u64,
    /// Scheduling priority added to that of the run.
    pub nice: i32,
    /// Its threads, at least one.
    pub threads: Vec<Thread>,
}

/// `thread` in a process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Thread {
    pub name: String,
    /// Number of threads to start in each process; at least 1.
    pub instances: u64,
    /// Memory for its I/O, bytes; zero for as much as the largest I/O.
    pub memory_bytes: Value,
    /// I/O priority in the kernel's encoding, if one was given: the class (best effort) in the bits
    /// from 13 up, the level 0 to 7 in those below.
    pub io_priority: Option<u64>,
    /// The flowops of the loop, at least one.
    pub flowops: Vec<Flowop>,
}

impl Thread {
    /// Returns all flowops of the thread; those inside a composite flowop follow it.
    pub fn all_flowops(&self) -> Vec<&Flowop> {
        fn add<'f>(flowops: &'f [Flowop], all: &mut Vec<&'f Flowop>) {
            for flowop in flowops {
                all.push(flowop);
                if let Op::Composite(inner) = &flowop.op {
                    add(inner, all);
                }
            }
        }
        let mut all = Vec::new();
        add(&self.flowops, &mut all);
        all
    }
}

/// One step of a thread's loop.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flowop {
    /// Its name. Within a thread, flowops that share a name are of one kind and are counted
    /// together. Flowops inside an [`Op::Composite`] have its name and a dot before their own:
    /// `outer.inner`, at every level.
    pub name: String,
    /// Its name in the language; `composite` for those made of others.
    #[serde(skip)]
    pub kind: &'static str,
    #[serde(skip)]
    pub io: Io,
    pub op: Op,
    /// How often it is executed before the next flowop; zero means never.
    pub iters: Value,
    /// Its position in the file.
    pub at: Position,
}

/// The class in which a flowop's operations are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// An I/O operation that reads.
    Read,
    /// An I/O operation that writes.
    Write,
    /// An I/O operation that moves no data.
    Other,
    /// Not an I/O operation: left out of the summary.
    None,
}

/// Line and column in a workload file, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// Slot of a thread's table of open files, 0 to [`FD_MAX`].
pub type Slot = u32;

/// The highest slot that a workload may name. [`Target::rotate`] uses the slots below it in turn,
/// from 127 down to 0 and around again, and only if [`Target::fd`] is 0.
pub const FD_MAX: Slot = 128;

/// The flags for operations that open a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct OpenFlags {
    pub dsync: bool,
    pub direct_io: bool,
    pub no_read_ahead: bool,
}

/// A file that an operation works on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Target {
    /// The fileset, if one was named; otherwise the slot must hold an open file.
    pub fileset: Option<FilesetId>,
    /// The entry of the fileset (`indexed`), instead of the rotor's next.
    pub index: Option<Value>,
    pub fd: Slot,
    /// Take another slot at each use (`opennext`).
    pub rotate: bool,
    pub flags: OpenFlags,
}

/// Reads and writes that move `io_bytes` at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Transfer {
    pub target: Target,
    /// Bytes of each call; zero for the whole file, or for the operation's default.
    pub io_bytes: Value,
    /// Whether to use a random offset instead of the next one.
    pub random: bool,
    /// Only the first `working_set_bytes` of the file are used; zero for all.
    pub working_set_bytes: Value,
}

/// The work of a flowop. Each variant is named after the flowop of the file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Op {
    Read(Transfer),
    Write(Transfer),
    AioWrite(Transfer),
    AioWait,
    ReadWholeFile(Transfer),
    /// `srcfd`, if given, is the slot of the file that sets the size.
    WriteWholeFile {
        transfer: Transfer,
        source_fd: Option<Slot>,
    },
    AppendFile(Transfer),
    AppendFileRand(Transfer),
    OpenFile(Target),
    CreateFile(Target),
    CloseFile {
        fd: Slot,
        rotate: bool,
    },
    /// Without a fileset: the file that the slot holds, or held until it was closed.
    DeleteFile(Target),
    StatFile(Target),
    Fsync(Target),
    FsyncSet(FilesetId),
    MakeDir(FilesetId),
    RemoveDir(FilesetId),
    ListDir(FilesetId),
    /// Waits until the flowop's semaphores allow it; `value` and `high_water` as in Filebench.
    SemBlock {
        value: Value,
        high_water: Value,
    },
    /// Posts `value` to every instance of every [`Op::SemBlock`] of this name, in all processes.
    SemPost {
        value: Value,
        target: String,
        blocking: bool,
    },
    /// Waits for a `wakeup`.
    Block,
    /// Wakes every instance of every [`Op::Block`] of this name, in all processes.
    Wakeup {
        target: String,
    },
    /// Loops `value` times over memory.
    Hog {
        value: Value,
    },
    /// Sleeps for this many seconds.
    Delay {
        seconds: Value,
    },
    /// Waits for events of the generator: one per call (`EventLimit`), or as many as `target` did
    /// operations or MiB since the last call. `target` is a flowop of this thread by its full name;
    /// without one, every I/O flowop of the run counts.
    EventLimit,
    BwLimit {
        target: Option<String>,
    },
    IopsLimit {
        target: Option<String>,
    },
    OpsLimit {
        target: Option<String>,
    },
    /// Ends the thread when `target`, a flowop of this thread by its full name (or all flowops of
    /// the run), has done this much.
    FinishOnCount {
        count: Value,
        target: Option<String>,
    },
    FinishOnBytes {
        bytes: Value,
        target: Option<String>,
    },
    /// A flowop made of others (`define flowop`).
    Composite(Vec<Flowop>),
}

impl Op {
    /// Returns the transfer of a flowop that moves data.
    pub fn transfer(&self) -> Option<&Transfer> {
        match self {
            Op::Read(transfer)
            | Op::Write(transfer)
            | Op::AioWrite(transfer)
            | Op::ReadWholeFile(transfer)
            | Op::WriteWholeFile { transfer, .. }
            | Op::AppendFile(transfer)
            | Op::AppendFileRand(transfer) => Some(transfer),
            _ => None,
        }
    }

    /// Returns the flowop that a limiting flowop watches; an inner `None` stands for all flowops of
    /// the run.
    pub fn limit_target(&self) -> Option<&Option<String>> {
        match self {
            Op::BwLimit { target }
            | Op::IopsLimit { target }
            | Op::OpsLimit { target }
            | Op::FinishOnCount { target, .. }
            | Op::FinishOnBytes { target, .. } => Some(target),
            _ => None,
        }
    }

    /// Returns the file of a flowop that works on one of a fileset.
    pub fn target(&self) -> Option<&Target> {
        match self {
            Op::OpenFile(target)
            | Op::CreateFile(target)
            | Op::DeleteFile(target)
            | Op::StatFile(target)
            | Op::Fsync(target) => Some(target),
            _ => self.transfer().map(|transfer| &transfer.target),
        }
    }
}

/// A statement that does something, in the file's order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Action {
    /// Prints this text, with its variables replaced.
    Echo(String),
    /// Makes the filesets now (`create files`); a run without it makes them first.
    CreateFiles,
    /// Syncs the file system (`system "sync"`).
    Sync,
    /// Writes this number to `/proc/sys/vm/drop_caches`: 1 for the page cache, 2 for inodes and
    /// directory entries, 3 for both.
    DropCaches(u8),
    /// Any other command of `system`, for the shell.
    Command { command: String, at: Position },
    /// Runs the processes.
    Run {
        /// Seconds to run, at least 1. `None` if the file gives no time: then [`RUN_DEFAULT_S`]
        /// with [`Quit::Timeout`], otherwise as long as it takes.
        seconds: Option<u64>,
    },
    /// Waits for this many seconds.
    Sleep(u64),
}

/// The condition that ends a run before its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Quit {
    /// Only time (or the end of the last thread).
    #[default]
    Timeout,
    /// All threads have ended (`set mode quit alldone`).
    AllDone,
    /// The first thread has ended (`set mode quit firstdone`).
    FirstDone,
}

/// Length of a `run` that gives no time, seconds.
pub const RUN_DEFAULT_S: u64 = 60;
