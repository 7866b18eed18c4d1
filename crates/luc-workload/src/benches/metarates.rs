//! Workload `metarates`: processes that create, stat and touch files phase by phase, in one
//! directory or in one each.
//!
//! The behaviour is that of Metarates: all processes pass a barrier, each creates its files with
//! creat(2), fsyncs and closes every one of them, and the time of each process runs from the
//! barrier to its last close. The other phases are measured in the same way.

use std::fmt;

use clap::{Args, value_parser};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::{Common, threads};
use crate::benchmark::{Benchmark, Figures, Found, Measured};
use crate::dir::NameBuffer;
use crate::file_phase::{FileJob, Step, Steps};
use crate::letters::{Letter, flag, refused, valued};
use crate::phases::{PhaseResult, creation_rate_per_s};
use crate::processes::{self, Kind, Phase};
use crate::scratch::Scratch;
use crate::text::{Lines, UNSAFE, calls};
use crate::worker::{self, Link, Part};
use crate::{Latency, Result, Stop};

const REFUSED: [Letter; 2] = [
    valued('n', "give --files N, the number of files of each process"),
    flag('u', "give --unique-dirs for a directory of each process"),
];

/// Real processes pass a barrier, then each creates its files, fsyncs and closes every one. With
/// several phases asked for, they come in the order create, stat, utime; without a create phase the
/// files are made beforehand, which is not measured.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)] // each is an option of its own
#[command(after_help = "Examples:\n\
    \x20 luc-lab bench metarates --procs 16 --files 16 /srv/scratch\n\
    \x20 luc-lab bench metarates --create --stat --utime --unique-dirs /srv/scratch")]
#[command(args = refused(&REFUSED))]
pub struct Metarates {
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Number of processes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = threads())]
    pub procs: u32,
    /// Files of each process
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=10_000_000))]
    pub files: u32,
    /// Give each process a directory of its own instead of sharing one
    #[arg(long)]
    pub unique_dirs: bool,
    /// Measure file creation (the default if no phase is given)
    #[arg(long, short = 'C')]
    pub create: bool,
    /// Measure stat of the files
    #[arg(long, short = 'S')]
    pub stat: bool,
    /// Measure utime of the files
    #[arg(long, short = 'U')]
    pub utime: bool,
    /// UNSAFE upper bound: omit the fsync before each close, so that a crash loses the files
    #[arg(long)]
    pub no_fsync: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetaratesResult {
    pub args: Metarates,
    /// True when files were not made durable: the figures are only an upper bound.
    pub unsafe_no_fsync: bool,
    /// The phases asked for, in the order create, stat, utime; fewer when interrupted.
    pub phases: Vec<PhaseResult>,
    /// Equation 3, files per second, from each process's mean `T_open` + `T_fsync` + `T_close` of a
    /// file; 0 without a create phase. The other definition, all files divided by the time of the
    /// slowest process, is `total_per_s` of the phase.
    pub file_creation_rate_per_s: f64,
    /// The time an open (the creat call) took.
    pub open: Latency,
    /// Sync delay: the time an fsync took.
    pub fsync: Latency,
    pub close: Latency,
}

impl Benchmark for Metarates {
    type Found = MetaratesResult;

    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>> {
        processes::bound(self.procs, u64::from(self.files))?;
        let steps = self.steps();
        let jobs = |scratch: &Scratch| {
            let job = |rank| {
                let name = if self.unique_dirs {
                    format!("n{rank}")
                } else {
                    "shared".to_owned()
                };
                // Made here, so that no process makes a directory within a phase.
                drop(scratch.subdir(&name)?);
                Ok(FileJob {
                    dir: scratch.path().join(name),
                    rank,
                    files: self.files,
                    bytes: 0,
                    fsync: !self.no_fsync,
                    steps: steps.clone(),
                })
            };
            (0..self.procs).map(job).collect()
        };
        let kind = Kind::Processes;
        let done = processes::run_in::<Self, FileJob>(&self.common, kind, steps.len(), jobs, stop)?;
        Ok(done.map(|phases| MetaratesResult::new(self, &phases)))
    }

    fn work(job: Value, link: &mut Link) -> Result<Vec<Part>> {
        let job: FileJob = worker::job(job)?;
        let name = |name: &mut NameBuffer, file| {
            name.set(format_args!("n{}f{file}", job.rank));
        };
        job.run(name, link)
    }
}

impl Metarates {
    /// Returns the phases asked for; create if none is.
    pub fn steps(&self) -> Vec<Step> {
        let asked = [
            (Step::Create, self.create),
            (Step::Stat, self.stat),
            (Step::Utime, self.utime),
        ];
        let asked = asked.into_iter().filter(|(_, on)| *on);
        let steps: Vec<Step> = asked.map(|(step, _)| step).collect();
        if steps.is_empty() {
            vec![Step::Create]
        } else {
            steps
        }
    }
}

impl MetaratesResult {
    /// Computes the figures of the phases that ran. The calls of a create are open, write, fsync
    /// and close.
    pub fn new(args: &Metarates, phases: &[Phase]) -> Self {
        let steps = args.steps();
        let created = phases.first().filter(|_| steps[0] == Step::Create);
        let found = Steps::in_phases(&steps, phases);
        Self {
            args: args.clone(),
            unsafe_no_fsync: args.no_fsync,
            phases: found.phases,
            file_creation_rate_per_s: created.map_or(0.0, creation_rate_per_s),
            open: found.open,
            fsync: found.fsync,
            close: found.close,
        }
    }
}

impl Found for MetaratesResult {
    fn title(&self) -> String {
        let (procs, files) = (self.args.procs, self.args.files);
        format!("metarates, {procs} processes with {files} files each")
    }

    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        if self.unsafe_no_fsync {
            lines.line("UNSAFE", UNSAFE)?;
        }
        for phase in &self.phases {
            phase.lines(lines)?;
        }
        if self.open.count > 0 {
            lines.file_creation_rate(self.file_creation_rate_per_s)?;
        }
        let times = [
            ("open time", &self.open),
            ("sync delay", &self.fsync),
            ("close time", &self.close),
        ];
        calls(lines, &times)
    }

    fn figures(&self) -> Figures<'_> {
        Figures::rate(self.file_creation_rate_per_s, &self.fsync)
    }

    fn ops(&self) -> u64 {
        self.phases.iter().map(|phase| phase.ops).sum()
    }
}
