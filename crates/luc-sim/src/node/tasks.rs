//! A task's way through its operations.

use luc_disk::Request;

use super::{
    BLOCK_BYTES, BLOCK_SECTORS, COMMIT_INTERVAL_NS, Event, File, Next, Node, Owner, Stage,
    TIMER_SLACK_NS, Thread,
};
use crate::journal::{Access, BufferId};
use crate::processors::TaskId;
use crate::program::{Op, Went};

/// Files whose inodes share a block of the inode table: 256 bytes each.
const INODES_IN_A_BLOCK: u32 = 16;

impl Node {
    pub(super) fn walk(&mut self, number: TaskId) -> Next {
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
                    ended_ns: 0,
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
        self.sleepers.insert((until_ns, number));
        let latest_ns = until_ns.saturating_add(TIMER_SLACK_NS);
        self.calendar.enter(latest_ns, Event::Timer(number));
        Some(Next::Wait)
    }

    /// An operation that changes metadata: create, write.
    fn change(&mut self, number: TaskId) -> Option<Next> {
        let at = number as usize;
        let costs = self.costs;
        let (before, inside, after) = match self.tasks[at].op {
            Op::Create { .. } => {
                let search = costs.create_entry * u64::from(searched(self.tasks[at].file.number));
                let inside = costs.create_handle + search;
                (costs.create_before, inside, costs.create_after)
            }
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
        let op = self.tasks[number as usize].op;
        // Workloads that make no directories use some that were there before.
        if let Op::Create { dir } = op {
            self.has_dir(dir);
        }
        let task = &mut self.tasks[number as usize];
        match op {
            Op::Create { dir } => {
                let files = &mut self.files[dir as usize];
                task.file = File {
                    dir,
                    number: *files,
                    ..File::default()
                };
                *files += 1;
            }
            Op::MakeDir { dir } => task.file.dir = dir,
            _ => {}
        }
        task.file.tid = tid;
        task.stage = Stage::Buffer(0);
        None
    }

    /// Takes one buffer after the other, and then works.
    fn buffer(&mut self, number: TaskId, n: u8, inside: u64) -> Option<Next> {
        let at = number as usize;
        let now_ns = self.now_ns();
        let slept_from_ns = self.tasks[at].slept_from_ns.take();
        if let Some((runtime, from_ns)) = self.runtime.as_mut().zip(slept_from_ns) {
            runtime.delayed(now_ns - from_ns);
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
            self.wake_journal(Thread::Locked, self.costs.journal_lock);
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
            Stage::Again if self.journal.committed < self.tasks[at].file.tid => {
                self.journal.wait_for_commit(number);
                self.tasks[at].stage = Stage::Committed;
                Some(Next::Wait)
            }
            Stage::Again => self.last(at, self.costs.sync_after),
            Stage::Committed => {
                let tid = self.tasks[at].file.tid;
                if self.journal.committed < tid {
                    // Another commit ended.
                    self.tasks[at].stage = Stage::Again;
                    return Some(Next::Work(self.costs.sync_again));
                }
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
            self.wake_journal(Thread::Looks, 0);
        }
        self.request(tid);
        self.journal.wait_for_commit(number);
        self.tasks[at].stage = Stage::Committed;
        Some(Next::Wait)
    }
}

/// Names that are searched to add the n-th to a directory: one block, which splits when it is full.
fn searched(n: u32) -> u32 {
    const NAMES_IN_A_BLOCK: u32 = 200;
    const HALF: u32 = NAMES_IN_A_BLOCK / 2;
    if n < NAMES_IN_A_BLOCK {
        n
    } else {
        HALF + n % HALF
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
