//! `luc-lab bench burst` and `luc-lab bench write-burst`.

use std::sync::{Arc, Mutex, PoisonError};

use luc_workload::{Burst, BurstResult, BurstTurn, Bursts, Outcome};
use luc_workload::{WriteBurst, WriteBurstResult, WriteBurstTurn};

use super::{Plan, figures, scripts};
use crate::script::Task;
use luc_sim::measured::Measured;
use luc_sim::program::{Op, Went};

/// A thread of either benchmark.
struct Thread<T> {
    task: Task,
    number: u32,
    bursts: Bursts,
    /// The threads' turns in each measured burst.
    turns: Arc<Mutex<Vec<Vec<T>>>>,
}

pub fn burst(args: &Burst) -> Plan {
    let args = args.clone();
    let script = |thread: Thread<BurstTurn>| async move {
        for burst in 0..thread.bursts.warmup + thread.bursts.measured {
            let begin_ns = thread.sleep(burst).await;
            thread.create(burst).await;
            let sync = thread.task.call(Op::Fsync).await;
            let close = thread.task.call(Op::Close).await;
            let turn = BurstTurn {
                begin_ns,
                file_ns: close.ended_ns - begin_ns,
                fsync_ns: sync.took_ns(),
            };
            thread.add(burst, turn);
        }
    };
    plan(args.bursts(), script, move |bursts| {
        Outcome::Burst(BurstResult::new(&args, bursts))
    })
}

pub fn write_burst(args: &WriteBurst) -> Plan {
    let args = args.clone();
    let (pieces, bytes) = (args.pieces, args.piece_bytes);
    let script = move |thread: Thread<WriteBurstTurn>| async move {
        let mut create = thread.create(0).await;
        for burst in 0..thread.bursts.warmup + thread.bursts.measured {
            let begin_ns = thread.sleep(burst).await;
            let mut written_ns = begin_ns;
            for _ in 0..pieces {
                written_ns = thread.task.call(Op::Write { bytes }).await.ended_ns;
            }
            let sync = thread.task.call(Op::Fsync).await;
            let close = thread.task.call(Op::Close).await;
            let turn = WriteBurstTurn {
                begin_ns,
                end_ns: close.ended_ns,
                create_ns: create.took_ns(),
                write_ns: written_ns - begin_ns,
                fsync_ns: sync.took_ns(),
            };
            thread.add(burst, turn);
            // The file of the next burst is created before that burst.
            create = thread.create(burst + 1).await;
        }
    };
    plan(args.bursts(), script, move |bursts| {
        Outcome::WriteBurst(WriteBurstResult::new(&args, bursts))
    })
}

fn plan<T, F>(
    bursts: Bursts,
    script: impl Fn(Thread<T>) -> F,
    outcome: impl Fn(&[Vec<T>]) -> Outcome + 'static,
) -> Plan
where
    T: Clone + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let turns = Arc::new(Mutex::new(vec![Vec::new(); bursts.measured as usize]));
    let programs = scripts(bursts.threads, |task, number| {
        script(Thread {
            task,
            number,
            bursts,
            turns: Arc::clone(&turns),
        })
    });
    let (from_ns, until_ns) = bursts.window_ns();
    Plan {
        programs,
        files: Vec::new(),
        measured: Measured::new(bursts.threads as usize, from_ns, until_ns),
        begin_spread_ns: 0,
        outcome: figures(move |_| {
            let all = turns.lock().unwrap_or_else(PoisonError::into_inner);
            // Only bursts in which every thread took part can be compared.
            let is_complete = |burst: &&Vec<T>| burst.len() == bursts.threads as usize;
            outcome(&all[..all.iter().take_while(is_complete).count()])
        }),
    }
}

impl<T> Thread<T> {
    /// Sleeps until the thread's moment in a burst; returns when it begins.
    async fn sleep(&self, burst: u32) -> u64 {
        let moment_ns = self.bursts.moment_ns(self.number, burst);
        self.task.call(Op::SleepUntil(moment_ns)).await.ended_ns
    }

    /// Creates a file of a burst, in a new directory when the last one is full.
    async fn create(&self, burst: u32) -> Went {
        const FILES_PER_DIR: u32 = 64;
        let dir = burst * self.bursts.threads / FILES_PER_DIR;
        self.task.call(Op::Create { dir }).await
    }

    fn add(&self, burst: u32, turn: T) {
        if let Some(measured) = burst.checked_sub(self.bursts.warmup) {
            let mut all = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            all[measured as usize].push(turn);
        }
    }
}
