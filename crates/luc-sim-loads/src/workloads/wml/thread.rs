//! A thread of a workload file: its loop, its open files, and its flowops.

mod files;
mod flow;
mod io;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use luc_wml::plan::{self, Flowop, Io, Op, Quit, Target};
use luc_workload::wml::parts::{Bound, Draws, Generator, ROTATE_FROM, SLOTS, Step, steps};

use super::pool::Ticket;
use super::shared::Shared;
use crate::script::Task;
use luc_sim::processors::TaskId;
use luc_sim::program;

/// What a thread gets before it begins.
pub struct Own {
    pub number: TaskId,
    pub process: usize,
    pub at: (usize, usize),
    pub kind: usize,
    pub generator: Generator,
    pub bound: Vec<Bound>,
}

/// Why a thread does not go on to its next step.
enum Halt {
    /// The run is over.
    Over,
    /// No entry is in the state that the flowop needs.
    Lacking(String),
    /// The flowop is impossible.
    Refused(String),
}

type Flow<T = ()> = Result<T, Halt>;

/// A slot of the table of open files. A closed slot remembers its file.
#[derive(Clone, Copy, Default)]
struct Slot {
    is_open: bool,
    /// Fileset and entry.
    file: Option<(usize, u32)>,
    is_dsync: bool,
    at: u64,
}

struct Thread<'s> {
    task: Task,
    shared: &'s Shared,
    number: TaskId,
    process: usize,
    kind: usize,
    draws: Draws<'s>,
    slots: Vec<Slot>,
    next_slot: usize,
    /// Its rotors of existing entries, one for each fileset, for `opennext`.
    rotors: Vec<AtomicU32>,
    /// Its asynchronous writes that were begun, in their order.
    pending: Vec<Ticket>,
    /// Size of its memory, if the file gives one.
    memory_bytes: Option<u64>,
}

/// Loops over the flowops of a thread until the run or the thread has ended.
pub async fn run(task: Task, own: Own, shared: Arc<Shared>) {
    let (process, thread) = own.at;
    let it = &shared.plan.processes[process].threads[thread];
    let mut draws = Draws::new(
        own.generator,
        &shared.plan.randoms,
        u64::from(own.number) + 1,
    );
    let memory_bytes = Some(draws.whole(it.memory_bytes)).filter(|bytes| *bytes > 0);
    let steps = steps(&it.flowops, &mut own.bound.into_iter(), &mut 0);
    let mut thread = Thread {
        task,
        shared: &shared,
        number: own.number,
        process: own.process,
        kind: own.kind,
        draws,
        slots: vec![Slot::default(); SLOTS],
        next_slot: 0,
        rotors: shared.sets.iter().map(|_| AtomicU32::new(0)).collect(),
        pending: Vec::new(),
        memory_bytes,
    };
    let halt = loop {
        let begin_ns = thread.now_ns();
        match thread.list(&steps).await {
            Ok(()) => shared.state().loops += 1,
            Err(halt) => break halt,
        }
        // A loop without a flowop takes time, too.
        if thread.now_ns() == begin_ns {
            thread.call(program::Op::Compute(shared.costs.flowop)).await;
        }
    };
    let failure = match halt {
        Halt::Over => None,
        Halt::Lacking(why) => (shared.plan.quit == Quit::Timeout).then_some(why),
        Halt::Refused(why) => Some(why),
    };
    if let Some(why) = failure {
        let mut state = shared.state();
        state.failure.get_or_insert(why);
        state.is_done = true;
    }
}

/// Boxed, because a list of steps may contain lists.
type Boxed<'a> = Pin<Box<dyn Future<Output = Flow> + Send + 'a>>;

impl<'s> Thread<'s> {
    /// Does each step as often as the step says.
    fn list<'a>(&'a mut self, steps: &'a [Step<'s>]) -> Boxed<'a> {
        Box::pin(async move {
            for step in steps {
                let times = self.draws.whole(step.flowop.iters);
                for _ in 0..times {
                    self.unless_over()?;
                    self.execute(step).await?;
                }
            }
            self.unless_over()
        })
    }

    async fn execute(&mut self, step: &Step<'s>) -> Flow {
        self.call(program::Op::Compute(self.shared.costs.flowop))
            .await;
        match &step.flowop.op {
            Op::Read(it) => self.read(step, it).await,
            Op::Write(it) => self.write(step, it).await,
            Op::AioWrite(it) => self.aio_write(step, it).await,
            Op::AioWait => self.aio_wait(step).await,
            Op::ReadWholeFile(it) => self.read_whole(step, it).await,
            Op::WriteWholeFile {
                transfer,
                source_fd,
            } => self.write_whole(step, transfer, *source_fd).await,
            Op::AppendFile(it) => self.append(step, it, false).await,
            Op::AppendFileRand(it) => self.append(step, it, true).await,
            Op::OpenFile(it) => self.open(step, it).await,
            Op::CreateFile(it) => self.create(step, it).await,
            Op::CloseFile { fd, rotate } => self.close(step, *fd, *rotate).await,
            Op::DeleteFile(it) => self.delete(step, it).await,
            Op::StatFile(it) => self.stat(step, it).await,
            Op::Fsync(it) => self.fsync(step, it).await,
            Op::FsyncSet(set) => self.fsync_set(step, *set).await,
            Op::SemBlock { value, .. } => self.sem_block(step, *value).await,
            Op::SemPost {
                value, blocking, ..
            } => self.sem_post(step, *value, *blocking).await,
            Op::Block => self.block(step).await,
            Op::Wakeup { .. } => self.wakeup(step).await,
            Op::Hog { value } => self.hog(step, *value).await,
            Op::Delay { seconds } => self.delay(step, *seconds).await,
            Op::EventLimit => self.event(step).await,
            Op::Composite(_) => self.list(&step.children).await,
            // Plans with any other flowop are refused.
            _ => Ok(()),
        }
    }

    async fn call(&self, op: program::Op) -> program::Went {
        self.task.call(op).await
    }

    fn now_ns(&self) -> u64 {
        self.task.now_ns()
    }

    fn unless_over(&self) -> Flow {
        let is_over = self.now_ns() >= self.shared.until_ns || self.shared.state().is_done;
        if is_over { Err(Halt::Over) } else { Ok(()) }
    }

    /// Counts an operation that began at `begin_ns` and ends now. Returns its duration, ns, if it
    /// is part of the measurement.
    fn end(&self, step: &Step<'_>, begin_ns: u64, bytes: u64) -> Option<u64> {
        let end_ns = self.now_ns();
        if !self.shared.measures(end_ns) {
            return None;
        }
        let mut state = self.shared.state();
        if step.flowop.io != Io::None {
            if let Some(wanted) = self.shared.ops_wanted {
                state.ops += 1;
                state.is_done |= state.ops >= wanted;
                if state.ops > wanted {
                    return None;
                }
            }
            state.last_ns = end_ns;
        }
        let ns = end_ns - begin_ns;
        state.stats[self.kind][step.stats].record(ns, bytes);
        Some(ns)
    }

    /// Returns the slot that an operation means.
    fn slot(&mut self, fd: plan::Slot, rotate: bool) -> usize {
        if fd > 0 || !rotate {
            return (fd as usize).min(SLOTS - 1);
        }
        if self.next_slot == 0 {
            self.next_slot = ROTATE_FROM;
        }
        self.next_slot -= 1;
        self.next_slot
    }

    fn slot_of(&mut self, target: &Target) -> usize {
        self.slot(target.fd, target.rotate)
    }

    /// Wakes tasks that wait.
    async fn wake_all(&self, tasks: Vec<TaskId>) {
        for task in tasks {
            self.call(program::Op::Wake(task)).await;
        }
    }
}

/// Returns the error of an impossible flowop.
fn refused<T>(flowop: &Flowop, why: &str) -> Flow<T> {
    Err(Halt::Refused(format!("flowop {}: {why}", flowop.name)))
}
