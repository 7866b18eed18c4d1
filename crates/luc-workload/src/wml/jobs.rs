//! The threads of a run, each with its own state.

use std::collections::HashSet;
use std::sync::Arc;

use luc_wml::plan::{Flowop, Op, Plan, Process, Thread, Value};

use super::draw::Draws;
use super::engine::{Compiler, Job, Place, Program};
use super::options::WmlOptions;
use super::random::Generator;
use crate::{Result, WorkloadError};

/// Slots that `opennext` goes through.
const ROTATED: u64 = 128;
/// Most bytes of one asynchronous write whose size is drawn.
const AIO_DRAWN_MAX: u64 = 64 << 20;

/// Makes the threads of all processes. Their draws are separate from those for the files, so that
/// mistakes that show only in the whole program are found before anything is written.
///
/// # Errors
/// If there are no threads, or one asks for something that cannot be done.
pub fn program(plan: &Arc<Plan>, options: &WmlOptions) -> Result<Program> {
    let places = places(plan);
    if places.is_empty() {
        let why = "it has no threads to run".into();
        return Err(WorkloadError::Plan { why });
    }
    let mut once = draws(plan, options, 0, 0);
    let threads = places.iter().map(|place| place.thread(plan));
    let (mut compiler, high_waters, gates) = Compiler::new(threads, &mut once)?;
    let job = |place: Place| {
        let thread = place.thread(plan);
        let bound = compiler.bind(thread, &mut once)?;
        let mut draws = draws(plan, options, place.number as u64 + 1, place.within);
        let bytes = draws.whole(thread.memory_bytes);
        // This is address space only: unused memory costs nothing.
        if bytes > 1 << 40 {
            let name = &thread.name;
            return Err(WorkloadError::Plan {
                why: format!("thread {name} has a memsize of {bytes} bytes; give at most 1t"),
            });
        }
        Ok(Job {
            place,
            bound,
            draws,
            memory_bytes: bytes,
        })
    };
    Ok(Program {
        jobs: places.into_iter().map(job).collect::<Result<_>>()?,
        high_waters,
        gates,
    })
}

/// Lists the threads of all processes.
fn places(plan: &Plan) -> Vec<Place> {
    let mut places = Vec::new();
    let (mut instance, mut kinds) = (0, 0);
    for (process, it) in plan.processes.iter().enumerate() {
        for _ in 0..it.instances {
            let mut within = 0;
            for (thread, it) in it.threads.iter().enumerate() {
                for _ in 0..it.instances {
                    places.push(Place {
                        number: places.len(),
                        within,
                        instance,
                        process,
                        thread,
                        kind: kinds + thread,
                    });
                    within += 1;
                }
            }
            instance += 1;
        }
        kinds += it.threads.len();
    }
    places
}

/// Returns for each process, over all instances, the size of its largest asynchronous write if it
/// has any.
///
/// # Errors
/// If one is too large.
pub fn aio_bytes(plan: &Plan) -> Result<Vec<Option<usize>>> {
    let mut all = Vec::new();
    for process in &plan.processes {
        let bytes = aio_bytes_of(process)?;
        all.extend((0..process.instances).map(|_| bytes));
    }
    Ok(all)
}

fn aio_bytes_of(process: &Process) -> Result<Option<usize>> {
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

/// Returns a thread's draws; thread 0 is the preparation.
pub fn draws(plan: &Arc<Plan>, options: &WmlOptions, thread: u64, within: u64) -> Draws {
    let generator = if options.filebench_generator {
        Generator::filebench(within)
    } else {
        Generator::own(options.seed, thread)
    };
    Draws::new(generator, plan, thread)
}

/// Tells whether a thread opens a file once for all of its slots. The slots need no positions of
/// their own if every flowop on files reads or writes at random offsets.
pub fn opens_once(thread: &Thread) -> bool {
    let flowops = thread.all_flowops();
    let mut on_files = flowops.iter().filter(|flowop| flowop.op.target().is_some());
    on_files.all(|flowop| match &flowop.op {
        Op::Read(transfer) | Op::Write(transfer) => transfer.random,
        _ => false,
    })
}

/// Returns the most files that a thread has open.
pub fn descriptors(plan: &Plan, thread: &Thread) -> u64 {
    let (mut fds, mut kinds) = (HashSet::new(), HashSet::new());
    let mut rotates = false;
    for Flowop { op, .. } in thread.all_flowops() {
        // The others need an open file, or open no file.
        if let Some(target) = op.target()
            && !matches!(op, Op::DeleteFile(_) | Op::StatFile(_) | Op::Fsync(_))
        {
            rotates |= target.rotate && target.fd == 0;
            fds.insert(target.fd);
            kinds.extend(target.fileset.map(|fileset| (fileset, target.flags)));
        }
    }
    let slots = fds.len() as u64 + if rotates { ROTATED } else { 0 };
    let files = kinds
        .iter()
        .map(|(fileset, _)| match plan.filesets[fileset.0].entries {
            Value::Fixed(entries) if opens_once(thread) => entries,
            _ => slots,
        });
    // One more for a directory being listed.
    files.fold(0, u64::saturating_add).min(slots) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn most_open(flowops: &str) -> u64 {
        let text = format!(
            "define fileset name=a,path=/x,entries=10
            define process name=p {{ thread name=t {{ {flowops} }} }}"
        );
        let script = luc_wml::parse("x.f", &text).expect("a sound file");
        let plan = script.plan(&[]).expect("a plan");
        descriptors(&plan, &plan.processes[0].threads[0])
    }

    #[test]
    fn descriptors_are_counted_by_files_where_slots_share_them() {
        let reads = "flowop read name=r,filename=a,iosize=1k,opennext";
        assert_eq!(most_open(&format!("{reads},random")), 10 + 1);
        let two = format!("{reads},random flowop write name=w,filename=a,iosize=1k,random,dsync");
        assert_eq!(most_open(&two), 10 + 10 + 1);
        // A position or an asynchronous write belongs to a descriptor.
        assert_eq!(most_open(reads), 128 + 1 + 1);
        let aio = "flowop aiowrite name=w,filename=a,iosize=1k,opennext,random";
        assert_eq!(most_open(aio), 128 + 1 + 1);
        let opens = "flowop openfile name=o,filename=a,fd=3 flowop closefile name=c,fd=3";
        assert_eq!(most_open(opens), 1 + 1);
        assert_eq!(most_open("flowop listdir name=l,filename=a"), 1);
    }
}
