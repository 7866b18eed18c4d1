//! Flowops that wait, compute, and limit rates.

use luc_wml::plan::{Op, Value};

use super::engine::{Step, signed};
use super::halt::{Flow, Halt};
use super::system::{System, Work};
use super::thread::Thread;
use crate::clock::NS_PER_S;

const MIB: u64 = 1 << 20;

impl<'e, S: System> Thread<'e, S> {
    pub async fn sem_block(&mut self, step: &Step<'e>, value: Value) -> Flow {
        let value = signed(step.flowop, self.draws.whole(value))?;
        let begin_ns = self.system.now_ns();
        let semaphore = &self.engine.semaphores[step.bound.own];
        semaphore.block(value, &self.system).await?;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    pub async fn sem_post(&mut self, step: &Step<'e>, value: Value, blocking: bool) -> Flow {
        let begin_ns = self.system.now_ns();
        for &id in step.bound.targets.iter() {
            let value = signed(step.flowop, self.draws.whole(value))?;
            let semaphore = &self.engine.semaphores[id];
            semaphore.post(value, blocking, &mut self.system).await?;
        }
        self.end(step, begin_ns, 0);
        Ok(())
    }

    pub async fn block(&mut self, step: &Step<'e>) -> Flow {
        let begin_ns = self.system.now_ns();
        let gate = &self.engine.gates[step.bound.own];
        gate.block(&self.system).await?;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    pub async fn wakeup(&mut self, step: &Step<'e>) -> Flow {
        for &id in step.bound.targets.iter() {
            let begin_ns = self.system.now_ns();
            self.engine.gates[id].wakeup(&self.system).await;
            self.end(step, begin_ns, 0);
        }
        Ok(())
    }

    pub async fn hog(&mut self, step: &Step<'e>, value: Value) -> Flow {
        let times = self.draws.whole(value);
        let begin_ns = self.system.now_ns();
        self.system.work(Work::Hog { times }).await;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    pub async fn delay(&mut self, step: &Step<'e>, seconds: Value) -> Flow {
        let seconds = self.draws.whole(seconds);
        let begin_ns = self.system.now_ns();
        let until_ns = begin_ns.saturating_add(seconds.saturating_mul(NS_PER_S));
        self.system.sleep_until(until_ns).await;
        self.unless_over()?;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    /// Waits for one event per operation, or per MiB, since the last call.
    pub async fn rate_limit(&mut self, step: &mut Step<'e>) -> Flow {
        if self.rate() == 0 {
            return Ok(());
        }
        let by_bytes = matches!(step.flowop.op, Op::BwLimit { .. });
        let now = match self.ever(step) {
            Some((_, bytes)) if by_bytes => bytes,
            Some((count, _)) => count,
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
            let begin_ns = self.system.now_ns();
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
        self.events(step, events).await
    }

    /// Halts once the limit is reached: more bytes than its value, or as many operations.
    pub fn finish_on(&mut self, step: &Step<'e>) -> Flow {
        let begin_ns = self.system.now_ns();
        let own = self.ever(step);
        let reached = if matches!(step.flowop.op, Op::FinishOnBytes { .. }) {
            let bytes = own.map(|(_, bytes)| bytes);
            bytes.unwrap_or_else(|| self.engine.total(|all| &all.bytes)) > step.bound.constant
        } else {
            let ops = own.map(|(count, _)| count);
            ops.unwrap_or_else(|| self.engine.total(|all| &all.ops)) >= step.bound.constant
        };
        self.end(step, begin_ns, 0);
        if reached { Err(Halt::Limit) } else { Ok(()) }
    }

    /// Returns the operations and bytes so far of the flowop that a limit watches, if it watches
    /// one.
    fn ever(&mut self, step: &Step<'e>) -> Option<(u64, u64)> {
        let target = step.bound.counted?;
        Some(self.system.count(|counted| {
            let stats = &counted.stats[target];
            (stats.ever_count, stats.ever_bytes)
        }))
    }

    /// Draws the events per second; 0 means no wait.
    fn rate(&mut self) -> u64 {
        let rate = self.engine.plan.event_rate_per_s;
        rate.map_or(0, |rate| self.draws.whole(rate))
    }

    pub async fn events(&mut self, step: &Step<'e>, count: u64) -> Flow {
        let rate = self.rate();
        if rate == 0 {
            return Ok(());
        }
        let begin_ns = self.system.now_ns();
        let due_ns = self.engine.events.take_ns(count, rate, begin_ns);
        self.system.sleep_until(due_ns).await;
        self.unless_over()?;
        self.end(step, begin_ns, 0);
        Ok(())
    }
}
