//! Threads that wait for each other, and for events.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::park::Park;
use super::super::real::ready;
use super::super::sync::{Events, Gate, Semaphore};
use super::{Rig, file};
use crate::clock::{NS_PER_MS, NS_PER_S, now_ns};

/// Returns a system for threads that only wait.
fn rig() -> Rig {
    let plan = file("entries=1,size=1", "flowop block name=b");
    Rig::new(&plan, "")
}

/// Posts 1; false if the run ended before that was allowed.
fn post(semaphore: &Semaphore<Park>, blocking: bool, rig: &Rig) -> bool {
    let mut system = rig.worker().0.system;
    ready(semaphore.post(1, blocking, &mut system)).is_ok()
}

fn block(semaphore: &Semaphore<Park>, value: i64, rig: &Rig) -> bool {
    ready(semaphore.block(value, &rig.worker().0.system)).is_ok()
}

fn pass(gate: &Gate<Park>, rig: &Rig) -> bool {
    ready(gate.block(&rig.worker().0.system)).is_ok()
}

#[test]
fn point_12_a_block_allows_posts_first_and_then_waits_for_them() {
    let (semaphore, rig, over) = (Semaphore::new(2), rig(), rig());
    over.stop.set();
    assert!(post(&semaphore, true, &rig) && post(&semaphore, true, &rig));
    assert_eq!(semaphore.levels(), (2, 0));
    // The third would wait for the blocker.
    assert!(!post(&semaphore, true, &over));
    assert!(
        post(&semaphore, false, &rig),
        "one that does not block posts anyway"
    );
    assert_eq!(semaphore.levels(), (3, 0));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(block(&semaphore, 10, &rig));
            done.store(true, Ordering::SeqCst);
        });
        // The block makes room for ten posts; seven release it.
        for _ in 0..7 {
            assert!(!done.load(Ordering::SeqCst));
            assert!(post(&semaphore, true, &rig));
        }
    });
    assert_eq!(semaphore.levels(), (0, 3));
}

#[test]
fn point_12_many_posters_and_one_blocker_lose_nothing() {
    let (semaphore, rig) = (Semaphore::new(5), rig());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut system = rig.worker().0.system;
                for _ in 0..1000 {
                    ready(semaphore.post(1, true, &mut system)).expect("posts");
                }
            });
        }
        for _ in 0..80 {
            assert!(block(&semaphore, 100, &rig));
        }
    });
    assert_eq!(semaphore.levels(), (0, 5));
}

#[test]
fn a_waiter_that_gives_up_is_woken() {
    let (semaphore, gate, rig) = (Semaphore::new(0), Gate::default(), rig());
    let started = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| assert!(!block(&semaphore, 1, &rig)));
        scope.spawn(|| assert!(!pass(&gate, &rig)));
        thread::sleep(Duration::from_millis(30));
        rig.stop.set();
        semaphore.posted.wake();
        gate.waiters.wake();
    });
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_wakeup_wakes_all_waiters() {
    let (gate, rig) = (Gate::default(), rig());
    let system = rig.worker().0.system;
    thread::scope(|scope| {
        let waiters: Vec<_> = (0..3).map(|_| scope.spawn(|| pass(&gate, &rig))).collect();
        // A wake-up that comes too early wakes no waiter: repeat until all have gone.
        while waiters.iter().any(|waiter| !waiter.is_finished()) {
            ready(gate.wakeup(&system));
            thread::yield_now();
        }
    });
}

#[test]
fn point_13_a_rate_is_kept() {
    let (events, start_ns) = (Events::default(), now_ns());
    events.start(start_ns);
    // The first is due one period after the start; each further event takes one more period.
    assert_eq!(events.take_ns(1, 100, start_ns), start_ns + 10 * NS_PER_MS);
    assert_eq!(events.take_ns(1, 100, start_ns), start_ns + 20 * NS_PER_MS);
    assert_eq!(events.take_ns(8, 100, start_ns), start_ns + 100 * NS_PER_MS);
    // Unused events are kept for five seconds, no longer.
    let late = Events::default();
    late.start(start_ns.saturating_sub(100 * NS_PER_S));
    let due_ns = late.take_ns(1, 1000, start_ns);
    assert_eq!(start_ns - due_ns, 5 * NS_PER_S - NS_PER_MS);
}
