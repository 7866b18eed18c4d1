//! Decides which task a processor runs: EEVDF ([`eevdf`]), Linux's scheduler since 6.6 (kernel
//! commit 147f3efaa241), or CFS ([`cfs`]), its predecessor.
//!
//! Both give each task a virtual time, which passes while it runs. All tasks weigh the same.

mod cfs;
mod eevdf;

use std::collections::VecDeque;

use super::TaskId;
use crate::kernel::Scheduler;

impl Scheduler {
    /// Creates the queue of one of `cpus` processors.
    pub(super) fn queue(self, cpus: usize, tick_ns: i64) -> Either {
        match self {
            Self::Eevdf => Either::Eevdf(eevdf::Eevdf::new(cpus, tick_ns)),
            Self::Cfs => Either::Cfs(cfs::Cfs::new(cpus)),
        }
    }
}

/// Scales a time as the kernel does: by the logarithm of the number of processors, of up to 8.
fn scaled_ns(ns: i64, cpus: usize) -> i64 {
    ns * i64::from(1 + cpus.clamp(1, 8).ilog2())
}

/// Returns a task's request on a machine with this many processors, ns.
pub(super) fn slice_ns(cpus: usize) -> i64 {
    scaled_ns(eevdf::BASE_SLICE_NS, cpus)
}

/// Virtual time by which a task that has slept for long is behind the others: longer than any
/// credit.
const LONG_SLEEP_NS: i64 = 1_000_000_000;

/// A task, as the scheduler knows it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entity {
    vruntime_ns: i64,
    deadline_ns: i64,
    /// For a sleeping task, how far it was behind the average.
    lag_ns: i64,
    /// Its order among entries with the same key, while it is in the queue.
    order: u64,
    /// The task sleeps, but is in the queue until its turn.
    pub is_leaving: bool,
    /// The task may run on its processor alone.
    pub is_bound: bool,
}

impl Entity {
    /// Creates a task that slept, and was this far ahead of others (CFS) or behind them (EEVDF).
    pub fn with_past(ns: i64) -> Self {
        Self {
            vruntime_ns: ns,
            lag_ns: ns,
            ..Self::default()
        }
    }

    /// Notes that it has slept for so long that CFS gives it all the credit of a sleeper. EEVDF has
    /// no such credit: the lag stays.
    pub fn has_slept(&mut self) {
        self.vruntime_ns = -LONG_SLEEP_NS;
    }

    /// Converts its virtual time to another queue, whose clock is later by this much.
    pub fn moves(&mut self, later_ns: i64) {
        self.vruntime_ns += later_ns;
    }
}

/// The tasks that are ready on one processor, and the running task.
pub(super) trait Queue {
    /// Returns how many tasks wait for this processor.
    fn len(&self) -> usize;

    fn running(&self) -> Option<TaskId>;

    /// Returns the time from which virtual times on this queue count, ns.
    fn clock_ns(&self) -> i64;

    /// Makes a task ready here. True if the running task is to be preempted.
    fn wake(&mut self, all: &mut [Entity], task: TaskId) -> bool;

    /// Notes that the running task has run for this long.
    fn ran(&mut self, all: &mut [Entity], ns: i64) {
        if let Some(task) = self.running() {
            all[task as usize].vruntime_ns += ns;
        }
    }

    /// Handles a tick: true if the running task may have to be preempted.
    fn tick(&mut self, all: &mut [Entity]) -> bool;

    /// Tells whether the running task would be chosen again.
    fn stays(&self, all: &[Entity]) -> bool;

    /// Returns how long the running task has until a tick may end its turn, ns.
    fn turn_left_ns(&self, all: &[Entity]) -> i64;

    /// Puts the running task back among those that wait.
    fn put_back(&mut self, all: &mut [Entity]);

    /// Lets the running task sleep.
    fn sleep(&mut self, all: &mut [Entity]);

    /// Chooses the task that runs next; `None` if none is ready.
    fn choose(&mut self, all: &mut [Entity]) -> Option<TaskId>;

    /// Removes a waiting task for another processor's queue: of those that may leave, the one that
    /// would run last.
    fn give(&mut self, all: &mut [Entity]) -> Option<TaskId>;
}

/// The queue of either scheduler. A trait object instead makes a simulated fsync 10% slower.
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

/// Tasks that wait, by a key from the scheduler, then by arrival.
#[derive(Debug, Default)]
struct Ready {
    /// Key, order and number of each task, sorted.
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

    /// Removes a task; false if it was not there.
    fn remove(&mut self, entity: &Entity, key: i64, task: TaskId) -> bool {
        let found = self.tasks.binary_search(&(key, entity.order, task));
        found.is_ok_and(|at| self.tasks.remove(at).is_some())
    }
}
