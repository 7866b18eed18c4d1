//! Phases in which a process does the same operation on each of its files.

use std::ffi::CStr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::clock::now_ns;
use crate::dir::{Dir, NameBuffer};
use crate::phases::PhaseResult;
use crate::processes::Phase;
use crate::worker::{Link, Part};
use crate::{Latency, Result};
use luc_base::summary;

/// The operation of a phase on each file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    Create,
    Stat,
    Utime,
    Unlink,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Stat => "stat",
            Self::Utime => "utime",
            Self::Unlink => "unlink",
        }
    }
}

/// The figures of all phases.
pub struct Steps {
    pub phases: Vec<PhaseResult>,
    /// Times of the calls of the create phase; empty without one.
    pub open: Latency,
    pub write: Latency,
    pub fsync: Latency,
    pub close: Latency,
}

impl Steps {
    pub fn in_phases(steps: &[Step], phases: &[Phase]) -> Self {
        let created = phases.first().filter(|_| steps[0] == Step::Create);
        // In the order of `Part::calls`.
        let [open, write, fsync, close] = [0, 1, 2, 3]
            .map(|kind| created.map_or_else(Latency::default, |it| summary(&mut it.calls(kind))));
        let named = phases.iter().zip(steps);
        Self {
            phases: named
                .map(|(phase, step)| PhaseResult::new(step.name(), phase))
                .collect(),
            open,
            write,
            fsync,
            close,
        }
    }
}

/// One process's files, and the steps for each of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileJob {
    pub dir: PathBuf,
    pub rank: u32,
    pub files: u32,
    /// Bytes written to each file.
    pub bytes: u32,
    pub fsync: bool,
    pub steps: Vec<Step>,
}

impl FileJob {
    /// Does all steps. `name` writes the name of a file, by its number, into the buffer.
    pub fn run(&self, name: impl Fn(&mut NameBuffer, u32), link: &mut Link) -> Result<Vec<Part>> {
        let dir = &Dir::open(&self.dir)?;
        let data = vec![0x6c_u8; self.bytes as usize];
        let files = FilePhase {
            dir,
            files: self.files,
            name,
        };
        if self.steps.first() != Some(&Step::Create) {
            // The other phases need files but do not measure their making.
            files.create(&data, false, link)?;
        }
        let mut parts = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            if !link.barrier()? {
                return Ok(parts);
            }
            parts.push(match step {
                Step::Create => files.create(&data, self.fsync, link)?,
                Step::Stat => files.each(link, |name| dir.stat(name))?,
                Step::Utime => files.each(link, |name| dir.utime(name))?,
                Step::Unlink => files.each(link, |name| dir.unlink(name))?,
            });
        }
        link.barrier()?;
        Ok(parts)
    }
}

/// One process's files.
struct FilePhase<'a, N> {
    dir: &'a Dir,
    files: u32,
    name: N,
}

impl<N: Fn(&mut NameBuffer, u32)> FilePhase<'_, N> {
    /// Creates each file, writes `data` if there is any, fsyncs if asked to, and closes.
    fn create(&self, data: &[u8], fsync: bool, link: &Link) -> Result<Part> {
        let files = self.files as usize;
        let mut open = Vec::with_capacity(files);
        let mut write = Vec::with_capacity(if data.is_empty() { 0 } else { files });
        let mut sync = Vec::with_capacity(if fsync { files } else { 0 });
        let mut close = Vec::with_capacity(files);
        self.run(link, |name| {
            let start_ns = now_ns();
            let file = self.dir.creat(name)?;
            let opened_ns = now_ns();
            let mut before_ns = opened_ns;
            if !data.is_empty() {
                self.dir.write(&file, name, data)?;
                let written_ns = now_ns();
                write.push(written_ns - before_ns);
                before_ns = written_ns;
            }
            if fsync {
                self.dir.fsync(&file, name)?;
                let synced_ns = now_ns();
                sync.push(synced_ns - before_ns);
                before_ns = synced_ns;
            }
            drop(file);
            let end_ns = now_ns();
            open.push(opened_ns - start_ns);
            close.push(end_ns - before_ns);
            Ok(end_ns)
        })
        .map(|(begin_ns, end_ns)| Part {
            begin_ns,
            end_ns,
            ops: open.len() as u64,
            calls: vec![open, write, sync, close],
        })
    }

    /// Makes one call on each file.
    fn each(&self, link: &Link, mut call: impl FnMut(&CStr) -> Result<()>) -> Result<Part> {
        let mut times = Vec::with_capacity(self.files as usize);
        self.run(link, |name| {
            let start_ns = now_ns();
            call(name)?;
            let end_ns = now_ns();
            times.push(end_ns - start_ns);
            Ok(end_ns)
        })
        .map(|(begin_ns, end_ns)| Part {
            begin_ns,
            end_ns,
            ops: times.len() as u64,
            calls: vec![times],
        })
    }

    /// Calls `one` for each file until stopped. Returns when it began, and when `one` ended last.
    fn run(&self, link: &Link, mut one: impl FnMut(&CStr) -> Result<u64>) -> Result<(u64, u64)> {
        let mut name = NameBuffer::default();
        let flags = link.flags();
        let begin_ns = now_ns();
        let mut end_ns = begin_ns;
        for file in 0..self.files {
            if flags.is_stopped() {
                break;
            }
            (self.name)(&mut name, file);
            end_ns = one(name.get())?;
        }
        Ok((begin_ns, end_ns))
    }
}
