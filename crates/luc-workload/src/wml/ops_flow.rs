//! Flowops that wait, compute, and hold back.

use std::hint::black_box;
use std::sync::atomic::{AtomicU8, Ordering};

use luc_wml::plan::{Op, Value};

use super::engine::{Extra, Step, signed};
use super::worker::{Flow, Worker};
use crate::Result;
use crate::clock::NS_PER_S;

const MIB: u64 = 1 << 20;

impl<'p> Worker<'_, 'p> {
    pub fn sem_block(&mut self, step: &Step<'p>, value: Value) -> Result<Flow> {
        let value = signed(step.flowop, self.draws.whole(value))?;
        let Extra::Own(id) = step.extra else {
            return Ok(Flow::On);
        };
        let begin_ns = self.begin();
        if !self.engine.semaphores[id].block(value, self.give_up()) {
            return Ok(Flow::Over);
        }
        self.end(step, begin_ns, 0);
        Ok(Flow::On)
    }

    pub fn sem_post(&mut self, step: &Step<'p>, value: Value, blocking: bool) -> Result<Flow> {
        let Extra::Targets(targets) = &step.extra else {
            return Ok(Flow::On);
        };
        let begin_ns = self.begin();
        for &id in targets.iter() {
            let value = signed(step.flowop, self.draws.whole(value))?;
            if !self.engine.semaphores[id].post(value, blocking, self.give_up()) {
                return Ok(Flow::Over);
            }
        }
        self.end(step, begin_ns, 0);
        Ok(Flow::On)
    }

    pub fn block(&mut self, step: &Step<'p>) -> Flow {
        let Extra::Own(id) = step.extra else {
            return Flow::On;
        };
        let begin_ns = self.begin();
        if !self.engine.gates[id].block(self.give_up()) {
            return Flow::Over;
        }
        self.end(step, begin_ns, 0);
        Flow::On
    }

    pub fn wakeup(&mut self, step: &Step<'p>) -> Flow {
        let Extra::Targets(targets) = &step.extra else {
            return Flow::On;
        };
        for &id in targets.iter() {
            let begin_ns = self.begin();
            self.engine.gates[id].wakeup();
            self.end(step, begin_ns, 0);
        }
        Flow::On
    }

    /// Writes the first byte of the thread's memory so often, taking the address anew each time,
    /// as Filebench's loop does.
    pub fn hog(&mut self, step: &Step<'p>, value: Value) -> Flow {
        let times = self.draws.whole(value);
        let byte = AtomicU8::new(0);
        let begin_ns = self.begin();
        for _ in 0..times {
            black_box(&byte).store(1, Ordering::Relaxed);
        }
        self.end(step, begin_ns, 0);
        Flow::On
    }

    pub fn delay(&mut self, step: &Step<'p>, seconds: Value) -> Flow {
        let seconds = self.draws.whole(seconds);
        let begin_ns = self.begin();
        self.sleep(begin_ns.saturating_add(seconds.saturating_mul(NS_PER_S)));
        if self.over() {
            return Flow::Over;
        }
        self.end(step, begin_ns, 0);
        Flow::On
    }

    pub fn event_limit(&mut self, step: &Step<'p>) -> Flow {
        self.events(step, 1)
    }

    /// Waits for the events that what was done since the last time costs: one for each operation,
    /// or for each MiB.
    pub fn rate_limit(&mut self, step: &mut Step<'p>) -> Flow {
        if self.rate() == 0 {
            return Flow::On;
        }
        let Extra::Limit {
            target,
            last,
            bucket,
        } = &mut step.extra
        else {
            return Flow::On;
        };
        let per_event = if matches!(step.flowop.op, Op::BwLimit { .. }) {
            MIB
        } else {
            1
        };
        let now = match *target {
            Some(target) => {
                let stats = &self.counted.stats[target];
                if per_event == MIB {
                    stats.ever_bytes
                } else {
                    stats.ever_count
                }
            }
            None => match step.flowop.op {
                Op::BwLimit { .. } => self.engine.total(|totals| &totals.transfer_bytes),
                Op::IopsLimit { .. } => self.engine.total(|totals| &totals.transfers),
                _ => self.engine.total(|totals| &totals.ops),
            },
        };
        let before = std::mem::replace(last, now);
        if before == 0 {
            return Flow::On;
        }
        *bucket = bucket.saturating_sub_unsigned(now.saturating_sub(before));
        if *bucket >= 0 {
            let begin_ns = self.begin();
            self.end(step, begin_ns, 0);
            return Flow::On;
        }
        let owed = bucket.unsigned_abs();
        let events = if per_event == MIB {
            owed / MIB + 1
        } else {
            owed
        };
        *bucket = bucket.saturating_add_unsigned(events * per_event);
        self.events(step, events)
    }

    /// Ends the run once enough was done: more than so many bytes, or as many operations.
    pub fn finish_on(&mut self, step: &Step<'p>) -> Flow {
        let Extra::Limit { target, .. } = step.extra else {
            return Flow::On;
        };
        let begin_ns = self.begin();
        let reached = match (&step.flowop.op, target) {
            (Op::FinishOnBytes { .. }, Some(target)) => {
                self.counted.stats[target].ever_bytes > step.constant
            }
            (Op::FinishOnBytes { .. }, None) => {
                self.engine.total(|totals| &totals.bytes) > step.constant
            }
            (_, Some(target)) => self.counted.stats[target].ever_count >= step.constant,
            (_, None) => self.engine.total(|totals| &totals.ops) >= step.constant,
        };
        self.end(step, begin_ns, 0);
        if reached { Flow::Limit } else { Flow::On }
    }

    /// Events per second now; zero: nobody waits.
    fn rate(&mut self) -> u64 {
        let rate = self.engine.plan.event_rate_per_s;
        rate.map_or(0, |rate| self.draws.whole(rate))
    }

    fn events(&mut self, step: &Step<'p>, count: u64) -> Flow {
        let rate = self.rate();
        if rate == 0 {
            return Flow::On;
        }
        let begin_ns = self.begin();
        let due_ns = self.engine.events.take_ns(count, rate);
        self.sleep(due_ns);
        if self.over() {
            return Flow::Over;
        }
        self.end(step, begin_ns, 0);
        Flow::On
    }
}
