//! Flowops that wait for other threads: semaphores, block and wakeup, events.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::halt::Flow;
use super::system::{System, Work};
use crate::clock::NS_PER_S;

/// The two semaphores of one `semblock`: posts wait while the high-water one is used up; the
/// blocker waits for enough posts on the low-water one.
pub struct Semaphore<W> {
    low: AtomicI64,
    high: AtomicI64,
    /// Posts that the blocker waits for; `i64::MAX` while it does not wait.
    wanted: AtomicI64,
    pub posted: W,
    pub drained: W,
}

impl<W: Default> Semaphore<W> {
    /// Makes a semaphore that allows `high_water` posts before the first block.
    pub fn new(high_water: i64) -> Self {
        Self {
            low: AtomicI64::new(0),
            high: AtomicI64::new(high_water),
            wanted: AtomicI64::new(i64::MAX),
            posted: W::default(),
            drained: W::default(),
        }
    }

    /// Allows `value` more posts, then waits for as many.
    pub async fn block(&self, value: i64, system: &impl System<Waiters = W>) -> Flow {
        self.high.fetch_add(value, Ordering::SeqCst);
        system.wake(&self.drained).await;
        if take(&self.low, value) {
            return Ok(());
        }
        self.wanted.store(value, Ordering::SeqCst);
        let attempt = || take(&self.low, value).then_some(());
        let got = system.until(&self.posted, attempt).await;
        self.wanted.store(i64::MAX, Ordering::SeqCst);
        got
    }

    /// Posts `value`, with `blocking` only once the high-water semaphore allows it.
    pub async fn post(
        &self,
        value: i64,
        blocking: bool,
        system: &mut impl System<Waiters = W>,
    ) -> Flow {
        if blocking {
            let attempt = || take(&self.high, value).then_some(());
            system.until(&self.drained, attempt).await?;
        }
        system.work(Work::Post).await;
        let low = self.low.fetch_add(value, Ordering::SeqCst) + value;
        if low >= self.wanted.load(Ordering::SeqCst) {
            system.wake(&self.posted).await;
        }
        Ok(())
    }

    #[cfg(test)]
    pub fn levels(&self) -> (i64, i64) {
        (
            self.low.load(Ordering::SeqCst),
            self.high.load(Ordering::SeqCst),
        )
    }
}

/// Subtracts `value` if the level is at least that.
fn take(level: &AtomicI64, value: i64) -> bool {
    level
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| {
            (now >= value).then(|| now - value)
        })
        .is_ok()
}

/// A gate at which a `block` flowop waits for the next `wakeup`.
#[derive(Default)]
pub struct Gate<W> {
    wakeups: AtomicU64,
    pub waiters: W,
}

impl<W> Gate<W> {
    /// Waits for a wake-up.
    pub async fn block(&self, system: &impl System<Waiters = W>) -> Flow {
        let before = self.wakeups.load(Ordering::SeqCst);
        let woken = || (self.wakeups.load(Ordering::SeqCst) != before).then_some(());
        system.until(&self.waiters, woken).await
    }

    pub async fn wakeup(&self, system: &impl System<Waiters = W>) {
        self.wakeups.fetch_add(1, Ordering::SeqCst);
        system.wake(&self.waiters).await;
    }
}

/// Unused events are kept for this long.
const EVENTS_KEPT_NS: u64 = 5 * NS_PER_S;

/// The event generator. No thread posts events: a thread that takes events learns when they are
/// due.
///
/// Filebench has a thread that posts events ten periods at a time, and spins if the rate is zero.
/// Here one number holds the moment of the last event that was taken. It moves on by one period per
/// event, and lags behind the clock by at most five seconds.
#[derive(Default)]
pub struct Events {
    last_ns: AtomicU64,
}

impl Events {
    /// Starts the events: none comes before this moment.
    pub fn start(&self, start_ns: u64) {
        self.last_ns.fetch_max(start_ns, Ordering::Relaxed);
    }

    /// Takes `count` events at `rate_per_s`, which is not 0; returns when the last of them is due.
    pub fn take_ns(&self, count: u64, rate_per_s: u64, now_ns: u64) -> u64 {
        let period = u128::from(count) * u128::from(NS_PER_S) / u128::from(rate_per_s.max(1));
        let period = u64::try_from(period).unwrap_or(u64::MAX);
        let oldest = now_ns.saturating_sub(EVENTS_KEPT_NS);
        let mut last = self.last_ns.load(Ordering::Relaxed);
        loop {
            let next = last.max(oldest).saturating_add(period);
            match self.last_ns.compare_exchange_weak(
                last,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return next,
                Err(now) => last = now,
            }
        }
    }
}
