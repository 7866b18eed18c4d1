//! Workload `mdtest`: processes that create, stat and unlink files in a tree of directories.
//!
//! The phases and their barriers are those of mdtest's file tests. Every process has its own files,
//! spread evenly over the directories of one tree, or of a tree of its own.

use std::ffi::CString;
use std::fmt;
use std::path::PathBuf;

use clap::{Args, value_parser};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::{Common, threads};
use crate::benchmark::{Benchmark, Found, Measured};
use crate::dir::{Dir, NameBuffer};
use crate::file_phase::{CLOSE, FSYNC, FilePhase, OPEN, WRITE};
use crate::latency::summary;
use crate::phases::PhaseResult;
use crate::processes::{self, Kind, Phase};
use crate::scratch::Scratch;
use crate::text::{Lines, calls};
use crate::worker::{self, Link, Part};
use crate::{Latency, Result, Stop, WorkloadError};

/// Most directories of all trees together.
const DIRS_MAX: u64 = 100_000;

/// Names of the phases, in their order.
const PHASES: [&str; 3] = ["create", "stat", "unlink"];

/// Arguments of the workload `mdtest`.
///
/// Phases of file creation, stat and removal with barriers between them. The files of a process are
/// spread evenly over the directories of the tree, those of its root included.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[command(after_help = "Examples:\n\
    \x20 luc bench mdtest --fsync /srv/scratch\n\
    \x20 luc bench mdtest -n 1000 --depth 2 --branches 4 /srv/scratch")]
pub struct Mdtest {
    /// What every workload has.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Number of processes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = threads())]
    pub procs: u32,
    /// Files of each process
    #[arg(short = 'n', long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u32).range(1..=10_000_000))]
    pub items: u32,
    /// Bytes to write to each file
    #[arg(short = 'w', long, value_name = "BYTES", default_value_t = 0, value_parser = value_parser!(u32).range(..=1 << 30))]
    pub bytes: u32,
    /// Fsync each file before its close
    #[arg(short = 'y', long)]
    pub fsync: bool,
    /// Levels of directories below the root of a tree
    #[arg(short = 'z', long, value_name = "N", default_value_t = 0, value_parser = value_parser!(u32).range(..=64))]
    pub depth: u32,
    /// Sub-directories of each directory that is not at the bottom
    #[arg(short = 'b', long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=100_000))]
    pub branches: u32,
    /// Give each process a tree of its own instead of sharing one
    #[arg(short = 'u', long)]
    pub unique_dirs: bool,
}

/// Result of the workload `mdtest`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MdtestResult {
    /// The arguments it ran with.
    pub args: Mdtest,
    /// Directories of one tree, its root included.
    pub tree_dirs: u64,
    /// The phases create, stat, unlink; fewer when interrupted.
    pub phases: Vec<PhaseResult>,
    /// The time an open (the creat call) took.
    pub open: Latency,
    /// The time a write took; none when nothing is written.
    pub write: Latency,
    /// Sync delay: the time an fsync took; none without `-y`.
    pub fsync: Latency,
    /// The time a close took.
    pub close: Latency,
}

/// One process's work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    dir: PathBuf,
    rank: u32,
    items: u32,
    bytes: u32,
    fsync: bool,
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
        let scratch = Scratch::new(&self.common.dir, self.common.keep)?;
        for tree in 0..trees {
            let name = format!("tree.{tree}");
            let root = scratch.subdir(&name)?;
            for dir in tree_dirs(self.depth, self.branches).iter().skip(1) {
                root.mkdir(dir)?;
            }
        }
        let jobs: Vec<Job> = (0..self.procs)
            .map(|rank| {
                let tree = if self.unique_dirs { rank } else { 0 };
                Job {
                    dir: scratch.path().join(format!("tree.{tree}")),
                    rank,
                    items: self.items,
                    bytes: self.bytes,
                    fsync: self.fsync,
                    depth: self.depth,
                    branches: self.branches,
                }
            })
            .collect();
        let kind = Kind::Processes;
        let (phases, observed) =
            processes::run::<Mdtest>(kind, &jobs, PHASES.len(), &scratch, stop)?;
        scratch.remove()?;

        let created = phases.first();
        let call = |kind| created.map_or_else(Latency::default, |p| summary(&mut p.calls(kind)));
        let named = phases.iter().zip(PHASES);
        let result = MdtestResult {
            args: self.clone(),
            tree_dirs: dirs,
            phases: named
                .map(|(phase, name)| PhaseResult::new(name, phase))
                .collect(),
            open: call(OPEN),
            write: call(WRITE),
            fsync: call(FSYNC),
            close: call(CLOSE),
        };
        let elapsed_ns = phases.iter().map(Phase::length_ns).sum();
        Ok(Measured {
            fsyncs: result.fsync.count,
            found: result,
            elapsed_ns,
            interrupted: stop.is_set(),
            observed,
        })
    }

    fn work(job: Value, link: &mut Link) -> Result<Vec<Part>> {
        worker::job::<Job>(job)?.run(link)
    }
}

impl Found for MdtestResult {
    fn title(&self) -> String {
        format!(
            "mdtest, {} processes with {} files each, in {} of {} directories",
            self.args.procs,
            self.args.items,
            if self.args.unique_dirs {
                "trees of their own"
            } else {
                "one tree"
            },
            self.tree_dirs
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

    fn main_figure(&self) -> Option<f64> {
        self.phases.first().map(|it| it.total_per_s)
    }

    fn syncs(&self) -> Option<&Latency> {
        Some(&self.fsync)
    }
}

/// Directories of a tree, its root included.
fn tree_size(depth: u32, branches: u32) -> u64 {
    (0..=depth).fold(0, |sum: u64, level| {
        sum.saturating_add(u64::from(branches).saturating_pow(level))
    })
}

/// Paths of the directories relative to the root, parents before their children, the root first
/// and empty. All end in a slash, so that a file's name can follow.
fn tree_dirs(depth: u32, branches: u32) -> Vec<CString> {
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
    // No NUL is in these names.
    let names = dirs.into_iter().filter_map(|dir| CString::new(dir).ok());
    names.collect()
}

impl Job {
    pub fn run(&self, link: &mut Link) -> Result<Vec<Part>> {
        let dir = Dir::open(&self.dir)?;
        let dirs: Vec<String> = tree_dirs(self.depth, self.branches)
            .into_iter()
            .filter_map(|dir| dir.into_string().ok())
            .collect();
        let data = vec![0x6c_u8; self.bytes as usize];
        let files = FilePhase {
            dir: &dir,
            files: self.items,
            name: |name: &mut NameBuffer, item| {
                let inner = self.dir_of(&dirs, item);
                name.set(format_args!("{inner}file.mdtest.{}.{item}", self.rank));
            },
        };
        let mut parts = Vec::with_capacity(PHASES.len());
        if !link.barrier()? {
            return Ok(parts);
        }
        parts.push(files.create(&data, self.fsync, link)?);
        if !link.barrier()? {
            return Ok(parts);
        }
        parts.push(files.each(link, |name| dir.stat(name))?);
        if !link.barrier()? {
            return Ok(parts);
        }
        parts.push(files.each(link, |name| dir.unlink(name))?);
        link.barrier()?;
        Ok(parts)
    }

    /// The directory of an item: neighbours share one.
    fn dir_of<'a>(&self, dirs: &'a [String], item: u32) -> &'a str {
        let index = u64::from(item) * dirs.len() as u64 / u64::from(self.items);
        usize::try_from(index)
            .ok()
            .and_then(|index| dirs.get(index))
            .map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::{tree_dirs, tree_size};

    #[test]
    fn trees_grow_by_level() {
        assert_eq!(tree_dirs(0, 9), [c"".to_owned()]);
        let dirs = tree_dirs(2, 2);
        let names: Vec<_> = dirs.iter().map(|d| d.to_str().expect("text")).collect();
        assert_eq!(
            names,
            ["", "d0/", "d1/", "d0/d0/", "d0/d1/", "d1/d0/", "d1/d1/"]
        );
        for (depth, branches) in [(0, 1), (3, 1), (2, 5), (4, 3)] {
            let dirs = tree_dirs(depth, branches).len() as u64;
            assert_eq!(tree_size(depth, branches), dirs);
        }
        assert_eq!(tree_size(u32::MAX >> 16, u32::MAX), u64::MAX);
    }
}
