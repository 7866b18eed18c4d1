//! `luc-lab bench run`: workload files in Filebench's language.
//!
//! The engine's own parts decide what a thread does next: random numbers, rotors of filesets, the
//! layout of trees, and what flowops share. This module makes its calls, as operations of a
//! simulated task. Data that is read is in memory; the files are on the disk when the run begins.

mod pool;
mod shared;
mod thread;
mod writer;

use std::sync::Arc;

use luc_wml::plan::{self, Io, Op};
use luc_workload::wml::parts::{Compiler, Draws, THREADS_MAX, Timing, generator, lay_out, timing};
use luc_workload::wml::{FilesetResult, WmlOptions, WmlResult};
use luc_workload::{Outcome, WorkloadError};

use super::{Found, Plan};
use crate::script::Script;
use luc_sim::SimError;
use luc_sim::costs::Costs;
use luc_sim::files::Prepared;
use luc_sim::measured::Measured;
use luc_sim::processors::TaskId;
use luc_sim::program::Program;
use shared::{Set, Shared};

/// A checked workload file, with the options of its run.
#[derive(Debug)]
pub struct FileLoad {
    pub plan: Arc<plan::Plan>,
    pub source: String,
    pub overrides: Vec<(String, String)>,
    pub options: WmlOptions,
}

/// One thread of the run.
struct Place {
    /// Its process, counted over all instances, and its number there.
    process: usize,
    within: u64,
    /// The index of its process in the plan and of its thread there; and the thread's index over
    /// all processes.
    at: (usize, usize),
    kind: usize,
}

/// # Errors
/// The file asks for something that the simulator lacks, or that is impossible.
pub fn plan(load: &FileLoad, costs: &Costs) -> Result<Plan, SimError> {
    refuse(load)?;
    let said = |error: WorkloadError| SimError::Arguments(error.to_string());
    let (plan, options) = (&load.plan, &load.options);
    let timing: Timing = timing(plan).map_err(said)?;
    let window = timing.window(options);
    if window.length_ns.is_none() && options.ops.is_none() {
        let why = "the file sets no run time; give --seconds or --ops";
        return Err(SimError::Arguments(why.into()));
    }
    let from_ns = window.warmup_ns;
    let until_ns = window
        .length_ns
        .map_or(u64::MAX, |ns| from_ns.saturating_add(ns));

    let places = places(plan);
    let thread = |place: &Place| &plan.processes[place.at.0].threads[place.at.1];
    let mut once = Draws::new(generator(options, 0, 0), &plan.randoms, 0);
    let (mut compiler, high_waters, gates) =
        Compiler::new(places.iter().map(thread), &mut once).map_err(said)?;
    let mut bound = Vec::with_capacity(places.len());
    for place in &places {
        bound.push(compiler.bind(thread(place), &mut once).map_err(said)?);
    }

    let pools = pools(plan);
    let threads = places.len();
    let tasks = threads + pools.iter().filter(|has| **has).count() * THREADS_MAX;
    let mut draws = Draws::new(generator(options, 0, 0), &plan.randoms, 0);
    let (sets, results, files) = lay_out_all(plan, &mut draws, id(tasks)).map_err(said)?;
    let mut shared = Shared::new(Arc::clone(plan), costs, options, (from_ns, until_ns));
    shared.sets = sets;
    let numbers = (id(threads)..).step_by(THREADS_MAX);
    shared.share(&high_waters, gates, &pools, numbers, THREADS_MAX);
    let shared = Arc::new(shared);

    let mut programs: Vec<Box<dyn Program>> = Vec::with_capacity(tasks);
    for (number, (place, bound)) in places.iter().zip(bound).enumerate() {
        let draws_of = generator(options, number as u64 + 1, place.within);
        let own = thread::Own {
            number: id(number),
            process: place.process,
            at: place.at,
            kind: place.kind,
            generator: draws_of,
            bound,
        };
        let shared = Arc::clone(&shared);
        programs.push(Box::new(Script::new(|task| thread::run(task, own, shared))));
    }
    for process in (0..pools.len()).filter(|process| pools[*process]) {
        for number in shared.pool_tasks(process) {
            let shared = Arc::clone(&shared);
            let script = Script::new(|task| writer::write(task, number, process, shared));
            programs.push(Box::new(script));
        }
    }

    let mut result = WmlResult::new(&load.source, &load.overrides, options);
    result.filesets = results;
    result.threads = threads as u64;
    let outcome = move |_: &Measured| found(&shared, result.clone(), from_ns, until_ns);
    Ok(Plan {
        programs,
        files,
        measured: Measured::new(tasks, from_ns, until_ns),
        begin_spread_ns: 0,
        outcome: Box::new(outcome),
    })
}

fn found(
    shared: &Shared,
    mut result: WmlResult,
    from_ns: u64,
    until_ns: u64,
) -> Result<Found, SimError> {
    let mut state = shared.state();
    if let Some(why) = state.failure.take() {
        return Err(SimError::Arguments(why));
    }
    let end_ns = if until_ns == u64::MAX {
        state.last_ns
    } else {
        until_ns
    };
    let elapsed_ns = end_ns.saturating_sub(from_ns);
    let kinds = shared.plan.processes.iter().flat_map(|it| &it.threads);
    let counts = kinds.zip(state.stats.iter().map(Vec::as_slice));
    result.sum_up(counts, elapsed_ns);
    result.loops = state.loops;
    result.fsync = luc_sim::measured::latency(&state.fsync);
    result.dsync = luc_sim::measured::latency(&state.dsync);
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

fn places(plan: &plan::Plan) -> Vec<Place> {
    let mut places = Vec::new();
    let (mut number, mut kinds) = (0, 0);
    for (at, process) in plan.processes.iter().enumerate() {
        for _ in 0..process.instances {
            let mut within = 0;
            for (thread, it) in process.threads.iter().enumerate() {
                for _ in 0..it.instances {
                    places.push(Place {
                        process: number,
                        within,
                        at: (at, thread),
                        kind: kinds + thread,
                    });
                    within += 1;
                }
            }
            number += 1;
        }
        kinds += process.threads.len();
    }
    places
}

/// Tells for each process, over all instances, whether it writes asynchronously.
fn pools(plan: &plan::Plan) -> Vec<bool> {
    let processes = plan.processes.iter().flat_map(|process| {
        let flowops = process.threads.iter().flat_map(plan::Thread::all_flowops);
        let mut ops = flowops.map(|flowop| &flowop.op);
        let has = ops.any(|op| matches!(op, Op::AioWrite(_)));
        (0..process.instances).map(move |_| has)
    });
    processes.collect()
}

type LaidOut = (Vec<Set>, Vec<FilesetResult>, Vec<Prepared>);

/// Draws all filesets, the last one first, as the engine does. Files are numbered from `first` on.
fn lay_out_all(
    plan: &plan::Plan,
    draws: &mut Draws<'_>,
    first: TaskId,
) -> Result<LaidOut, WorkloadError> {
    let (mut sets, mut results, mut files) = (Vec::new(), Vec::new(), Vec::new());
    let (mut first_file, mut first_dir) = (first, 0);
    for fileset in plan.filesets.iter().rev() {
        let (live, made, _) = lay_out(fileset, draws)?;
        results.push(FilesetResult::of(&live));
        for index in made {
            let leaf = live.tree.files[index as usize];
            files.push(Prepared {
                file: first_file + index,
                dir: first_dir + leaf.parent,
                bytes: leaf.bytes,
            });
        }
        let (count, dirs) = (id(live.tree.files.len()), id(live.tree.dirs.len()));
        sets.push(Set {
            name: fileset.name.clone(),
            first_file,
            first_dir,
            tree: live.tree,
            files: live.files,
        });
        first_file += count;
        first_dir += dirs;
    }
    sets.reverse();
    results.reverse();
    Ok((sets, results, files))
}

/// Converts an index. A tree has fewer than 2^32 entries, and a run fewer threads.
fn id(at: usize) -> TaskId {
    TaskId::try_from(at).unwrap_or(TaskId::MAX)
}
