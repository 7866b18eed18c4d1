//! The engine from within: a test for each point that is easily got wrong, and the trees of the
//! stock personalities.

mod points;
mod trees;
mod waiting;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser as _;
use luc_wml::plan::Plan;
use tempfile::TempDir;

use super::aio::Pool;
use super::engine::{Engine, Job, Step};
use super::halt::{Flow, Halt};
use super::jobs::{draws, program};
use super::options::WmlOptions;
use super::prepare::prepare;
use super::real::{Host, Own, Real, ready};
use super::thread::Thread;
use crate::Stop;
use crate::crew::{Schedule, Shift};
use crate::dir::Dir;

/// Returns the plan of a workload file.
fn plan(text: &str) -> Arc<Plan> {
    let script = luc_wml::parse("test", text).expect("well formed");
    Arc::new(script.plan(&[]).expect("resolves"))
}

#[derive(clap::Parser)]
struct Words {
    #[command(flatten)]
    options: WmlOptions,
}

fn options(words: &str) -> WmlOptions {
    let words = Words::parse_from(words.split_whitespace());
    words.options
}

type Worker<'r> = Thread<'r, Real<'r>>;

/// A plan prepared in a directory of its own; a test can run single loops of it.
struct Rig {
    dir: TempDir,
    host: Host,
    options: WmlOptions,
    stop: Stop,
}

impl Rig {
    fn new(plan: &Arc<Plan>, words: &str) -> Self {
        let options = options(&format!("run --dir . {words}"));
        let dir = tempfile::tempdir().expect("temporary directory");
        let root = Dir::open(dir.path()).expect("opens");
        let stop = Stop::new();
        let mut first = draws(plan, &options, 0, 0);
        let filesets = prepare(plan, &mut first, &root, &stop, &mut |_, _| ());
        let filesets = filesets.expect("room for files");
        let program = program(plan, &options).expect("compiles");
        let host = Host {
            engine: Engine::new(plan, filesets, &program, &options),
            root,
            pools: vec![Some(Pool::new(1 << 20))],
        };
        Self {
            dir,
            host,
            options,
            stop,
        }
    }

    /// Makes the only thread, and its steps, for the test to run.
    fn worker(&self) -> (Worker<'_>, Vec<Step<'_>>) {
        let schedule = Schedule {
            start_ns: 0,
            from_ns: 0,
            until_ns: u64::MAX,
        };
        let program = program(&self.host.engine.plan, &self.options).expect("compiles");
        let job: Job = program.jobs.into_iter().next().expect("a thread");
        let shift = Shift::new(schedule, &self.stop, &self.stop);
        let own = Own::new(&self.host.engine.plan, &job);
        let system = Real::new(&self.host, job.place, own, shift);
        Thread::new(&self.host.engine, job, system)
    }

    /// Runs the loop of the only thread once.
    fn run_once(&self) -> Worker<'_> {
        let (mut worker, mut steps) = self.worker();
        list(&mut worker, &mut steps).expect("runs");
        worker
    }

    /// Returns the path of the entry with this name in the fileset's first directory.
    fn path(&self, name: u32) -> PathBuf {
        let path = format!("set/00000001/{name:08}");
        self.dir.path().join(path)
    }
}

/// Runs these steps of a thread once.
fn list<'r>(worker: &mut Worker<'r>, steps: &mut [Step<'r>]) -> Flow {
    ready(worker.list(steps))
}

/// Runs the loop of the only thread once; returns its outcome, and each flowop's operations and
/// bytes.
fn once(plan: &Arc<Plan>) -> (Flow, Vec<(u64, u64)>) {
    let rig = Rig::new(plan, "");
    let (mut worker, mut steps) = rig.worker();
    let flow = list(&mut worker, &mut steps);
    let stats = worker.system.counted.stats.iter();
    (
        flow,
        stats.map(|stats| (stats.count, stats.bytes)).collect(),
    )
}

/// Returns the error of a step that could not be done.
fn failed(flow: Flow) -> String {
    match flow {
        Err(Halt::Failed(error)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Returns the plan of a file with one fileset `set` in one directory, and one thread with these
/// flowops.
fn file(attributes: &str, flowops: &str) -> Arc<Plan> {
    plan(&file_text(attributes, flowops))
}

fn file_text(attributes: &str, flowops: &str) -> String {
    format!(
        "define fileset name=set,path=/tmp,dirwidth=1000000,dirgamma=0,{attributes}\n\
         define process name=p {{ thread name=t {{\n{flowops}\n}} }}\n"
    )
}
