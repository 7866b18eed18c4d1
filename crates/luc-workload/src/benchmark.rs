//! The traits of a benchmark: its arguments, which can be run, and its figures. `benches/` holds
//! the benchmarks.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::crew::Ran;
use crate::observer::Observed;
use crate::text::Lines;
use crate::worker::{Link, Part};
use crate::{Latency, Result, Stop, WorkloadError};

/// The name of a benchmark, from its row in the table of `benches`.
pub trait Named {
    /// The name on the command line.
    const NAME: &'static str;
}

/// The arguments of a benchmark, as on its command line.
pub trait Benchmark: Named {
    type Found: Found;

    /// Returns how long it takes; `None` if only the end of the run shows that.
    fn length(&self) -> Option<Duration> {
        None
    }

    /// Runs to its end, or until `stop` is raised.
    ///
    /// # Errors
    /// The first system call that failed, with the file's name.
    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>>;

    /// Does the part of one worker, for a benchmark that runs in several processes.
    ///
    /// # Errors
    /// As `run`, or if the benchmark has no workers.
    fn work(_job: Value, _link: &mut Link) -> Result<Vec<Part>> {
        Err(WorkloadError::Arguments("it has no workers".into()))
    }
}

/// The findings of a benchmark, and how they were measured.
#[derive(Debug)]
pub struct Measured<F> {
    pub found: F,
    /// Length of the measurement, nanoseconds.
    pub elapsed_ns: u64,
    /// Whether the measurement was ended early.
    pub interrupted: bool,
    pub observed: Observed,
}

impl<F> Measured<F> {
    /// Converts the figures.
    pub fn map<G>(self, figures: impl FnOnce(F) -> G) -> Measured<G> {
        Measured {
            found: figures(self.found),
            elapsed_ns: self.elapsed_ns,
            interrupted: self.interrupted,
            observed: self.observed,
        }
    }

    /// Wraps the figures of threads that were measured for `elapsed_ns`.
    pub(crate) fn by<T>(ran: &Ran<T>, elapsed_ns: u64, found: F) -> Self {
        Self {
            found,
            elapsed_ns,
            interrupted: ran.cut_short,
            observed: ran.observed.clone(),
        }
    }
}

/// The figures of a benchmark: for people, and for tables that hold several benchmarks.
pub trait Found {
    /// Describes the run in a few words.
    fn title(&self) -> String;

    /// Writes the figures for people, one per line.
    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result;

    /// Returns the figures for tables.
    fn figures(&self) -> Figures<'_>;

    /// Returns the number of fsyncs that were measured.
    fn fsyncs(&self) -> u64 {
        self.figures().syncs.map_or(0, |syncs| syncs.count)
    }

    /// Returns the number of operations that were measured, of which energy is a cost: the fsyncs,
    /// unless the benchmark counts others.
    fn ops(&self) -> u64 {
        self.fsyncs()
    }

    /// Tells whether anything was measured; false if it only prepared files.
    fn is_measured(&self) -> bool {
        true
    }
}

/// The figures that tables show for any benchmark.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures<'a> {
    /// The main figure; `None` if nothing was done.
    pub main: Option<f64>,
    /// True if the main figure is a rate, so that more is better; false if it is a time.
    pub is_a_rate: bool,
    /// Share that the benchmark calls bad, 0 to 1: writes delayed, files that waited for two
    /// commits.
    pub bad_share: Option<f64>,
    /// Times of the calls that wait for a commit; `None` if they were not measured under a load.
    pub syncs: Option<&'a Latency>,
}

impl<'a> Figures<'a> {
    pub(crate) fn rate(main: f64, syncs: &'a Latency) -> Self {
        Self {
            main: Some(main),
            is_a_rate: true,
            bad_share: None,
            syncs: Some(syncs),
        }
    }
}
