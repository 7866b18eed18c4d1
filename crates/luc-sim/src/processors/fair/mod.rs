//! Who of those that want one processor gets it: EEVDF ([`eevdf`]), as Linux has it since 6.6, or CFS
//! ([`cfs`]), which was before.
//!
//! Both give each task a virtual time, which passes while it runs. All tasks weigh the same.

mod cfs;
mod eevdf;

use std::collections::VecDeque;

use super::TaskId;

/// The kernel's scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    Eevdf,
    Cfs,
}

impl Scheduler {
    /// The queue of one of so many processors.
    pub(super) fn queue(self, cpus: usize, tick_ns: i64) -> Either {
        match self {
            Self::Eevdf => Either::Eevdf(eevdf::Eevdf::new(cpus, tick_ns)),
            Self::Cfs => Either::Cfs(cfs::Cfs::new(cpus)),
        }
    }
}

/// The kernel's times grow with the logarithm of the processors, up to 8 of them.
fn scaled_ns(ns: i64, cpus: usize) -> i64 {
    ns * i64::from(1 + cpus.clamp(1, 8).ilog2())
}

/// The request of a task on a machine of so many processors, ns.
pub(super) fn slice_ns(cpus: usize) -> i64 {
    scaled_ns(eevdf::BASE_SLICE_NS, cpus)
}

/// A task, as the scheduler knows it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entity {
    vruntime_ns: i64,
    deadline_ns: i64,
    /// While it sleeps: how far it was behind the average.
    lag_ns: i64,
    /// Its place among those of one key, while it is in the queue.
    order: u64,
    /// It sleeps, and is in the queue until its turn.
    pub is_leaving: bool,
}

impl Entity {
    /// It has slept, and was so far ahead of others, or behind them.
    pub fn with_past(ns: i64) -> Self {
        Self {
            vruntime_ns: ns,
            lag_ns: ns,
            ..Self::default()
        }
    }

    /// Its virtual time on another queue, whose clock stands so much later.
    pub fn moves(&mut self, later_ns: i64) {
        self.vruntime_ns += later_ns;
    }
}

/// The tasks that are ready on one processor, and the one that runs.
pub(super) trait Queue {
    /// Tasks that wait for this processor.
    fn len(&self) -> usize;

    fn running(&self) -> Option<TaskId>;

    /// The time that virtual times on this queue count from, ns.
    fn clock_ns(&self) -> i64;

    /// A task becomes ready here. True if another is to have the place of the one that runs.
    fn wake(&mut self, all: &mut [Entity], task: TaskId) -> bool;

    /// The one that runs has run for so long.
    fn ran(&mut self, all: &mut [Entity], ns: i64) {
        if let Some(task) = self.running() {
            all[task as usize].vruntime_ns += ns;
        }
    }

    /// A tick: true if another may be to have the place of the one that runs.
    fn tick(&mut self, all: &mut [Entity]) -> bool;

    /// Whether the one that runs would be chosen again.
    fn stays(&self, all: &[Entity]) -> bool;

    /// How long the one that runs has until a tick may end its turn, ns.
    fn turn_left_ns(&self, all: &[Entity]) -> i64;

    /// The one that runs gives up the processor, and is ready.
    fn put_back(&mut self, all: &mut [Entity]);

    /// The one that runs goes to sleep.
    fn sleep(&mut self, all: &mut [Entity]);

    /// Chooses who runs next; `None`: nobody is ready.
    fn choose(&mut self, all: &mut [Entity]) -> Option<TaskId>;

    /// A task that waits here goes to another processor's queue: the one that would be last.
    fn give(&mut self, all: &mut [Entity]) -> Option<TaskId>;
}

/// The queue of either scheduler. A trait object in its place makes a simulated fsync 10% dearer.
#[derive(Debug)]
pub(super) enum Either {
    Eevdf(eevdf::Eevdf),
    Cfs(cfs::Cfs),
}

macro_rules! of_either {
    ($self:ident, $queue:ident => $call:expr) => {
        match $self {
            Self::Eevdf($queue) => $call,
            Self::Cfs($queue) => $call,
        }
    };
}

impl Queue for Either {
    fn len(&self) -> usize {
        of_either!(self, queue => queue.len())
    }

    fn running(&self) -> Option<TaskId> {
        of_either!(self, queue => queue.running())
    }

    fn clock_ns(&self) -> i64 {
        of_either!(self, queue => queue.clock_ns())
    }

    fn wake(&mut self, all: &mut [Entity], task: TaskId) -> bool {
        of_either!(self, queue => queue.wake(all, task))
    }

    fn tick(&mut self, all: &mut [Entity]) -> bool {
        of_either!(self, queue => queue.tick(all))
    }

    fn stays(&self, all: &[Entity]) -> bool {
        of_either!(self, queue => queue.stays(all))
    }

    fn turn_left_ns(&self, all: &[Entity]) -> i64 {
        of_either!(self, queue => queue.turn_left_ns(all))
    }

    fn put_back(&mut self, all: &mut [Entity]) {
        of_either!(self, queue => queue.put_back(all));
    }

    fn sleep(&mut self, all: &mut [Entity]) {
        of_either!(self, queue => queue.sleep(all));
    }

    fn choose(&mut self, all: &mut [Entity]) -> Option<TaskId> {
        of_either!(self, queue => queue.choose(all))
    }

    fn give(&mut self, all: &mut [Entity]) -> Option<TaskId> {
        of_either!(self, queue => queue.give(all))
    }
}

/// Tasks that wait, by a key that the scheduler gives and then as they came.
#[derive(Debug, Default)]
struct Ready {
    /// Key, order and number of each, in that order.
    tasks: VecDeque<(i64, u64, TaskId)>,
    came: u64,
}

impl Ready {
    fn insert(&mut self, entity: &mut Entity, key: i64, task: TaskId) {
        entity.order = self.came;
        self.came += 1;
        let key = (key, entity.order, task);
        let at = self.tasks.partition_point(|other| *other < key);
        self.tasks.insert(at, key);
    }

    /// True if it was there.
    fn remove(&mut self, entity: &Entity, key: i64, task: TaskId) -> bool {
        let found = self.tasks.binary_search(&(key, entity.order, task));
        found.is_ok_and(|at| self.tasks.remove(at).is_some())
    }
}
