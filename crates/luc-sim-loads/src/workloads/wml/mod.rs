//! `luc-lab bench run`: workload files in Filebench's language.
//!
//! The engine decides what a thread does next; here are the system that its calls go to, as
//! operations of a simulated task, and the run around it. Data that is read is in memory; the files
//! are on the disk when the run begins.

mod simulated;
mod world;
mod writer;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use luc_wml::plan::{self, Io, Op};
use luc_workload::wml::parts::{
    Counted, Engine, THREADS_MAX, aio_bytes, commands, draws, lay_out, program, timing,
};
use luc_workload::wml::{FilesetResult, WmlOptions, WmlResult};
use luc_workload::{Outcome, Recorder, WorkloadError};

use super::{Found, Plan};
use crate::script::Script;
use luc_sim::SimError;
use luc_sim::costs::Costs;
use luc_sim::files::Prepared;
use luc_sim::measured::Measured;
use luc_sim::processors::TaskId;
use luc_sim::program::Program;
use world::{Pool, State, Waiting, World};

/// A checked workload file, with the options of its run.
#[derive(Debug)]
pub struct FileLoad {
    pub plan: Arc<plan::Plan>,
    pub source: String,
    pub overrides: Vec<(String, String)>,
    pub options: WmlOptions,
}

impl FileLoad {
    /// Returns the bytes of all files that exist before the run.
    ///
    /// # Errors
    /// A fileset cannot be laid out.
    pub fn prepared_bytes(&self) -> Result<u64, SimError> {
        let mut bytes = 0;
        let mut once = draws(&self.plan, &self.options, 0, 0);
        lay_out::<Waiting>(&self.plan, &mut once, |live, made, _| {
            let sizes = made
                .iter()
                .map(|index| live.tree.files[*index as usize].bytes);
            bytes += sizes.sum::<u64>();
            Ok(())
        })
        .map_err(|error| SimError::Arguments(error.to_string()))?;
        Ok(bytes)
    }
}

/// # Errors
/// The file asks for something that the simulator lacks, or that is impossible.
pub fn plan(load: &FileLoad, costs: &Costs) -> Result<Plan, SimError> {
    refuse(load)?;
    let said = |error: WorkloadError| SimError::Arguments(error.to_string());
    let (plan, options) = (&load.plan, &load.options);
    let window = timing(plan).map_err(said)?.window(options);
    if window.length_ns.is_none() && options.ops.is_none() {
        let why = "the file sets no run time; give --seconds or --ops";
        return Err(SimError::Arguments(why.into()));
    }
    let from_ns = window.warmup_ns;
    let until_ns = window
        .length_ns
        .map_or(u64::MAX, |ns| from_ns.saturating_add(ns));

    let program = program(plan, options).map_err(said)?;
    let threads = program.jobs.len();
    let (mut tasks, mut pools) = (threads, Vec::new());
    for bytes in aio_bytes(plan).map_err(said)? {
        let first = tasks;
        tasks += bytes.map_or(0, |_| THREADS_MAX);
        pools.push(Pool {
            fresh: (id(first)..id(tasks)).collect(),
            ..Pool::default()
        });
    }

    // Files are numbered after the tasks' own.
    let (mut files, mut firsts, mut first) = (Vec::new(), Vec::new(), (id(tasks), 0));
    let mut once = draws(plan, options, 0, 0);
    let filesets = lay_out::<Waiting>(plan, &mut once, |live, made, _| {
        let tree = &live.tree;
        files.extend(made.iter().map(|index| {
            let leaf = tree.files[*index as usize];
            Prepared {
                file: first.0 + index,
                dir: first.1 + leaf.parent,
                bytes: leaf.bytes,
            }
        }));
        firsts.push(first);
        first = (
            first.0 + id(tree.files.len()),
            first.1 + id(tree.dirs.len()),
        );
        Ok(())
    });
    let filesets = filesets.map_err(said)?;
    firsts.reverse();

    let mut result = WmlResult::new(plan, &load.source, &load.overrides, options);
    if plan
        .actions
        .iter()
        .any(|it| matches!(it, plan::Action::DropCaches(_)))
    {
        let note = "dropping caches has no effect in the simulator: data that is read is in memory";
        result.notes.push(note.into());
    }
    result.filesets = filesets.iter().map(FilesetResult::from_live).collect();
    result.threads = threads as u64;
    let lengths = filesets.iter().map(|live| {
        let leaves = live.tree.files.iter();
        leaves.map(|leaf| leaf.bytes).collect()
    });
    let kinds = plan.processes.iter().flat_map(|it| &it.threads);
    let state = State {
        bytes: lengths.collect(),
        counted: kinds.map(Counted::new).collect(),
        written: Recorder::new(),
        failure: None,
        pools,
    };
    let writers: Vec<_> = state.pools.iter().map(|pool| pool.fresh.clone()).collect();
    let world = Arc::new(World {
        engine: Engine::new(plan, filesets, &program, options),
        costs: *costs,
        from_ns,
        until_ns,
        firsts,
        writing: writers.iter().map(|_| Waiting::default()).collect(),
        state: Mutex::new(state),
    });

    let mut programs: Vec<Box<dyn Program>> = Vec::with_capacity(tasks);
    for (number, job) in (0..).zip(program.jobs) {
        let script = |task| simulated::run(task, number, job, Arc::clone(&world));
        programs.push(Box::new(Script::new(script)));
    }
    for (process, tasks) in writers.into_iter().enumerate() {
        for number in tasks {
            let script = |task| writer::write(task, number, process, Arc::clone(&world));
            programs.push(Box::new(Script::new(script)));
        }
    }
    let outcome = move |_: &Measured| found(&world, result.clone());
    Ok(Plan {
        programs,
        files,
        measured: Measured::new(tasks, from_ns, until_ns),
        begin_spread_ns: 0,
        outcome: Box::new(outcome),
    })
}

fn found(world: &World, mut result: WmlResult) -> Result<Found, SimError> {
    let mut state = world.state();
    if let Some(why) = state.failure.take() {
        return Err(SimError::Arguments(why));
    }
    let is_cut_short = world.engine.finished.load(Ordering::Relaxed);
    let end_ns = match world.until_ns {
        until_ns if until_ns < u64::MAX && !is_cut_short => until_ns,
        _ => state.counted.iter().map(|it| it.last_ns).max().unwrap_or(0),
    };
    let elapsed_ns = end_ns.saturating_sub(world.from_ns);
    let kinds = world
        .engine
        .plan
        .processes
        .iter()
        .flat_map(|it| &it.threads);
    let counted = kinds.zip(&state.counted);
    result.sum_up(counted, std::slice::from_ref(&state.written), elapsed_ns);
    Ok(Found {
        outcome: Outcome::Wml(result),
        elapsed_ns,
    })
}

/// Refuses a file that asks for something that the simulator lacks.
fn refuse(load: &FileLoad) -> Result<(), SimError> {
    let refused = |why: String| Err(SimError::Arguments(why));
    if load.options.prepare_only {
        return refused("--prepare-only: the simulator has no files to make; leave it out".into());
    }
    if let Some((command, at)) = commands(&load.plan).next() {
        let line = at.line;
        return refused(format!(
            "line {line}: the simulator runs no command such as {command:?}; delete the line, or \
             run the file with luc-lab bench run --allow-system"
        ));
    }
    let threads = || load.plan.processes.iter().flat_map(|it| &it.threads);
    let flowops = || threads().flat_map(plan::Thread::all_flowops);
    if load.options.ops.is_some() && flowops().all(|flowop| flowop.io == Io::None) {
        return refused("--ops: no flowop of the file counts as an operation".into());
    }
    for flowop in flowops() {
        let is_there = !matches!(
            flowop.op,
            Op::MakeDir(_)
                | Op::RemoveDir(_)
                | Op::ListDir(_)
                | Op::BwLimit { .. }
                | Op::IopsLimit { .. }
                | Op::OpsLimit { .. }
                | Op::FinishOnCount { .. }
                | Op::FinishOnBytes { .. }
        );
        let (name, kind) = (&flowop.name, flowop.kind);
        if !is_there {
            return refused(format!(
                "flowop {name}: the simulator has no {kind}; run it with luc-lab bench"
            ));
        }
        if flowop.op.target().is_some_and(|it| it.flags.direct_io) {
            return refused(format!(
                "flowop {name}: the simulator has no directio; run it with luc-lab bench"
            ));
        }
    }
    Ok(())
}

/// Converts an index. A tree has fewer than 2^32 entries, and a run fewer threads.
fn id(at: usize) -> TaskId {
    TaskId::try_from(at).unwrap_or(TaskId::MAX)
}
