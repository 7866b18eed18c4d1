//! `luc-lab bench write-burst`.

use luc_workload::{Outcome, WriteBurst, WriteBurstResult, WriteBurstTurn};

use super::bursts::{Turns, dir};
use super::{Plan, figures, scripts};
use crate::script::Task;
use luc_sim::program::Op;

pub fn plan(args: &WriteBurst) -> Plan {
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
        outcome: figures(move |_| {
            Outcome::WriteBurst(WriteBurstResult::new(&args, &turns.complete()))
        }),
    }
}

async fn thread(task: Task, args: WriteBurst, number: u32, turns: Turns<WriteBurstTurn>) {
    let bursts = args.bursts();
    let create_for = |burst| Op::Create {
        dir: dir(args.threads, burst),
    };
    let mut create = task.call(create_for(0)).await;
    for burst in 0..bursts.warmup + bursts.measured {
        let moment_ns = bursts.moment_ns(number, burst);
        let begin_ns = task.call(Op::SleepUntil(moment_ns)).await.ended_ns;
        let mut written_ns = begin_ns;
        for _ in 0..args.pieces {
            let bytes = args.piece_bytes;
            written_ns = task.call(Op::Write { bytes }).await.ended_ns;
        }
        let sync = task.call(Op::Fsync).await;
        let close = task.call(Op::Close).await;
        let turn = WriteBurstTurn {
            begin_ns,
            end_ns: close.ended_ns,
            create_ns: create.took_ns(),
            write_ns: written_ns - begin_ns,
            fsync_ns: sync.took_ns(),
        };
        turns.add(burst, turn);
        // The file of the next burst is created before that burst.
        create = task.call(create_for(burst + 1)).await;
    }
}
