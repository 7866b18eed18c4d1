//! `luc bench metarates`, its phase of creating files.

use luc_workload::{Metarates, MetaratesResult, Outcome, PhaseResult};

use super::{Plan, file_creation_rate_per_s, latency, programs};
use crate::measured::{FileTime, Measured};
use crate::program::{Op, Program, Went};

/// The processes leave a barrier: timers of several processors, and their wake-ups; assumed.
const BEGIN_SPREAD_NS: u64 = 50_000;

/// The plan; `None` if another phase is asked for.
pub fn plan(args: &Metarates) -> Option<Plan> {
    if args.stat || args.utime {
        return None;
    }
    let mut measured = Measured::new(args.procs as usize, 0, u64::MAX);
    measured.keep_file_times();
    let process = |rank| Process {
        dir: if args.unique_dirs { rank } else { 0 },
        syncs: !args.no_fsync,
        left: args.files,
        step: Step::Create,
    };
    let programs = programs(args.procs, process);
    let args = args.clone();
    Some(Plan {
        programs,
        measured,
        begin_spread_ns: BEGIN_SPREAD_NS,
        outcome: Box::new(move |measured| Outcome::Metarates(result(&args, measured))),
    })
}

#[derive(Clone, Copy)]
enum Step {
    Create,
    Fsync,
    Close,
}

struct Process {
    dir: u32,
    syncs: bool,
    left: u32,
    step: Step,
}

impl Program for Process {
    fn next(&mut self, _went: &Went) -> Op {
        let (op, step) = match self.step {
            Step::Create if self.left == 0 => (Op::End, Step::Create),
            Step::Create if self.syncs => (Op::Create { dir: self.dir }, Step::Fsync),
            Step::Create => (Op::Create { dir: self.dir }, Step::Close),
            Step::Fsync => (Op::Fsync, Step::Close),
            Step::Close => {
                self.left -= 1;
                (Op::Close, Step::Create)
            }
        };
        self.step = step;
        op
    }
}

fn result(args: &Metarates, measured: &Measured) -> MetaratesResult {
    MetaratesResult {
        args: args.clone(),
        unsafe_no_fsync: args.no_fsync,
        phases: vec![phase(&measured.file_times)],
        file_creation_rate_per_s: file_creation_rate_per_s(measured.file_mean_ns()),
        open: measured.creates.latency(),
        fsync: measured.syncs.latency(),
        close: measured.closes.latency(),
    }
}

/// Processes begin together: at the first create of all.
fn phase(files: &[FileTime]) -> PhaseResult {
    let begin_ns = files.iter().map(|file| file.begun_ns).min().unwrap_or(0);
    let mut processes: Vec<(u64, u64)> = Vec::new();
    for file in files {
        let at = file.task as usize;
        if at >= processes.len() {
            processes.resize(at + 1, (0, 0));
        }
        let (count, took_ns) = &mut processes[at];
        *count += 1;
        *took_ns = (*took_ns).max(file.ended_ns - begin_ns);
    }
    processes.retain(|(count, _)| *count > 0);
    let number = processes.len().max(1) as f64;
    let per_s = |count: u64, ns: u64| count as f64 * 1e9 / ns.max(1) as f64;
    let rates = || processes.iter().map(|(count, ns)| per_s(*count, *ns));
    let times = || processes.iter().map(|(_, ns)| *ns);
    let ops = files.len() as u64;
    let longest_ns = times().max().unwrap_or(0);
    PhaseResult {
        phase: "create".to_owned(),
        ops,
        total_per_s: per_s(ops, longest_ns),
        total_with_barrier_per_s: per_s(ops, longest_ns),
        process_min_per_s: rates().reduce(f64::min).unwrap_or(0.0),
        process_avg_per_s: rates().sum::<f64>() / number,
        process_max_per_s: rates().reduce(f64::max).unwrap_or(0.0),
        time_min_ns: times().min().unwrap_or(0),
        time_avg_ns: times().sum::<u64>() as f64 / number,
        time_max_ns: longest_ns,
        latency: latency(files.iter().map(FileTime::took_ns).collect()),
    }
}
