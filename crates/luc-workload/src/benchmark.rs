//! What a benchmark is: arguments that can run, and what they find. `benches/` has them all.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::crew::Observed;
use crate::text::Lines;
use crate::worker::{Link, Part};
use crate::{Latency, Result, Stop, WorkloadError};

/// The name of a benchmark, from its row.
pub trait Named {
    /// As on the command line.
    const NAME: &'static str;
}

/// The arguments of a benchmark, which are its command line, and how it runs.
pub trait Benchmark: Named {
    /// What it finds.
    type Found: Found;

    /// How long it takes; `None` where that shows only when it is over.
    fn length(&self) -> Option<Duration> {
        None
    }

    /// Runs to its end, or to what `stop` cuts off.
    ///
    /// # Errors
    /// The first system call that failed, with the file's name.
    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>>;

    /// Does the part of one worker, where it runs in processes of its own.
    ///
    /// # Errors
    /// As `run`; and where it has no workers, that.
    fn work(_job: Value, _link: &mut Link) -> Result<Vec<Part>> {
        Err(WorkloadError::Arguments("it has no workers".into()))
    }
}

/// What a benchmark found, and how long that took.
#[derive(Debug)]
pub struct Measured<F> {
    /// Its own figures.
    pub found: F,
    /// Fsyncs that were measured.
    pub fsyncs: u64,
    /// Length of the measurement, nanoseconds.
    pub elapsed_ns: u64,
    /// Whether it was ended early.
    pub interrupted: bool,
    /// What the kernel told of the same time.
    pub observed: Observed,
}

impl<F> Measured<F> {
    /// The same with other figures.
    pub fn map<G>(self, figures: impl FnOnce(F) -> G) -> Measured<G> {
        Measured {
            found: figures(self.found),
            fsyncs: self.fsyncs,
            elapsed_ns: self.elapsed_ns,
            interrupted: self.interrupted,
            observed: self.observed,
        }
    }
}

/// The figures of a benchmark: for people, and for tables that hold several benchmarks.
pub trait Found {
    /// What ran, in a few words.
    fn title(&self) -> String;

    /// The figures for people, a line each.
    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result;

    /// The one figure that tables show; `None` where nothing was done.
    fn main_figure(&self) -> Option<f64>;

    /// Whether that is a rate, so that more is better; else it is a time.
    fn is_a_rate(&self) -> bool {
        true
    }

    /// Share of what it calls bad, 0 to 1: writes delayed, files that waited for two commits.
    fn bad_share(&self) -> Option<f64> {
        None
    }

    /// The calls that wait for a commit; `None` where their times are not those of a load.
    fn syncs(&self) -> Option<&Latency> {
        None
    }

    /// False where it only prepared something to measure.
    fn is_measured(&self) -> bool {
        true
    }
}
