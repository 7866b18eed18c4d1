//! A run from its plan to its report.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use luc_wml::plan::{Action, Plan, Quit, RUN_DEFAULT_S};
use rustix::process::setpriority_process;

use super::aio::Pool;
use super::engine::{Engine, Job};
use super::jobs::{aio_bytes, descriptors, draws, program};
use super::options::WmlOptions;
use super::prepare::{Say, prepare};
use super::real::{Host, Own};
use super::report::{FilesetResult, WmlResult};
use super::statements::{around_preparation, carry_out, refuse_commands};
use super::system::Counted;
use crate::benchmark::Measured;
use crate::clock::{NS_PER_S, now_ns};
use crate::crew::{self, Shift, Window};
use crate::dir::Dir;
use crate::observer::{Observed, Observer};
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
pub fn run(
    plan: &Plan,
    source: &str,
    overrides: &[(String, String)],
    options: &WmlOptions,
    stop: &Stop,
    say: &mut Say<'_>,
) -> Result<Measured<WmlResult>> {
    names(plan)?;
    if !options.allow_system {
        refuse_commands(plan)?;
    }
    let timing = timing(plan)?;
    let window = timing.window(options);
    let pools = aio_bytes(plan)?;
    let plan = &Arc::new(plan.clone());
    let program = program(plan, options)?;
    let jobs = || program.jobs.iter();
    let open = jobs()
        .map(|job| descriptors(plan, job.place.thread(plan)))
        .sum();
    allow_descriptors(jobs().len(), open)?;

    let rest = options.energy.rest();
    if !rest.is_zero() {
        say("measuring idle power", Some(rest));
    }
    let meter = options.energy.start(stop)?;
    let mut scratch = Scratch::new(&options.dir, options.keep)?;
    if !options.settle {
        scratch.leave_unsettled();
    }
    let root = Dir::open(scratch.path())?;
    let mut result = WmlResult::new(plan, source, overrides, options);
    let (before, after) = around_preparation(plan);
    carry_out(before, &scratch, stop, say, &mut result.notes)?;
    let filesets = prepare(plan, &mut draws(plan, options, 0, 0), &root, stop, say)?;
    result.filesets = filesets.iter().map(FilesetResult::from_live).collect();
    result.threads = program.jobs.len() as u64;
    if !options.prepare_only {
        carry_out(after, &scratch, stop, say, &mut result.notes)?;
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

    let host = Host {
        engine: Engine::new(plan, filesets, &program, options),
        root,
        pools: pools
            .into_iter()
            .map(|bytes| bytes.map(Pool::new))
            .collect(),
    };
    let length_ns = window
        .length_ns
        .map(|ns| ns.saturating_add(window.warmup_ns));
    let length = length_ns.map(Duration::from_nanos);
    let threads = program.jobs.len();
    say(&format!("running {threads} threads"), length);
    let running = AtomicUsize::new(threads);
    let body = |(job, own): (Job, Own), shift: Shift<'_>| {
        let thread = job.place.thread(plan);
        let counted = one(&host, job, own, shift);
        // The last thread ends the run.
        if running.fetch_sub(1, Ordering::AcqRel) == 1 && now_ns() < shift.until_ns {
            host.finish(shift.ended);
        }
        counted.map(|counted| (thread, counted))
    };
    let jobs = program.jobs.into_iter();
    let jobs = jobs.map(|job| {
        let own = Own::new(plan, &job);
        (job, own)
    });
    let observer = Observer::new(&scratch, meter);
    let ran = crew::run(jobs.collect(), window, &scratch, &observer, stop, body);
    // After an error, too: nothing may still be writing when the files are removed.
    let written: Vec<Recorder> = host.pools.iter().flatten().map(Pool::end).collect();
    let mut ran = ran?;
    scratch.remove()?;
    let interrupted = ran.cut_short;
    ran.cut_short |= host.engine.finished.load(Ordering::Relaxed);
    let elapsed_ns = ran.elapsed_ns(|(_, counted)| counted.last_ns);
    let counted = ran
        .results
        .iter()
        .map(|(thread, counted)| (*thread, counted));
    result.sum_up(counted, &written, elapsed_ns);
    Ok(Measured {
        found: result,
        elapsed_ns,
        interrupted,
        observed: ran.observed,
    })
}

fn one(host: &Host, job: Job, own: Own, shift: Shift<'_>) -> Result<Counted> {
    let plan = &host.engine.plan;
    let nice = plan.processes[job.place.process].nice;
    if nice != 0 {
        setpriority_process(None, nice).map_err(|errno| {
            WorkloadError::call("set the priority (nice) of", "a thread", errno)
        })?;
    }
    if let Some(priority) = job.place.thread(plan).io_priority {
        set_io_priority(priority)
            .map_err(|source| WorkloadError::call("set the I/O priority of", "a thread", source))?;
    }
    host.engine.events.start(shift.start_ns);
    if let Some(pool) = &host.pools[job.place.instance] {
        pool.begin(*shift);
    }
    host.run(job, own, shift)
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

/// The run's length, from the file's statements.
pub struct Timing {
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
    let mut run_s = None;
    for action in &plan.actions {
        if let Action::Run { seconds } = action
            && run_s.replace(*seconds).is_some()
        {
            return Err(WorkloadError::Plan {
                why: "it has more than one run; make one file per run".into(),
            });
        }
    }
    let default_s = (plan.quit == Quit::Timeout).then_some(RUN_DEFAULT_S);
    Ok(Timing {
        run_s: run_s.flatten().or(default_s),
    })
}
