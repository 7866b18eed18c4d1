//! Threads that start together.

use std::ops::Deref;
use std::sync::OnceLock;
use std::thread;

use crate::clock::{NS_PER_MS, gathering_ns, now_ns, seconds_ns, sleep_until};
use crate::observer::{Observed, Observer};
use crate::scratch::{Scratch, allow_open_files};
use crate::{Common, Result, Stop, WorkloadError};

/// Enough for a loop of system calls; 1,024 threads do not need the default of 2 MiB each.
const STACK_BYTES: usize = 128 * 1024;

/// When to measure, relative to the common start.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// From the start to the first measured moment, nanoseconds.
    pub warmup_ns: u64,
    /// Length of the measurement; `None` if it lasts until the last thread ends.
    pub length_ns: Option<u64>,
}

impl Window {
    /// Converts the times; without `length_s` the measurement lasts until the last thread ends.
    pub fn seconds(warmup_s: f64, length_s: Option<f64>) -> Self {
        Self {
            warmup_ns: seconds_ns(warmup_s),
            length_ns: length_s.map(seconds_ns),
        }
    }
}

/// The moments of a run, nanoseconds of the clock.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// When all threads begin.
    pub start_ns: u64,
    /// When measuring begins.
    pub from_ns: u64,
    /// When measuring ends; `u64::MAX` when operations are counted instead.
    pub until_ns: u64,
}

impl Schedule {
    /// Tells whether an operation that ended at this moment is part of the measurement.
    pub fn measures(&self, end_ns: u64) -> bool {
        end_ns > self.from_ns && end_ns <= self.until_ns
    }
}

/// The schedule of a thread, and the flags that may end it early.
#[derive(Clone, Copy)]
pub struct Shift<'a> {
    schedule: Schedule,
    /// Raised by the user.
    pub stop: &'a Stop,
    /// Raised when another thread failed, or the run has ended otherwise.
    pub ended: &'a Stop,
}

impl<'a> Shift<'a> {
    pub fn new(schedule: Schedule, stop: &'a Stop, ended: &'a Stop) -> Self {
        Self {
            schedule,
            stop,
            ended,
        }
    }

    /// Tells whether to end although there is time left.
    pub fn is_cut_short(&self) -> bool {
        self.stop.is_set() || self.ended.is_set()
    }
}

impl Deref for Shift<'_> {
    type Target = Schedule;

    fn deref(&self) -> &Schedule {
        &self.schedule
    }
}

/// The outcome of a run.
pub struct Ran<T> {
    pub results: Vec<T>,
    pub observed: Observed,
    /// Whether the measurement was ended early.
    pub cut_short: bool,
    schedule: Schedule,
    window: Window,
}

impl<T> Ran<T> {
    /// Length of the measurement, nanoseconds: as asked for, whenever its last operation ended. A
    /// measurement that was cut short, or that counted operations, lasted until the last thread's
    /// end.
    pub fn elapsed_ns(&self, ended_ns: impl Fn(&T) -> u64) -> u64 {
        let last_ns = || self.results.iter().map(ended_ns).max().unwrap_or(0);
        match self.window.length_ns {
            Some(length_ns) if !self.cut_short => length_ns,
            _ => last_ns()
                .min(self.schedule.until_ns)
                .saturating_sub(self.schedule.from_ns),
        }
    }
}

/// Like [`run`], in a new directory that `places` fills and that is removed at the end.
pub fn run_in<P: Send, T: Send>(
    common: &Common,
    threads: u32,
    places: impl FnOnce(&Scratch) -> Result<Vec<P>>,
    window: Window,
    stop: &Stop,
    body: impl Fn(P, Shift<'_>) -> Result<T> + Sync,
) -> Result<Ran<T>> {
    allow_open_files(threads as usize)?;
    let meter = common.energy.start(stop)?;
    let scratch = Scratch::new(&common.dir, common.keep)?;
    let observer = Observer::new(&scratch, meter);
    let ran = run(places(&scratch)?, window, &scratch, &observer, stop, body)?;
    scratch.remove()?;
    Ok(ran)
}

/// Runs one thread per element of `places`, each with its own place, from one common start.
///
/// The first error of any thread stops all of them and is returned.
pub fn run<P: Send, T: Send>(
    places: Vec<P>,
    window: Window,
    scratch: &Scratch,
    observer: &Observer,
    stop: &Stop,
    body: impl Fn(P, Shift<'_>) -> Result<T> + Sync,
) -> Result<Ran<T>> {
    let wanted = places.len();
    // Opens with the schedule, or without one if the run is cancelled.
    let gate: OnceLock<Option<Schedule>> = OnceLock::new();
    // An error must stop the other threads, but must not look like the user's interrupt.
    let failed = Stop::new();
    thread::scope(|scope| {
        let mut handles = Vec::with_capacity(wanted);
        for (index, place) in places.into_iter().enumerate() {
            let (gate, body, failed) = (&gate, &body, &failed);
            let work = move || {
                let Some(schedule) = *gate.wait() else {
                    return Ok(None);
                };
                sleep_until(schedule.start_ns, stop);
                let result = body(place, Shift::new(schedule, stop, failed));
                if result.is_err() {
                    failed.set();
                }
                result.map(Some)
            };
            let spawned = thread::Builder::new()
                .name(format!("bench-{index}"))
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, work);
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(source) => {
                    let _ = gate.set(None);
                    return Err(WorkloadError::Start {
                        what: "thread",
                        number: index + 1,
                        wanted,
                        source,
                    });
                }
            }
        }
        scratch.settle().inspect_err(|_| {
            let _ = gate.set(None);
        })?;
        let start_ns = now_ns() + gathering_ns(wanted as u64);
        let from_ns = start_ns + window.warmup_ns;
        let schedule = Schedule {
            start_ns,
            from_ns,
            until_ns: window.length_ns.map_or(u64::MAX, |ns| from_ns + ns),
        };
        let _ = gate.set(Some(schedule));
        sleep_until(from_ns, stop);
        let before = observer.read();
        // After an error the results are void: the observer need not wait.
        let at_end = window.length_ns.map(|_| {
            while now_ns() < schedule.until_ns && !stop.is_set() && !failed.is_set() {
                sleep_until(schedule.until_ns.min(now_ns() + 250 * NS_PER_MS), stop);
            }
            observer.read()
        });
        let mut results = Vec::with_capacity(wanted);
        let mut first_error = None;
        for handle in handles {
            match handle.join() {
                Ok(Ok(result)) => results.extend(result),
                Ok(Err(error)) => first_error = first_error.or(Some(error)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        if let Some(error) = first_error {
            return Err(error);
        }
        let after = at_end.unwrap_or_else(|| observer.read());
        Ok(Ran {
            results,
            observed: before.until(&after),
            cut_short: stop.is_set(),
            schedule,
            window,
        })
    })
}
