//! `luc-lab bench metarates`: processes create, stat and touch files, phase by phase.

use std::sync::{Arc, Mutex, PoisonError};

use luc_workload::{Metarates, MetaratesResult, Outcome, Part, Phase, Step};

use super::barrier::Barrier;
use super::{BARRIER_SPREAD_NS, Plan, figures, scripts};
use crate::script::Task;
use luc_sim::files::{FileId, Prepared};
use luc_sim::measured::Measured;
use luc_sim::program::Op;

/// The processes' parts of each phase.
type Parts = Arc<Mutex<Vec<Vec<Part>>>>;

pub fn plan(args: &Metarates) -> Plan {
    let steps = args.steps();
    let parts: Parts = Arc::new(Mutex::new(vec![Vec::new(); steps.len()]));
    let barrier = Barrier::new(args.procs);
    let script = |task, rank| {
        let (parts, barrier) = (Arc::clone(&parts), barrier.clone());
        process(task, args.clone(), rank, parts, barrier)
    };
    let programs = scripts(args.procs, script);
    let files = if steps.first() == Some(&Step::Create) {
        Vec::new()
    } else {
        prepared(args)
    };
    let measured = Measured::new(args.procs as usize, 0, u64::MAX);
    let args = args.clone();
    let outcome = move |_: &Measured| {
        let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
        let phases: Vec<Phase> = parts.drain(..).map(Phase::spanning).collect();
        Outcome::Metarates(MetaratesResult::new(&args, &phases))
    };
    Plan {
        programs,
        files,
        measured,
        begin_spread_ns: BARRIER_SPREAD_NS,
        outcome: figures(outcome),
    }
}

/// Returns the directory of a process's files.
fn dir(args: &Metarates, rank: u32) -> u32 {
    if args.unique_dirs { rank } else { 0 }
}

/// Returns the files that a process creates or finds.
fn files(args: &Metarates, rank: u32) -> impl Iterator<Item = FileId> + use<> {
    let first = rank * args.files;
    first..first + args.files
}

fn prepared(args: &Metarates) -> Vec<Prepared> {
    let of_process = |rank| {
        let dir = dir(args, rank);
        let empty = move |file| Prepared {
            file,
            dir,
            bytes: 0,
        };
        files(args, rank).map(empty)
    };
    (0..args.procs).flat_map(of_process).collect()
}

async fn process(task: Task, args: Metarates, rank: u32, parts: Parts, barrier: Barrier) {
    for (phase, step) in args.steps().into_iter().enumerate() {
        // The processes begin the first phase together without it.
        if phase > 0 {
            barrier.pass(&task, rank).await;
        }
        let begin_ns = task.now_ns();
        let mut calls = Vec::new();
        if step == Step::Create {
            calls = create(&task, &args, rank).await;
        } else {
            let op = if step == Step::Stat {
                Op::Stat
            } else {
                Op::Utime
            };
            let mut times = Vec::new();
            for file in files(&args, rank) {
                task.call(Op::Use(file)).await;
                times.push(task.call(op).await.took_ns());
            }
            calls.push(times);
        }
        let part = Part {
            begin_ns,
            end_ns: task.now_ns(),
            ops: u64::from(args.files),
            calls,
        };
        let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts[phase].push(part);
    }
}

/// Returns the times of open, write (always empty), fsync and close.
async fn create(task: &Task, args: &Metarates, rank: u32) -> Vec<Vec<u64>> {
    let dir = dir(args, rank);
    let [mut opens, mut syncs, mut closes] = [const { Vec::new() }; 3];
    for file in files(args, rank) {
        task.call(Op::Use(file)).await;
        opens.push(task.call(Op::Create { dir }).await.took_ns());
        if !args.no_fsync {
            syncs.push(task.call(Op::Fsync).await.took_ns());
        }
        closes.push(task.call(Op::Close).await.took_ns());
    }
    vec![opens, Vec::new(), syncs, closes]
}
