//! Threads that want processors.
//!
//! Who is ready while all processors are taken waits in line, so the same operation takes longer
//! the more others are ready. How much of a stretch of a trace was work and how much was that
//! line, is told from who got on when ([`work_ns`]); walked again, the work is the same and
//! the line is what comes of it ([`Line`]).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// For how long a thread keeps its processor while others wait, ns: one tick of a kernel with
/// 250 of them per second. Most work is far shorter.
pub(super) const SLICE_NS: u64 = 4_000_000;

/// Of each stretch in which a thread was ready (begin and end, ns), the time that it had a processor,
/// ns. Taken to be served in the order in which they ended: a processor that one left was the next
/// one's from then on. While any thread is ready no processor that it could have is idle.
pub(super) fn work_ns(ready: &[(u64, u64)], cpus: u32) -> Vec<u64> {
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

/// Processors, and who waits for one.
pub(super) struct Line {
    free: u32,
    waiting: VecDeque<usize>,
}

impl Line {
    pub(super) fn new(cpus: u32) -> Self {
        Self {
            free: cpus.max(1),
            waiting: VecDeque::new(),
        }
    }

    /// Whether a thread has a processor at once; else it stands in line.
    pub(super) fn enter(&mut self, thread: usize) -> bool {
        if self.free > 0 {
            self.free -= 1;
            return true;
        }
        self.waiting.push_back(thread);
        false
    }

    /// A thread leaves its processor: to whom it goes.
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

    /// Three are ready at 0 and end at 20, 50 and 60; a fourth is ready from 100 to 130, when nobody is
    /// in its way, and a fifth from 110 to 140.
    #[test]
    fn the_line_is_no_work() {
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
        let mut line = Line::new(2);
        let entered: Vec<bool> = (0..4).map(|thread| line.enter(thread)).collect();
        assert_eq!(entered, [true, true, false, false]);
        assert_eq!((line.leave(), line.leave()), (Some(2), Some(3)));
        assert!(line.is_empty());
        assert_eq!((line.leave(), line.leave()), (None, None));
        assert!(line.enter(7));
    }
}
