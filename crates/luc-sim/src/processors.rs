//! Processors: work is instructions, and how long they take depends on who does them.
//!
//! A task that is ready takes a free processor, or waits its turn: first come, first served, in
//! slices. A processor that it leaves goes to the next. A task is not taken from its processor before
//! its slice is over: kernels since 6.6 do that seldom, and older ones not for tasks that run as
//! briefly as these.

use std::collections::VecDeque;

/// A task, the journal's thread included; numbers count from 0.
pub type TaskId = u32;

/// A processor's number.
pub type CpuId = u16;

/// The clock and the habits of the processors.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Million instructions per second, of each processor.
    pub mips: Vec<f64>,
    /// How long a task keeps a processor for which others wait, ns.
    pub slice_ns: u64,
    /// Instructions between one task and the next on a processor.
    pub switch_instructions: u64,
    /// From a wake-up to the first instruction of an idle processor, ns.
    pub idle_exit_ns: u64,
}

impl Machine {
    /// So many processors of one speed, with the habits of a Debian kernel of 250 Hz.
    pub fn new(cpus: u16, mips: f64) -> Self {
        Self {
            mips: vec![mips; usize::from(cpus)],
            slice_ns: 4_000_000,
            switch_instructions: 2_500,
            idle_exit_ns: 0,
        }
    }
}

/// A processor at work.
#[derive(Clone, Copy, Debug)]
struct Turn {
    task: TaskId,
    /// The task's work that is left.
    instructions: u64,
    slice_left_ns: u64,
    /// Of the piece that it does now.
    piece: u64,
    since_ns: u64,
}

/// That a processor ends a piece of work at this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceEnd {
    pub cpu: CpuId,
    pub at_ns: u64,
}

/// The meaning of a piece's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worked {
    /// The task has done its work, and keeps the processor: it asks for more, or leaves.
    Done(TaskId),
    /// Its slice was over, or work is left: whoever works now.
    More,
}

#[derive(Debug)]
pub struct Processors {
    machine: Machine,
    turns: Vec<Option<Turn>>,
    /// Tasks that wait for a processor, with their work.
    ready: VecDeque<(TaskId, u64)>,
    busy_ns: u64,
}

impl Processors {
    pub fn new(machine: Machine) -> Self {
        let turns = vec![None; machine.mips.len()];
        Self {
            machine,
            turns,
            ready: VecDeque::new(),
            busy_ns: 0,
        }
    }

    /// Busy time of all processors together, ns.
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// A task becomes ready with so much work. Gives the end of its first piece if a processor was
    /// free.
    pub fn wake(&mut self, task: TaskId, instructions: u64, now_ns: u64) -> Option<PieceEnd> {
        let Some(free) = self.turns.iter().position(Option::is_none) else {
            self.ready.push_back((task, instructions));
            return None;
        };
        let begin_ns = now_ns + self.machine.idle_exit_ns;
        Some(self.begin(free, task, instructions, begin_ns))
    }

    fn begin(&mut self, at: usize, task: TaskId, instructions: u64, now_ns: u64) -> PieceEnd {
        self.turns[at] = Some(Turn {
            task,
            instructions: instructions.saturating_add(self.machine.switch_instructions),
            slice_left_ns: self.machine.slice_ns,
            piece: 0,
            since_ns: now_ns,
        });
        self.piece(at, now_ns)
    }

    /// The next piece: the rest of the work, or of the slice.
    fn piece(&mut self, at: usize, now_ns: u64) -> PieceEnd {
        let mips = self.machine.mips[at];
        let cpu = CpuId::try_from(at).unwrap_or(CpuId::MAX);
        let Some(turn) = &mut self.turns[at] else {
            return PieceEnd { cpu, at_ns: now_ns };
        };
        let within = instructions_in(turn.slice_left_ns, mips).max(1);
        turn.piece = turn.instructions.min(within);
        turn.since_ns = now_ns;
        PieceEnd {
            cpu,
            at_ns: now_ns.saturating_add(time_ns(turn.piece, mips)),
        }
    }

    /// A piece has ended. Gives what that means, and the end of the piece that begins by it.
    pub fn worked(&mut self, cpu: CpuId, now_ns: u64) -> (Worked, Option<PieceEnd>) {
        let at = usize::from(cpu);
        let Some(turn) = &mut self.turns[at] else {
            return (Worked::More, None);
        };
        let took_ns = now_ns - turn.since_ns;
        self.busy_ns += took_ns;
        turn.instructions -= turn.piece;
        turn.slice_left_ns = turn.slice_left_ns.saturating_sub(took_ns);
        if turn.instructions == 0 {
            turn.since_ns = now_ns;
            return (Worked::Done(turn.task), None);
        }
        let (task, left) = (turn.task, turn.instructions);
        let Some((next, work)) = self.ready.pop_front() else {
            turn.slice_left_ns = self.machine.slice_ns;
            return (Worked::More, Some(self.piece(at, now_ns)));
        };
        self.ready.push_back((task, left));
        (Worked::More, Some(self.begin(at, next, work, now_ns)))
    }

    /// The task that has this processor and nothing to do gets more.
    pub fn go_on(&mut self, cpu: CpuId, instructions: u64, now_ns: u64) -> PieceEnd {
        let at = usize::from(cpu);
        if let Some(turn) = &mut self.turns[at] {
            turn.instructions = instructions;
            turn.slice_left_ns = turn.slice_left_ns.max(1);
        }
        self.piece(at, now_ns)
    }

    /// The task that has this processor lets those go first that wait for one.
    pub fn let_pass(&mut self, cpu: CpuId, instructions: u64, now_ns: u64) -> PieceEnd {
        let at = usize::from(cpu);
        let Some((next, work)) = self.ready.pop_front() else {
            return self.go_on(cpu, instructions, now_ns);
        };
        if let Some(turn) = self.turns[at] {
            self.ready.push_back((turn.task, instructions));
        }
        self.begin(at, next, work, now_ns)
    }

    /// The task that has this processor leaves it: it waits, or has ended.
    pub fn leave(&mut self, cpu: CpuId, now_ns: u64) -> Option<PieceEnd> {
        let at = usize::from(cpu);
        self.turns[at] = None;
        let (next, work) = self.ready.pop_front()?;
        Some(self.begin(at, next, work, now_ns))
    }
}

/// Rounded up: work is never free.
pub(crate) fn time_ns(instructions: u64, mips: f64) -> u64 {
    to_u64((instructions as f64 * 1e3 / mips).ceil())
}

fn instructions_in(ns: u64, mips: f64) -> u64 {
    to_u64((ns as f64 * mips / 1e3).floor())
}

/// Of a number that is 0 or more; one too large for it is the largest.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn to_u64(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cpus: u16, mips: f64) -> Machine {
        Machine {
            switch_instructions: 0,
            ..Machine::new(cpus, mips)
        }
    }

    #[test]
    fn first_come_first_served() {
        let mut cpus = Processors::new(machine(2, 100.0));
        // 100 MIPS: an instruction takes 10 ns.
        let end = |cpu, at_ns| Some(PieceEnd { cpu, at_ns });
        assert_eq!(cpus.wake(7, 10, 0), end(0, 100));
        assert_eq!(cpus.wake(8, 20, 0), end(1, 200));
        assert_eq!(cpus.wake(9, 5, 0), None);
        assert_eq!(cpus.worked(0, 100), (Worked::Done(7), None));
        // Seven goes on, then leaves; nine has its processor.
        assert_eq!(Some(cpus.go_on(0, 10, 100)), end(0, 200));
        assert_eq!(cpus.worked(0, 200), (Worked::Done(7), None));
        assert_eq!(cpus.leave(0, 200), end(0, 250));
        assert_eq!(cpus.worked(1, 200), (Worked::Done(8), None));
        assert_eq!(cpus.leave(1, 200), None);
        assert_eq!(cpus.worked(0, 250), (Worked::Done(9), None));
        assert_eq!(cpus.busy_ns(), 100 + 200 + 100 + 50);
    }

    #[test]
    fn slices_are_shared() {
        let mut cpus = Processors::new(Machine {
            slice_ns: 1000,
            ..machine(1, 1000.0)
        });
        assert_eq!(cpus.wake(0, 2500, 0).unwrap().at_ns, 1000);
        assert_eq!(cpus.wake(1, 100, 500), None);
        // The other's turn, then the rest of the first.
        let (worked, end) = cpus.worked(0, 1000);
        assert_eq!((worked, end.unwrap().at_ns), (Worked::More, 1100));
        assert_eq!(cpus.worked(0, 1100), (Worked::Done(1), None));
        assert_eq!(cpus.leave(0, 1100).unwrap().at_ns, 2100);
        // Nobody waits: it has the next slice, too.
        let (worked, end) = cpus.worked(0, 2100);
        assert_eq!((worked, end.unwrap().at_ns), (Worked::More, 2600));
        assert_eq!(cpus.worked(0, 2600), (Worked::Done(0), None));
    }

    #[test]
    fn a_switch_and_a_wake_up_take_time() {
        let mut cpus = Processors::new(Machine {
            switch_instructions: 50,
            idle_exit_ns: 30,
            ..Machine::new(1, 1000.0)
        });
        assert_eq!(cpus.wake(0, 10, 5).unwrap().at_ns, 5 + 30 + 60);
        assert_eq!(cpus.wake(1, 10, 5), None);
        cpus.worked(0, 95);
        // No sleep in between.
        assert_eq!(cpus.leave(0, 95).unwrap().at_ns, 95 + 60);
    }
}
