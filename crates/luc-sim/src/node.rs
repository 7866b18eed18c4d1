//! A machine: tasks on processors, a journal on a disk, and LUC, in one calendar.
//!
//! A task runs until it needs more instructions, or waits for the disk, a buffer, the lock of a
//! transaction, or a commit. Each operation is a walk through the kernel's path in stages; what a
//! stage costs is in [`Costs`]. Where a path is simplified:
//!
//! - Interrupts take no processor's time.
//! - The log is one write for each commit, as the block layer merges it, then the commit record.
//! - The journal never fills: there are no checkpoints.
//! - Metadata reaches its place on the disk at no cost.

use luc_control::Params;
use luc_disk::Request;

use crate::calendar::Calendar;
use crate::costs::Costs;
use crate::disk::{Disk, DiskKind};
use crate::journal::{Access, BufferId, Journal, Tid};
use crate::measured::Measured;
use crate::processors::{CpuId, Machine, PieceEnd, Processors, TaskId, Worked};
use crate::program::{Op, Program, Went};
use crate::random;
use crate::runtime::{Decision, Runtime};
use crate::workloads::{Figures, Plan};

/// The kernel's commit interval, ns.
const COMMIT_INTERVAL_NS: u64 = 5_000_000_000;
const BLOCK_BYTES: u32 = 4096;
const BLOCK_SECTORS: u64 = 8;
/// The log: 64 MiB in the middle of a disk of 1 GiB, as mkfs puts it.
const LOG_SECTOR: u64 = 1 << 20;
const LOG_SECTORS: u64 = 1 << 17;
/// Files whose inodes share a block of the inode table: 256 bytes each.
const INODES_IN_A_BLOCK: u32 = 16;

/// Everything that decides a run.
#[derive(Clone, Debug)]
pub struct Setup {
    pub machine: Machine,
    pub disk: DiskKind,
    pub costs: Costs,
    /// The knobs; `None`: stock, without LUC.
    pub luc: Option<Params>,
    /// Decides when each task begins.
    pub seed: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A processor has done a piece of work.
    Piece(CpuId),
    /// A request to the disk has ended.
    Served(u64),
    /// A task has slept enough.
    Awake(TaskId),
    /// The hold of this number is over, or the next look is due.
    Hold(u64),
    /// A transaction is as old as it may be.
    Old(Tid),
}

/// Who waits for a request.
#[derive(Clone, Copy, Debug)]
enum Owner {
    Task(TaskId),
    Log,
    Flush,
    Record,
}

/// What a task does when it has a processor and no work left.
enum Next {
    Work(u64),
    /// The same, after all that are ready.
    LetPass(u64),
    Wait,
}

/// Where a task is within its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begin,
    /// Wants a handle.
    Handle,
    /// Wants its n-th buffer.
    Buffer(u8),
    /// Holds its handle.
    Inside,
    After,
    /// A sync whose data is to be written.
    Data,
    DataWritten,
    /// A sync asks for its commit.
    Ask,
    /// It waits for it.
    Committed,
    Done,
}

struct Task {
    program: Box<dyn Program>,
    /// The operation that the program asked for, and what is left of it.
    asked: Op,
    op: Op,
    stage: Stage,
    went: Went,
    file: File,
    /// Since when it sleeps on a buffer.
    slept_from_ns: Option<u64>,
}

/// A task's file.
#[derive(Clone, Copy, Debug, Default)]
struct File {
    dir: u32,
    number: u32,
    /// The transaction that last changed its inode.
    tid: Tid,
    dirty_bytes: u32,
    is_allocated: bool,
}

/// Where the journal's thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    Asleep,
    /// On its way to a commit, or in a look at a held one.
    Looks,
    Held,
    /// Waits for operations of the locked transaction.
    Locks,
    Locked,
    Switched,
    /// Prepares the log's write.
    Fills,
    Writes,
    Written,
    Records,
    Recorded,
}

pub struct Node {
    costs: Costs,
    mips: f64,
    calendar: Calendar<Event>,
    processors: Processors,
    disk: Disk<Owner>,
    journal: Journal,
    runtime: Option<Runtime>,
    tasks: Vec<Task>,
    thread: Thread,
    hold: u64,
    /// When the commit that runs was locked, and jbd2's average of a commit's time.
    locked_ns: u64,
    average_ns: u64,
    log_blocks: u64,
    buffers_now: u64,
    /// Files in each directory.
    files: Vec<u32>,
    pub measured: Measured,
}

impl Node {
    /// The machine before its first task begins, and how the plan's figures are made.
    pub fn new(setup: &Setup, plan: Plan) -> (Self, Figures) {
        let tasks = plan.programs.into_iter().map(|program| Task {
            program,
            asked: Op::Compute(0),
            op: Op::Compute(0),
            stage: Stage::Done,
            went: Went::default(),
            file: File::default(),
            slept_from_ns: None,
        });
        let mut node = Self {
            costs: setup.costs,
            mips: setup.machine.mips.first().copied().unwrap_or(1000.0),
            calendar: Calendar::new(),
            processors: Processors::new(setup.machine.clone()),
            disk: Disk::new(setup.disk.clone()),
            journal: Journal::default(),
            runtime: setup.luc.map(Runtime::new),
            tasks: tasks.collect(),
            thread: Thread::Asleep,
            hold: 0,
            locked_ns: 0,
            average_ns: 0,
            log_blocks: 0,
            buffers_now: 0,
            files: Vec::new(),
            measured: plan.measured,
        };
        for task in 0..node.tasks.len() {
            let draw = random::below(setup.seed, task as u64, plan.begin_spread_ns);
            node.calendar.enter(draw, Event::Awake(id(task)));
        }
        (node, plan.outcome)
    }

    /// Lets time pass until `end_ns`.
    pub fn run(&mut self, end_ns: u64) {
        while let Some(event) = self.calendar.next(end_ns) {
            match event {
                Event::Piece(cpu) => self.worked(cpu),
                Event::Served(number) => self.served(number),
                Event::Awake(task) => self.wake(task, self.costs.wake),
                Event::Hold(hold) => {
                    if self.thread == Thread::Held && hold == self.hold {
                        self.wake_journal(Thread::Looks, self.costs.wake);
                    }
                }
                Event::Old(tid) => self.request(tid),
            }
        }
    }

    /// Busy time of all processors together, ns.
    pub fn busy_ns(&self) -> u64 {
        self.processors.busy_ns()
    }

    fn now_ns(&self) -> u64 {
        self.calendar.now_ns()
    }

    fn journal_thread(&self) -> TaskId {
        id(self.tasks.len())
    }

    fn begun(&mut self, end: Option<PieceEnd>) {
        if let Some(PieceEnd { cpu, at_ns }) = end {
            self.calendar.enter(at_ns, Event::Piece(cpu));
        }
    }

    fn wake(&mut self, task: TaskId, instructions: u64) {
        let end = self.processors.wake(task, instructions, self.now_ns());
        self.begun(end);
    }

    fn wake_all(&mut self, tasks: Vec<TaskId>) {
        for task in tasks {
            self.wake(task, self.costs.wake);
        }
    }

    fn wake_journal(&mut self, to: Thread, instructions: u64) {
        self.thread = to;
        self.wake(self.journal_thread(), instructions);
    }

    fn worked(&mut self, cpu: CpuId) {
        let (worked, end) = self.processors.worked(cpu, self.now_ns());
        self.begun(end);
        let Worked::Done(task) = worked else {
            return;
        };
        let next = if task == self.journal_thread() {
            self.commit()
        } else {
            self.walk(task)
        };
        let now_ns = self.now_ns();
        let end = match next {
            Next::Work(instructions) => Some(self.processors.go_on(cpu, instructions, now_ns)),
            Next::LetPass(instructions) => {
                Some(self.processors.let_pass(cpu, instructions, now_ns))
            }
            Next::Wait => self.processors.leave(cpu, now_ns),
        };
        self.begun(end);
    }

    fn submit(&mut self, request: Request, owner: Owner) {
        let now_ns = self.now_ns();
        let calendar = &mut self.calendar;
        self.disk.submit(request, owner, now_ns, |end| {
            calendar.enter(end.at_ns, Event::Served(end.number));
        });
    }

    fn served(&mut self, number: u64) {
        let now_ns = self.now_ns();
        let calendar = &mut self.calendar;
        let owner = self.disk.ended(number, now_ns, |end| {
            calendar.enter(end.at_ns, Event::Served(end.number));
        });
        match owner {
            Some(Owner::Task(task)) => self.wake(task, self.costs.wake),
            Some(Owner::Log) => {
                // The interrupt ends the shadows, and wakes who slept on them.
                let slept = self.journal.written();
                self.wake_all(slept);
                let each = self.costs.journal_buffer_end * self.buffers_now;
                self.wake_journal(Thread::Written, self.costs.journal_record + each);
            }
            Some(Owner::Flush) => self.record(),
            Some(Owner::Record) => self.wake_journal(Thread::Recorded, self.costs.journal_end),
            None => {}
        }
    }

    /// Someone wants the commit of a transaction.
    fn request(&mut self, tid: Tid) {
        if self.journal.request(tid) && self.thread == Thread::Asleep {
            self.wake_journal(Thread::Looks, self.costs.journal_wake);
        }
    }

    // A task's operations.

    fn walk(&mut self, number: TaskId) -> Next {
        loop {
            let at = number as usize;
            let now_ns = self.now_ns();
            if self.tasks[at].stage == Stage::Done {
                let task = &mut self.tasks[at];
                task.went.ended_ns = now_ns;
                self.measured.note(number, &task.asked, &task.went);
                task.asked = task.program.next(&task.went);
                task.op = task.asked;
                task.went = Went {
                    begun_ns: now_ns,
                    ..Went::default()
                };
                task.stage = Stage::Begin;
            }
            let op = self.tasks[at].op;
            let next = match op {
                Op::End => return Next::Wait,
                Op::SleepUntil(until_ns) => self.sleep(number, until_ns),
                Op::Compute(instructions) => self.last(at, instructions),
                Op::Close => self.last(at, self.costs.close),
                Op::MakeDir { dir }
                    if self.tasks[at].stage == Stage::Begin && self.has_dir(dir) =>
                {
                    self.last(at, self.costs.mkdir_exists)
                }
                Op::MakeDir { .. } | Op::Create { .. } | Op::Write { .. } => self.change(number),
                Op::Fsync => self.sync(number),
            };
            if let Some(next) = next {
                return next;
            }
        }
    }

    /// Whether the directory is there; it is from now on.
    fn has_dir(&mut self, dir: u32) -> bool {
        let at = dir as usize;
        let is_there = at < self.files.len();
        if !is_there {
            self.files.resize(at + 1, 0);
        }
        is_there
    }

    /// The operation is over after so much work.
    fn last(&mut self, at: usize, instructions: u64) -> Option<Next> {
        self.tasks[at].stage = Stage::Done;
        (instructions > 0).then_some(Next::Work(instructions))
    }

    fn sleep(&mut self, number: TaskId, until_ns: u64) -> Option<Next> {
        self.tasks[number as usize].stage = Stage::Done;
        if until_ns <= self.now_ns() {
            return None;
        }
        self.calendar.enter(until_ns, Event::Awake(number));
        Some(Next::Wait)
    }

    /// An operation that changes metadata: create, write.
    fn change(&mut self, number: TaskId) -> Option<Next> {
        let at = number as usize;
        let costs = self.costs;
        let (before, inside, after) = match self.tasks[at].op {
            Op::Create { .. } => (costs.create_before, costs.create_handle, costs.create_after),
            Op::MakeDir { .. } => (costs.mkdir_before, costs.mkdir_handle, costs.mkdir_after),
            _ => (costs.write_before, costs.write_handle, costs.write_after),
        };
        match self.tasks[at].stage {
            Stage::Begin => {
                self.tasks[at].stage = Stage::Handle;
                Some(Next::Work(before))
            }
            Stage::Handle => self.handle(number),
            Stage::Buffer(n) => self.buffer(number, n, inside),
            Stage::Inside => {
                self.end_handle();
                self.tasks[at].stage = Stage::After;
                Some(Next::Work(after))
            }
            _ => {
                let task = &mut self.tasks[at];
                task.stage = Stage::Done;
                if let Op::Write { bytes } = &mut task.op {
                    // A handle for each page.
                    let page = (*bytes).min(BLOCK_BYTES);
                    task.file.dirty_bytes = task.file.dirty_bytes.saturating_add(page);
                    *bytes -= page;
                    if *bytes > 0 {
                        task.stage = Stage::Begin;
                    }
                }
                None
            }
        }
    }

    fn handle(&mut self, number: TaskId) -> Option<Next> {
        let now_ns = self.now_ns();
        let Some(tid) = self.journal.begin(number, now_ns) else {
            return Some(Next::Wait);
        };
        if self
            .journal
            .running
            .as_ref()
            .is_some_and(|it| it.handles == 1)
        {
            self.calendar
                .enter(now_ns + COMMIT_INTERVAL_NS, Event::Old(tid));
        }
        let task = &mut self.tasks[number as usize];
        if let Op::Create { dir } = task.op {
            let dir_at = dir as usize;
            if dir_at >= self.files.len() {
                self.files.resize(dir_at + 1, 0);
            }
            task.file = File {
                dir,
                number: self.files[dir_at],
                ..File::default()
            };
            self.files[dir_at] += 1;
        }
        if let Op::MakeDir { dir } = task.op {
            task.file.dir = dir;
        }
        task.file.tid = tid;
        task.stage = Stage::Buffer(0);
        None
    }

    /// Takes one buffer after the other, and then works.
    fn buffer(&mut self, number: TaskId, n: u8, inside: u64) -> Option<Next> {
        let at = number as usize;
        let now_ns = self.now_ns();
        if let Some(from_ns) = self.tasks[at].slept_from_ns.take() {
            let slept_ns = now_ns - from_ns;
            self.tasks[at].went.delayed_ns += slept_ns;
            if let Some(runtime) = &mut self.runtime {
                runtime.delayed(slept_ns);
            }
        }
        let task = &self.tasks[at];
        let Some(buffer) = buffers(&task.op, &task.file, n) else {
            self.tasks[at].stage = Stage::Inside;
            return Some(Next::Work(inside));
        };
        let access = self.journal.access(number, buffer);
        match access {
            Access::Waits => {
                self.tasks[at].slept_from_ns = Some(now_ns);
                self.tasks[at].stage = Stage::Buffer(n);
                Some(Next::Wait)
            }
            Access::Granted | Access::Copied => {
                self.tasks[at].stage = Stage::Buffer(n + 1);
                if access == Access::Granted {
                    return None;
                }
                // Whether jbd2 made the copy, or LUC before it was needed.
                if let Some(runtime) = self.runtime.as_mut().filter(|it| it.copies) {
                    runtime.spared();
                    return None;
                }
                Some(Next::Work(self.costs.frozen_copy))
            }
        }
    }

    fn end_handle(&mut self) {
        if self.journal.end() && self.thread == Thread::Locks {
            self.wake_journal(Thread::Locked, self.costs.wake);
        }
    }

    fn sync(&mut self, number: TaskId) -> Option<Next> {
        let at = number as usize;
        match self.tasks[at].stage {
            Stage::Begin => {
                if let Some(runtime) = &mut self.runtime {
                    runtime.entered(number);
                }
                let is_clean = self.tasks[at].file.dirty_bytes == 0;
                self.tasks[at].stage = if is_clean { Stage::Ask } else { Stage::Data };
                Some(Next::Work(self.costs.sync_before))
            }
            Stage::Data => {
                let is_allocated = self.tasks[at].file.is_allocated;
                self.tasks[at].stage = if is_allocated {
                    Stage::After
                } else {
                    Stage::Handle
                };
                None
            }
            // Blocks for the data: a handle of its own.
            Stage::Handle => self.handle(number),
            Stage::Buffer(n) => self.buffer(number, n, self.costs.allocate_handle),
            Stage::Inside => {
                self.end_handle();
                self.tasks[at].file.is_allocated = true;
                self.tasks[at].stage = Stage::After;
                None
            }
            Stage::After => {
                let task = &mut self.tasks[at];
                let bytes = std::mem::take(&mut task.file.dirty_bytes);
                task.stage = Stage::DataWritten;
                let sector = data_sector(&task.file);
                self.submit(Request::write(sector, bytes.max(512)), Owner::Task(number));
                Some(Next::Wait)
            }
            Stage::DataWritten | Stage::Ask => self.ask(number),
            Stage::Committed => {
                let tid = self.tasks[at].file.tid;
                if self.journal.committed < tid {
                    // Another commit ended.
                    self.tasks[at].went.commits += 1;
                    self.journal.wait_for_commit(number);
                    return Some(Next::Wait);
                }
                self.tasks[at].went.commits += 1;
                self.last(at, self.costs.sync_after)
            }
            Stage::Done => None,
        }
    }

    fn ask(&mut self, number: TaskId) -> Option<Next> {
        let at = number as usize;
        let tid = self.tasks[at].file.tid;
        if self.journal.committed >= tid {
            return self.last(at, self.costs.sync_clean);
        }
        let now_ns = self.now_ns();
        let completes = self
            .runtime
            .as_mut()
            .is_some_and(|runtime| runtime.arrived(number, tid, now_ns));
        if completes && self.thread == Thread::Held {
            self.wake_journal(Thread::Looks, self.costs.wake);
        }
        self.request(tid);
        self.journal.wait_for_commit(number);
        self.tasks[at].stage = Stage::Committed;
        Some(Next::Wait)
    }

    // The journal's thread.

    fn commit(&mut self) -> Next {
        match self.thread {
            Thread::Looks => self.look(),
            Thread::Locked => self.switch(),
            Thread::Switched => self.fill(),
            Thread::Fills => {
                self.thread = Thread::Writes;
                let blocks = self.buffers_now + 1;
                let sector = self.log_sector(blocks);
                let bytes = u32::try_from(blocks).unwrap_or(u32::MAX / BLOCK_BYTES);
                self.submit(Request::write(sector, bytes * BLOCK_BYTES), Owner::Log);
                Next::Wait
            }
            Thread::Written => {
                self.thread = Thread::Records;
                if self.disk.kind.is_volatile {
                    self.submit(Request::flush(), Owner::Flush);
                } else {
                    self.record();
                }
                Next::Wait
            }
            Thread::Recorded => self.end_commit(),
            // It sleeps.
            Thread::Asleep | Thread::Held | Thread::Locks | Thread::Writes | Thread::Records => {
                Next::Wait
            }
        }
    }

    fn look(&mut self) -> Next {
        let now_ns = self.now_ns();
        let decision = match &mut self.runtime {
            Some(runtime) => runtime.look(&self.journal, self.average_ns, now_ns),
            None => Decision::Commit,
        };
        if let Decision::Hold { until_ns } = decision {
            self.thread = Thread::Held;
            self.hold += 1;
            self.calendar.enter(until_ns, Event::Hold(self.hold));
            return Next::Wait;
        }
        self.measured.commit(now_ns);
        if self.journal.lock() {
            return self.switch();
        }
        self.thread = Thread::Locks;
        Next::Wait
    }

    /// The transaction is locked and still: it commits.
    fn switch(&mut self) -> Next {
        self.locked_ns = self.now_ns();
        let waiting = self.journal.switch();
        self.wake_all(waiting);
        // The kernel's next point of preemption: tasks that the last commit released go first.
        self.thread = Thread::Switched;
        Next::LetPass(self.costs.journal_begin)
    }

    /// Prepares the log's write: buffers are shadowed from here on.
    fn fill(&mut self) -> Next {
        let copies = self.runtime.as_ref().is_some_and(|it| it.copies);
        let (buffers, spared) = self.journal.write_buffers(copies);
        self.buffers_now = buffers as u64;
        let copying = self.costs.frozen_copy * spared as u64;
        if let Some(runtime) = self.runtime.as_mut().filter(|_| spared > 0) {
            runtime.copied(time_ns(copying, self.mips));
        }
        self.thread = Thread::Fills;
        let each = self.costs.journal_buffer * self.buffers_now;
        Next::Work(each + copying)
    }

    /// Writes the commit record, which is durable when it is done.
    fn record(&mut self) {
        let sector = self.log_sector(1);
        self.submit(Request::write_fua(sector, BLOCK_BYTES), Owner::Record);
    }

    fn log_sector(&mut self, blocks: u64) -> u64 {
        let at = self.log_blocks * BLOCK_SECTORS % LOG_SECTORS;
        self.log_blocks += blocks;
        LOG_SECTOR + at
    }

    fn end_commit(&mut self) -> Next {
        let took_ns = self.now_ns() - self.locked_ns;
        self.average_ns = if self.average_ns == 0 {
            took_ns
        } else {
            (took_ns + 3 * self.average_ns) / 4
        };
        let waited = self.journal.committed();
        let waking = self.costs.wake * waited.len() as u64;
        self.wake_all(waited);
        if self.journal.is_wanted() {
            self.thread = Thread::Looks;
            return Next::Work(self.costs.journal_wake + waking);
        }
        self.thread = Thread::Asleep;
        Next::Wait
    }
}

/// The n-th buffer that an operation changes; `None` after the last.
fn buffers(op: &Op, file: &File, n: u8) -> Option<BufferId> {
    // A directory is a block group of its own, and has a run of numbers: bitmap of inodes, descriptor,
    // its own inode, its block, bitmap of blocks, then its table of inodes.
    const RUN: u32 = 64;
    let base = (file.dir + 1).wrapping_mul(RUN);
    let inode = base + 8 + (file.number / INODES_IN_A_BLOCK) % (RUN - 8);
    let all: &[u32] = match op {
        Op::Create { .. } => &[base, base + 1, base + 2, base + 3, inode],
        // Its parent's block and inode, too.
        Op::MakeDir { .. } => &[base, base + 1, base + 2, base + 3, base + 4, 0, 1],
        Op::Fsync => &[base + 4, base + 1, inode],
        _ => &[inode],
    };
    all.get(usize::from(n)).copied()
}

/// Data lies in the first half of the disk, by directory.
fn data_sector(file: &File) -> u64 {
    let group = u64::from(file.dir % 4) * (1 << 18);
    group + u64::from(file.number) * BLOCK_SECTORS % (1 << 18)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn time_ns(instructions: u64, mips: f64) -> u64 {
    (instructions as f64 * 1e3 / mips) as u64
}

/// Tasks are far fewer than 2^32.
fn id(at: usize) -> TaskId {
    TaskId::try_from(at).unwrap_or(TaskId::MAX)
}
