//! `luc-lab bench write-delay`.

use luc_workload::{Outcome, WriteDelay, WriteDelayResult, seconds_ns};

use super::{Plan, figures, programs};
use luc_sim::measured::{Measured, latency};
use luc_sim::program::{Op, Program, Went};

const NS_PER_US: u64 = 1_000;
/// The writers' files lie in one directory; each stream has its own.
const WRITERS_DIR: u32 = 0;

pub fn plan(args: &WriteDelay) -> Plan {
    let tasks = (args.writers + args.fsync_streams) as usize;
    let from_ns = seconds_ns(args.warmup_s);
    let mut measured = Measured::new(tasks, from_ns, from_ns + seconds_ns(args.seconds));
    measured.delayed_over_ns = u64::from(args.delayed_over_us) * NS_PER_US;
    let writer = Writer {
        bytes: args.bytes,
        think_ns: u64::from(args.think_us) * NS_PER_US,
        next: Next::Create,
    };
    let mut all = programs(args.writers, |_| writer.clone());
    all.extend(programs(args.fsync_streams, |number| Stream {
        dir: 1 + number,
        step: 0,
    }));
    let args = args.clone();
    Plan {
        programs: all,
        files: Vec::new(),
        measured,
        begin_spread_ns: 0,
        outcome: figures(move |measured| Outcome::WriteDelay(result(&args, measured))),
    }
}

#[derive(Clone, Copy)]
enum Next {
    Create,
    Write,
    Think,
}

/// Appends to its own file, then thinks.
#[derive(Clone)]
struct Writer {
    bytes: u32,
    think_ns: u64,
    next: Next,
}

impl Program for Writer {
    fn next(&mut self, went: &Went) -> Op {
        let (op, next) = match self.next {
            Next::Create => (Op::Create { dir: WRITERS_DIR }, Next::Write),
            Next::Write => (Op::Write { bytes: self.bytes }, Next::Think),
            Next::Think => (Op::SleepUntil(went.ended_ns + self.think_ns), Next::Write),
        };
        self.next = next;
        op
    }
}

/// Creates, fsyncs and closes, forever.
struct Stream {
    dir: u32,
    step: u8,
}

impl Program for Stream {
    fn next(&mut self, _went: &Went) -> Op {
        self.step = (self.step + 1) % 3;
        match self.step {
            1 => Op::Create { dir: self.dir },
            2 => Op::Fsync,
            _ => Op::Close,
        }
    }
}

fn result(args: &WriteDelay, measured: &Measured) -> WriteDelayResult {
    let (write, fsync) = (latency(&measured.writes), latency(&measured.syncs));
    let (delayed, elapsed_ns) = (measured.writes_delayed, measured.elapsed_ns());
    WriteDelayResult::new(args, elapsed_ns, write, delayed, fsync)
}
