//! Workload `mdtest`: processes that create, stat and unlink files in a tree of directories.
//!
//! The phases and their barriers are those of mdtest's file tests. Every process has its own files,
//! spread evenly over the directories of one tree, or of a tree of its own.

use std::fmt;

use clap::{Args, value_parser};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::{Common, threads};
use crate::benchmark::{Benchmark, Figures, Found, Measured};
use crate::dir::NameBuffer;
use crate::file_phase::{FileJob, Step, Steps};
use crate::letters::{Letter, flag, refused, valued};
use crate::phases::PhaseResult;
use crate::processes::{self, Kind};
use crate::scratch::Scratch;
use crate::text::{Lines, calls};
use crate::worker::{self, Link, Part};
use crate::{Latency, Result, Stop, WorkloadError};

/// Most directories of all trees together.
const DIRS_MAX: u64 = 100_000;

const REFUSED: [Letter; 16] = [
    valued('a', "LUC makes POSIX calls only"),
    flag('B', "a barrier follows each phase"),
    flag('c', "every process creates its own files"),
    flag('D', "directories are not tested, only files (-F)"),
    valued('e', "files are not read"),
    flag('E', "files are not read"),
    valued('f', "give the number of processes with --procs"),
    valued('I', "give the files of each process with -n"),
    flag('k', "files are created by creat(2)"),
    valued('l', "give the number of processes with --procs"),
    flag('L', "files lie in all directories of the tree"),
    valued('N', "every process stats its own files"),
    flag('R', "files are statted in their order"),
    valued('s', "give the number of processes with --procs"),
    flag('S', "every process creates its own files"),
    valued('W', "a phase ends when all of its files are done"),
];

/// Phases of file creation, stat and removal with barriers between them. With one or two of -C, -T
/// and -r, only these are measured. The files of a process are
/// spread evenly over the directories of the tree, those of its root included.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab bench mdtest --fsync /srv/scratch\n\
    \x20 luc-lab bench mdtest -n 1000 --depth 2 --branches 4 /srv/scratch")]
#[command(args = refused(&REFUSED))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub struct Mdtest {
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Number of processes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = threads())]
    pub procs: u32,
    /// Files of each process
    #[arg(short = 'n', long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u32).range(1..=10_000_000))]
    pub items: u32,
    /// Test files only; LUC tests no directories anyway
    #[arg(short = 'F')]
    #[serde(skip)]
    pub files_only: bool,
    /// Measure file creation
    #[arg(short = 'C', long)]
    #[serde(default)]
    pub create: bool,
    /// Measure stat of the files
    #[arg(short = 'T', long)]
    #[serde(default)]
    pub stat: bool,
    /// Measure removal of the files
    #[arg(short = 'r', long)]
    #[serde(default)]
    pub remove: bool,
    /// Number of iterations; only 1, so call it again for more
    #[arg(short = 'i', value_name = "N", value_parser = one_iteration)]
    #[serde(skip)]
    pub iterations: Option<u32>,
    /// Bytes to write to each file
    #[arg(short = 'w', long, value_name = "BYTES", default_value_t = 0, value_parser = value_parser!(u32).range(..=1 << 30))]
    pub bytes: u32,
    /// Fsync each file before closing it
    #[arg(short = 'y', long)]
    pub fsync: bool,
    /// Levels of directories below the root of a tree
    #[arg(short = 'z', long, value_name = "N", default_value_t = 0, value_parser = value_parser!(u32).range(..=64))]
    pub depth: u32,
    /// Subdirectories of each directory above the lowest level
    #[arg(short = 'b', long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=100_000))]
    pub branches: u32,
    /// Give each process a tree of its own instead of sharing one
    #[arg(short = 'u', long)]
    pub unique_dirs: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MdtestResult {
    pub args: Mdtest,
    /// Directories of one tree, its root included.
    pub tree_dirs: u64,
    /// The phases measured, in the order create, stat, unlink; fewer when interrupted.
    pub phases: Vec<PhaseResult>,
    /// The time an open (the creat call) took.
    pub open: Latency,
    /// The time a write took; empty without `-w`.
    pub write: Latency,
    /// Sync delay: the time an fsync took; empty without `-y`.
    pub fsync: Latency,
    pub close: Latency,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Job {
    files: FileJob,
    depth: u32,
    branches: u32,
}

impl Benchmark for Mdtest {
    type Found = MdtestResult;

    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>> {
        processes::bound(self.procs, u64::from(self.items))?;
        let trees = if self.unique_dirs { self.procs } else { 1 };
        let dirs = tree_size(self.depth, self.branches);
        if dirs.saturating_mul(u64::from(trees)) > DIRS_MAX {
            return Err(WorkloadError::Arguments(format!(
                "{trees} trees of depth {} with {} branches have more than {DIRS_MAX} directories; give a smaller -z or -b",
                self.depth, self.branches
            )));
        }
        let steps = self.steps();
        let jobs = |scratch: &Scratch| {
            for tree in 0..trees {
                let root = scratch.subdir(&format!("tree.{tree}"))?;
                let mut name = NameBuffer::default();
                for dir in tree_dirs(self.depth, self.branches).iter().skip(1) {
                    root.mkdir(name.set(format_args!("{dir}")), 0o777)?;
                }
            }
            let job = |rank| Job {
                files: FileJob {
                    dir: scratch.path().join(format!("tree.{}", rank % trees)),
                    rank,
                    files: self.items,
                    bytes: self.bytes,
                    fsync: self.fsync,
                    steps: steps.clone(),
                },
                depth: self.depth,
                branches: self.branches,
            };
            Ok((0..self.procs).map(job).collect())
        };
        let kind = Kind::Processes;
        let done = processes::run_in::<Self, Job>(&self.common, kind, steps.len(), jobs, stop)?;
        Ok(done.map(|phases| {
            let found = Steps::in_phases(&steps, &phases);
            MdtestResult {
                args: self.clone(),
                tree_dirs: dirs,
                phases: found.phases,
                open: found.open,
                write: found.write,
                fsync: found.fsync,
                close: found.close,
            }
        }))
    }

    fn work(job: Value, link: &mut Link) -> Result<Vec<Part>> {
        let Job {
            files,
            depth,
            branches,
        } = worker::job(job)?;
        let dirs = tree_dirs(depth, branches);
        let name = |name: &mut NameBuffer, item| {
            // Consecutive files share a directory.
            let index = u64::from(item) * dirs.len() as u64 / u64::from(files.files);
            let inner = usize::try_from(index)
                .ok()
                .and_then(|index| dirs.get(index));
            let inner = inner.map_or("", String::as_str);
            name.set(format_args!("{inner}file.mdtest.{}.{item}", files.rank));
        };
        files.run(name, link)
    }
}

impl Mdtest {
    /// Returns the phases asked for; all if none is.
    fn steps(&self) -> Vec<Step> {
        let all = [
            (Step::Create, self.create),
            (Step::Stat, self.stat),
            (Step::Unlink, self.remove),
        ];
        let asked = all.iter().any(|(_, asked)| *asked);
        let steps = all.iter().filter(|(_, it)| *it || !asked);
        steps.map(|(step, _)| *step).collect()
    }
}

fn one_iteration(text: &str) -> std::result::Result<u32, String> {
    match text {
        "1" => Ok(1),
        _ => Err("one call is one iteration; call it as often as you need".into()),
    }
}

impl Found for MdtestResult {
    fn title(&self) -> String {
        let (procs, items, dirs) = (self.args.procs, self.args.items, self.tree_dirs);
        let trees = if self.args.unique_dirs {
            "trees of their own"
        } else {
            "one tree"
        };
        format!(
            "mdtest, {procs} processes with {items} files each, in {trees} of {dirs} directories"
        )
    }

    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        for phase in &self.phases {
            phase.lines(lines)?;
        }
        let times = [
            ("open time", &self.open),
            ("write time", &self.write),
            ("sync delay", &self.fsync),
            ("close time", &self.close),
        ];
        calls(lines, &times)
    }

    fn figures(&self) -> Figures<'_> {
        Figures {
            main: self.phases.first().map(|it| it.total_per_s),
            ..Figures::rate(0.0, &self.fsync)
        }
    }

    fn ops(&self) -> u64 {
        self.phases.iter().map(|phase| phase.ops).sum()
    }
}

/// Returns the number of directories of a tree, its root included.
fn tree_size(depth: u32, branches: u32) -> u64 {
    (0..=depth).fold(0, |sum: u64, level| {
        sum.saturating_add(u64::from(branches).saturating_pow(level))
    })
}

/// Returns the paths of the directories relative to the root, parents before their children, the
/// root first and empty. All end in a slash, so that a file's name can follow.
fn tree_dirs(depth: u32, branches: u32) -> Vec<String> {
    let mut dirs = vec![String::new()];
    let mut level = 0..1;
    for _ in 0..depth {
        for parent in level.clone() {
            for branch in 0..branches {
                let path = format!("{}d{branch}/", dirs[parent]);
                dirs.push(path);
            }
        }
        level = level.end..dirs.len();
    }
    dirs
}

#[cfg(test)]
mod tests {
    use super::{tree_dirs, tree_size};

    #[test]
    fn trees_grow_by_level() {
        assert_eq!(tree_dirs(0, 9), [""]);
        assert_eq!(
            tree_dirs(2, 2),
            ["", "d0/", "d1/", "d0/d0/", "d0/d1/", "d1/d0/", "d1/d1/"]
        );
        for (depth, branches) in [(0, 1), (3, 1), (2, 5), (4, 3)] {
            let dirs = tree_dirs(depth, branches).len() as u64;
            assert_eq!(tree_size(depth, branches), dirs);
        }
        assert_eq!(tree_size(u32::MAX >> 16, u32::MAX), u64::MAX);
    }
}
