//! `luc-lab bench create-fsync`.

use luc_disk::file_system::inodes;
use luc_workload::{CreateFsync, CreateFsyncCalls, CreateFsyncResult, Outcome, seconds_ns};

use super::{Plan, figures, programs};
use luc_sim::costs::Costs;
use luc_sim::disk::DiskKind;
use luc_sim::measured::{Measured, latency};
use luc_sim::program::{Op, Program, Went};

pub fn plan(args: &CreateFsync, costs: &Costs, disk: &DiskKind) -> Plan {
    let tasks = args.threads as usize;
    let (files_in_dir, dirs) = args.own_files(inodes(disk.size_mib));
    let few = |count| u32::try_from(count).unwrap_or(u32::MAX);
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
        files_in_dir: few(files_in_dir),
        dirs: few(dirs),
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
        begin_spread_ns: 0,
        outcome: figures(move |measured| Outcome::CreateFsync(result(&args, measured))),
    }
}

#[derive(Clone, Copy)]
enum Step {
    Dir,
    MakeDir,
    /// Looks for the n-th of its files in a directory that it reuses, and then removes it.
    Old(u32),
    Remove(u32),
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
    /// How many of its files it puts into a directory, and how many directories it uses in turn.
    files_in_dir: u32,
    dirs: u32,
    /// Files that begin from this time on count, up to `left` of them.
    from_ns: u64,
    left: u64,
    is_counted: bool,
    made: u32,
    step: Step,
}

impl Thread {
    /// Tells whether it goes on to another directory.
    fn is_first_in_dir(&self) -> bool {
        self.made.is_multiple_of(self.files_in_dir)
    }

    /// Returns how many of its files exist at most.
    fn kept(&self) -> u32 {
        self.dirs.saturating_mul(self.files_in_dir)
    }

    /// Returns the number of its file in this turn, either a new one or that of a file removed by
    /// then.
    fn file(&self, turn: u32) -> Op {
        let of_thread = turn % self.kept() + 1;
        Op::Use(of_thread * self.args.threads + self.number)
    }

    /// Returns its directory: all threads share one and go on to the next together, or each has its
    /// own.
    fn dir(&self) -> u32 {
        let turn = self.made / self.files_in_dir % self.dirs;
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
            // Files are numbered after the directories' own.
            Step::Dir if self.is_first_in_dir() => (Op::Use(self.number), Step::MakeDir),
            Step::MakeDir => (Op::MakeDir { dir: self.dir() }, Step::Old(0)),
            Step::Old(n) if n < self.files_in_dir && self.made >= self.kept() => {
                (self.file(self.made + n), Step::Remove(n))
            }
            Step::Remove(n) => (Op::Unlink, Step::Old(n + 1)),
            Step::Dir | Step::Old(_) => (self.file(self.made), Step::Create),
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
        removed_early: measured.removed,
    };
    CreateFsyncResult::new(args, measured.elapsed_ns(), &calls)
}
