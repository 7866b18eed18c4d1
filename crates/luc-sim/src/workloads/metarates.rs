//! `luc bench metarates`, its phase of creating files.

use std::sync::{Arc, Mutex, PoisonError};

use luc_workload::{Metarates, MetaratesResult, Outcome, Part, Phase, Step};

use super::{Plan, scripts};
use crate::measured::Measured;
use crate::program::Op;
use crate::script::Task;

/// The processes leave a barrier: timers of several processors, and their wake-ups; assumed.
const BEGIN_SPREAD_NS: u64 = 50_000;

type Parts = Arc<Mutex<Vec<Part>>>;

/// The plan; `None` if another phase is asked for.
pub fn plan(args: &Metarates) -> Option<Plan> {
    if args.steps() != [Step::Create] {
        return None;
    }
    let measured = Measured::new(args.procs as usize, 0, u64::MAX);
    let parts = Parts::default();
    let script = |task, rank| process(task, args.clone(), rank, Arc::clone(&parts));
    let programs = scripts(args.procs, script);
    let args = args.clone();
    let outcome = move |_: &Measured| {
        let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
        let phase = Phase {
            start_ns: parts.iter().map(|part| part.begin_ns).min().unwrap_or(0),
            passed_ns: parts.iter().map(|part| part.end_ns).max().unwrap_or(0),
            parts: std::mem::take(&mut parts),
        };
        Outcome::Metarates(MetaratesResult::new(&args, &[phase]))
    };
    Some(Plan {
        programs,
        measured,
        begin_spread_ns: BEGIN_SPREAD_NS,
        outcome: Box::new(outcome),
    })
}

async fn process(task: Task, args: Metarates, rank: u32, parts: Parts) {
    let dir = if args.unique_dirs { rank } else { 0 };
    let [mut opens, mut syncs, mut closes] = [const { Vec::new() }; 3];
    let begin_ns = task.now_ns();
    for _ in 0..args.files {
        opens.push(task.call(Op::Create { dir }).await.took_ns());
        if !args.no_fsync {
            syncs.push(task.call(Op::Fsync).await.took_ns());
        }
        closes.push(task.call(Op::Close).await.took_ns());
    }
    let part = Part {
        begin_ns,
        end_ns: task.now_ns(),
        ops: u64::from(args.files),
        // Nothing is written.
        calls: vec![opens, Vec::new(), syncs, closes],
    };
    let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
    parts.push(part);
}
