//! `luc bench iozone`: the initial write.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use luc_workload::{Iozone, IozoneResult, Outcome, Part, Phase};

use super::barrier::pause_ns;
use super::{Plan, figures, scripts};
use crate::SimError;
use crate::files::Prepared;
use crate::measured::Measured;
use crate::program::Op;
use crate::script::Task;

/// The state that all children share.
#[derive(Default)]
struct Shared {
    parts: Mutex<Vec<Part>>,
    /// A child has written all of its file.
    is_finished: AtomicBool,
}

/// The plan.
///
/// # Errors
/// The sizes do not fit each other.
pub fn plan(args: &Iozone) -> Result<Plan, SimError> {
    let (records, bytes) = args
        .records()
        .map_err(|error| SimError::Arguments(error.to_string()))?;
    let shared = Arc::new(Shared::default());
    let script = |task, _| child(task, args.clone(), records, bytes, Arc::clone(&shared));
    let programs = scripts(args.threads, script);
    // Each child has made its file before the barrier, and the file system is written out.
    let empty = |file| Prepared {
        file,
        dir: 0,
        bytes: 0,
    };
    let files = (0..args.threads).map(empty).collect();
    let measured = Measured::new(args.threads as usize, 0, u64::MAX);
    let args = args.clone();
    let outcome = move |_: &Measured| {
        let mut parts = shared.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let phase = Phase::of(std::mem::take(&mut parts));
        Outcome::Iozone(IozoneResult::new(&args, &phase))
    };
    Ok(Plan {
        programs,
        files,
        measured,
        begin_spread_ns: 0,
        outcome: figures(outcome),
    })
}

async fn child(task: Task, args: Iozone, records: u64, bytes: u32, shared: Arc<Shared>) {
    let [mut writes, mut syncs, mut closes] = [const { Vec::new() }; 3];
    // All leave the barrier at one moment.
    let begin_ns = task
        .call(Op::SleepUntil(pause_ns(args.threads)))
        .await
        .ended_ns;
    let mut end_ns = begin_ns;
    let is_over = || !args.no_stonewall && shared.is_finished.load(Ordering::Relaxed);
    while (writes.len() as u64) < records && !is_over() {
        let went = task.call(Op::Write { bytes }).await;
        writes.push(went.took_ns());
        end_ns = went.ended_ns;
    }
    if args.fsync {
        let went = task.call(Op::Fsync).await;
        syncs.push(went.took_ns());
        end_ns = went.ended_ns;
    }
    if args.close {
        let went = task.call(Op::Close).await;
        closes.push(went.took_ns());
        end_ns = went.ended_ns;
    }
    let ops = writes.len() as u64;
    if ops == records {
        shared.is_finished.store(true, Ordering::Relaxed);
    }
    let part = Part {
        begin_ns,
        end_ns,
        ops,
        calls: vec![writes, syncs, closes],
    };
    let mut parts = shared.parts.lock().unwrap_or_else(PoisonError::into_inner);
    parts.push(part);
}
