//! A machine: tasks on processors, a journal on a disk, and LUC, in one calendar.
//!
//! A task runs until it needs more instructions, or waits for the disk, a buffer, the lock of a
//! transaction, or a commit. An operation goes through the kernel's path in stages, whose costs are
//! in [`Costs`]. Simplifications:
//!
//! - Interrupts do not delay the work under way: the processor does theirs before its next piece.
//! - The log is one write for each commit, as the block layer merges it, then the commit record.
//! - No metadata blocks are freed, so the log has no revoke records.

mod change;
mod data;
mod disk;
mod flush;
mod home;
mod journal_thread;
mod stage;
mod sync;
mod tasks;
mod throttle;
mod workers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use luc_control::{Params, State};
use luc_power::activity::Activity;
use luc_trace::Header;

use change::Change;
use flush::{Flushes, For};
use home::HomeWriter;
use stage::Stage;
use throttle::Throttle;
use workers::{WORKERS, Workers};

use crate::calendar::Calendar;
use crate::costs::Costs;
use crate::disk::{Disk, DiskKind};
use crate::files::{FileId, Files, Prepared, Run};
use crate::journal::kind::{Choice, Layout};
use crate::journal::{BufferId, Journal, Tid, buffers};
use crate::measured::Measured;
use crate::mount::Mount;
use crate::processors::{CpuId, PieceEnd, ProcessorModel, Processors, SpeedChange, TaskId, Worked};
use crate::program::{Op, Program, Went};
use crate::random;
use crate::recorder::{Recorder, Recording};
use crate::runtime::Runtime;
use crate::units::{BLOCK_BYTES, BLOCK_SECTORS};

/// The kernel's commit interval, ns.
const COMMIT_INTERVAL_NS: u64 = 5_000_000_000;
/// How long the kernel may delay a wake-up, so that one interrupt serves several tasks.
pub(crate) const TIMER_SLACK_NS: u64 = 50_000;
/// The largest sensible [`Setup::runs`].
pub const RUNS_MAX: u32 = 1000;

/// Everything that determines a run.
#[derive(Clone, Debug)]
pub struct Setup {
    pub machine: ProcessorModel,
    pub disk: DiskKind,
    pub journal: Choice,
    pub costs: Costs,
    /// How the file system is mounted.
    pub mount: Mount,
    /// The knobs; `None` for stock, without LUC.
    pub luc: Option<Params>,
    /// Decides when tasks begin, their past on the scheduler, and the phases of an array's disks.
    pub seed: u64,
    /// Runs that follow each other on one mount; the seed draws the one that counts.
    pub runs: u32,
}

impl Setup {
    /// A machine without LUC, with Debian's kernel, mount and journal.
    pub fn stock(machine: ProcessorModel, disk: DiskKind) -> Self {
        Self {
            machine,
            disk,
            journal: Choice::default(),
            costs: Costs::default(),
            mount: Mount::default(),
            luc: None,
            seed: 1,
            runs: 1,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A processor has finished a piece of work.
    Piece(CpuId),
    /// A request to the disk has ended.
    Served(u64),
    /// A task begins.
    Begin(TaskId),
    /// A task is woken from outside.
    Release(TaskId),
    /// The slack of a sleeping task's timer is over.
    Timer(TaskId),
    /// The hold with this number is over, or its next look is due.
    Hold(u64),
    /// The commit timer goes off.
    CommitTimer,
    /// Processors change their speeds; the number of the change.
    Speeds(usize),
    /// Metadata has waited long enough to be written home.
    Flusher,
    /// The governor samples.
    Sample,
}

/// The waiter for a request.
#[derive(Clone, Copy, Debug)]
enum Owner {
    /// A task's data.
    Data(TaskId),
    /// A commit's log write, and its record.
    Log(Tid),
    Record(Tid),
    Flush,
    /// The log's superblock, with a commit's tail, or with a checkpoint's.
    TailOfCommit(u64),
    TailOfCheckpoint,
    /// `count` buffers from `first` on, written to their homes.
    Home {
        first: BufferId,
        count: u32,
    },
}

/// The next step of a task that has a processor and no work left.
enum Next {
    Work(u64),
    /// Work without a point of preemption before it.
    Unbroken(u64),
    Wait,
    /// Waits for the disk, in the kernel's `io_schedule()`.
    WaitForIo,
}

struct Task {
    program: Box<dyn Program>,
    op: Op,
    stage: Stage,
    went: Went,
    file: FileId,
    /// The change that its handle is for, and the stage after it.
    change: Change,
    then: Stage,
    /// Pages that a write has yet to fill within handles, and the stage after the last.
    pages_left: u64,
    behind_pages: Stage,
    /// Whether the task slept on a buffer and the controllers have not been told yet.
    has_slept: bool,
    /// Another task woke it before it parked.
    is_woken: bool,
    is_parked: bool,
    data: Writeback,
    /// For a worker: the task whose data it has taken.
    serves: TaskId,
}

/// The program of a worker, which gets its work elsewhere.
struct NoProgram;

impl Program for NoProgram {
    fn next(&mut self, _went: &Went) -> Op {
        Op::End
    }
}

/// The data that a task's sync writes.
#[derive(Debug, Default)]
struct Writeback {
    pages: Vec<u32>,
    runs: VecDeque<Run>,
    /// The throttle has admitted its next request.
    is_admitted: bool,
    requests: u64,
    requests_left: u64,
    /// Some of the data has new blocks.
    is_new: bool,
    /// The transaction that allocated these, if its commit waits for the data.
    tid: Tid,
    /// No commit will flush the disk after the data.
    flushes: bool,
}

/// The state of the journal's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    Asleep,
    /// On its way to a commit, or checking a held one.
    Looks,
    Held,
    /// Waits for the operations of the locked transaction.
    Locks,
    Locked,
    Switched,
    Begun,
    /// Prepares this transaction's log write.
    Fills(Tid),
    /// The transaction's last write comes next.
    Ready(Tid),
    /// The oldest commit is durable; its tail may have to be written to the superblock.
    Recorded,
    TailMoved,
}

pub struct Node {
    costs: Costs,
    speed_changes: Vec<SpeedChange>,
    calendar: Calendar<Event>,
    processors: Processors,
    /// The processor whose task acts now; `None` during an interrupt.
    acting: Option<CpuId>,
    disk: Disk<Owner>,
    journal: Journal,
    layout: Layout,
    runtime: Option<Runtime>,
    /// Tasks of the programs, then the workers.
    tasks: Vec<Task>,
    workers: Workers,
    /// Number of programs that have not ended.
    programs_left: usize,
    thread: Thread,
    /// The next steps of the journal's thread, with the work of each.
    due: VecDeque<(Thread, u64)>,
    hold: u64,
    /// There is one commit timer, as in the kernel, not one for each transaction.
    is_commit_timer_set: bool,
    /// jbd2's average of a commit's time.
    average_ns: u64,
    home: HomeWriter,
    /// The log is the home of metadata and has no room left: no task can go on.
    pub is_log_full: bool,
    /// Wake-up times of the tasks that sleep.
    sleepers: BTreeSet<(u64, TaskId)>,
    files: Files,
    flushes: Flushes,
    throttle: Throttle,
    mount: Mount,
    /// How many requests are under way for the data that a transaction's commit waits for.
    data_of: BTreeMap<Tid, u64>,
    /// Commits whose last write waits for such data.
    for_data: Vec<Tid>,
    /// When each task begins, on the tasks' clock; and when that clock starts.
    begins_ns: Vec<u64>,
    start_ns: u64,
    pub measured: Measured,
    recorder: Recorder,
}

/// The buffers that a new folder changes.
const FOLDER_BUFFERS: [BufferId; 8] = [
    buffers::INODES,
    buffers::GROUP,
    buffers::BLOCKS,
    buffers::SUPER,
    buffers::PARENT,
    buffers::PARENT_INODE,
    buffers::TABLE,
    buffers::DIRS,
];

impl Node {
    /// Creates files that exist before the first task begins.
    pub fn prepare_files(&mut self, files: &[Prepared]) {
        for file in files {
            self.files.prepare(*file);
        }
    }

    /// Lets each task begin at its own moment within `spread_ns`.
    pub fn spread_begins(&mut self, seed: u64, spread_ns: u64) {
        let begin_ns = |task| random::below(seed, task as u64, spread_ns);
        self.begins_ns = (0..self.programs_left).map(begin_ns).collect();
    }

    /// Creates a machine whose programs have not begun.
    pub fn new(setup: &Setup, programs: Vec<Box<dyn Program>>, measured: Measured) -> Self {
        let first_worker = id(programs.len());
        let workers = (0..WORKERS).map(|_| Box::new(NoProgram) as Box<dyn Program>);
        let all = programs.into_iter().chain(workers).enumerate();
        let task = |(at, program)| Task {
            program,
            op: Op::Compute(0),
            stage: Stage::Done,
            went: Went::default(),
            file: id(at),
            change: Change::Inode,
            then: Stage::Done,
            pages_left: 0,
            behind_pages: Stage::Done,
            has_slept: false,
            is_woken: false,
            is_parked: false,
            data: Writeback::default(),
            serves: 0,
        };
        let tasks: Vec<Task> = all.map(task).collect();
        Self {
            costs: setup.costs,
            speed_changes: setup.machine.changes.clone(),
            calendar: Calendar::new(),
            // Two more: the journal's thread and the thread that writes metadata home.
            processors: Processors::new(&setup.machine, setup.mount.kernel, tasks.len() + 2)
                .with_past(setup.seed, 2)
                .with_bound(id(tasks.len()), setup.machine.journal_on),
            acting: None,
            disk: Disk::new(setup.disk.clone(), setup.seed),
            journal: Journal::new(&setup.journal),
            layout: setup.journal.layout(),
            runtime: setup.luc.map(Runtime::new),
            workers: Workers::new(first_worker),
            tasks,
            programs_left: first_worker as usize,
            thread: Thread::Asleep,
            due: VecDeque::new(),
            hold: 0,
            is_commit_timer_set: false,
            average_ns: 0,
            home: HomeWriter::default(),
            is_log_full: false,
            sleepers: BTreeSet::new(),
            files: Files::default(),
            flushes: Flushes::default(),
            throttle: Throttle::new(&setup.disk),
            mount: setup.mount,
            data_of: BTreeMap::new(),
            for_data: Vec::new(),
            begins_ns: Vec::new(),
            start_ns: 0,
            measured,
            recorder: Recorder::default(),
        }
    }

    /// Records everything from now on, as the tracer would; `name` is the name of the tasks.
    pub fn record(&mut self, header: Header, name: &'static str) {
        let (tasks, journal) = (self.workers.first as usize, self.journal_thread());
        self.recorder = Recorder::on(header, name, tasks, journal, self.runtime.is_some());
    }

    /// Records everything from now on except the lines of LUC's module.
    pub fn watch(&mut self) {
        let (tasks, journal) = (self.workers.first as usize, self.journal_thread());
        self.recorder = Recorder::on(Header::default(), "", tasks, journal, false);
    }

    /// Returns the recording.
    pub fn recording(self) -> Recording {
        self.recorder.finish()
    }

    /// Starts with what copy-out learned in an earlier run, except the marks of its buffers.
    pub fn follow(&mut self, earlier: &Self) {
        if let (Some(runtime), Some(earlier)) = (&mut self.runtime, &earlier.runtime) {
            runtime.follow(earlier);
        }
    }

    /// Sets LUC's knobs, as `luc set` does; without LUC it does nothing.
    pub fn set(&mut self, params: Params) {
        if let Some(runtime) = &mut self.runtime {
            runtime.set(params);
        }
    }

    /// Lets a task begin at this time.
    pub fn begin(&mut self, task: TaskId, at_ns: u64) {
        self.calendar.enter(at_ns, Event::Begin(task));
    }

    /// Wakes a parked task at this time, from outside the machine.
    pub fn release(&mut self, task: TaskId, at_ns: u64) {
        self.calendar.enter(at_ns, Event::Release(task));
    }

    /// Creates the folder, and lets the plan's tasks begin.
    pub fn start(&mut self) {
        self.sample_later();
        self.prepare();
        for (task, draw_ns) in std::mem::take(&mut self.begins_ns).into_iter().enumerate() {
            self.begin(id(task), self.start_ns + draw_ns);
        }
        for (number, change) in self.speed_changes.iter().enumerate() {
            self.calendar
                .enter(self.start_ns + change.at_ns, Event::Speeds(number));
        }
    }

    /// Makes the benchmark's folder durable by a syncfs, as every benchmark does first. Thus the
    /// journal has committed once and knows how long that takes, and LUC has seen an urgent commit.
    fn prepare(&mut self) {
        let maker = id(self.tasks.len() - 1);
        let credits = Change::MakeDir.credits();
        let Some(tid) = self.begin_handle(maker, credits) else {
            return;
        };
        for buffer in FOLDER_BUFFERS {
            self.journal.access(maker, buffer);
        }
        self.journal.end(credits);
        self.demand(tid);
        while self.journal.committed < tid && self.step(u64::MAX) {}
        self.write_dirty_and_wait();
        self.start_ns = self.now_ns();
        self.measured.start(self.start_ns);
        self.recorder.syncfs(self.start_ns);
    }

    /// Runs until `end_ns`, or until the log is full.
    pub fn run(&mut self, end_ns: u64) {
        while self.step(end_ns) {}
    }

    /// Runs until `end_ns`, or until all programs have ended.
    pub fn run_programs(&mut self, end_ns: u64) {
        while self.programs_left > 0 && self.step(end_ns) {}
    }

    /// Handles the next event; false if the log is full, or if no event is due before `end_ns`, to
    /// which the time then advances.
    pub fn step(&mut self, end_ns: u64) -> bool {
        let Some(event) = self.calendar.next(end_ns).filter(|_| !self.is_log_full) else {
            return false;
        };
        match event {
            Event::Piece(cpu) => self.worked(cpu),
            Event::Served(number) => self.served(number),
            Event::Begin(task) => self.wake(task, 0),
            Event::Release(task) => self.unpark(task),
            Event::Timer(task) => self.timer(task),
            Event::Hold(hold) => {
                if self.thread == Thread::Held && hold == self.hold {
                    self.wake_journal(Thread::Looks, 0);
                }
            }
            Event::CommitTimer => self.commit_if_old(),
            Event::Speeds(number) => {
                self.processors.change_speeds(&self.speed_changes[number]);
            }
            Event::Flusher => self.flush_old(),
            Event::Sample => self.sample(),
        }
        true
    }

    /// Returns the activity of the machine's parts since its start.
    pub fn activity(&self) -> Activity {
        Activity {
            elapsed_ns: self.now_ns(),
            processors: self.processors.activity().cloned().collect(),
            disks: self.disk.activity(self.now_ns()),
        }
    }

    /// Lets the governor sample now and, as long as programs run, later.
    fn sample(&mut self) {
        let disk_busy_ns = self.disk.activity(self.now_ns()).busy_ns;
        self.processors.sample(self.now_ns(), disk_busy_ns);
        self.sample_later();
    }

    fn sample_later(&mut self) {
        if let Some(ns) = self
            .processors
            .sampling_ns()
            .filter(|_| self.programs_left > 0)
        {
            self.calendar.enter(self.now_ns() + ns, Event::Sample);
        }
    }

    pub fn now_ns(&self) -> u64 {
        self.calendar.now_ns()
    }

    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Returns the state of the controllers; `None` on stock.
    pub fn controllers(&self) -> Option<&State> {
        self.runtime.as_ref().map(Runtime::state)
    }

    /// Returns the transaction that last changed the inode of a task's file; 0 if none did.
    pub fn file_tid(&self, task: TaskId) -> Tid {
        self.files.tid(self.tasks[task as usize].file)
    }

    fn journal_thread(&self) -> TaskId {
        id(self.tasks.len())
    }

    fn home_thread(&self) -> TaskId {
        id(self.tasks.len() + 1)
    }

    fn begun(&mut self, end: Option<PieceEnd>) {
        if let Some(PieceEnd { cpu, at_ns }) = end {
            self.calendar.enter(at_ns, Event::Piece(cpu));
        }
    }

    fn wake(&mut self, task: TaskId, instructions: u64) {
        let (now_ns, waking) = (self.now_ns(), self.costs.wake);
        let end = self
            .processors
            .wake(task, instructions, now_ns, waking, self.acting);
        self.begun(end);
    }

    fn wake_all(&mut self, tasks: Vec<TaskId>) {
        for task in tasks {
            self.wake(task, 0);
        }
    }

    fn worked(&mut self, cpu: CpuId) {
        let (worked, end) = self.processors.worked(cpu, self.now_ns());
        self.begun(end);
        let Worked::Done(task) = worked else {
            return;
        };
        self.acting = Some(cpu);
        self.recorder.runs_on(cpu);
        let next = if task == self.journal_thread() {
            self.commit()
        } else if task == self.home_thread() {
            self.go_home()
        } else {
            self.walk(task)
        };
        self.acting = None;
        let now_ns = self.now_ns();
        let end = match next {
            Next::Work(instructions) => Some(self.processors.go_on(cpu, instructions, now_ns)),
            Next::Unbroken(instructions) => {
                Some(self.processors.go_on_unbroken(cpu, instructions, now_ns))
            }
            Next::Wait => self.processors.leave(cpu, now_ns),
            Next::WaitForIo => self.processors.leave_for_io(cpu, now_ns),
        };
        self.begun(end);
    }

    /// Returns the work of copying pages besides its instructions: waiting for memory.
    fn memory(&self, pages: u64) -> u64 {
        let waits = |cpu| self.processors.waits_for_memory(cpu, pages);
        self.acting.map_or(0, waits)
    }

    /// Handles a timer's interrupt: it wakes all tasks whose time has come, even those with slack
    /// left.
    fn timer(&mut self, task: TaskId) {
        let now_ns = self.now_ns();
        if !self.sleepers.contains(&(now_ns - TIMER_SLACK_NS, task)) {
            return;
        }
        self.processors.interrupt(task, self.costs.interrupt);
        let later = self.sleepers.split_off(&(now_ns + 1, 0));
        for (_, task) in std::mem::replace(&mut self.sleepers, later) {
            self.wake(task, 0);
        }
    }

    /// Sets the timer when a transaction begins, or when it went off before the transaction was
    /// old.
    fn set_commit_timer(&mut self, begun_ns: u64) {
        if !self.is_commit_timer_set {
            self.is_commit_timer_set = true;
            self.calendar
                .enter(begun_ns + COMMIT_INTERVAL_NS, Event::CommitTimer);
        }
    }

    fn commit_if_old(&mut self) {
        self.is_commit_timer_set = false;
        let Some(running) = &self.journal.running else {
            return;
        };
        let (tid, begun_ns) = (running.tid, running.begun_ns);
        if begun_ns + COMMIT_INTERVAL_NS <= self.now_ns() {
            self.request(tid);
        } else {
            self.set_commit_timer(begun_ns);
        }
    }
}

/// Returns the number of a task; there are far fewer than 2^32.
fn id(at: usize) -> TaskId {
    TaskId::try_from(at).unwrap_or(TaskId::MAX)
}
