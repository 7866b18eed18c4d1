//! `luc bench create-fsync`.

use luc_workload::{CreateFsync, CreateFsyncCalls, CreateFsyncResult, Outcome};

use super::{Plan, figures, programs, seconds_ns};
use crate::costs::Costs;
use crate::measured::{Measured, latency};
use crate::program::{Op, Program, Went};

/// A thread uses a directory for at least so many files.
const SHARE_FILES_MIN: u32 = 2;

pub fn plan(args: &CreateFsync, costs: &Costs) -> Plan {
    let tasks = args.threads as usize;
    let from_ns = seconds_ns(args.warmup_s);
    let until_ns = match args.ops {
        Some(_) => u64::MAX,
        None => from_ns + seconds_ns(args.seconds),
    };
    let measured = Measured::new(tasks, from_ns, until_ns);
    let program = |number| Thread {
        turn_instructions: costs.loop_turn,
        args: args.clone(),
        number,
        from_ns,
        left: args.ops.unwrap_or(u64::MAX),
        is_counted: false,
        made: 0,
        step: Step::Dir,
    };
    let programs = programs(args.threads, program);
    let args = args.clone();
    Plan {
        programs,
        files: Vec::new(),
        measured,
        begin_spread_ns: super::LOOPS_BEGIN_SPREAD_NS,
        outcome: figures(move |measured| Outcome::CreateFsync(result(&args, measured))),
    }
}

#[derive(Clone, Copy)]
enum Step {
    Dir,
    Create,
    Write,
    Fsync,
    Close,
    Turn,
}

struct Thread {
    turn_instructions: u64,
    args: CreateFsync,
    number: u32,
    /// Files that are begun from here on count, so many of them.
    from_ns: u64,
    left: u64,
    is_counted: bool,
    made: u32,
    step: Step,
}

impl Thread {
    /// Whether it goes on in another directory.
    fn is_first_in_dir(&self) -> bool {
        self.made.is_multiple_of(self.files_in_dir())
    }

    fn files_in_dir(&self) -> u32 {
        if self.args.own_dirs {
            return self.args.files_per_dir;
        }
        (self.args.files_per_dir / self.args.threads).max(SHARE_FILES_MIN)
    }

    /// All threads share a directory and go on to the next together, or each has its own.
    fn dir(&self) -> u32 {
        let turn = self.made / self.files_in_dir();
        if self.args.own_dirs {
            return turn.wrapping_mul(self.args.threads) + self.number;
        }
        turn
    }
}

impl Program for Thread {
    fn next(&mut self, went: &Went) -> Op {
        let bytes = self.args.bytes;
        if matches!(self.step, Step::Create) {
            self.is_counted = went.ended_ns >= self.from_ns;
        }
        let (op, step) = match self.step {
            Step::Turn if self.left == 0 => (Op::End, Step::Turn),
            Step::Dir if self.is_first_in_dir() => (Op::MakeDir { dir: self.dir() }, Step::Create),
            Step::Dir => (Op::Compute(0), Step::Create),
            Step::Create if bytes > 0 => (Op::Create { dir: self.dir() }, Step::Write),
            Step::Create => (Op::Create { dir: self.dir() }, Step::Fsync),
            Step::Write => (Op::Write { bytes }, Step::Fsync),
            Step::Fsync => (Op::Fsync, Step::Close),
            Step::Close => {
                self.made = self.made.wrapping_add(1);
                self.left -= u64::from(self.is_counted);
                (Op::Close, Step::Turn)
            }
            Step::Turn => (Op::Compute(self.turn_instructions), Step::Dir),
        };
        self.step = step;
        op
    }
}

fn result(args: &CreateFsync, measured: &Measured) -> CreateFsyncResult {
    let calls = CreateFsyncCalls {
        files: measured.files.clone(),
        fsync: latency(&measured.syncs),
        create_mean_ns: latency(&measured.creates).mean_ns,
        write_mean_ns: latency(&measured.writes).mean_ns,
        close_mean_ns: latency(&measured.closes).mean_ns,
        removed_early: 0,
    };
    CreateFsyncResult::new(args, measured.elapsed_ns(), &calls)
}
