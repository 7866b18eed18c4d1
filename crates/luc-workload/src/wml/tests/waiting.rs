//! Threads that wait for each other, and for events.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::sync::{Events, Gate, Semaphore};
use crate::clock::{NS_PER_MS, NS_PER_S, now_ns};

#[test]
fn point_12_a_block_allows_posts_first_and_then_waits_for_them() {
    let semaphore = Semaphore::new(2);
    let never = || false;
    assert!(semaphore.post(1, true, never) && semaphore.post(1, true, never));
    assert_eq!(semaphore.levels(), (2, 0));
    // The third would wait for the blocker.
    assert!(!semaphore.post(1, true, || true));
    assert!(
        semaphore.post(1, false, never),
        "one that does not block posts anyway"
    );
    assert_eq!(semaphore.levels(), (3, 0));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(semaphore.block(10, never));
            done.store(true, Ordering::SeqCst);
        });
        // The block makes room for ten posts; seven release it.
        for _ in 0..7 {
            assert!(!done.load(Ordering::SeqCst));
            assert!(semaphore.post(1, true, never));
        }
    });
    assert_eq!(semaphore.levels(), (0, 3));
}

#[test]
fn point_12_many_posters_and_one_blocker_lose_nothing() {
    let semaphore = Semaphore::new(5);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    assert!(semaphore.post(1, true, || false));
                }
            });
        }
        for _ in 0..80 {
            assert!(semaphore.block(100, || false));
        }
    });
    assert_eq!(semaphore.levels(), (0, 5));
}

#[test]
fn a_waiter_that_gives_up_is_woken() {
    let (semaphore, gate, over) = (Semaphore::new(0), Gate::default(), AtomicBool::new(false));
    let started = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| assert!(!semaphore.block(1, || over.load(Ordering::SeqCst))));
        scope.spawn(|| assert!(!gate.block(|| over.load(Ordering::SeqCst))));
        thread::sleep(Duration::from_millis(30));
        over.store(true, Ordering::SeqCst);
        semaphore.wake();
        gate.wake();
    });
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_wakeup_wakes_all_waiters() {
    let gate = Gate::default();
    thread::scope(|scope| {
        let waiters: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| gate.block(|| false)))
            .collect();
        // A wake-up that comes too early wakes no waiter: repeat until all have gone.
        while waiters.iter().any(|waiter| !waiter.is_finished()) {
            gate.wakeup();
            thread::yield_now();
        }
    });
}

#[test]
fn point_13_no_rate_is_no_wait_and_a_rate_is_kept() {
    let events = Events::new();
    assert_eq!(events.take_ns(1_000_000, 0), 0);
    let start_ns = now_ns();
    events.start(start_ns);
    // The first is due one period after the start; each further event takes one more period.
    assert_eq!(events.take_ns(1, 100), start_ns + 10 * NS_PER_MS);
    assert_eq!(events.take_ns(1, 100), start_ns + 20 * NS_PER_MS);
    assert_eq!(events.take_ns(8, 100), start_ns + 100 * NS_PER_MS);
    // Unused events are kept for five seconds, no longer.
    let late = Events::new();
    late.start(now_ns().saturating_sub(100 * NS_PER_S));
    let due_ns = late.take_ns(1, 1000);
    let age_ns = now_ns().saturating_sub(due_ns);
    assert!((4 * NS_PER_S..6 * NS_PER_S).contains(&age_ns), "{age_ns}");
}
