//! A run from its plan to its report.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use luc_wml::plan::{Action, Op, Plan, Quit, RUN_DEFAULT_S, Thread};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::setpriority_process;

use super::draw::Draws;
use super::engine::{Compiler, Engine, each, share};
use super::jobs::{Job, descriptors, generator, jobs, places, totals};
use super::options::WmlOptions;
use super::prepare::{Ground, Say, prepare};
use super::report::{FilesetResult, Sums, WmlResult};
use super::sync::Events;
use super::worker::{Counted, Worker};
use crate::benchmark;
use crate::clock::{NS_PER_S, now_ns, seconds_ns, sleep_until};
use crate::crew::{self, Observed, Schedule, Window};
use crate::latency::Recorder;
use crate::scratch::{Scratch, allow_descriptors};
use crate::{Latency, Result, Stop, WorkloadError};

/// Runs a workload file's plan.
///
/// `source` and `overrides` are only told in the result. `say` is called with what is going on, and how
/// long that takes where it is known.
///
/// # Errors
/// The first system call that failed, with the file's name, or what about the plan cannot be done;
/// files made so far are removed (unless they are to be kept). An interrupt through `stop` is not
/// an error: the report then covers what was done so far and says so.
pub fn run(
    plan: &Plan,
    source: &str,
    overrides: &[(String, String)],
    options: &WmlOptions,
    stop: &Stop,
    say: &mut Say<'_>,
) -> Result<benchmark::Measured<WmlResult>> {
    names(plan)?;
    let timing = timing(plan)?;
    let places = places(plan)?;
    let open: u64 = places.iter().map(|place| descriptors(place.thread)).sum();
    allow_descriptors(places.len(), open)?;
    // Mistakes that only the whole program shows are found before anything is written. These draws
    // are no part of those for the files.
    let mut once = Draws::new(generator(options, 0, 0), &plan.randoms, 0);
    let (shared, semaphores, gates) = share(&places, &mut once)?;
    let mut compiler = Compiler::new(shared);
    let jobs = jobs(plan, places, options, &mut compiler, &mut once)?;

    let mut scratch = Scratch::new(&options.dir, options.keep)?;
    if !options.settle {
        scratch.leave_unsettled();
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, scratch.path(), flags, Mode::empty())
        .map_err(|errno| WorkloadError::call("open directory", scratch.path(), errno))?;
    let ground = Ground {
        root: &root,
        path: scratch.path(),
    };
    let mut draws = Draws::new(generator(options, 0, 0), &plan.randoms, 0);
    let filesets = prepare(plan, &mut draws, &ground, stop, say)?;
    let mut result = empty(source, overrides, options);
    result.filesets = filesets.iter().map(FilesetResult::of).collect();
    result.threads = jobs.len() as u64;
    if timing.pause_s > 0 && !options.prepare_only {
        let pause = Duration::from_secs(timing.pause_s);
        say("waiting as the file asks for", Some(pause));
        let pause_ns = timing.pause_s.saturating_mul(NS_PER_S);
        sleep_until(now_ns().saturating_add(pause_ns), stop);
    }
    if options.prepare_only || stop.is_set() {
        scratch.remove()?;
        let nothing = Observed::default();
        return Ok(benchmark::Measured {
            found: result,
            fsyncs: 0,
            elapsed_ns: 0,
            interrupted: stop.is_set(),
            observed: nothing,
        });
    }

    let engine = Engine {
        plan,
        filesets,
        root,
        root_path: scratch.path().to_owned(),
        semaphores,
        gates,
        events: Events::new(),
        totals: totals(plan, jobs.len())?,
        budget: options.ops.map(|ops| (AtomicU64::new(0), ops)),
        no_fsync: options.no_fsync,
        aio_wait: options.aio_wait,
        finished: AtomicBool::new(false),
    };
    let window = Window {
        warmup_ns: seconds_ns(options.warmup_s),
        length_ns: match (options.ops, options.seconds) {
            (Some(_), _) => None,
            (None, Some(seconds)) => Some(seconds_ns(seconds)),
            (None, None) => timing.run_s.map(|seconds| seconds.saturating_mul(NS_PER_S)),
        },
    };
    let length_ns = window
        .length_ns
        .map(|ns| ns.saturating_add(window.warmup_ns));
    let length = length_ns.map(Duration::from_nanos);
    say(&format!("running {} threads", jobs.len()), length);
    let measured = measure(&engine, jobs, window, &scratch, stop)?;
    scratch.remove()?;
    let elapsed_ns = measured.elapsed_ns(window, stop.is_set(), &engine);
    measured.sum_up(&mut result, elapsed_ns)?;
    let syncs = result.fsync.count + result.dsync.count;
    Ok(benchmark::Measured {
        found: result,
        fsyncs: syncs,
        elapsed_ns,
        interrupted: stop.is_set(),
        observed: measured.observed,
    })
}

/// What all threads found.
struct Measured<'p> {
    threads: Vec<(&'p Thread, Counted)>,
    /// Synchronous writes of the processes' asynchronous writers.
    written: Vec<Recorder>,
    schedule: Schedule,
    observed: Observed,
}

fn measure<'p>(
    engine: &Engine<'p>,
    jobs: Vec<Job<'p>>,
    window: Window,
    scratch: &Scratch,
    stop: &Stop,
) -> Result<Measured<'p>> {
    let pools = jobs.iter().filter(|job| job.place.within == 0);
    let pools: Vec<_> = pools.filter_map(|job| job.place.pool.clone()).collect();
    let running = AtomicUsize::new(jobs.len());
    let body = |job: Job<'p>, schedule: Schedule, ended: &Stop| {
        let thread = job.place.thread;
        let counted = one(engine, job, schedule, stop, ended);
        // The last one puts out the light.
        if running.fetch_sub(1, Ordering::AcqRel) == 1 && now_ns() < schedule.until_ns {
            engine.finish(ended);
        }
        counted.map(|counted| (thread, counted))
    };
    let ran = crew::run(jobs, window, scratch, stop, body);
    // Also after an error: nothing may write any more when the files are removed.
    let written = pools.iter().map(|pool| pool.end()).collect();
    let (threads, schedule, observed) = ran?;
    Ok(Measured {
        threads,
        written,
        schedule,
        observed,
    })
}

fn one(
    engine: &Engine<'_>,
    job: Job<'_>,
    schedule: Schedule,
    stop: &Stop,
    ended: &Stop,
) -> Result<Counted> {
    if job.place.nice != 0 {
        setpriority_process(None, job.place.nice).map_err(|errno| {
            WorkloadError::call("set the priority (nice) of", "a thread", errno)
        })?;
    }
    if let Some(priority) = job.place.thread.io_priority {
        set_io_priority(priority)
            .map_err(|source| WorkloadError::call("set the I/O priority of", "a thread", source))?;
    }
    engine.events.start(schedule.start_ns);
    if let Some(pool) = &job.place.pool {
        pool.begin((schedule.from_ns, schedule.until_ns));
    }
    let mut steps = job.steps;
    let number = job.place.number;
    let pool = job.place.pool;
    Worker::new(
        engine,
        number,
        job.draws,
        pool,
        job.memory,
        job.counted,
        schedule,
        stop,
        ended,
    )
    .run(&mut steps)
}

/// Sets the I/O priority of the calling thread, given as the kernel counts it.
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

impl Measured<'_> {
    fn elapsed_ns(&self, window: Window, interrupted: bool, engine: &Engine<'_>) -> u64 {
        let finished = engine.finished.load(Ordering::Relaxed);
        let ended_ns = self.threads.iter().map(|(_, counted)| counted.last_ns);
        self.schedule
            .measured_ns(window, interrupted || finished, ended_ns)
    }

    fn sum_up(&self, result: &mut WmlResult, elapsed_ns: u64) -> Result<()> {
        let mut sums = Sums::default();
        for (thread, counted) in &self.threads {
            let mut all = counted.stats.iter();
            each(&thread.flowops, &mut |flowop| {
                // A composite flowop has a place in the list, but does nothing itself.
                if let Some(stats) = all.next()
                    && !matches!(flowop.op, Op::Composite(_))
                {
                    sums.add(flowop, stats);
                }
                Ok(())
            })?;
            result.loops += counted.loops;
        }
        sums.fill(result, elapsed_ns);
        result.fsync = Recorder::merged(self.threads.iter().map(|(_, counted)| &counted.fsync));
        let direct = self.threads.iter().map(|(_, counted)| &counted.dsync);
        result.dsync = Recorder::merged(direct.chain(&self.written));
        Ok(())
    }
}

/// Each fileset's name is that of a directory in the run's directory, and must not lead out of it.
fn names(plan: &Plan) -> Result<()> {
    for fileset in &plan.filesets {
        let name = &fileset.name;
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
            return Err(WorkloadError::Tree {
                fileset: name.clone(),
                why: "its name cannot be that of a directory; give it another".into(),
            });
        }
    }
    Ok(())
}

/// When the run begins and ends, from the file's statements.
struct Timing {
    pause_s: u64,
    /// `None`: until threads end by themselves.
    run_s: Option<u64>,
}

fn timing(plan: &Plan) -> Result<Timing> {
    let mut pause_s = 0;
    let mut run_s = None;
    for action in &plan.actions {
        match action {
            Action::Sleep(seconds) if run_s.is_none() => pause_s += seconds,
            Action::Run { seconds, .. } => {
                if run_s.replace(*seconds).is_some() {
                    return Err(WorkloadError::Plan {
                        why: "it runs more than once; make it one file per run".into(),
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

fn empty(source: &str, overrides: &[(String, String)], options: &WmlOptions) -> WmlResult {
    WmlResult {
        source: source.to_owned(),
        dir: options.dir.to_path_buf(),
        overrides: overrides.to_vec(),
        seed: (!options.filebench_generator).then_some(options.seed),
        ops_wanted: options.ops,
        warmup_s: options.warmup_s,
        unsafe_no_fsync: options.no_fsync,
        settled: options.settle,
        filesets: Vec::new(),
        threads: 0,
        loops: 0,
        ops: 0,
        ops_per_s: 0.0,
        reads_per_s: 0.0,
        writes_per_s: 0.0,
        bytes: 0,
        mib_per_s: 0.0,
        mean_ns: 0.0,
        p50_ns: 0,
        p90_ns: 0,
        p99_ns: 0,
        fsync: Latency::default(),
        dsync: Latency::default(),
        flowops: Vec::new(),
    }
}
