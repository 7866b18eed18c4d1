//! `luc bench burst`.

use std::sync::{Arc, Mutex, PoisonError};

use luc_workload::{Burst, BurstResult, BurstTurn, Outcome, moment_ns};

use super::{Plan, scripts};
use crate::measured::Measured;
use crate::program::Op;
use crate::script::Task;

const NS_PER_US: u64 = 1_000;
const NS_PER_MS: u64 = 1_000_000;
/// Files of one directory, as the benchmark's burst after burst.
const FILES_PER_DIR: u32 = 64;

/// Bursts, and each thread's turns of them.
type Turns = Arc<Mutex<Vec<Vec<BurstTurn>>>>;

pub fn plan(args: &Burst) -> Plan {
    let period_ns = u64::from(args.period_ms) * NS_PER_MS;
    let from_ns = period_ns * u64::from(1 + args.warmup_bursts);
    let until_ns = from_ns + period_ns * u64::from(args.bursts);
    let measured = Measured::new(args.threads as usize, from_ns, until_ns);
    let turns: Turns = Arc::new(Mutex::new(vec![Vec::new(); args.bursts as usize]));
    let script = |task, number| thread(task, args.clone(), number, Arc::clone(&turns));
    let programs = scripts(args.threads, script);
    let args = args.clone();
    let outcome = move |_: &Measured| {
        let turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
        // Only bursts that every thread took part in can be compared.
        let all = turns
            .iter()
            .take_while(|burst| burst.len() == args.threads as usize);
        let all: Vec<Vec<BurstTurn>> = all.cloned().collect();
        Outcome::Burst(BurstResult::new(&args, &all))
    };
    Plan {
        programs,
        measured,
        begin_spread_ns: 0,
        outcome: Box::new(outcome),
    }
}

async fn thread(task: Task, args: Burst, number: u32, turns: Turns) {
    let period_ns = u64::from(args.period_ms) * NS_PER_MS;
    let spread_ns = u64::from(args.spread_us) * NS_PER_US;
    for burst in 0..args.warmup_bursts + args.bursts {
        let within_ns = moment_ns(args.seed, number, burst, spread_ns);
        let moment_ns = period_ns * u64::from(1 + burst) + within_ns;
        let begin_ns = task.call(Op::SleepUntil(moment_ns)).await.ended_ns;
        let dir = burst * args.threads / FILES_PER_DIR;
        task.call(Op::Create { dir }).await;
        let sync = task.call(Op::Fsync).await;
        let close = task.call(Op::Close).await;
        let turn = BurstTurn {
            begin_ns,
            file_ns: close.ended_ns - begin_ns,
            fsync_ns: sync.took_ns(),
        };
        if let Some(measured) = burst.checked_sub(args.warmup_bursts) {
            let mut turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns[measured as usize].push(turn);
        }
    }
}
