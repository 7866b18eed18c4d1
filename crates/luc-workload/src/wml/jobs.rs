//! The threads of a run, each with its own state.

use std::collections::HashSet;
use std::sync::Arc;

use luc_wml::plan::{Flowop, Op, Plan, Process, Thread, Value};

use super::aio::Pool;
use super::draw::Draws;
use super::engine::{Compiler, Place, Step, Totals};
use super::options::WmlOptions;
use super::random::Generator;
use super::worker::{Memory, Own};
use crate::{Result, WorkloadError};

/// Slots that `opennext` goes through.
const ROTATED: u64 = 128;
/// Most bytes of one asynchronous write whose size is drawn.
const AIO_DRAWN_MAX: u64 = 64 << 20;

/// One thread, ready to run.
pub struct Job<'p> {
    pub steps: Vec<Step<'p>>,
    pub own: Own<'p>,
}

/// Lists the threads of all processes. A process with asynchronous writes gets a pool for them.
pub fn places(plan: &Plan) -> Result<Vec<Place<'_>>> {
    let mut places = Vec::new();
    for process in &plan.processes {
        let aio_bytes = aio_bytes(process)?;
        for _ in 0..process.instances {
            let pool = aio_bytes.map(|bytes| Arc::new(Pool::new(bytes)));
            let mut within = 0;
            for thread in &process.threads {
                for _ in 0..thread.instances {
                    places.push(Place {
                        number: places.len(),
                        within,
                        nice: process.nice,
                        thread,
                        pool: pool.clone(),
                    });
                    within += 1;
                }
            }
        }
    }
    if places.is_empty() {
        let why = "it has no threads to run".into();
        return Err(WorkloadError::Plan { why });
    }
    Ok(places)
}

/// Returns the size of the largest asynchronous write of a process, if it has any.
fn aio_bytes(process: &Process) -> Result<Option<usize>> {
    let mut most = None;
    for flowop in process.threads.iter().flat_map(Thread::all_flowops) {
        if let Op::AioWrite(transfer) = &flowop.op {
            let bytes = match transfer.io_bytes {
                Value::Fixed(bytes) if bytes > 1 << 30 => {
                    let why = format!("an iosize of {bytes} bytes is too large; give at most 1g");
                    return Err(WorkloadError::flowop(flowop, why));
                }
                Value::Fixed(bytes) => bytes,
                Value::Random(_) => AIO_DRAWN_MAX,
            };
            most = most.max(Some(bytes));
        }
    }
    Ok(most.and_then(|bytes| usize::try_from(bytes).ok()))
}

pub fn jobs<'p>(
    plan: &'p Plan,
    places: Vec<Place<'p>>,
    options: &WmlOptions,
    compiler: &mut Compiler,
    once: &mut Draws<'_>,
) -> Result<Vec<Job<'p>>> {
    let mut jobs = Vec::with_capacity(places.len());
    for place in places {
        let steps = compiler.steps(place.thread, once)?;
        let number = place.number as u64 + 1;
        let generator = generator(options, number, place.within as u64);
        let mut draws = Draws::new(generator, &plan.randoms, number);
        let bytes = draws.whole(place.thread.memory_bytes);
        // This is address space only: unused memory costs nothing.
        if bytes > 1 << 40 {
            let name = &place.thread.name;
            return Err(WorkloadError::Plan {
                why: format!("thread {name} has a memsize of {bytes} bytes; give at most 1t"),
            });
        }
        let memory = Memory {
            bytes: vec![0; usize::try_from(bytes).unwrap_or(0)],
            fixed: bytes > 0,
        };
        let own = Own::new(place, draws, memory);
        jobs.push(Job { steps, own });
    }
    Ok(jobs)
}

/// Returns a thread's generator; thread 0 is the preparation.
pub fn generator(options: &WmlOptions, thread: u64, within_process: u64) -> Generator {
    if options.filebench_generator {
        Generator::filebench(within_process)
    } else {
        Generator::own(options.seed, thread)
    }
}

/// Returns the most files that a thread has open.
pub fn descriptors(thread: &Thread) -> u64 {
    let mut fds = HashSet::new();
    let mut rotates = false;
    for Flowop { op, .. } in thread.all_flowops() {
        // The others need an open file, or open no file.
        if let Some(target) = op.target()
            && !matches!(op, Op::DeleteFile(_) | Op::StatFile(_) | Op::Fsync(_))
        {
            rotates |= target.rotate && target.fd == 0;
            fds.insert(target.fd);
        }
    }
    // One more for a directory being listed.
    fds.len() as u64 + if rotates { ROTATED } else { 0 } + 1
}

/// Makes the counts of each thread if a flowop asks for the sum over all threads.
pub fn totals(plan: &Plan, threads: usize) -> Option<Vec<Totals>> {
    let of_all = plan.processes.iter().flat_map(|process| &process.threads);
    let mut flowops = of_all.flat_map(Thread::all_flowops);
    let wanted = flowops.any(|flowop| flowop.op.limit_target() == Some(&None));
    wanted.then(|| (0..threads).map(|_| Totals::default()).collect())
}
