//! How a task goes through its operations.

use super::{Event, Next, Node, Stage, TIMER_SLACK_NS};
use crate::processors::TaskId;
use crate::program::{Op, Went};

impl Node {
    pub(super) fn walk(&mut self, number: TaskId) -> Next {
        self.recorder.woke(number, self.now_ns());
        if number >= self.workers.first {
            return self.work(number);
        }
        loop {
            let at = number as usize;
            let now_ns = self.now_ns();
            if self.tasks[at].stage == Stage::Done {
                let task = &mut self.tasks[at];
                task.went.ended_ns = now_ns;
                self.measured.note(number, &task.op, &task.went);
                let inode = || self.files.inode(task.file).object();
                self.recorder.ended(number, &task.op, &task.went, inode);
                task.op = task.program.next(&task.went.since(self.start_ns));
                task.went = Went {
                    begun_ns: now_ns,
                    ..Went::default()
                };
                task.stage = Stage::Begin;
            }
            let op = self.tasks[at].op;
            let next = match op {
                Op::End => {
                    self.programs_left -= 1;
                    return Next::Wait;
                }
                Op::SleepUntil(until_ns) => {
                    self.sleep(number, until_ns.saturating_add(self.start_ns))
                }
                Op::Compute(instructions) => self.last(at, instructions),
                Op::Park => self.park(at),
                Op::Wake(other) => self.wake_other(at, other),
                Op::Use(file) => {
                    self.tasks[at].file = file;
                    self.last(at, 0)
                }
                Op::Open => self.last(at, self.costs.open),
                Op::Stat => self.last(at, self.costs.stat),
                Op::Close => self.last(at, self.costs.close),
                Op::MakeDir { dir }
                    if self.tasks[at].stage == Stage::Begin && self.files.has_dir(dir) =>
                {
                    self.last(at, self.costs.mkdir_exists)
                }
                Op::MakeDir { .. } | Op::Create { .. } | Op::Utime | Op::Unlink => {
                    self.change(number)
                }
                Op::Write { .. } | Op::WriteAt { .. } => self.write(number),
                Op::Read { bytes } => self.read(number, bytes),
                Op::Fsync => self.sync(number, 0, u64::MAX),
                Op::SyncRange { at, bytes } => self.sync(number, at, u64::from(bytes)),
                Op::SyncAs(recorded) => self.sync_as(number, recorded),
            };
            if let Some(next) = next {
                return next;
            }
        }
    }

    /// Ends the operation after this much work.
    pub(super) fn last(&mut self, at: usize, instructions: u64) -> Option<Next> {
        self.go(at, Stage::Done, instructions)
    }

    /// Goes to this stage after this much work.
    pub(super) fn go(&mut self, at: usize, stage: Stage, instructions: u64) -> Option<Next> {
        self.tasks[at].stage = stage;
        (instructions > 0).then_some(Next::Work(instructions))
    }

    fn sleep(&mut self, number: TaskId, until_ns: u64) -> Option<Next> {
        let at = number as usize;
        match self.tasks[at].stage {
            Stage::Begin => self.go(at, Stage::Inside, self.costs.sleep_before),
            Stage::Inside if until_ns > self.now_ns() => {
                self.tasks[at].stage = Stage::After;
                self.sleepers.insert((until_ns, number));
                let latest_ns = until_ns.saturating_add(TIMER_SLACK_NS);
                self.calendar.enter(latest_ns, Event::Timer(number));
                Some(Next::Wait)
            }
            Stage::Inside => self.last(at, 0),
            _ => self.last(at, self.costs.sleep_after),
        }
    }

    fn park(&mut self, at: usize) -> Option<Next> {
        let task = &mut self.tasks[at];
        if task.stage == Stage::Begin {
            return self.go(at, Stage::After, self.costs.park);
        }
        task.stage = Stage::Done;
        if std::mem::take(&mut task.is_woken) {
            return None;
        }
        task.is_parked = true;
        Some(Next::Wait)
    }

    fn wake_other(&mut self, at: usize, other: TaskId) -> Option<Next> {
        if self.tasks[at].stage == Stage::Begin {
            return self.go(at, Stage::After, self.costs.unpark);
        }
        self.tasks[at].stage = Stage::Done;
        self.unpark(other);
        None
    }

    /// Lets a parked task continue, or a task that is not parked pass its next park.
    pub(super) fn unpark(&mut self, number: TaskId) {
        if let Some(task) = self.tasks.get_mut(number as usize) {
            if std::mem::take(&mut task.is_parked) {
                self.wake(number, 0);
            } else {
                task.is_woken = true;
            }
        }
    }
}
