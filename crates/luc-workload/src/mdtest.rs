//! Workload `mdtest`: processes that create, stat and unlink files in a tree of directories.
//!
//! The phases and their barriers are those of mdtest's file tests. Every process has its own files,
//! spread evenly over the directories of one tree, or of a tree of its own.

use std::ffi::{CStr, CString};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::clock::now_ns;
use crate::folder::{Folder, NameBuffer};
use crate::latency::summary;
use crate::phases::PhaseResult;
use crate::processes::{self, Kind, Phase};
use crate::report::{BenchReport, Outcome};
use crate::scratch::Scratch;
use crate::worker::{self, Link, Part};
use crate::{Latency, Mdtest, Result, Stop, WorkloadError};

/// Name of the workload.
pub const NAME: &str = "mdtest";

/// Most directories of all trees together.
const DIRS_MAX: u64 = 100_000;

/// Names of the phases, in their order.
const PHASES: [&str; 3] = ["create", "stat", "unlink"];

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

pub fn run(args: &Mdtest, stop: &Stop) -> Result<BenchReport> {
    processes::bound(args.procs, u64::from(args.items))?;
    let trees = if args.unique_dirs { args.procs } else { 1 };
    let dirs = tree_size(args.depth, args.branches);
    if dirs.saturating_mul(u64::from(trees)) > DIRS_MAX {
        return Err(WorkloadError::Arguments(format!(
            "{trees} trees of depth {} with {} branches have more than {DIRS_MAX} directories; give a smaller -z or -b",
            args.depth, args.branches
        )));
    }
    let scratch = Scratch::new(&args.target.dir, args.target.keep)?;
    for tree in 0..trees {
        let name = format!("tree.{tree}");
        drop(scratch.subdir(&name)?);
        let root = Folder::open(&scratch.path().join(name))?;
        for dir in tree_dirs(args.depth, args.branches).iter().skip(1) {
            root.mkdir(dir)?;
        }
    }
    let jobs = (0..args.procs)
        .map(|rank| {
            let tree = if args.unique_dirs { rank } else { 0 };
            worker::Job::Mdtest(Job {
                dir: scratch.path().join(format!("tree.{tree}")),
                rank,
                items: args.items,
                bytes: args.bytes,
                fsync: args.fsync,
                depth: args.depth,
                branches: args.branches,
            })
        })
        .collect();
    let kind = Kind::Processes(NAME);
    let (phases, observed) = processes::run(kind, jobs, PHASES.len(), &scratch, stop)?;
    scratch.remove()?;

    let created = phases.first();
    let call = |kind| created.map_or_else(Latency::default, |p| summary(&mut p.calls(kind)));
    let named = phases.iter().zip(PHASES);
    let result = MdtestResult {
        args: args.clone(),
        tree_dirs: dirs,
        phases: named
            .map(|(phase, name)| PhaseResult::new(name, phase))
            .collect(),
        open: call(0),
        write: call(1),
        fsync: call(2),
        close: call(3),
    };
    let elapsed_ns = phases.iter().map(Phase::length_ns).sum();
    let fsyncs = result.fsync.count;
    Ok(BenchReport::new(
        Outcome::Mdtest(result),
        fsyncs,
        elapsed_ns,
        stop.is_set(),
        observed,
    ))
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
        let folder = Folder::open(&self.dir)?;
        let dirs: Vec<String> = tree_dirs(self.depth, self.branches)
            .into_iter()
            .filter_map(|dir| dir.into_string().ok())
            .collect();
        let mut parts = Vec::with_capacity(PHASES.len());
        if !link.barrier()? {
            return Ok(parts);
        }
        parts.push(self.create(&folder, &dirs, link)?);
        if !link.barrier()? {
            return Ok(parts);
        }
        parts.push(self.each(&dirs, link, |name| folder.stat(name))?);
        if !link.barrier()? {
            return Ok(parts);
        }
        parts.push(self.each(&dirs, link, |name| folder.unlink(name))?);
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

    fn create(&self, folder: &Folder, dirs: &[String], link: &Link) -> Result<Part> {
        let items = self.items as usize;
        let data = vec![0x6c_u8; self.bytes as usize];
        let mut name = NameBuffer::default();
        let mut open = Vec::with_capacity(items);
        let mut write = Vec::with_capacity(if data.is_empty() { 0 } else { items });
        let mut sync = Vec::with_capacity(if self.fsync { items } else { 0 });
        let mut close = Vec::with_capacity(items);
        let flags = link.flags();
        let begin_ns = now_ns();
        let mut end_ns = begin_ns;
        for item in 0..self.items {
            if flags.is_stopped() {
                break;
            }
            let dir = self.dir_of(dirs, item);
            let name = name.set(format_args!("{dir}file.mdtest.{}.{item}", self.rank));
            let start_ns = now_ns();
            let file = folder.creat(name)?;
            let opened_ns = now_ns();
            let mut before_ns = opened_ns;
            if !data.is_empty() {
                folder.write(&file, name, &data)?;
                let written_ns = now_ns();
                write.push(written_ns - before_ns);
                before_ns = written_ns;
            }
            if self.fsync {
                folder.fsync(&file, name)?;
                let synced_ns = now_ns();
                sync.push(synced_ns - before_ns);
                before_ns = synced_ns;
            }
            drop(file);
            end_ns = now_ns();
            open.push(opened_ns - start_ns);
            close.push(end_ns - before_ns);
        }
        Ok(Part {
            begin_ns,
            end_ns,
            ops: open.len() as u64,
            calls: vec![open, write, sync, close],
        })
    }

    fn each(
        &self,
        dirs: &[String],
        link: &Link,
        mut call: impl FnMut(&CStr) -> Result<()>,
    ) -> Result<Part> {
        let mut name = NameBuffer::default();
        let mut times = Vec::with_capacity(self.items as usize);
        let flags = link.flags();
        let begin_ns = now_ns();
        let mut end_ns = begin_ns;
        for item in 0..self.items {
            if flags.is_stopped() {
                break;
            }
            let dir = self.dir_of(dirs, item);
            let name = name.set(format_args!("{dir}file.mdtest.{}.{item}", self.rank));
            let start_ns = now_ns();
            call(name)?;
            end_ns = now_ns();
            times.push(end_ns - start_ns);
        }
        Ok(Part {
            begin_ns,
            end_ns,
            ops: times.len() as u64,
            calls: vec![times],
        })
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
