//! Flowops that wait, compute, or limit rates.

use luc_wml::plan::Value;
use luc_workload::wml::parts::{Step, signed};

use super::super::shared::take;
use super::{Flow, Halt, Thread};
use luc_sim::program::Op;

const NS_PER_S: u64 = 1_000_000_000;
/// Unused events are kept for this long.
const EVENTS_KEPT_NS: u64 = 5 * NS_PER_S;

impl Thread<'_> {
    /// Allows `value` more posts, then waits for as many.
    pub(super) async fn sem_block(&mut self, step: &Step<'_>, value: Value) -> Flow {
        let value = self.signed(step, value)?;
        let id = step.bound.own;
        let begin_ns = self.now_ns();
        let posting = {
            let semaphore = &mut self.shared.state().semaphores[id];
            semaphore.high += value;
            std::mem::take(&mut semaphore.posting)
        };
        self.wake_all(posting).await;
        loop {
            let has = {
                let semaphore = &mut self.shared.state().semaphores[id];
                let has = take(&mut semaphore.low, value);
                if !has {
                    semaphore.blocked.push(self.number);
                    semaphore.wanted = value;
                }
                has
            };
            if has {
                break;
            }
            self.call(Op::Park).await;
            self.unless_over()?;
        }
        self.end(step, begin_ns, 0);
        Ok(())
    }

    pub(super) async fn sem_post(&mut self, step: &Step<'_>, value: Value, blocking: bool) -> Flow {
        let begin_ns = self.now_ns();
        for &id in step.bound.targets.iter() {
            let value = self.signed(step, value)?;
            while blocking && !self.may_post(id, value) {
                self.call(Op::Park).await;
                self.unless_over()?;
            }
            self.call(Op::Compute(self.shared.costs.post)).await;
            let blocked = {
                let semaphore = &mut self.shared.state().semaphores[id];
                semaphore.low += value;
                if semaphore.low >= semaphore.wanted {
                    std::mem::take(&mut semaphore.blocked)
                } else {
                    Vec::new()
                }
            };
            self.wake_all(blocked).await;
        }
        self.end(step, begin_ns, 0);
        Ok(())
    }

    /// Tells whether the thread may post; if not, queues it until it may.
    fn may_post(&self, id: usize, value: i64) -> bool {
        let semaphore = &mut self.shared.state().semaphores[id];
        let may = take(&mut semaphore.high, value);
        if !may {
            semaphore.posting.push(self.number);
        }
        may
    }

    pub(super) async fn block(&mut self, step: &Step<'_>) -> Flow {
        let begin_ns = self.now_ns();
        let id = step.bound.own;
        self.shared.state().gates[id].push(self.number);
        self.call(Op::Park).await;
        self.unless_over()?;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    pub(super) async fn wakeup(&mut self, step: &Step<'_>) -> Flow {
        for &id in step.bound.targets.iter() {
            let begin_ns = self.now_ns();
            let waiting = std::mem::take(&mut self.shared.state().gates[id]);
            self.wake_all(waiting).await;
            self.end(step, begin_ns, 0);
        }
        Ok(())
    }

    pub(super) async fn hog(&mut self, step: &Step<'_>, value: Value) -> Flow {
        let times = self.draws.whole(value);
        let begin_ns = self.now_ns();
        let work = times.saturating_mul(self.shared.costs.hog_turn);
        self.call(Op::Compute(work)).await;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    pub(super) async fn delay(&mut self, step: &Step<'_>, seconds: Value) -> Flow {
        let seconds = self.draws.whole(seconds);
        let begin_ns = self.now_ns();
        let until_ns = begin_ns.saturating_add(seconds.saturating_mul(NS_PER_S));
        self.sleep(until_ns).await?;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    /// Waits for the next event of the generator.
    pub(super) async fn event(&mut self, step: &Step<'_>) -> Flow {
        let rate = self.shared.plan.event_rate_per_s;
        let rate = rate.map_or(0, |rate| self.draws.whole(rate));
        if rate == 0 {
            return Ok(());
        }
        let begin_ns = self.now_ns();
        let due_ns = {
            let mut state = self.shared.state();
            let oldest = begin_ns.saturating_sub(EVENTS_KEPT_NS);
            state.event_ns = state.event_ns.max(oldest).saturating_add(NS_PER_S / rate);
            state.event_ns
        };
        self.sleep(due_ns).await?;
        self.end(step, begin_ns, 0);
        Ok(())
    }

    async fn sleep(&self, until_ns: u64) -> Flow {
        let until_ns = until_ns.min(self.shared.until_ns);
        self.call(Op::SleepUntil(until_ns)).await;
        self.unless_over()
    }

    fn signed(&mut self, step: &Step<'_>, value: Value) -> Flow<i64> {
        let value = self.draws.whole(value);
        signed(step.flowop, value).map_err(|error| Halt::Refused(error.to_string()))
    }
}
