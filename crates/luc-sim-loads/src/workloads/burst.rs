//! `luc-lab bench burst`.

use luc_workload::{Burst, BurstResult, BurstTurn, Outcome};

use super::bursts::{Turns, dir};
use super::{Plan, figures, scripts};
use crate::script::Task;
use luc_sim::program::Op;

pub fn plan(args: &Burst) -> Plan {
    let turns = Turns::new(args.bursts());
    let script = |task, number| thread(task, args.clone(), number, turns.clone());
    let programs = scripts(args.threads, script);
    let measured = turns.measured();
    let args = args.clone();
    Plan {
        programs,
        files: Vec::new(),
        measured,
        begin_spread_ns: 0,
        outcome: figures(move |_| Outcome::Burst(BurstResult::new(&args, &turns.complete()))),
    }
}

async fn thread(task: Task, args: Burst, number: u32, turns: Turns<BurstTurn>) {
    let bursts = args.bursts();
    for burst in 0..bursts.warmup + bursts.measured {
        let moment_ns = bursts.moment_ns(number, burst);
        let begin_ns = task.call(Op::SleepUntil(moment_ns)).await.ended_ns;
        let dir = dir(args.threads, burst);
        task.call(Op::Create { dir }).await;
        let sync = task.call(Op::Fsync).await;
        let close = task.call(Op::Close).await;
        let turn = BurstTurn {
            begin_ns,
            file_ns: close.ended_ns - begin_ns,
            fsync_ns: sync.took_ns(),
        };
        turns.add(burst, turn);
    }
}
