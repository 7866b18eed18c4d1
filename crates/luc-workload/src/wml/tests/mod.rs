//! The engine from within: one test for each point that is easily got wrong, and the trees of the
//! stock personalities.

mod points;
mod trees;
mod waiting;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use luc_wml::plan::Plan;
use rustix::fs::{CWD, Mode, OFlags, openat};
use tempfile::TempDir;

use super::aio::Pool;
use super::draw::Draws;
use super::engine::{Compiler, Engine, Place, Step, each, share};
use super::options::AioWait;
use super::prepare::{Ground, prepare};
use super::random::Generator;
use super::stats::Stats;
use super::sync::Events;
use super::worker::{Counted, Flow, Memory, Worker};
use crate::crew::Schedule;
use crate::latency::Recorder;
use crate::{Result, Stop};

/// The plan of a workload file.
fn plan(text: &str) -> Plan {
    let script = luc_wml::parse("test", text).expect("well formed");
    script.plan(&[]).expect("resolves")
}

/// A plan prepared in a directory of its own, of which single loops can be run.
struct Rig<'p> {
    dir: TempDir,
    engine: Engine<'p>,
    places: Vec<Place<'p>>,
    programs: Vec<Vec<Step<'p>>>,
    schedule: Schedule,
    stop: Stop,
    ended: Stop,
}

impl<'p> Rig<'p> {
    fn new(plan: &'p Plan) -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root: OwnedFd = openat(CWD, dir.path(), flags, Mode::empty()).expect("opens");
        let mut draws = Draws::new(Generator::own(1, 0), &plan.randoms, 0);
        let stop = Stop::new();
        let ground = Ground {
            root: &root,
            path: dir.path(),
        };
        let filesets =
            prepare(plan, &mut draws, &ground, &stop, &mut |_, _| ()).expect("room for files");
        let mut places = Vec::new();
        for process in &plan.processes {
            for thread in &process.threads {
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
        }
        let (shared, semaphores, gates) = share(&places, &mut draws).expect("shares");
        let mut compiler = Compiler::new(shared);
        let programs = places
            .iter()
            .map(|place| compiler.steps(place.thread, &mut draws).expect("compiles"));
        let programs = programs.collect();
        let root_path: PathBuf = dir.path().to_owned();
        Self {
            engine: Engine {
                plan,
                filesets,
                root,
                root_path,
                semaphores,
                gates,
                events: Events::new(),
                totals: None,
                budget: None,
                no_fsync: false,
                aio_wait: AioWait::Poll,
                finished: AtomicBool::new(false),
            },
            dir,
            places,
            programs,
            schedule: Schedule {
                start_ns: 0,
                from_ns: 0,
                until_ns: u64::MAX,
            },
            stop,
            ended: Stop::new(),
        }
    }

    /// A worker for a thread, which the test leads by itself.
    fn worker(&self, number: usize) -> Worker<'_, 'p> {
        let place = &self.places[number];
        let mut flowops = 0;
        each(&place.thread.flowops, &mut |_| {
            flowops += 1;
            Ok(())
        })
        .expect("counts");
        let counted = Counted {
            stats: (0..flowops).map(|_| Stats::new()).collect(),
            fsync: Recorder::new(),
            dsync: Recorder::new(),
            last_ns: 0,
            loops: 0,
        };
        let thread = u64::try_from(number).expect("small") + 1;
        Worker::new(
            &self.engine,
            number,
            Draws::new(Generator::own(1, thread), &self.engine.plan.randoms, thread),
            place.pool.clone(),
            Memory {
                bytes: vec![0; 4 << 20],
                fixed: false,
            },
            counted,
            self.schedule,
            &self.stop,
            &self.ended,
        )
    }

    /// Path of the entry with this name in the first directory of a fileset.
    fn path(&self, fileset: &str, name: u32) -> PathBuf {
        self.dir
            .path()
            .join(fileset)
            .join("00000001")
            .join(format!("{name:08}"))
    }
}

/// Runs the loop of the only thread once; what came of it, and each flowop's operations and bytes.
fn once(plan: &Plan) -> (Result<Flow>, Vec<(u64, u64)>) {
    let mut rig = Rig::new(plan);
    let mut steps = std::mem::take(&mut rig.programs[0]);
    let mut worker = rig.worker(0);
    let flow = worker.list(&mut steps);
    let counts = worker
        .counted
        .stats
        .iter()
        .map(|stats| (stats.count, stats.bytes));
    (flow, counts.collect())
}

/// A file with one fileset `set` in one directory, and one thread with these flowops.
fn file(attributes: &str, flowops: &str) -> String {
    format!(
        "define fileset name=set,path=/tmp,dirwidth=1000000,dirgamma=0,{attributes}\n\
         define process name=p {{ thread name=t {{\n{flowops}\n}} }}\n"
    )
}
