//! Runs the threads of a recording again in the simulator, on stock and with LUC.
//!
//! [`Calibration`] is the machine on which they ran, as far as the recording tells: its processors
//! (`work.rs`), its disk (`disk.rs`), and the threads' programs (`threads.rs`).
//! [`Calibration::replay`] runs them there, on stock or with the controllers of the module, and
//! returns spans as in a recording. Only the middle of a recording counts: [`OPERATIONS_MAX`]
//! operations.
//!
//! The assumptions:
//!
//! - A thread does the same again however long it waited: thinking, data flushes and syncs that
//!   needed no commit take as long as recorded.
//! - Waits for commits, buffers, locked transactions and processors are the simulator's own.
//! - Operations cost what they cost on the lab's kernel, at the recorded speed, plus what they took
//!   beyond that. The journal's thread and the scheduler cost what they cost there; a recording
//!   does not show them.
//! - All files lie in one directory; inodes with adjacent numbers share blocks.
//! - On a disk that is not one of the lab's, commits differ only because of the processors.
//! - sync, syncfs, reads, unlinks and renames take as long as recorded.
//!
//! [`Calibration::replay_at`] runs them at another clock. All instructions then take longer; the
//! disk, data flushes and all else that takes as long as recorded do not. It is not recorded
//! whether a thread computes in a gap of more than [`COMPUTES_NS`] between two operations: see
//! [`Gaps`].

mod disk;
mod operations;
mod threads;
mod work;

use std::collections::BTreeMap;

use luc_control::{Dev, Params};
use luc_power::activity::Activity;
use luc_trace::{Span, SpanKind, Trace};
use serde::Serialize;
use thiserror::Error;

use crate::disk::DiskKind;
use crate::journal::kind::Choice;
use crate::mount::Mount;
use crate::node::Setup;
use crate::processors::ProcessorModel;
use disk::{Commits, Fit};
use operations::{Operations, operations};
use threads::Threads;
pub use work::COMPUTES_NS;
use work::{Sampled, Work};

/// How many operations of a recording are run again, so that any recording takes the same time.
/// They are those in its middle, because loads begin and end differently.
pub const OPERATIONS_MAX: usize = 8192;
/// The longest recording that is replayed, ns: a day.
const LENGTH_NS_MAX: u64 = 86_400_000_000_000;
/// The largest number of simulated processors.
const CPUS_MAX: u16 = 1024;

/// Why a recording cannot be run again.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Unreplayable {
    /// No span of the file system, or none that took time.
    #[error(
        "the trace has no operation on {dev} that took time; record for longer, or name another \
         file system"
    )]
    Nothing { dev: Dev },
    /// The length of a commit is unknown.
    #[error("the trace has no journal commit of {dev}; record while a program syncs")]
    NoCommits { dev: Dev },
    #[error("the trace has no open, write, sync or close on {dev}; record while a program uses it")]
    NoOperations { dev: Dev },
    #[error(
        "the trace lasts longer than a day, which is not replayed; look at a part: --last-s 60"
    )]
    TooLong,
}

/// One figure of a recording's machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    pub name: &'static str,
    /// `None` if unknown.
    pub value: Option<f64>,
    pub unit: &'static str,
    /// Bounds of the middle half of its samples.
    pub middle: Option<[f64; 2]>,
    /// Number of samples.
    pub samples: u64,
    pub source: &'static str,
}

/// The use of the time between two operations of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gaps {
    /// The thread waits for something that no clock changes.
    Wait,
    /// The thread computes, or waits for a processor that another thread has.
    Compute,
}

/// A run of a recording's threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// As in a recording, from time 0.
    pub spans: Vec<Span>,
    pub activity: Activity,
}

/// The machine of a recording, and the threads that run on it.
#[derive(Clone, Debug)]
pub struct Calibration {
    work: Work,
    fit: Fit,
    commits: Commits,
    setup: Setup,
    threads: Threads,
    recorded: Vec<Span>,
    length_ns: u64,
}

/// Returns the first begin and the last end, ns.
fn bounds_ns(spans: &[Span]) -> Option<(u64, u64)> {
    let first_ns = spans.iter().map(|span| span.begin_ns).min()?;
    let last_ns = spans.iter().map(|span| span.end_ns).max()?;
    (last_ns > first_ns).then_some((first_ns, last_ns))
}

/// Returns the file system's spans within the middle [`OPERATIONS_MAX`] operations, in the order of
/// their start; all of a recording with fewer. A tracer starts and stops tracing the kinds of spans
/// one by one, so nothing counts before the first sync or commit, or after the last.
fn middle(trace: &Trace, dev: Dev) -> Vec<Span> {
    let commits = |span: &&Span| span.kind == SpanKind::Commit || span.kind.is_file_sync();
    let commits = || trace.on(dev).filter(commits);
    let mut from_ns = commits().map(|span| span.begin_ns).min().unwrap_or(0);
    let mut to_ns = commits().map(|span| span.end_ns).max().unwrap_or(u64::MAX);
    let operations = trace.on(dev).filter(|span| span.kind.is_operation());
    let begins_ns = operations.map(|span| span.begin_ns);
    let mut begins_ns: Vec<u64> = begins_ns
        .filter(|at_ns| (from_ns..=to_ns).contains(at_ns))
        .collect();
    begins_ns.sort_unstable();
    if begins_ns.len() > OPERATIONS_MAX {
        let first = (begins_ns.len() - OPERATIONS_MAX) / 2;
        (from_ns, to_ns) = (begins_ns[first], begins_ns[first + OPERATIONS_MAX]);
    }
    let within = |span: &&Span| span.begin_ns >= from_ns && span.end_ns <= to_ns;
    let mut middle: Vec<Span> = trace.on(dev).filter(within).copied().collect();
    middle.sort_by_key(|span| span.begin_ns);
    middle
}

impl Calibration {
    /// # Errors
    /// The recording has no operations or no commits, or is too long.
    pub fn measure(trace: &Trace, dev: Dev) -> Result<Self, Unreplayable> {
        let recorded = middle(trace, dev);
        let bounds = bounds_ns(&recorded).ok_or(Unreplayable::Nothing { dev })?;
        let (first_ns, last_ns) = bounds;
        if last_ns - first_ns > LENGTH_NS_MAX {
            return Err(Unreplayable::TooLong);
        }
        let commits = Commits::collect(&recorded, usize::MAX);
        if commits.mean_ns() <= 0.0 {
            return Err(Unreplayable::NoCommits { dev });
        }
        let cpus = trace.header.pairs.get("cpus");
        let cpus = cpus.and_then(|cpus| cpus.parse().ok());
        let cpus = cpus.filter(|cpus| (1..=CPUS_MAX).contains(cpus));
        let operations = operations(&recorded);
        let work = work(&recorded, &operations, cpus);
        let threads = Threads::replaying(&recorded, &operations, &work, bounds);
        if threads.count() == 0 {
            return Err(Unreplayable::NoOperations { dev });
        }
        // If the number of processors is unknown, no thread waits for one.
        let cpus = cpus.map_or(threads.count() + 1, usize::from);
        let cpus = u16::try_from(cpus).unwrap_or(CPUS_MAX).min(CPUS_MAX);
        let mut setup = Setup {
            machine: ProcessorModel::new(cpus, work.mips()),
            disk: DiskKind::default(),
            journal: Choice::default(),
            costs: work.costs(),
            mount: Mount::default(),
            luc: None,
            seed: 1,
            runs: 1,
        };
        let first = Commits::collect(&recorded, disk::COMMITS_MAX);
        let fit = Fit::search(&first, &threads, &setup, first_ns);
        setup.disk = fit.kind.clone();
        Ok(Self {
            work,
            fit,
            commits,
            setup,
            threads,
            recorded,
            length_ns: last_ns - first_ns,
        })
    }

    /// Returns the part of the recording that is run again.
    pub fn recorded(&self) -> &[Span] {
        &self.recorded
    }

    /// Returns the time from its first begin to its last end, ns.
    pub fn length_ns(&self) -> u64 {
        self.length_ns
    }

    /// Returns a recording of the same length, with LUC under these knobs or on stock.
    pub fn replay(&self, luc: Option<Params>) -> Vec<Span> {
        self.replay_at(luc, 1.0, Gaps::Wait).spans
    }

    /// Returns the same at this share of the recorded clock.
    pub fn replay_at(&self, luc: Option<Params>, clock_share: f64, gaps: Gaps) -> Replayed {
        let mut setup = self.setup.clone();
        setup.luc = luc;
        for mips in &mut setup.machine.mips {
            *mips *= clock_share;
        }
        match gaps {
            Gaps::Wait => self.threads.run(&setup, self.length_ns),
            Gaps::Compute => self.threads.computing().run(&setup, self.length_ns),
        }
    }

    /// Returns the mean share of the threads' time that lies in gaps between their operations.
    pub fn gaps_share(&self) -> f64 {
        self.threads.rests_share(self.length_ns)
    }
}

impl Calibration {
    /// Returns the disk, in the words of `luc-lab sim run --disk`.
    pub fn disk(&self) -> &str {
        &self.fit.text
    }

    /// Returns the number of processors, if the recording tells it.
    pub fn cpus(&self) -> Option<u16> {
        self.work.cpus
    }

    /// Returns the speed in million instructions per second, if an operation tells it.
    pub fn mips(&self) -> Option<f64> {
        self.work.mips
    }

    /// Returns all that was measured.
    pub fn parameters(&self) -> Vec<Parameter> {
        let known = |value: Option<f64>, name, unit, source| Parameter {
            name,
            value,
            unit,
            middle: None,
            samples: u64::from(value.is_some()),
            source,
        };
        let sampled = |name, it: &Sampled, source| Parameter {
            name,
            value: (it.samples > 0).then_some(it.mean_ns),
            unit: "ns",
            middle: (it.samples > 0).then_some(it.middle_ns),
            samples: it.samples as u64,
            source,
        };
        let mut all = vec![
            known(
                self.work.cpus.map(f64::from),
                "processors",
                "processors",
                "the recording's header",
            ),
            Parameter {
                samples: self.work.kinds().map(|(_, it)| it.samples as u64).sum(),
                ..known(
                    self.work.mips,
                    "speed",
                    "MIPS",
                    "the shortest opens, writes and closes, compared with `luc-lab sim costs`",
                )
            },
            sampled(
                "commit",
                &Sampled::from_times(self.commits.lengths.clone()),
                "from the lock of a transaction to the end of its commit",
            ),
            Parameter {
                samples: self.commits.lengths.len().min(disk::COMMITS_MAX) as u64,
                ..known(
                    self.fit.request_ns,
                    "request",
                    "ns",
                    "time of a disk request with which simulated commits take as long as recorded",
                )
            },
        ];
        let source = "on a processor, while no other thread wanted it";
        all.extend(
            self.work
                .kinds()
                .map(|(name, it)| sampled(name, &it, source)),
        );
        all
    }
}

fn work(recorded: &[Span], operations: &Operations, cpus: Option<u16>) -> Work {
    let mut waits: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for wait in recorded.iter().filter(|span| span.kind.is_wait()) {
        let of_thread = waits.entry(wait.pid).or_default();
        of_thread.push((wait.begin_ns, wait.end_ns));
    }
    for of_thread in waits.values_mut() {
        of_thread.sort_unstable();
    }
    let ready = operations::ready(&waits, operations, &operations::commit_ends(recorded));
    Work::measure(operations, &waits, &ready, cpus)
}
