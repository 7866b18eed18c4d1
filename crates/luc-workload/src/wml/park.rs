//! Waits for a state that other threads change by atomic operations. Those threads need no lock:
//! after a change a thread reads one counter, and takes the lock only if another thread waits.

use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Longest sleep before a check whether the run has ended.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Default)]
pub struct Park {
    waiting: AtomicU32,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Park {
    /// Waits until `attempt` returns a value or `give_up` returns true (both are called ten times a
    /// second, and at each wake-up).
    pub fn until<T>(
        &self,
        mut attempt: impl FnMut() -> Option<T>,
        mut give_up: impl FnMut() -> bool,
    ) -> Option<T> {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        // Either the attempt sees the change, or the thread that made it sees the counter.
        fence(Ordering::SeqCst);
        let found = loop {
            if let Some(found) = attempt() {
                break Some(found);
            }
            if give_up() {
                break None;
            }
            let (next, _) = self
                .changed
                .wait_timeout(guard, LOOK)
                .unwrap_or_else(PoisonError::into_inner);
            guard = next;
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        found
    }

    /// Wakes all waiters. Call it after a change by a sequentially consistent atomic exchange,
    /// which replaces a fence.
    pub fn wake(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.changed.notify_all();
        }
    }
}
