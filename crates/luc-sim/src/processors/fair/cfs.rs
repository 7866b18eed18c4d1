//! CFS, as Linux had it up to 6.5. Its figures and features are alike from 3.4 to 6.1.
//!
//! The one with the least virtual time goes first. It keeps the processor for its part of a period,
//! looked at by ticks; one that wakes takes its place if it is behind by more than the granularity of
//! wake-ups. Sleep is paid for with half a period at most: whoever slept longer stands that much
//! before the least, and who slept less stands where it stood (`GENTLE_FAIR_SLEEPERS`). Where many
//! are ready, one that lost its place to a wake-up gets it back (`LAST_BUDDY`).

use super::{Entity, Queue, Ready, scaled_ns};
use crate::processors::TaskId;

/// `sysctl_sched_latency`, `sysctl_sched_min_granularity` and `sysctl_sched_wakeup_granularity` of a
/// machine of one processor.
const LATENCY_NS: i64 = 6_000_000;
const GRANULARITY_NS: i64 = 750_000;
const WAKEUP_NS: i64 = 1_000_000;

/// `sched_nr_latency`: of more tasks each has the granularity.
const MANY: usize = 8;

#[derive(Debug, Default)]
pub(in crate::processors) struct Cfs {
    latency_ns: i64,
    granularity_ns: i64,
    wakeup_ns: i64,
    /// By their virtual times.
    ready: Ready,
    running: Option<TaskId>,
    /// The virtual time of the one that runs, when it was chosen.
    chosen_ns: i64,
    /// The least virtual time of all that were ready, which never goes back.
    least_ns: i64,
    /// Lost its place to one that woke.
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

    /// The part of a period of each that is ready.
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
        let (.., task) = *self.ready.tasks.back()?;
        let entity = &all[task as usize];
        self.ready.remove(entity, entity.vruntime_ns, task);
        Some(task)
    }
}
