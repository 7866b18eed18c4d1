//! A run from its plan to its report.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use luc_wml::plan::{Action, Plan, Quit, RUN_DEFAULT_S, Thread};
use rustix::process::setpriority_process;

use super::draw::Draws;
use super::engine::{Compiler, Engine};
use super::jobs::{Job, descriptors, generator, jobs, places, totals};
use super::options::WmlOptions;
use super::prepare::{Say, prepare};
use super::report::{FilesetResult, WmlResult};
use super::sync::{Events, Gate, Semaphore};
use super::worker::{Counted, Worker};
use crate::benchmark::Measured;
use crate::clock::{NS_PER_S, now_ns, sleep_until};
use crate::crew::{self, Shift, Window};
use crate::dir::Dir;
use crate::observer::Observed;
use crate::scratch::{Scratch, allow_descriptors};
use crate::{Result, Stop, WorkloadError};
use luc_base::Recorder;

/// Runs a workload file's plan.
///
/// `source` and `overrides` appear only in the result.
///
/// # Errors
/// The first system call that failed, with the file's name, or why the plan cannot run;
/// files made so far are removed (unless they are to be kept). An interrupt through `stop` is not
/// an error: the report then covers what was done so far and says so.
pub fn run<'p>(
    plan: &'p Plan,
    source: &str,
    overrides: &[(String, String)],
    options: &WmlOptions,
    stop: &Stop,
    say: &mut Say<'_>,
) -> Result<Measured<WmlResult>> {
    names(plan)?;
    let timing = timing(plan)?;
    let window = timing.window(options);
    let places = places(plan)?;
    let open: u64 = places.iter().map(|place| descriptors(place.thread)).sum();
    allow_descriptors(places.len(), open)?;
    // Mistakes that show only in the whole program are found before anything is written. These
    // draws are separate from those for the files.
    let mut once = Draws::new(generator(options, 0, 0), &plan.randoms, 0);
    let threads = places.iter().map(|place| place.thread);
    let (mut compiler, high_waters, gates) = Compiler::new(threads, &mut once)?;
    let jobs = jobs(plan, places, options, &mut compiler, &mut once)?;

    let mut scratch = Scratch::new(&options.dir, options.keep)?;
    if !options.settle {
        scratch.leave_unsettled();
    }
    let root = Dir::open(scratch.path())?;
    let mut draws = Draws::new(generator(options, 0, 0), &plan.randoms, 0);
    let filesets = prepare(plan, &mut draws, &root, stop, say)?;
    let mut result = WmlResult::new(source, overrides, options);
    result.filesets = filesets.iter().map(FilesetResult::of).collect();
    result.threads = jobs.len() as u64;
    if timing.pause_s > 0 && !options.prepare_only {
        let pause = Duration::from_secs(timing.pause_s);
        say("waiting, as the file asks", Some(pause));
        let pause_ns = timing.pause_s.saturating_mul(NS_PER_S);
        sleep_until(now_ns().saturating_add(pause_ns), stop);
    }
    if options.prepare_only || stop.is_set() {
        scratch.remove()?;
        return Ok(Measured {
            found: result,
            elapsed_ns: 0,
            interrupted: stop.is_set(),
            observed: Observed::default(),
        });
    }

    let engine = Engine {
        plan,
        filesets,
        root,
        semaphores: high_waters.into_iter().map(Semaphore::new).collect(),
        gates: (0..gates).map(|_| Gate::default()).collect(),
        events: Events::new(),
        totals: totals(plan, jobs.len()),
        budget: options.ops.map(|ops| (AtomicU64::new(0), ops)),
        no_fsync: options.no_fsync,
        aio_wait: options.aio_wait,
        finished: AtomicBool::new(false),
    };
    let length_ns = window
        .length_ns
        .map(|ns| ns.saturating_add(window.warmup_ns));
    let length = length_ns.map(Duration::from_nanos);
    say(&format!("running {} threads", jobs.len()), length);
    let pools = jobs.iter().filter(|job| job.own.place.within == 0);
    let pools: Vec<_> = pools.filter_map(|job| job.own.place.pool.clone()).collect();
    let running = AtomicUsize::new(jobs.len());
    let body = |job: Job<'p>, shift: Shift<'_>| {
        let thread = job.own.place.thread;
        let counted = one(&engine, job, shift);
        // The last thread ends the run.
        if running.fetch_sub(1, Ordering::AcqRel) == 1 && now_ns() < shift.until_ns {
            engine.finish(shift.ended);
        }
        counted.map(|counted| (thread, counted))
    };
    let ran = crew::run(jobs, window, &scratch, stop, body);
    // After an error, too: nothing may still be writing when the files are removed.
    let written: Vec<Recorder> = pools.iter().map(|pool| pool.end()).collect();
    let mut ran = ran?;
    scratch.remove()?;
    let interrupted = ran.cut_short;
    ran.cut_short |= engine.finished.load(Ordering::Relaxed);
    let elapsed_ns = ran.elapsed_ns(|(_, counted)| counted.last_ns);
    sum_up(&mut result, &ran.results, &written, elapsed_ns);
    Ok(Measured {
        found: result,
        elapsed_ns,
        interrupted,
        observed: ran.observed,
    })
}

/// Fills in the figures; `written` holds the synchronous writes of the processes' asynchronous
/// writers.
fn sum_up(
    result: &mut WmlResult,
    threads: &[(&Thread, Counted)],
    written: &[Recorder],
    elapsed_ns: u64,
) {
    let counts = threads.iter();
    result.sum_up(
        counts.map(|(thread, counted)| (*thread, counted.stats.as_slice())),
        elapsed_ns,
    );
    result.loops = threads.iter().map(|(_, counted)| counted.loops).sum();
    result.fsync = Recorder::merged(threads.iter().map(|(_, counted)| &counted.fsync));
    let direct = threads.iter().map(|(_, counted)| &counted.dsync);
    result.dsync = Recorder::merged(direct.chain(written));
}

fn one(engine: &Engine<'_>, job: Job<'_>, shift: Shift<'_>) -> Result<Counted> {
    let Job { mut steps, own } = job;
    if own.place.nice != 0 {
        setpriority_process(None, own.place.nice).map_err(|errno| {
            WorkloadError::call("set the priority (nice) of", "a thread", errno)
        })?;
    }
    if let Some(priority) = own.place.thread.io_priority {
        set_io_priority(priority)
            .map_err(|source| WorkloadError::call("set the I/O priority of", "a thread", source))?;
    }
    engine.events.start(shift.start_ns);
    if let Some(pool) = &own.place.pool {
        pool.begin(*shift);
    }
    Worker::new(engine, own, shift).run(&mut steps)
}

/// Sets the I/O priority of the calling thread, in the kernel's encoding.
fn set_io_priority(priority: u64) -> std::io::Result<()> {
    const WHO_PROCESS: libc::c_long = 1;
    const MYSELF: libc::c_long = 0;
    let priority = libc::c_long::try_from(priority).unwrap_or(libc::c_long::MAX);
    // SAFETY: the call takes three integers, and reads and writes no memory of this process.
    let failed = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, MYSELF, priority) };
    if failed == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

/// Checks that no fileset's name leads out of the run's directory, in which it names a directory.
fn names(plan: &Plan) -> Result<()> {
    for fileset in &plan.filesets {
        let name = &fileset.name;
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
            return Err(WorkloadError::Tree {
                fileset: name.clone(),
                why: "its name is not a valid directory name; give it another".into(),
            });
        }
    }
    Ok(())
}

/// The pause before the run and the run's length, from the file's statements.
pub struct Timing {
    pause_s: u64,
    /// `None` if the run lasts until the threads end by themselves.
    run_s: Option<u64>,
}

impl Timing {
    /// Returns the time to measure: the file's, if the user gave neither a time nor a number of
    /// operations.
    pub fn window(&self, options: &WmlOptions) -> Window {
        let mut window = Window::seconds(options.warmup_s, options.seconds);
        if options.ops.is_none() && options.seconds.is_none() {
            let run_s = self.run_s;
            window.length_ns = run_s.map(|seconds| seconds.saturating_mul(NS_PER_S));
        }
        window
    }
}

/// # Errors
/// If the file runs more than once.
pub fn timing(plan: &Plan) -> Result<Timing> {
    let mut pause_s = 0;
    let mut run_s = None;
    for action in &plan.actions {
        match action {
            Action::Sleep(seconds) if run_s.is_none() => pause_s += seconds,
            Action::Run { seconds, .. } => {
                if run_s.replace(*seconds).is_some() {
                    return Err(WorkloadError::Plan {
                        why: "it has more than one run; make one file per run".into(),
                    });
                }
            }
            Action::Sleep(_) | Action::Echo(_) | Action::CreateFiles => {}
        }
    }
    let default_s = (plan.quit == Quit::Timeout).then_some(RUN_DEFAULT_S);
    Ok(Timing {
        pause_s,
        run_s: run_s.flatten().or(default_s),
    })
}
