//! Threads that start together, and an observer that reads counters while they run.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use crate::clock::{NS_PER_MS, NS_PER_US, now_ns, sleep_until};
use crate::journal::Journal;
use crate::scratch::Scratch;
use crate::usage::Usage;
use crate::{JournalCounts, Result, Stop, WorkloadError};

/// Enough for a loop of system calls; the default of 2 MiB times 1,024 threads is not needed.
const STACK_BYTES: usize = 128 * 1024;

/// What the observer found between the start and the end of the measurement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed {
    /// Commits, where the kernel shows them to this user.
    pub journal: Option<JournalCounts>,
    /// Busy time of all processors, nanoseconds, where it can be read.
    pub cpu_busy_ns: Option<u64>,
}

/// When to measure, relative to the common start.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// From the start to the first measured moment, nanoseconds.
    pub warmup_ns: u64,
    /// Length of the measurement; `None`: until the last thread ends.
    pub length_ns: Option<u64>,
}

/// The moments as a thread sees them, nanoseconds of the clock.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Everybody begins.
    pub start_ns: u64,
    /// Measuring begins.
    pub from_ns: u64,
    /// Measuring ends; far away when operations are counted instead.
    pub until_ns: u64,
}

impl Schedule {
    /// Length of the measurement, nanoseconds: as asked for, wherever its last operation ended. One
    /// that was cut short, or that counted operations, lasted until the last of `ended_ns`.
    pub fn measured_ns(
        self,
        window: Window,
        cut_short: bool,
        ended_ns: impl Iterator<Item = u64>,
    ) -> u64 {
        match window.length_ns {
            Some(length_ns) if !cut_short => length_ns,
            _ => ended_ns
                .max()
                .unwrap_or(0)
                .min(self.until_ns)
                .saturating_sub(self.from_ns),
        }
    }
}

enum Gate {
    Closed,
    Open(Schedule),
    Cancelled,
}

/// Runs one thread per element of `places`, each with its own place, from one common start.
///
/// Returns every thread's result in order, when the threads were to begin, and what the observer
/// read. The first error of any thread stops all of them and is returned.
pub fn run<P, T>(
    places: Vec<P>,
    window: Window,
    scratch: &Scratch,
    stop: &Stop,
    body: impl Fn(P, Schedule, &Stop) -> Result<T> + Sync,
) -> Result<(Vec<T>, Schedule, Observed)>
where
    P: Send,
    T: Send,
{
    let wanted = places.len();
    let journal = Journal::below(scratch.path());
    let gate = (Mutex::new(Gate::Closed), Condvar::new());
    // An error must stop the other threads, but must not look like the user's interrupt.
    let failed = Stop::new();
    thread::scope(|scope| {
        let mut handles = Vec::with_capacity(wanted);
        for (index, place) in places.into_iter().enumerate() {
            let (gate, body, failed) = (&gate, &body, &failed);
            let work = move || {
                let Some(schedule) = pass(gate) else {
                    return Ok(None);
                };
                sleep_until(schedule.start_ns, stop);
                let result = body(place, schedule, failed);
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
                    open(gate, Gate::Cancelled);
                    return Err(WorkloadError::Thread {
                        number: index + 1,
                        wanted,
                        source,
                    });
                }
            }
        }
        if let Err(error) = scratch.settle() {
            open(&gate, Gate::Cancelled);
            return Err(error);
        }
        // Time for every thread to reach its sleep, so that all of them wake at the same moment.
        let start_ns = now_ns() + 10 * NS_PER_MS + wanted as u64 * 100 * NS_PER_US;
        let from_ns = start_ns + window.warmup_ns;
        let schedule = Schedule {
            start_ns,
            from_ns,
            until_ns: window.length_ns.map_or(u64::MAX, |ns| from_ns + ns),
        };
        open(&gate, Gate::Open(schedule));
        let observer = Observer {
            journal: journal.as_ref(),
        };
        sleep_until(from_ns, stop);
        let before = observer.read();
        // Threads that end early, by an error, need no observer: their results are void.
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
        Ok((results, schedule, Observer::between(before, after)))
    })
}

fn open(gate: &(Mutex<Gate>, Condvar), state: Gate) {
    *gate.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    gate.1.notify_all();
}

/// Waits at the gate; `None` when the run was cancelled.
fn pass(gate: &(Mutex<Gate>, Condvar)) -> Option<Schedule> {
    let closed = gate.0.lock().unwrap_or_else(PoisonError::into_inner);
    let state = gate
        .1
        .wait_while(closed, |state| matches!(state, Gate::Closed))
        .unwrap_or_else(PoisonError::into_inner);
    match *state {
        Gate::Open(schedule) => Some(schedule),
        Gate::Closed | Gate::Cancelled => None,
    }
}

struct Observer<'a> {
    journal: Option<&'a Journal>,
}

type Reading = (Option<JournalCounts>, Option<Usage>);

impl Observer<'_> {
    fn read(&self) -> Reading {
        (self.journal.and_then(Journal::counts), Usage::read())
    }

    fn between(before: Reading, after: Reading) -> Observed {
        Observed {
            journal: after.0.zip(before.0).map(|(b, a)| b.since(a)),
            cpu_busy_ns: after.1.zip(before.1).map(|(b, a)| b.busy_ns_since(a)),
        }
    }
}
