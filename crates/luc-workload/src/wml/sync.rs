//! Flowops that wait for other threads: semaphores, block and wakeup, events.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::park::Park;
use crate::clock::{NS_PER_S, now_ns};

/// The two semaphores of one `semblock`: posts wait while the high-water one is used up; the
/// blocker waits for enough posts on the low-water one.
pub struct Semaphore {
    low: AtomicI64,
    high: AtomicI64,
    /// Posts that the blocker waits for; `i64::MAX` while it does not wait.
    wanted: AtomicI64,
    posted: Park,
    drained: Park,
}

impl Semaphore {
    /// Makes a semaphore that allows `high_water` posts before the first block.
    pub fn new(high_water: i64) -> Self {
        Self {
            low: AtomicI64::new(0),
            high: AtomicI64::new(high_water),
            wanted: AtomicI64::new(i64::MAX),
            posted: Park::default(),
            drained: Park::default(),
        }
    }

    /// Allows `value` more posts, then waits for as many. False if it gave up.
    pub fn block(&self, value: i64, give_up: impl FnMut() -> bool) -> bool {
        self.high.fetch_add(value, Ordering::SeqCst);
        self.drained.wake();
        if take(&self.low, value) {
            return true;
        }
        self.wanted.store(value, Ordering::SeqCst);
        let got = self
            .posted
            .until(|| take(&self.low, value).then_some(()), give_up);
        self.wanted.store(i64::MAX, Ordering::SeqCst);
        got.is_some()
    }

    /// Posts `value`, with `blocking` only once the high-water semaphore allows it. False if it
    /// gave up before.
    pub fn post(&self, value: i64, blocking: bool, give_up: impl FnMut() -> bool) -> bool {
        if blocking && !take(&self.high, value) {
            let allowed = self
                .drained
                .until(|| take(&self.high, value).then_some(()), give_up);
            if allowed.is_none() {
                return false;
            }
        }
        let low = self.low.fetch_add(value, Ordering::SeqCst) + value;
        if low >= self.wanted.load(Ordering::SeqCst) {
            self.posted.wake();
        }
        true
    }

    /// Wakes waiters, so that they check whether the run has ended.
    pub fn wake(&self) {
        self.posted.wake();
        self.drained.wake();
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
pub struct Gate {
    wakeups: AtomicU64,
    park: Park,
}

impl Gate {
    /// Waits for a wake-up; false if it gave up.
    pub fn block(&self, give_up: impl FnMut() -> bool) -> bool {
        let before = self.wakeups.load(Ordering::SeqCst);
        let woken = || (self.wakeups.load(Ordering::SeqCst) != before).then_some(());
        self.park.until(woken, give_up).is_some()
    }

    pub fn wakeup(&self) {
        self.wakeups.fetch_add(1, Ordering::SeqCst);
        self.park.wake();
    }

    /// Wakes waiters, so that they check whether the run has ended.
    pub fn wake(&self) {
        self.park.wake();
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
pub struct Events {
    last_ns: AtomicU64,
}

impl Events {
    /// Makes a generator; [`Events::start`] sets when its events begin.
    pub fn new() -> Self {
        Self {
            last_ns: AtomicU64::new(0),
        }
    }

    /// Starts the events: none comes before this moment.
    pub fn start(&self, start_ns: u64) {
        self.last_ns.fetch_max(start_ns, Ordering::Relaxed);
    }

    /// Takes `count` events at `rate_per_s`, and returns when the last of them is due.
    pub fn take_ns(&self, count: u64, rate_per_s: u64) -> u64 {
        if rate_per_s == 0 {
            return 0;
        }
        let period = u128::from(count) * u128::from(NS_PER_S) / u128::from(rate_per_s);
        let period = u64::try_from(period).unwrap_or(u64::MAX);
        let oldest = now_ns().saturating_sub(EVENTS_KEPT_NS);
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
