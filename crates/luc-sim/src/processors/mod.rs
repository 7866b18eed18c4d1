//! Processors: work is instructions, and how long they take depends on the processor.
//!
//! A task that becomes ready goes to an idle processor, preferably its last one, or else queues at
//! its last one; a processor without work takes a task from the longest queue. [`fair`] decides
//! which task of a queue runs first. A task that is to be preempted keeps the processor to the end
//! of its piece of work: the kernel's points of preemption.
//!
//! Waking a task, and the end of a disk request, take time on the processor where they happen. That
//! time is added to the processor's next piece, so that the current one need not be postponed.

mod fair;
pub mod governor;
#[cfg(test)]
mod tests;

use luc_power::activity::ProcessorActivity;

use crate::kernel::Kernel;
use crate::random;
use fair::{Either, Entity, Queue as _, slice_ns};
use governor::{Cause, Governed, Scaling, Use};

/// The largest sensible [`ProcessorModel::past_ns`], microseconds: one second.
pub const PAST_US_MAX: u64 = 1_000_000;
/// The largest sensible [`Scaling::latency_ns`], microseconds: the period of governors that sample.
pub const CLOCK_LATENCY_US_MAX: u64 = 10_000;
/// The largest sensible [`ProcessorModel::memory_page_ns`]: 4 MB/s.
pub const MEMORY_PAGE_NS_MAX: u64 = 1_000_000;

/// A task, the journal's thread included; numbers count from 0.
pub type TaskId = u32;

/// Purpose of the draws of tasks' pasts, combined with the task's number.
const PAST: u64 = 1 << 40;

/// A processor's number.
pub type CpuId = u16;

/// Speed and behaviour of the processors.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessorModel {
    /// Million instructions per second, of each processor.
    pub mips: Vec<f64>,
    /// Instructions to switch between two tasks on a processor.
    pub switch_instructions: u64,
    /// Time from a wake-up to the first instruction of an idle processor, ns.
    pub idle_exit_ns: u64,
    /// Tasks have run before, so that their virtual times differ by up to this much, ns; `None` for
    /// up to a request of the scheduler.
    pub past_ns: Option<u64>,
    /// Time that a copied page of 4 KiB spends on its way through memory, ns. Unlike the copy's
    /// instructions it does not depend on the processor's speed. The lab's memory takes no time.
    pub memory_page_ns: u64,
    /// Later speed changes, in the order of their times.
    pub changes: Vec<SpeedChange>,
    /// The governor that chooses the speeds, which then are not those of `mips` and `changes`;
    /// `userspace` takes these as what is asked for.
    pub scaling: Option<Scaling>,
    /// The only processor on which the journal's thread may run, one of `mips`, as `taskset -p`
    /// sets it; `None` for all.
    pub journal_on: Option<CpuId>,
}

/// Speeds of all processors from a moment on.
#[derive(Clone, Debug, PartialEq)]
pub struct SpeedChange {
    pub at_ns: u64,
    pub mips: Vec<f64>,
}

impl ProcessorModel {
    /// Creates a machine of `cpus` equal processors with the behaviour of a Debian kernel.
    pub fn new(cpus: u16, mips: f64) -> Self {
        Self {
            mips: vec![mips; usize::from(cpus)],
            switch_instructions: 2_000,
            idle_exit_ns: 0,
            past_ns: None,
            memory_page_ns: 0,
            changes: Vec::new(),
            scaling: None,
            journal_on: None,
        }
    }
}

/// A processor.
#[derive(Debug)]
struct Cpu {
    mips: f64,
    /// The speed of the piece under way, whatever the processor's speed is by now.
    piece_mips: f64,
    /// When it became idle, if it is.
    idle_since_ns: u64,
    activity: ProcessorActivity,
    /// Tasks that wait for the disk and had this processor last.
    io_sleepers: u32,
    /// Tasks that are ready or running here. Those that leave are still in the queue.
    tasks: u32,
    queue: Either,
    /// A task has the processor, or it leaves idle for a task.
    is_taken: bool,
    /// Instructions of the piece under way, and its start.
    piece: u64,
    since_ns: u64,
    /// The time up to which its task's virtual time is counted.
    counted_ns: u64,
    /// Work for wake-ups and interrupts, to be done with the next piece.
    owed: u64,
    /// Another task is to run at the next point of preemption.
    must_switch: bool,
}

/// The end of a piece of work on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceEnd {
    pub cpu: CpuId,
    pub at_ns: u64,
}

/// The meaning of a piece's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worked {
    /// The task has done its work and still has the processor: it asks for more, or leaves.
    Done(TaskId),
    /// Work is left, for this task or another.
    More,
}

#[derive(Debug)]
pub struct Processors {
    switch_instructions: u64,
    idle_exit_ns: u64,
    past_ns: u64,
    memory_page_ns: u64,
    tick_ns: u64,
    cpus: Vec<Cpu>,
    entities: Vec<Entity>,
    has_bound: bool,
    /// The work left to each task, and the processor that it had last.
    work: Vec<u64>,
    last_cpu: Vec<usize>,
    /// Tasks that wait for the disk.
    waits_for_io: Vec<bool>,
    governed: Option<Governed>,
}

impl Processors {
    pub fn new(machine: &ProcessorModel, kernel: &Kernel, tasks: usize) -> Self {
        let count = machine.mips.len();
        let tick_ns = to_i64(kernel.tick_ns);
        let scaling = machine.scaling.as_ref();
        let governed = scaling.map(|it| Governed::new(it, &machine.mips, kernel));
        let cpus = machine.mips.iter().map(|mips| Cpu {
            mips: *mips,
            piece_mips: *mips,
            idle_since_ns: 0,
            activity: ProcessorActivity::default(),
            io_sleepers: 0,
            tasks: 0,
            queue: kernel.scheduler.queue(count, tick_ns),
            is_taken: false,
            piece: 0,
            since_ns: 0,
            counted_ns: 0,
            owed: 0,
            must_switch: false,
        });
        let mut it = Self {
            switch_instructions: machine.switch_instructions,
            idle_exit_ns: machine.idle_exit_ns,
            past_ns: machine
                .past_ns
                .unwrap_or_else(|| slice_ns(count).unsigned_abs()),
            memory_page_ns: machine.memory_page_ns,
            tick_ns: kernel.tick_ns,
            entities: vec![Entity::default(); tasks],
            has_bound: false,
            work: vec![0; tasks],
            last_cpu: (0..tasks).map(|task| task % count).collect(),
            cpus: cpus.collect(),
            waits_for_io: vec![false; tasks],
            governed,
        };
        it.set_clocks(0);
        it
    }

    /// Gives each task a past of its own, as if it had run before. The last `threads` tasks are
    /// threads of the kernel: they have slept while the others ran.
    #[must_use]
    pub fn with_past(mut self, seed: u64, threads: usize) -> Self {
        let first_thread = self.entities.len().saturating_sub(threads);
        for (task, entity) in self.entities.iter_mut().enumerate() {
            let past_ns = random::below(seed, PAST | task as u64, self.past_ns);
            *entity = Entity::with_past(to_i64(past_ns));
            if task >= first_thread {
                entity.has_slept();
            }
        }
        self
    }

    /// Lets a task that has not run yet run on this processor alone, if any.
    #[must_use]
    pub fn with_bound(mut self, task: TaskId, cpu: Option<CpuId>) -> Self {
        if let Some(cpu) = cpu {
            self.last_cpu[task as usize] = usize::from(cpu);
            self.entities[task as usize].is_bound = true;
            self.has_bound = true;
        }
        self
    }

    /// Tells whether a task has a processor now.
    pub fn is_running(&self, task: TaskId) -> bool {
        let at = self.last_cpu[task as usize];
        self.cpus[at].queue.running() == Some(task)
    }

    /// Returns what each processor has done.
    pub fn activity(&self) -> impl Iterator<Item = &ProcessorActivity> {
        self.cpus.iter().map(|cpu| &cpu.activity)
    }

    /// Returns how long a processor was busy, on average, ns.
    pub fn busy_mean_ns(&self) -> u64 {
        let busy_ns: u64 = self.activity().map(ProcessorActivity::busy_ns).sum();
        busy_ns / (self.cpus.len() as u64).max(1)
    }

    /// Sets the processors' speeds from their next piece of work on, or asks a governor for them,
    /// at the change's time.
    pub fn change_speeds(&mut self, change: &SpeedChange) {
        if let Some(governed) = &mut self.governed {
            governed.ask(&change.mips, change.at_ns);
            return self.set_clocks(change.at_ns);
        }
        for (cpu, mips) in self.cpus.iter_mut().zip(&change.mips) {
            cpu.mips = *mips;
        }
    }

    /// Returns how long this work takes on a processor, ns.
    pub fn time_ns(&self, cpu: CpuId, instructions: u64) -> u64 {
        time_ns(instructions, self.cpus[usize::from(cpu)].mips)
    }

    /// Returns how many instructions a processor could execute while copied pages are on their way
    /// through memory: it waits for them.
    pub fn waits_for_memory(&self, cpu: CpuId, pages: u64) -> u64 {
        let ns = self.memory_page_ns.saturating_mul(pages);
        instructions_in(ns, self.cpus[usize::from(cpu)].mips)
    }

    /// Makes a task ready with `instructions` to do. Waking it costs `waking` instructions, on
    /// processor `by` if its task does it, or on the woken task's processor in an interrupt.
    /// Returns the end of the first piece of a processor that was idle.
    pub fn wake(
        &mut self,
        task: TaskId,
        instructions: u64,
        now_ns: u64,
        waking: u64,
        by: Option<CpuId>,
    ) -> Option<PieceEnd> {
        let id = task as usize;
        self.work[id] = instructions;
        let had = self.last_cpu[id];
        let is_from_io = std::mem::take(&mut self.waits_for_io[id]);
        if is_from_io {
            self.cpus[had].io_sleepers -= 1;
            self.note(had, now_ns);
        }
        let is_idle = |at: &usize| !self.cpus[*at].is_taken;
        let entity = &self.entities[id];
        let at = if entity.is_leaving || entity.is_bound || is_idle(&had) {
            had
        } else {
            (0..self.cpus.len()).find(is_idle).unwrap_or(had)
        };
        let cause = match (is_from_io, self.moves(task, at)) {
            (true, _) => Cause::WakeFromIo,
            (false, true) => Cause::Arrival,
            (false, false) => Cause::Other,
        };
        if let Some(by) = by {
            let waker = &mut self.cpus[usize::from(by)];
            waker.owed += waking;
            let ns = to_i64(time_ns(waking, waker.mips));
            waker.queue.ran(&mut self.entities, ns);
        } else {
            self.cpus[at].owed += waking;
        }
        self.count(at, now_ns);
        let cpu = &mut self.cpus[at];
        cpu.tasks += 1;
        cpu.must_switch |= cpu.queue.wake(&mut self.entities, task);
        let was_taken = std::mem::replace(&mut cpu.is_taken, true);
        if !was_taken {
            let ns = now_ns.saturating_sub(cpu.idle_since_ns);
            cpu.activity.was_idle(kips(cpu.mips), ns);
        }
        self.govern(at, cause, now_ns);
        if was_taken {
            return None;
        }
        let cpu = &mut self.cpus[at];
        cpu.piece = 0;
        cpu.piece_mips = cpu.mips;
        cpu.since_ns = now_ns + self.idle_exit_ns;
        Some(PieceEnd {
            cpu: number(at),
            at_ns: cpu.since_ns,
        })
    }

    /// Adds the work of an interrupt for a task, besides the wake-up.
    pub fn interrupt(&mut self, task: TaskId, instructions: u64) {
        let at = self.last_cpu[task as usize];
        self.cpus[at].owed += instructions;
    }

    /// Updates the virtual time of the task on a processor. True if a tick came meanwhile.
    fn count(&mut self, at: usize, now_ns: u64) -> bool {
        let cpu = &mut self.cpus[at];
        if cpu.queue.running().is_none() {
            cpu.counted_ns = now_ns;
            return false;
        }
        let ns = now_ns.saturating_sub(cpu.counted_ns);
        cpu.queue.ran(&mut self.entities, to_i64(ns));
        let is_tick = cpu.counted_ns / self.tick_ns < now_ns / self.tick_ns;
        cpu.counted_ns = cpu.counted_ns.max(now_ns);
        is_tick
    }

    /// Starts the task that runs next, if there is one.
    fn begin(&mut self, at: usize, now_ns: u64) -> Option<PieceEnd> {
        self.cpus[at].must_switch = false;
        let mut chosen = self.cpus[at].queue.choose(&mut self.entities);
        if chosen.is_none() && self.take_from_others(at, now_ns) {
            chosen = self.cpus[at].queue.choose(&mut self.entities);
        }
        let cpu = &mut self.cpus[at];
        cpu.is_taken = chosen.is_some();
        let Some(task) = chosen else {
            // It does the work that it owes before it idles.
            let owed_ns = time_ns(std::mem::take(&mut cpu.owed), cpu.mips);
            cpu.activity.was_busy(kips(cpu.mips), owed_ns);
            cpu.idle_since_ns = now_ns + owed_ns;
            self.note(at, now_ns);
            return None;
        };
        let task = task as usize;
        cpu.counted_ns = now_ns;
        let work = &mut self.work[task];
        *work = work.saturating_add(self.switch_instructions);
        Some(self.piece(at, now_ns))
    }

    /// Takes a task from the longest queue for a processor without work. If a task is bound, it may
    /// be all that waits there, so that the others are asked as well.
    fn take_from_others(&mut self, at: usize, now_ns: u64) -> bool {
        let count = self.cpus.len();
        let others = || (0..count).filter(|other| *other != at);
        let longest = others().max_by_key(|other| (self.cpus[*other].queue.len(), !other));
        let rest = others().filter(|_| self.has_bound);
        let (cpus, entities) = (&mut self.cpus, &mut self.entities);
        let give = |from: usize| Some((from, cpus[from].queue.give(entities)?));
        let Some((from, task)) = longest.into_iter().chain(rest).find_map(give) else {
            return false;
        };
        self.moves(task, at);
        self.cpus[at].queue.wake(&mut self.entities, task);
        self.cpus[from].tasks -= 1;
        self.cpus[at].tasks += 1;
        self.note(from, now_ns);
        self.govern(at, Cause::Arrival, now_ns);
        true
    }

    /// Moves a task that is in no queue to this processor. True if it comes from another.
    fn moves(&mut self, task: TaskId, to: usize) -> bool {
        let from = std::mem::replace(&mut self.last_cpu[task as usize], to);
        if from != to {
            let later_ns = self.cpus[to].queue.clock_ns() - self.cpus[from].queue.clock_ns();
            self.entities[task as usize].moves(later_ns);
        }
        from != to
    }

    /// Starts the next piece of the task that has the processor: all of its work, or up to the tick
    /// that may end its turn.
    fn piece(&mut self, at: usize, now_ns: u64) -> PieceEnd {
        self.set_clock(at, now_ns);
        let cpu = &mut self.cpus[at];
        let turn_ns = cpu.queue.turn_left_ns(&self.entities).max(0).unsigned_abs();
        let task = cpu.queue.running().unwrap_or_default() as usize;
        cpu.piece = self.work[task];
        let mut piece_ns = time_ns(cpu.piece, cpu.mips);
        if piece_ns > turn_ns {
            let until_ns = (now_ns + turn_ns).next_multiple_of(self.tick_ns);
            let within = instructions_in(until_ns - now_ns, cpu.mips).max(1);
            cpu.piece = cpu.piece.min(within);
            piece_ns = time_ns(cpu.piece, cpu.mips);
        }
        let owed_ns = match cpu.owed {
            0 => 0,
            owed => time_ns(owed, cpu.mips),
        };
        // Owed work comes first. It does not add to the task's virtual time: wake-ups are counted
        // there already, and interrupts never are.
        cpu.counted_ns = now_ns + owed_ns;
        cpu.owed = 0;
        cpu.since_ns = now_ns;
        cpu.piece_mips = cpu.mips;
        PieceEnd {
            cpu: number(at),
            at_ns: cpu.counted_ns.saturating_add(piece_ns),
        }
    }

    /// Ends a piece. Returns what that means, and the end of the piece that it starts.
    pub fn worked(&mut self, cpu: CpuId, now_ns: u64) -> (Worked, Option<PieceEnd>) {
        let at = usize::from(cpu);
        let cpu = &mut self.cpus[at];
        cpu.activity
            .was_busy(kips(cpu.piece_mips), now_ns - cpu.since_ns);
        let Some(task) = self.cpus[at].queue.running() else {
            // Idle until now.
            return (Worked::More, self.begin(at, now_ns));
        };
        if self.count(at, now_ns) {
            let cpu = &mut self.cpus[at];
            cpu.must_switch |= cpu.queue.tick(&mut self.entities);
            self.govern(at, Cause::Other, now_ns);
        }
        let work = &mut self.work[task as usize];
        *work -= self.cpus[at].piece;
        if *work == 0 {
            self.cpus[at].since_ns = now_ns;
            return (Worked::Done(task), None);
        }
        (Worked::More, Some(self.carry_on(at, now_ns)))
    }

    /// Gives more work to the task that has this processor and has done its work.
    pub fn go_on(&mut self, cpu: CpuId, instructions: u64, now_ns: u64) -> PieceEnd {
        let at = usize::from(cpu);
        self.set_work(at, instructions);
        self.carry_on(at, now_ns)
    }

    /// Like [`Self::go_on`], without a point of preemption in between.
    pub fn go_on_unbroken(&mut self, cpu: CpuId, instructions: u64, now_ns: u64) -> PieceEnd {
        let at = usize::from(cpu);
        self.set_work(at, instructions);
        self.piece(at, now_ns)
    }

    fn set_work(&mut self, at: usize, instructions: u64) {
        if let Some(task) = self.cpus[at].queue.running() {
            self.work[task as usize] = instructions;
        }
    }

    /// A point of preemption: the same task continues, or another gets the processor.
    fn carry_on(&mut self, at: usize, now_ns: u64) -> PieceEnd {
        let cpu = &mut self.cpus[at];
        if std::mem::take(&mut cpu.must_switch) && !cpu.queue.stays(&self.entities) {
            cpu.queue.put_back(&mut self.entities);
            if let Some(end) = self.begin(at, now_ns) {
                return end;
            }
        }
        self.piece(at, now_ns)
    }

    /// Takes the processor from its task, which waits or has ended.
    pub fn leave(&mut self, cpu: CpuId, now_ns: u64) -> Option<PieceEnd> {
        let at = usize::from(cpu);
        self.cpus[at].queue.sleep(&mut self.entities);
        self.cpus[at].tasks -= 1;
        self.govern(at, Cause::Other, now_ns);
        self.begin(at, now_ns)
    }

    /// Like [`Self::leave`], for a task that waits for the disk, as the kernel's `io_schedule()`
    /// does: governors learn of the wait.
    pub fn leave_for_io(&mut self, cpu: CpuId, now_ns: u64) -> Option<PieceEnd> {
        let at = usize::from(cpu);
        if let Some(task) = self.cpus[at].queue.running() {
            self.waits_for_io[task as usize] = true;
            self.cpus[at].io_sleepers += 1;
        }
        self.leave(cpu, now_ns)
    }

    /// Lets the governor look at a processor.
    fn govern(&mut self, at: usize, cause: Cause, now_ns: u64) {
        self.note(at, now_ns);
        let governed = self.governed.as_mut();
        if governed.is_some_and(|it| it.look(at, cause, now_ns)) {
            self.set_clocks(now_ns);
        }
    }

    fn note(&mut self, at: usize, now_ns: u64) {
        if let Some(governed) = &mut self.governed {
            let cpu = &self.cpus[at];
            let is = match (cpu.is_taken, cpu.io_sleepers) {
                (true, _) => Use::Busy,
                (false, 0) => Use::Idle,
                (false, _) => Use::IdleForIo,
            };
            governed.note(at, is, cpu.tasks, now_ns);
            self.set_clock(at, now_ns);
        }
    }

    /// Returns how often the governor samples, ns; `None` if it does not.
    pub fn sampling_ns(&self) -> Option<u64> {
        self.governed.as_ref()?.sampling_ns()
    }

    /// Lets a governor that samples choose the clocks; `disk_busy_ns` is the disk's busy time so
    /// far.
    pub fn sample(&mut self, now_ns: u64, disk_busy_ns: u64) {
        if let Some(governed) = &mut self.governed {
            governed.sample(now_ns, disk_busy_ns);
            self.set_clocks(now_ns);
        }
    }

    fn set_clocks(&mut self, now_ns: u64) {
        for at in 0..self.cpus.len() {
            self.set_clock(at, now_ns);
        }
    }

    /// Notices a change of a processor's clock that was chosen before and takes effect now.
    fn set_clock(&mut self, at: usize, now_ns: u64) {
        if let Some(governed) = &self.governed {
            self.cpus[at].mips = governed.mips(at, now_ns);
        }
    }
}

/// Returns a speed in thousand instructions per second.
fn kips(mips: f64) -> u64 {
    to_u64(mips * 1e3)
}

fn number(at: usize) -> CpuId {
    CpuId::try_from(at).unwrap_or(CpuId::MAX)
}

/// Converts a time; simulated times stay far below 2^63 ns, 292 years.
fn to_i64(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// Returns the time rounded up: work is never free.
pub(crate) fn time_ns(instructions: u64, mips: f64) -> u64 {
    to_u64((instructions as f64 * 1e3 / mips).ceil())
}

fn instructions_in(ns: u64, mips: f64) -> u64 {
    to_u64((ns as f64 * mips / 1e3).floor())
}

/// Converts a number of at least 0; a number that is too large becomes the largest.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn to_u64(value: f64) -> u64 {
    value as u64
}
