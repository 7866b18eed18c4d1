//! Threads that want processors.
//!
//! A thread that is ready while all processors are taken waits in the run queue, so the same operation
//! takes longer the more threads are ready. [`work_ns`] tells the work in a trace from that wait, by
//! the order in which threads got on. The replay repeats the work, and [`RunQueue`] makes the waits.

use crate::stretches::Stretch;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A thread keeps its processor for so long while others wait, ns: one tick of a kernel with 250 Hz.
/// Most work is far shorter.
pub(super) const SLICE_NS: u64 = 4_000_000;

/// Of each stretch in which a thread was ready, its time on a processor, ns. Threads are taken to be
/// served in the order in which they ended: each gets the processor that is free the longest. No
/// processor is idle while a thread is ready.
pub(super) fn work_ns(ready: &[Stretch], cpus: u32) -> Vec<u64> {
    let mut order: Vec<usize> = (0..ready.len()).collect();
    order.sort_by_key(|place| {
        let (begin_ns, end_ns) = ready[*place];
        (end_ns, begin_ns)
    });
    // More processors than stretches make no difference.
    let cpus = usize::try_from(cpus).unwrap_or(usize::MAX);
    let cpus = cpus.clamp(1, ready.len().max(1));
    let mut free_ns: BinaryHeap<Reverse<u64>> = (0..cpus).map(|_| Reverse(0)).collect();
    let mut work_ns = vec![0; ready.len()];
    for place in order {
        let (begin_ns, end_ns) = ready[place];
        let Reverse(since_ns) = free_ns.pop().unwrap_or(Reverse(0));
        work_ns[place] = end_ns.saturating_sub(begin_ns.max(since_ns));
        free_ns.push(Reverse(end_ns));
    }
    work_ns
}

/// Processors, and the threads that wait for one.
pub(super) struct RunQueue {
    free: u32,
    waiting: VecDeque<usize>,
}

impl RunQueue {
    pub(super) fn new(cpus: u32) -> Self {
        Self {
            free: cpus.max(1),
            waiting: VecDeque::new(),
        }
    }

    /// Whether a thread has a processor at once; else it waits.
    pub(super) fn enter(&mut self, thread: usize) -> bool {
        if self.free > 0 {
            self.free -= 1;
            return true;
        }
        self.waiting.push_back(thread);
        false
    }

    /// A thread leaves its processor, which goes to the thread returned.
    pub(super) fn leave(&mut self) -> Option<usize> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.free += 1;
        }
        next
    }

    /// Whether all processors are taken.
    pub(super) fn is_full(&self) -> bool {
        self.free == 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three are ready at 0 and end at 20, 50 and 60; a fourth is ready from 100 to 130, alone at first,
    /// and a fifth from 110 to 140.
    #[test]
    fn waiting_for_a_processor_is_no_work() {
        let ready = [(0, 60), (0, 20), (0, 50), (100, 130), (110, 140)];
        assert_eq!(work_ns(&ready, 1), [10, 20, 30, 30, 10]);
        // 20; 50 beside it; from 20 on the third has the first one's.
        assert_eq!(work_ns(&ready, 2), [40, 20, 50, 30, 30]);
        assert_eq!(work_ns(&ready, 5), [60, 20, 50, 30, 30]);
        assert!(work_ns(&[], 1).is_empty());
        // A clock that went back.
        assert_eq!(work_ns(&[(9, 9), (9, 5)], 1), [0, 0]);
    }

    #[test]
    fn first_come_first_served() {
        let mut queue = RunQueue::new(2);
        let entered: Vec<bool> = (0..4).map(|thread| queue.enter(thread)).collect();
        assert_eq!(entered, [true, true, false, false]);
        assert_eq!((queue.leave(), queue.leave()), (Some(2), Some(3)));
        assert!(queue.is_empty());
        assert_eq!((queue.leave(), queue.leave()), (None, None));
        assert!(queue.enter(7));
    }
}
