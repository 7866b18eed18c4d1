//! Flowops that wait, compute, and limit rates.

use std::hint::black_box;
use std::sync::atomic::{AtomicU8, Ordering};

use luc_wml::plan::{Op, Value};

use super::engine::{Step, signed};
use super::halt::{Flow, Halt};
use super::worker::Worker;
use crate::clock::NS_PER_S;

const MIB: u64 = 1 << 20;

/// Halts if a wait ended only because the run did.
fn came(it: bool) -> Flow {
    if it { Ok(()) } else { Err(Halt::Over) }
}

impl<'p> Worker<'_, 'p> {
    pub fn sem_block(&mut self, step: &Step<'p>, value: Value) -> Flow {
        let value = signed(step.flowop, self.draws.whole(value))?;
        let begin_ns = self.begin();
        came(self.engine.semaphores[step.bound.own].block(value, self.give_up()))?;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    pub fn sem_post(&mut self, step: &Step<'p>, value: Value, blocking: bool) -> Flow {
        let begin_ns = self.begin();
        for &id in step.bound.targets.iter() {
            let value = signed(step.flowop, self.draws.whole(value))?;
            came(self.engine.semaphores[id].post(value, blocking, self.give_up()))?;
        }
        self.end(step, begin_ns, 0);
        Ok(())
    }

    pub fn block(&mut self, step: &Step<'p>) -> Flow {
        let begin_ns = self.begin();
        came(self.engine.gates[step.bound.own].block(self.give_up()))?;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    pub fn wakeup(&mut self, step: &Step<'p>) {
        for &id in step.bound.targets.iter() {
            let begin_ns = self.begin();
            self.engine.gates[id].wakeup();
            self.end(step, begin_ns, 0);
        }
    }

    /// Writes one byte `value` times, loading its address anew each time, as Filebench's loop does.
    pub fn hog(&mut self, step: &Step<'p>, value: Value) {
        let times = self.draws.whole(value);
        let byte = AtomicU8::new(0);
        let begin_ns = self.begin();
        for _ in 0..times {
            black_box(&byte).store(1, Ordering::Relaxed);
        }
        self.end(step, begin_ns, 0);
    }

    pub fn delay(&mut self, step: &Step<'p>, seconds: Value) -> Flow {
        let seconds = self.draws.whole(seconds);
        let begin_ns = self.begin();
        self.sleep(begin_ns.saturating_add(seconds.saturating_mul(NS_PER_S)));
        self.unless_over()?;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    /// Waits for one event per operation, or per MiB, since the last call.
    pub fn rate_limit(&mut self, step: &mut Step<'p>) -> Flow {
        if self.rate() == 0 {
            return Ok(());
        }
        let by_bytes = matches!(step.flowop.op, Op::BwLimit { .. });
        let now = match step.bound.counted {
            Some(target) => {
                let stats = &self.counted.stats[target];
                if by_bytes {
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
        let before = std::mem::replace(&mut step.last, now);
        if before == 0 {
            return Ok(());
        }
        let bucket = &mut step.bucket;
        *bucket = bucket.saturating_sub_unsigned(now.saturating_sub(before));
        if *bucket >= 0 {
            let begin_ns = self.begin();
            self.end(step, begin_ns, 0);
            return Ok(());
        }
        let owed = bucket.unsigned_abs();
        let (events, per_event) = if by_bytes {
            (owed / MIB + 1, MIB)
        } else {
            (owed, 1)
        };
        *bucket = bucket.saturating_add_unsigned(events * per_event);
        self.events(step, events)
    }

    /// Halts once the limit is reached: more bytes than its value, or as many operations.
    pub fn finish_on(&mut self, step: &Step<'p>) -> Flow {
        let begin_ns = self.begin();
        let own = step.bound.counted.map(|target| &self.counted.stats[target]);
        let reached = if matches!(step.flowop.op, Op::FinishOnBytes { .. }) {
            let bytes = own.map(|stats| stats.ever_bytes);
            bytes.unwrap_or_else(|| self.engine.total(|all| &all.bytes)) > step.bound.constant
        } else {
            let ops = own.map(|stats| stats.ever_count);
            ops.unwrap_or_else(|| self.engine.total(|all| &all.ops)) >= step.bound.constant
        };
        self.end(step, begin_ns, 0);
        if reached { Err(Halt::Limit) } else { Ok(()) }
    }

    /// Draws the events per second; 0 means no wait.
    fn rate(&mut self) -> u64 {
        let rate = self.engine.plan.event_rate_per_s;
        rate.map_or(0, |rate| self.draws.whole(rate))
    }

    pub fn events(&mut self, step: &Step<'p>, count: u64) -> Flow {
        let rate = self.rate();
        if rate == 0 {
            return Ok(());
        }
        let begin_ns = self.begin();
        let due_ns = self.engine.events.take_ns(count, rate);
        self.sleep(due_ns);
        self.unless_over()?;
        self.end(step, begin_ns, 0);
        Ok(())
    }
}
