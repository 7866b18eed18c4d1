//! The threads of a run, and what each needs of its own.

use std::collections::HashSet;
use std::sync::Arc;

use luc_wml::plan::{Flowop, Op, Plan, Process, Thread, Value};

use super::aio::Pool;
use super::draw::Draws;
use super::engine::{Compiler, Place, Step, Totals, each, wants_totals};
use super::options::WmlOptions;
use super::random::Generator;
use super::stats::Stats;
use super::worker::{Counted, Memory};
use crate::latency::Recorder;
use crate::{Result, WorkloadError};

/// Slots that `opennext` goes through.
const ROTATED: u64 = 128;
/// Bytes of one asynchronous write at most, where their number is drawn.
const AIO_DRAWN_MAX: u64 = 64 << 20;
/// More threads than any machine runs: a slip in a file should not take the machine down.
const THREADS_MAX: u64 = 65_536;

/// One thread, ready to run.
pub struct Job<'p> {
    pub place: Place<'p>,
    pub steps: Vec<Step<'p>>,
    pub draws: Draws<'p>,
    pub memory: Memory,
    pub counted: Counted,
}

/// The threads of all processes. A process with asynchronous writes has a pool for them.
pub fn places(plan: &Plan) -> Result<Vec<Place<'_>>> {
    let count = |process: &Process| -> u64 {
        let threads = process.threads.iter().map(|thread| thread.instances);
        threads
            .fold(0_u64, u64::saturating_add)
            .saturating_mul(process.instances)
    };
    let wanted = plan
        .processes
        .iter()
        .map(count)
        .fold(0_u64, u64::saturating_add);
    if wanted == 0 || wanted > THREADS_MAX {
        return Err(WorkloadError::Plan {
            why: format!("it asks for {wanted} threads; 1 to {THREADS_MAX} are possible"),
        });
    }
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
    Ok(places)
}

/// The largest asynchronous write of a process, if it has any.
fn aio_bytes(process: &Process) -> Result<Option<usize>> {
    let mut most = None;
    for thread in &process.threads {
        each(&thread.flowops, &mut |flowop| {
            if let Op::AioWrite(transfer) = &flowop.op {
                let bytes = match transfer.io_bytes {
                    Value::Fixed(bytes) if bytes > 1 << 30 => {
                        return Err(WorkloadError::flowop(
                            flowop,
                            format!("an iosize of {bytes} bytes is too large; give at most 1g"),
                        ));
                    }
                    Value::Fixed(bytes) => bytes,
                    Value::Random(_) => AIO_DRAWN_MAX,
                };
                most = most.max(Some(bytes));
            }
            Ok(())
        })?;
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
        // Address space only: what is not used costs nothing.
        if bytes > 1 << 40 {
            return Err(WorkloadError::Plan {
                why: format!(
                    "thread {} has a memsize of {bytes} bytes; give at most 1t",
                    place.thread.name
                ),
            });
        }
        let mut flowops = 0;
        each(&place.thread.flowops, &mut |_| {
            flowops += 1;
            Ok(())
        })?;
        jobs.push(Job {
            place,
            steps,
            draws,
            memory: Memory {
                bytes: vec![0; usize::try_from(bytes).unwrap_or(0)],
                fixed: bytes > 0,
            },
            counted: Counted {
                stats: (0..flowops).map(|_| Stats::new()).collect(),
                fsync: Recorder::new(),
                dsync: Recorder::new(),
                last_ns: 0,
                loops: 0,
            },
        });
    }
    Ok(jobs)
}

/// Thread 0 is the preparation.
pub fn generator(options: &WmlOptions, thread: u64, within_process: u64) -> Generator {
    if options.filebench_generator {
        Generator::filebench(within_process)
    } else {
        Generator::own(options.seed, thread)
    }
}

/// Open files of a thread at most.
pub fn descriptors(thread: &Thread) -> u64 {
    let mut fds = HashSet::new();
    let mut rotates = false;
    let _ = each(&thread.flowops, &mut |flowop: &Flowop| {
        let target = match &flowop.op {
            Op::Read(transfer)
            | Op::Write(transfer)
            | Op::AioWrite(transfer)
            | Op::ReadWholeFile(transfer)
            | Op::WriteWholeFile { transfer, .. }
            | Op::AppendFile(transfer)
            | Op::AppendFileRand(transfer) => transfer.target,
            Op::OpenFile(target) | Op::CreateFile(target) => *target,
            _ => return Ok(()),
        };
        rotates |= target.rotate && target.fd == 0;
        fds.insert(target.fd);
        Ok(())
    });
    // One more for the directory that is listed.
    fds.len() as u64 + if rotates { ROTATED } else { 0 } + 1
}

pub fn totals(plan: &Plan, threads: usize) -> Result<Option<Vec<Totals>>> {
    let mut wanted = false;
    for thread in plan.processes.iter().flat_map(|process| &process.threads) {
        each(&thread.flowops, &mut |flowop| {
            wanted |= wants_totals(&flowop.op);
            Ok(())
        })?;
    }
    Ok(wanted.then(|| (0..threads).map(|_| Totals::default()).collect()))
}
