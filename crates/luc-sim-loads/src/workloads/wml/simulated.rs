//! The simulated system: each call of a thread is an operation of its task.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use luc_wml::plan::OpenFlags;
use luc_workload::wml::parts::{
    ByName, Chunk, Counted, EntryId, Flow, Halt, Job, Kind, Position, System, Thread, Ticket, Work,
};
use luc_workload::{Result, WorkloadError};

use super::world::{Request, Waiting, World};
use crate::script::Task;
use luc_sim::processors::TaskId;
use luc_sim::program::Op;

/// The simulated system as one thread sees it.
struct Simulated<'w> {
    task: Task,
    world: &'w World,
    number: TaskId,
    /// The number of its process, and its kind of thread.
    process: usize,
    kind: usize,
}

/// An open file.
struct Open {
    entry: EntryId,
    at: u64,
    is_dsync: bool,
}

/// Runs a thread until it or the run has ended.
pub async fn run(task: Task, number: TaskId, job: Job, world: Arc<World>) {
    let system = Simulated {
        task,
        world: &world,
        number,
        process: job.place.instance,
        kind: job.place.kind,
    };
    let (mut thread, mut steps) = Thread::new(&world.engine, job, system);
    if let Err(error) = thread.run(&mut steps).await {
        let failure = &mut world.state().failure;
        failure.get_or_insert(error.to_string());
    }
}

impl Simulated<'_> {
    /// Does an operation on a file.
    async fn call(&self, entry: EntryId, op: Op) {
        self.task.call(Op::Use(self.world.file(entry))).await;
        self.task.call(op).await;
    }

    async fn compute(&self, instructions: u64) {
        self.task.call(Op::Compute(instructions)).await;
    }

    /// Returns the current size of a file.
    fn length(&self, entry: EntryId) -> u64 {
        self.world.state().bytes[entry.fileset][entry.index as usize]
    }
}

/// Returns an error for what plans are refused for.
fn no_directories<T>() -> Result<T> {
    let why = "the simulator has no calls for directories";
    Err(WorkloadError::Arguments(why.into()))
}

/// Converts the bytes of one call, which are fewer than 2^32.
fn bytes32(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl System for Simulated<'_> {
    type File = Open;
    type Waiters = Waiting;

    fn now_ns(&mut self) -> u64 {
        self.task.now_ns()
    }

    fn is_over(&self) -> bool {
        self.world.is_over(self.task.now_ns())
    }

    fn measures(&self, end_ns: u64) -> bool {
        self.world.measures(end_ns)
    }

    fn finish(&self) {
        self.world.engine.finished.store(true, Ordering::Relaxed);
    }

    fn count<T>(&mut self, change: impl FnOnce(&mut Counted) -> T) -> T {
        change(&mut self.world.state().counted[self.kind])
    }

    fn reserve(&mut self, _bytes: u64) {}

    async fn work(&mut self, work: Work) {
        let costs = &self.world.costs;
        let instructions = match work {
            Work::Flowop => costs.flowop,
            // A loop without a flowop takes time, too.
            Work::Loop { begin_ns } if self.task.now_ns() == begin_ns => costs.flowop,
            Work::Loop { .. } => return,
            Work::Post => costs.post,
            Work::Hog { times } => times.saturating_mul(costs.hog_turn),
        };
        self.compute(instructions).await;
    }

    async fn sleep_until(&mut self, deadline_ns: u64) {
        let deadline_ns = deadline_ns.min(self.world.until_ns);
        self.task.call(Op::SleepUntil(deadline_ns)).await;
    }

    async fn until<T>(&self, waiting: &Waiting, mut attempt: impl FnMut() -> Option<T>) -> Flow<T> {
        loop {
            if let Some(found) = attempt() {
                return Ok(found);
            }
            waiting.add(self.number);
            self.task.call(Op::Park).await;
            if self.is_over() {
                return Err(Halt::Over);
            }
        }
    }

    async fn wake(&self, waiting: &Waiting) {
        for task in waiting.take() {
            self.task.call(Op::Wake(task)).await;
        }
    }

    async fn aim(&mut self, _kind: Kind, entry: EntryId) {
        self.task.call(Op::Use(self.world.file(entry))).await;
    }

    async fn open(&mut self, entry: EntryId, flags: OpenFlags) -> Result<Open> {
        self.task.call(Op::Open).await;
        Ok(Open {
            entry,
            at: 0,
            is_dsync: flags.dsync,
        })
    }

    async fn create(&mut self, entry: EntryId, flags: OpenFlags) -> Result<Open> {
        let (set, index) = (entry.fileset, entry.index as usize);
        let parent = self.world.engine.filesets[set].tree.files[index].parent;
        let dir = self.world.firsts[set].1 + parent;
        self.task.call(Op::Stat).await;
        self.task.call(Op::Create { dir }).await;
        self.world.state().bytes[set][index] = 0;
        Ok(Open {
            entry,
            at: 0,
            is_dsync: flags.dsync,
        })
    }

    async fn by_name(&mut self, call: ByName) -> Result<()> {
        let op = match call {
            ByName::Stat => Op::Stat,
            ByName::Unlink => Op::Unlink,
            ByName::MakeDir | ByName::RemoveDir => return no_directories(),
        };
        self.task.call(op).await;
        Ok(())
    }

    async fn list_dir(&mut self, _fileset: usize, _dir: u32) -> Result<u64> {
        no_directories()
    }

    async fn close(&mut self, _file: Open) {
        self.task.call(Op::Close).await;
    }

    async fn stat_open(&mut self, _file: &Open) -> Result<()> {
        self.compute(self.world.costs.seek).await;
        Ok(())
    }

    async fn fsync(&mut self, file: &Open) -> Result<()> {
        self.call(file.entry, Op::Fsync).await;
        Ok(())
    }

    async fn seek(&mut self, file: &mut Open, to: Position) -> Result<()> {
        let at = match to {
            Position::Start => 0,
            Position::End => self.length(file.entry),
        };
        self.compute(self.world.costs.seek).await;
        file.at = at;
        Ok(())
    }

    async fn read(&mut self, file: &mut Open, to: Chunk, at: Option<u64>) -> Result<u64> {
        let from = at.unwrap_or(file.at);
        let done = self.length(file.entry).saturating_sub(from).min(to.bytes);
        let bytes = bytes32(done);
        self.call(file.entry, Op::Read { bytes }).await;
        if at.is_none() {
            file.at += done;
        }
        Ok(done)
    }

    async fn write(&mut self, file: &mut Open, from: Chunk, at: Option<u64>) -> Result<()> {
        let offset = at.unwrap_or(file.at);
        let (end, bytes) = (offset + from.bytes, bytes32(from.bytes));
        self.call(file.entry, Op::WriteAt { at: offset, bytes })
            .await;
        if file.is_dsync {
            let op = Op::SyncRange { at: offset, bytes };
            self.task.call(op).await;
        }
        self.world.wrote(file.entry, end);
        if at.is_none() {
            file.at = end;
        }
        Ok(())
    }

    async fn submit(
        &mut self,
        slot: usize,
        file: &Open,
        at: u64,
        bytes: u64,
        ticket: Ticket,
    ) -> Result<()> {
        let request = Request {
            entry: file.entry,
            at,
            bytes: bytes32(bytes),
            is_synced: file.is_dsync,
            ticket,
        };
        let woken = {
            let pool = &mut self.world.state().pools[self.process];
            let is_ready = pool.requests.add((self.number, slot), request);
            let mut woken = || pool.idle.pop_front().or_else(|| pool.fresh.pop_front());
            is_ready.then(&mut woken).flatten()
        };
        if let Some(task) = woken {
            self.task.call(Op::Wake(task)).await;
        }
        Ok(())
    }

    async fn submitted(&self, enough: impl Fn() -> bool) -> Flow {
        let waiting = &self.world.writing[self.process];
        self.until(waiting, || enough().then_some(())).await
    }
}
