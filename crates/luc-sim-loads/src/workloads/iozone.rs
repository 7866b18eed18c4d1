//! `luc-lab bench iozone`: the initial write.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use luc_workload::{Iozone, IozoneResult, Outcome, Part, Phase, gathering_ns};

use super::{Plan, figures, scripts};
use crate::script::Task;
use luc_sim::SimError;
use luc_sim::files::Prepared;
use luc_sim::measured::Measured;
use luc_sim::program::Op;

/// The state that all children share.
#[derive(Default)]
struct Shared {
    parts: Mutex<Vec<Part>>,
    /// When the last child has synced and closed its file, ns.
    ended_ns: AtomicU64,
    /// Whether a child has written all of its file.
    is_finished: AtomicBool,
}

/// Creates the plan.
///
/// # Errors
/// The sizes do not fit together.
pub fn plan(args: &Iozone) -> Result<Plan, SimError> {
    let (records, bytes) = args
        .records()
        .map_err(|error| SimError::Arguments(error.to_string()))?;
    let shared = Arc::new(Shared::default());
    let script = |task, _| {
        let child = Child {
            task,
            args: args.clone(),
            calls: Default::default(),
            ended_ns: 0,
        };
        child.run(records, bytes, Arc::clone(&shared))
    };
    let programs = scripts(args.threads, script);
    // Each child has created its file before the barrier, and the file system has been synced.
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
        let phase = Phase {
            passed_ns: shared.ended_ns.load(Ordering::Relaxed),
            ..Phase::spanning(std::mem::take(&mut parts))
        };
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

/// A child: its task, and the calls that it has made.
struct Child {
    task: Task,
    args: Iozone,
    /// Times of its writes, its syncs and its closes, ns.
    calls: [Vec<u64>; 3],
    ended_ns: u64,
}

impl Child {
    async fn call(&mut self, list: usize, op: Op) {
        let went = self.task.call(op).await;
        self.calls[list].push(went.took_ns());
        self.ended_ns = went.ended_ns;
    }

    /// Makes the calls that its clock includes after the writes; returns when the clock stops, ns.
    async fn stop(&mut self) -> u64 {
        if self.args.fsync {
            self.call(1, Op::Fsync).await;
        }
        if self.args.close {
            self.call(2, Op::Close).await;
        }
        self.ended_ns
    }

    /// Runs as in `IOzone`: the first child that has written its file stops the clocks of the
    /// others, which still write theirs. Without `-c`, all sync and close their files after the
    /// clocks have stopped.
    async fn run(mut self, records: u64, bytes: u32, shared: Arc<Shared>) {
        let pause_ns = gathering_ns(self.args.threads.into());
        let begin_ns = self.task.call(Op::SleepUntil(pause_ns)).await.ended_ns;
        self.ended_ns = begin_ns;
        let stops = !self.args.no_stonewall;
        let is_over = || stops && shared.is_finished.load(Ordering::Relaxed);
        let (mut ops, mut stopped_ns) = (0, None);
        for _ in 0..records {
            if stopped_ns.is_none() && is_over() {
                stopped_ns = Some(self.stop().await);
            }
            self.call(0, Op::Write { bytes }).await;
            ops += u64::from(!is_over());
        }
        shared.is_finished.store(true, Ordering::Relaxed);
        let end_ns = match stopped_ns {
            Some(end_ns) => end_ns,
            None => self.stop().await,
        };
        if !self.args.close {
            self.task.call(Op::Fsync).await;
            self.ended_ns = self.task.call(Op::Close).await.ended_ns;
        }
        let part = Part {
            begin_ns,
            end_ns,
            ops,
            calls: self.calls.into(),
        };
        shared.ended_ns.fetch_max(self.ended_ns, Ordering::Relaxed);
        let mut parts = shared.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.push(part);
    }
}
