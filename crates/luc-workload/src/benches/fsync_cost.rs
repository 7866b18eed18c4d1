//! Workload `fsync-cost`: the processor time of a lone fsync and of the commit that it asks for.
//!
//! The result is the usual time of many equal operations: it leaves out interrupts and the moments
//! when the kernel fills its caches. On one processor and a disk that completes at once nothing
//! idles, so these are processor times; on the lab's virtual clock they count instructions.

use std::fmt;
use std::os::fd::OwnedFd;

use clap::{Args, value_parser};
use rustix::fs::{Mode, fchmod, fstat};
use serde::{Deserialize, Serialize};

use crate::args::Common;
use crate::benchmark::{Benchmark, Figures, Found, Measured};
use crate::clock::{NS_PER_MS, now_ns, sleep_until};
use crate::dir::{Dir, Name};
use crate::journal::{Journal, Thread};
use crate::observer::Observer;
use crate::scratch::{Scratch, allow_descriptors};
use crate::text::Lines;
use crate::{Result, Stop, WorkloadError};

/// Runs four loops of `ops` turns each: fsync of a committed file; fchmod and fsync; fchmod, and a
/// wait until the journal commits by its timer; the same with the fchmod of `buffers` files, whose
/// inodes lie in that many blocks. Nothing else should run. The mount option `commit=1` keeps the
/// waits short.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[command(after_help = "Examples:\n\
    \x20 luc-lab bench fsync-cost /srv/scratch\n\
    \x20 luc-lab bench fsync-cost --ops 1000 /srv/scratch")]
pub struct FsyncCost {
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Operations to measure in each loop
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub ops: u32,
    /// Operations before measuring
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value_parser!(u32).range(..=1_000_000))]
    pub warmup_ops: u32,
    /// Metadata buffers of the large commits
    #[arg(long, value_name = "N", default_value_t = 129, value_parser = value_parser!(u32).range(2..=256))]
    pub buffers: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FsyncCostResult {
    pub args: FsyncCost,
    /// An fsync that finds its data committed.
    pub clean: Times,
    /// An fchmod and its fsync, from the end of one turn to the end of the next: everything that
    /// the machine did meanwhile.
    pub committed: Times,
    /// Processor time of the journal's thread for one commit of one metadata buffer; `None` if the
    /// kernel does not show it to this user.
    pub commit: Option<Times>,
    /// The same for a commit of `buffers` metadata buffers.
    pub commit_buffers: Option<Times>,
}

/// How long equal operations took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    pub count: u64,
    /// Mean of the quarter of the times that lie closest together, nanoseconds. On a clock that
    /// counts instructions most of these are equal.
    pub usual_ns: f64,
    /// Half of the operations took at most this, nanoseconds.
    pub median_ns: u64,
}

impl Times {
    fn from_ns(mut times_ns: Vec<u64>) -> Self {
        times_ns.sort_unstable();
        let quarter = times_ns.len().div_ceil(4).max(1);
        let span_ns = |part: &&[u64]| part[part.len() - 1] - part[0];
        let usual = times_ns.windows(quarter).min_by_key(span_ns);
        let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len() as f64;
        Self {
            count: times_ns.len() as u64,
            usual_ns: usual.map_or(0.0, mean),
            median_ns: times_ns.get(times_ns.len() / 2).copied().unwrap_or(0),
        }
    }
}

/// Inodes that one block of the inode table holds at most: 4096 bytes of 128 each.
const INODES_PER_BLOCK: u64 = 32;

/// Time between two checks whether a commit has ended.
const LOOK_NS: u64 = 250 * NS_PER_MS;

struct Watched<'a> {
    journal: &'a Journal,
    thread: Thread,
}

impl<'a> Watched<'a> {
    fn new(journal: &'a Journal) -> Option<Self> {
        journal.counts()?;
        let thread = journal.thread()?;
        Some(Self { journal, thread })
    }

    /// Reads the number of commits so far, and how long the thread has run, ns.
    fn read(&self) -> Result<(u64, u64)> {
        let counts = self.journal.counts().unwrap_or_default();
        Ok((counts.commits, self.thread.run_ns()?))
    }
}

struct File {
    fd: OwnedFd,
    number: u64,
}

/// The measured loops and their files, no two of which have their inodes in the same block.
struct Loops<'a> {
    dir: Dir,
    files: Vec<File>,
    args: &'a FsyncCost,
    stop: &'a Stop,
}

impl Benchmark for FsyncCost {
    type Found = FsyncCostResult;

    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>> {
        allow_descriptors(1, u64::from(self.buffers) + 1)?;
        let meter = self.common.energy.start(stop)?;
        let scratch = Scratch::new(&self.common.dir, self.common.keep)?;
        let observer = Observer::new(&scratch, meter);
        let journal = observer.journal.as_ref();
        let watched = journal.and_then(Watched::new);
        let loops = Loops {
            files: files(&scratch, self.buffers)?,
            dir: scratch.subdir("files")?,
            args: self,
            stop,
        };
        loops.go_through(journal.and_then(Journal::blocks).unwrap_or(0))?;
        scratch.settle()?;

        let (before, begin_ns) = (observer.read(), now_ns());
        let commit = |buffers| watched.as_ref().map(|w| loops.commit(buffers, w));
        let found = FsyncCostResult {
            args: self.clone(),
            clean: loops.clean()?,
            committed: loops.committed()?,
            commit: commit(1).transpose()?,
            commit_buffers: commit(loops.files.len()).transpose()?,
        };
        let (after, elapsed_ns) = (observer.read(), now_ns() - begin_ns);
        drop(loops);
        scratch.remove()?;
        Ok(Measured {
            found,
            elapsed_ns,
            interrupted: stop.is_set(),
            observed: before.until(&after),
        })
    }
}

impl Found for FsyncCostResult {
    fn title(&self) -> String {
        format!("fsync-cost, {} operations each", self.args.ops)
    }

    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        let one = |times: Times| {
            let (usual, half) = (times.usual_ns, times.median_ns);
            format!(
                "usually {usual:.0} ns; median of {}: {half} ns",
                times.count
            )
        };
        let known = |times: Option<Times>| times.map_or("unknown (needs root)".into(), one);
        lines.line("fsync, no commit", one(self.clean))?;
        lines.line("fchmod and fsync", one(self.committed))?;
        lines.line("journal's thread", known(self.commit))?;
        let buffers = format!("  {} buffers", self.args.buffers);
        lines.line(&buffers, known(self.commit_buffers))
    }

    fn figures(&self) -> Figures<'_> {
        Figures {
            main: Some(self.committed.usual_ns),
            ..Figures::default()
        }
    }

    fn fsyncs(&self) -> u64 {
        let commits = [self.commit, self.commit_buffers].into_iter().flatten();
        let all = [self.clean, self.committed].into_iter().chain(commits);
        all.map(|times| times.count).sum()
    }
}

/// Makes files until `wanted` of them have the first inode of a block of the inode table, and
/// returns those.
fn files(scratch: &Scratch, wanted: u32) -> Result<Vec<File>> {
    let dir = scratch.subdir("files")?;
    let mut files = Vec::with_capacity(wanted as usize);
    let mut name = Name::new();
    // Inode numbers are consecutive within a block group of thousands. Twice as many files allow
    // for a change of group.
    for number in 0..2 * INODES_PER_BLOCK * u64::from(wanted) {
        let name = name.set(number);
        let fd = dir.create(name)?;
        let stat = fstat(&fd).map_err(|e| dir.error("stat", name, e))?;
        if stat.st_ino % INODES_PER_BLOCK == 1 {
            files.push(File { fd, number });
        }
        if files.len() == wanted as usize {
            return Ok(files);
        }
    }
    Err(WorkloadError::Arguments(format!(
        "this file system does not number its inodes consecutively: only {} of {wanted} files have \
         their inodes in blocks of their own; ask for fewer --buffers",
        files.len()
    )))
}

impl Loops<'_> {
    /// Collects the times that `one` returns in every turn after the warm-up.
    fn times(&self, mut one: impl FnMut(u32) -> Result<u64>) -> Result<Times> {
        let mut times_ns = Vec::with_capacity(self.args.ops as usize);
        for turn in 0..self.args.warmup_ops + self.args.ops {
            if self.stop.is_set() {
                break;
            }
            let ns = one(turn)?;
            if turn >= self.args.warmup_ops {
                times_ns.push(ns);
            }
        }
        Ok(Times::from_ns(times_ns))
    }

    /// Commits until every block of the journal has been written: a disk in memory allocates a
    /// block at its first write.
    fn go_through(&self, journal_blocks: u64) -> Result<()> {
        let buffers = self.files.len();
        for turn in (0..=journal_blocks / buffers as u64).zip(0..) {
            if self.stop.is_set() {
                break;
            }
            self.change(turn.1, buffers)?;
            self.sync()?;
        }
        Ok(())
    }

    fn clean(&self) -> Result<Times> {
        self.change(0, 1)?;
        self.sync()?;
        self.times(|_| {
            let begin_ns = now_ns();
            self.sync()?;
            Ok(now_ns() - begin_ns)
        })
    }

    fn committed(&self) -> Result<Times> {
        let mut last_ns = now_ns();
        self.times(|turn| {
            self.change(turn, 1)?;
            self.sync()?;
            let (begin_ns, end_ns) = (last_ns, now_ns());
            last_ns = end_ns;
            Ok(end_ns - begin_ns)
        })
    }

    /// Measures the processor time of the journal's thread for a commit that its own timer starts.
    /// If a task waited for the commit, the scheduler would decide which part of it is counted
    /// here.
    fn commit(&self, buffers: usize, watched: &Watched<'_>) -> Result<Times> {
        self.times(|turn| {
            let (commits, begin_ns) = watched.read()?;
            self.change(turn, buffers)?;
            loop {
                sleep_until(now_ns() + LOOK_NS, self.stop);
                let (now, end_ns) = watched.read()?;
                if now != commits || self.stop.is_set() {
                    return Ok(end_ns.saturating_sub(begin_ns));
                }
            }
        })
    }

    /// Changes the inodes of `buffers` files. Their mode alternates, so that each call is a change
    /// whatever the clock says.
    fn change(&self, turn: u32, buffers: usize) -> Result<()> {
        let mode = Mode::from_raw_mode(if turn.is_multiple_of(2) { 0o600 } else { 0o640 });
        for file in &self.files[..buffers] {
            self.on(file, "change the mode of", |fd| fchmod(fd, mode))?;
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.on(&self.files[0], "fsync", |fd| rustix::fs::fsync(fd))
    }

    fn on(
        &self,
        file: &File,
        call: &'static str,
        act: impl FnOnce(&OwnedFd) -> rustix::io::Result<()>,
    ) -> Result<()> {
        act(&file.fd).map_err(|e| self.dir.error(call, Name::new().set(file.number), e))
    }
}

#[cfg(test)]
mod tests {
    use super::Times;

    #[test]
    fn the_usual_time_is_where_most_are() {
        let times = Times::from_ns(vec![900, 100, 101, 500, 300, 100, 102, 700]);
        assert!((times.usual_ns - 100.0).abs() < 1e-9, "{times:?}");
        assert_eq!((times.count, times.median_ns), (8, 300));
        assert_eq!(Times::from_ns(vec![7]).median_ns, 7);
        assert_eq!(Times::from_ns(Vec::new()), Times::default());
    }
}
