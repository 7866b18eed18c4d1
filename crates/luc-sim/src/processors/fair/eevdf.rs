//! EEVDF, Linux's scheduler since 6.6 (kernel commit 147f3efaa241).
//!
//! The average virtual time of all ready tasks is the processor's; a task that is not ahead of it
//! is *eligible*. The eligible task with the earliest virtual deadline runs first. A task's
//! distance from the average, its *lag*, is kept while it sleeps.
//!
//! Three features of 6.12 matter here, as in `kernel/sched/fair.c`. A chosen task keeps the
//! processor while it is eligible and within its request (`RUN_TO_PARITY`, since 6.6, kernel commit
//! 63304558ba5d). A task that goes to sleep ahead of the average stays in the queue until its turn
//! (`DELAY_DEQUEUE`, since 6.12, 152e11f6df29), and then wakes with no lag (`DELAY_ZERO`, since
//! 6.12, 54a58a787791).

use super::{Entity, Queue, Ready, slice_ns};
use crate::processors::TaskId;

/// `sysctl_sched_base_slice` for one processor.
pub(super) const BASE_SLICE_NS: i64 = 700_000;

#[derive(Debug, Default)]
pub(in crate::processors) struct Eevdf {
    slice_ns: i64,
    tick_ns: i64,
    /// Waiting tasks, by their deadlines.
    ready: Ready,
    /// Sum over the tasks in `ready`. 63 bits suffice for 10^4 tasks that run for a day.
    sum_vruntime_ns: i64,
    running: Option<TaskId>,
    /// The deadline of the running task when it was chosen.
    chosen_deadline_ns: i64,
    /// Its virtual time when the kernel last updated it (`update_curr()`).
    known_ns: i64,
    /// The average when the queue last had a task.
    last_ns: i64,
}

impl Queue for Eevdf {
    fn len(&self) -> usize {
        self.ready.tasks.len()
    }

    fn running(&self) -> Option<TaskId> {
        self.running
    }

    /// A task that changes queues keeps only its lag.
    fn clock_ns(&self) -> i64 {
        0
    }

    fn wake(&mut self, all: &mut [Entity], task: TaskId) -> bool {
        if all[task as usize].is_leaving {
            self.call_back(all, task);
        } else {
            self.place(all, task);
            self.insert(all, task);
        }
        let takes = self.running.is_some() && self.best(all) == Some(task);
        self.tick(all) || takes
    }

    /// Starts the running task's next request if the current one is served.
    fn tick(&mut self, all: &mut [Entity]) -> bool {
        let Some(entity) = self.running.map(|task| &mut all[task as usize]) else {
            return false;
        };
        let is_served = entity.vruntime_ns >= entity.deadline_ns;
        if is_served {
            entity.deadline_ns = entity.vruntime_ns + self.slice_ns;
        }
        self.known_ns = entity.vruntime_ns;
        is_served && !self.ready.tasks.is_empty()
    }

    fn stays(&self, all: &[Entity]) -> bool {
        self.best(all) == self.running
    }

    /// Returns how long the running task's request still takes.
    fn turn_left_ns(&self, all: &[Entity]) -> i64 {
        self.running.map_or(0, |task| {
            let entity = &all[task as usize];
            entity.deadline_ns - entity.vruntime_ns
        })
    }

    fn put_back(&mut self, all: &mut [Entity]) {
        if let Some(task) = self.running.take() {
            self.insert(all, task);
        }
    }

    fn sleep(&mut self, all: &mut [Entity]) {
        let Some(task) = self.running else {
            return;
        };
        let vruntime_ns = all[task as usize].vruntime_ns;
        let stays = !self.is_eligible(all, vruntime_ns);
        all[task as usize].is_leaving = stays;
        all[task as usize].lag_ns = self.lag_ns(all, vruntime_ns);
        self.last_ns = self.average_ns(all);
        self.running = None;
        if stays {
            self.insert(all, task);
        }
    }

    fn choose(&mut self, all: &mut [Entity]) -> Option<TaskId> {
        loop {
            let task = self.best(all)?;
            let lag_ns = self.lag_ns(all, all[task as usize].vruntime_ns);
            self.last_ns = self.average_ns(all);
            self.remove(all, task);
            let entity = &mut all[task as usize];
            if entity.is_leaving {
                entity.is_leaving = false;
                entity.lag_ns = lag_ns.min(0);
                continue;
            }
            self.running = Some(task);
            self.chosen_deadline_ns = entity.deadline_ns;
            self.known_ns = entity.vruntime_ns;
            return Some(task);
        }
    }

    fn give(&mut self, all: &mut [Entity]) -> Option<TaskId> {
        let mut from_last = self.ready.tasks.iter().rev().map(|(.., task)| *task);
        let may_leave = |entity: &Entity| !entity.is_leaving && !entity.is_bound;
        let task = from_last.find(|task| may_leave(&all[*task as usize]))?;
        all[task as usize].lag_ns = self.lag_ns(all, all[task as usize].vruntime_ns);
        self.remove(all, task);
        Some(task)
    }
}

impl Eevdf {
    pub fn new(cpus: usize, tick_ns: i64) -> Self {
        Self {
            slice_ns: slice_ns(cpus),
            tick_ns,
            ..Self::default()
        }
    }

    /// Wakes a task that has not left the queue yet (`requeue_delayed_entity()`). Unlike other
    /// wake-ups, this one does not count what the running task has done since the last update. So
    /// the woken task still seems to be ahead of the average, and keeps its place and deadline: the
    /// journal's thread, after it has woken several tasks, runs before the second of them when the
    /// first asks for a commit.
    fn call_back(&mut self, all: &mut [Entity], task: TaskId) {
        let at = task as usize;
        let running = self.running.map(|running| running as usize);
        let now_ns = running.map(|it| std::mem::replace(&mut all[it].vruntime_ns, self.known_ns));
        all[at].is_leaving = false;
        if self.lag_ns(all, all[at].vruntime_ns) > 0 {
            self.remove(all, task);
            all[at].lag_ns = 0;
            self.place(all, task);
            self.insert(all, task);
        }
        if let Some((running, now_ns)) = running.zip(now_ns) {
            all[running].vruntime_ns = now_ns;
        }
    }

    fn place(&mut self, all: &mut [Entity], task: TaskId) {
        let average_ns = self.average_ns(all);
        let others = self.weight();
        let entity = &mut all[task as usize];
        // Inserting the task moves the average; the scaling leaves it with the lag that it had.
        let lag_ns = if others > 0 {
            entity.lag_ns + entity.lag_ns / others
        } else {
            0
        };
        entity.vruntime_ns = average_ns - lag_ns;
        entity.deadline_ns = entity.vruntime_ns + self.slice_ns;
    }

    fn insert(&mut self, all: &mut [Entity], task: TaskId) {
        let entity = &mut all[task as usize];
        self.sum_vruntime_ns += entity.vruntime_ns;
        self.ready.insert(entity, entity.deadline_ns, task);
    }

    fn remove(&mut self, all: &[Entity], task: TaskId) {
        let entity = &all[task as usize];
        if self.ready.remove(entity, entity.deadline_ns, task) {
            self.sum_vruntime_ns -= entity.vruntime_ns;
        }
    }

    /// Returns the eligible task with the earliest deadline, the running task included.
    fn best(&self, all: &[Entity]) -> Option<TaskId> {
        let eligible = |task: TaskId| self.is_eligible(all, all[task as usize].vruntime_ns);
        let running = self.running.filter(|task| eligible(*task));
        if let Some(task) = running
            && all[task as usize].deadline_ns == self.chosen_deadline_ns
        {
            return Some(task);
        }
        let first = self.ready.tasks.iter().find(|(.., task)| eligible(*task));
        match (running, first) {
            (Some(task), Some((deadline_ns, ..)))
                if all[task as usize].deadline_ns < *deadline_ns =>
            {
                Some(task)
            }
            (_, Some((.., task))) => Some(*task),
            (running, None) => running.or(self.running),
        }
    }

    fn weight(&self) -> i64 {
        let ready = i64::try_from(self.len()).unwrap_or(i64::MAX - 1);
        ready + i64::from(self.running.is_some())
    }

    fn sum_ns(&self, all: &[Entity]) -> i64 {
        let running = self.running.map(|task| all[task as usize].vruntime_ns);
        self.sum_vruntime_ns + running.unwrap_or(0)
    }

    fn is_eligible(&self, all: &[Entity], vruntime_ns: i64) -> bool {
        vruntime_ns * self.weight() <= self.sum_ns(all)
    }

    fn average_ns(&self, all: &[Entity]) -> i64 {
        match self.weight() {
            0 => self.last_ns,
            weight => self.sum_ns(all).div_euclid(weight),
        }
    }

    fn lag_ns(&self, all: &[Entity], vruntime_ns: i64) -> i64 {
        let limit_ns = self.tick_ns.max(2 * self.slice_ns);
        (self.average_ns(all) - vruntime_ns).clamp(-limit_ns, limit_ns)
    }
}
