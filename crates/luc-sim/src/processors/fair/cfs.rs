//! CFS, Linux's scheduler before 6.6 (kernel commit 147f3efaa241). Its parameters and features are
//! the same from 3.4 to 6.1.
//!
//! The task with the least virtual time runs first. It keeps the processor for its share of a
//! period, which ticks check; a task that wakes preempts it if its virtual time is less by more
//! than the wake-up granularity. Sleep is credited with at most half a period: a task that slept
//! longer starts that far below the least virtual time, a task that slept less keeps its own
//! (`GENTLE_FAIR_SLEEPERS`). If many tasks are ready, a task that lost the processor to a wake-up
//! gets it back (`LAST_BUDDY`).

use super::{Entity, Queue, Ready, scaled_ns};
use crate::processors::TaskId;

/// `sysctl_sched_latency`, `sysctl_sched_min_granularity` and `sysctl_sched_wakeup_granularity` for
/// one processor.
const LATENCY_NS: i64 = 6_000_000;
const GRANULARITY_NS: i64 = 750_000;
const WAKEUP_NS: i64 = 1_000_000;

/// `sched_nr_latency`: with more tasks, each gets the granularity.
const MANY: usize = 8;

#[derive(Debug, Default)]
pub(in crate::processors) struct Cfs {
    latency_ns: i64,
    granularity_ns: i64,
    wakeup_ns: i64,
    /// Waiting tasks, by their virtual times.
    ready: Ready,
    running: Option<TaskId>,
    /// The virtual time of the running task when it was chosen.
    chosen_ns: i64,
    /// The least virtual time of all ready tasks; it never decreases.
    least_ns: i64,
    /// The task that lost the processor to a wake-up.
    last: Option<TaskId>,
}

impl Cfs {
    pub fn new(cpus: usize) -> Self {
        Self {
            latency_ns: scaled_ns(LATENCY_NS, cpus),
            granularity_ns: scaled_ns(GRANULARITY_NS, cpus),
            wakeup_ns: scaled_ns(WAKEUP_NS, cpus),
            ..Self::default()
        }
    }

    fn first_ns(&self) -> Option<i64> {
        self.ready.tasks.front().map(|(ns, ..)| *ns)
    }

    /// Returns each ready task's share of a period.
    fn turn_ns(&self) -> i64 {
        match self.ready.tasks.len() + 1 {
            many if many > MANY => self.granularity_ns,
            few => self.latency_ns / i64::try_from(few).unwrap_or(1),
        }
    }

    fn now_ns(&self, all: &[Entity]) -> Option<i64> {
        self.running.map(|task| all[task as usize].vruntime_ns)
    }

    fn look(&mut self, all: &[Entity]) {
        let least = self.now_ns(all).into_iter().chain(self.first_ns()).min();
        self.least_ns = self.least_ns.max(least.unwrap_or(self.least_ns));
    }
}

impl Queue for Cfs {
    fn len(&self) -> usize {
        self.ready.tasks.len()
    }

    fn running(&self) -> Option<TaskId> {
        self.running
    }

    fn clock_ns(&self) -> i64 {
        self.least_ns
    }

    fn wake(&mut self, all: &mut [Entity], task: TaskId) -> bool {
        self.look(all);
        let entity = &mut all[task as usize];
        let earliest_ns = self.least_ns - self.latency_ns / 2;
        entity.vruntime_ns = entity.vruntime_ns.max(earliest_ns);
        let woken_ns = entity.vruntime_ns;
        self.ready.insert(entity, woken_ns, task);
        let takes = |ns| ns - woken_ns > self.wakeup_ns;
        let takes = self.now_ns(all).is_some_and(takes);
        if takes && self.ready.tasks.len() >= MANY {
            self.last = self.running;
        }
        takes
    }

    fn tick(&mut self, all: &mut [Entity]) -> bool {
        self.look(all);
        let (Some(now_ns), Some(first_ns)) = (self.now_ns(all), self.first_ns()) else {
            return false;
        };
        let (ran_ns, turn_ns) = (now_ns - self.chosen_ns, self.turn_ns());
        if ran_ns > turn_ns {
            self.last = None;
            return true;
        }
        ran_ns >= self.granularity_ns && now_ns - first_ns > turn_ns
    }

    fn stays(&self, all: &[Entity]) -> bool {
        let first_ns = self.first_ns();
        self.now_ns(all)
            .is_some_and(|now_ns| first_ns.is_none_or(|first_ns| now_ns < first_ns))
    }

    fn turn_left_ns(&self, all: &[Entity]) -> i64 {
        self.now_ns(all)
            .map_or(0, |now_ns| self.turn_ns() - (now_ns - self.chosen_ns))
    }

    fn put_back(&mut self, all: &mut [Entity]) {
        if let Some(task) = self.running.take() {
            let entity = &mut all[task as usize];
            self.ready.insert(entity, entity.vruntime_ns, task);
        }
    }

    fn sleep(&mut self, all: &mut [Entity]) {
        self.look(all);
        if self.last == self.running {
            self.last = None;
        }
        self.running = None;
    }

    fn choose(&mut self, all: &mut [Entity]) -> Option<TaskId> {
        let (first_ns, _, first) = *self.ready.tasks.front()?;
        let (mut task, last) = (first, self.last.take());
        if let Some(last) = last {
            let entity = &all[last as usize];
            let is_near = entity.vruntime_ns - first_ns <= self.wakeup_ns;
            if is_near && self.ready.remove(entity, entity.vruntime_ns, last) {
                task = last;
            } else {
                self.last = Some(last);
            }
        }
        let entity = &all[task as usize];
        self.ready.remove(entity, entity.vruntime_ns, task);
        self.chosen_ns = entity.vruntime_ns;
        self.running = Some(task);
        self.look(all);
        Some(task)
    }

    fn give(&mut self, all: &mut [Entity]) -> Option<TaskId> {
        let mut from_last = self.ready.tasks.iter().rev().map(|(.., task)| *task);
        let task = from_last.find(|task| !all[*task as usize].is_bound)?;
        let entity = &all[task as usize];
        self.ready.remove(entity, entity.vruntime_ns, task);
        Some(task)
    }
}
