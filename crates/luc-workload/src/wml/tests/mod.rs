//! The engine from within: a test for each point that is easily got wrong, and the trees of the
//! stock personalities.

mod points;
mod trees;
mod waiting;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use luc_wml::plan::Plan;
use tempfile::TempDir;

use super::aio::Pool;
use super::draw::Draws;
use super::engine::{Compiler, Engine, Place, Step};
use super::halt::{Flow, Halt};
use super::options::AioWait;
use super::prepare::prepare;
use super::random::Generator;
use super::sync::{Events, Gate, Semaphore};
use super::worker::{Memory, Own, Worker};
use crate::Stop;
use crate::crew::{Schedule, Shift};
use crate::dir::Dir;

/// Returns the plan of a workload file.
fn plan(text: &str) -> Plan {
    let script = luc_wml::parse("test", text).expect("well formed");
    script.plan(&[]).expect("resolves")
}

/// A plan prepared in a directory of its own; a test can run single loops of it.
struct Rig<'p> {
    dir: TempDir,
    engine: Engine<'p>,
    places: Vec<Place<'p>>,
    stop: Stop,
}

impl<'p> Rig<'p> {
    fn new(plan: &'p Plan) -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let root = Dir::open(dir.path()).expect("opens");
        let mut draws = Draws::new(Generator::own(1, 0), &plan.randoms, 0);
        let stop = Stop::new();
        let filesets = prepare(plan, &mut draws, &root, &stop, &mut |_, _| ());
        let mut places = Vec::new();
        for thread in plan.processes.iter().flat_map(|it| &it.threads) {
            for within in 0..thread.instances {
                places.push(Place {
                    number: places.len(),
                    within: usize::try_from(within).expect("small"),
                    nice: 0,
                    thread,
                    pool: Some(Arc::new(Pool::new(1 << 20))),
                });
            }
        }
        let threads = places.iter().map(|place| place.thread);
        let (_, high_waters, gates) = Compiler::new(threads, &mut draws).expect("shares");
        Self {
            engine: Engine {
                plan,
                filesets: filesets.expect("room for files"),
                root,
                semaphores: high_waters.into_iter().map(Semaphore::new).collect(),
                gates: (0..gates).map(|_| Gate::default()).collect(),
                events: Events::new(),
                totals: None,
                budget: None,
                no_fsync: false,
                aio_wait: AioWait::Poll,
                finished: AtomicBool::new(false),
            },
            dir,
            places,
            stop,
        }
    }

    /// Returns the program of the only thread.
    fn steps(&self) -> Vec<Step<'p>> {
        let mut draws = Draws::new(Generator::own(1, 0), &self.engine.plan.randoms, 0);
        let threads = self.places.iter().map(|place| place.thread);
        let (mut compiler, ..) = Compiler::new(threads, &mut draws).expect("shares");
        let steps = compiler.steps(self.places[0].thread, &mut draws);
        steps.expect("compiles")
    }

    /// Makes a worker for the only thread; the test runs its steps itself.
    fn worker(&self) -> Worker<'_, 'p> {
        let schedule = Schedule {
            start_ns: 0,
            from_ns: 0,
            until_ns: u64::MAX,
        };
        let draws = Draws::new(Generator::own(1, 1), &self.engine.plan.randoms, 1);
        let memory = Memory {
            bytes: vec![0; 4 << 20],
            fixed: false,
        };
        let own = Own::new(self.places[0].clone(), draws, memory);
        let shift = Shift::new(schedule, &self.stop, &self.stop);
        Worker::new(&self.engine, own, shift)
    }

    /// Runs the loop of the only thread once.
    fn run_once(&self) -> Worker<'_, 'p> {
        let mut steps = self.steps();
        let mut worker = self.worker();
        worker.list(&mut steps).expect("runs");
        worker
    }

    /// Returns the path of the entry with this name in the fileset's first directory.
    fn path(&self, name: u32) -> PathBuf {
        let path = format!("set/00000001/{name:08}");
        self.dir.path().join(path)
    }
}

/// Runs the loop of the only thread once; returns its outcome, and each flowop's operations and
/// bytes.
fn once(plan: &Plan) -> (Flow, Vec<(u64, u64)>) {
    let rig = Rig::new(plan);
    let mut steps = rig.steps();
    let mut worker = rig.worker();
    let flow = worker.list(&mut steps);
    let stats = worker.counted.stats.iter();
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
fn file(attributes: &str, flowops: &str) -> Plan {
    plan(&file_text(attributes, flowops))
}

fn file_text(attributes: &str, flowops: &str) -> String {
    format!(
        "define fileset name=set,path=/tmp,dirwidth=1000000,dirgamma=0,{attributes}\n\
         define process name=p {{ thread name=t {{\n{flowops}\n}} }}\n"
    )
}
