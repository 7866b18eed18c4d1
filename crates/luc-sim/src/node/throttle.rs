//! Writeback throttling (`block/blk-wbt.c`), which is on in Debian's kernels.
//!
//! Data that syncs write back may use a part of the device's tags; the log's writes are exempt,
//! because jbd2 marks them `REQ_IDLE`. Tasks beyond the limit sleep in the order of their arrival.
//! They are woken when half of the limit is free; if the disk has a volatile cache, when all of it
//! is.
//!
//! The kernel adjusts the limit every 100 ms. While no task reads from the disk, the limit goes up
//! to three quarters of the tags; here it has this value from the first request on.

use std::collections::VecDeque;

use crate::disk::DiskKind;
use crate::processors::TaskId;

#[derive(Debug)]
pub(super) struct Throttle {
    limit: u32,
    /// Waiters are woken when at most this many requests are in flight.
    wakes_at: u32,
    on_their_way: u32,
    waiting: VecDeque<TaskId>,
}

impl Throttle {
    pub fn new(disk: &DiskKind) -> Self {
        let tags = disk.tags();
        // `rq_depth_calc_max_depth()`; a disk with one tag has a second request ready.
        let limit = if tags == 1 { 2 } else { (tags * 3 / 4).max(1) };
        // `calc_wb_limits()`, and the two rules of `wbt_rqw_done()`.
        let (normal, background) = if limit <= 2 {
            (limit, 1)
        } else {
            (limit.div_ceil(2), limit.div_ceil(4))
        };
        let wakes_at = if disk.is_volatile {
            0
        } else {
            (normal - 1).min(normal - background / 2)
        };
        Self {
            limit,
            wakes_at,
            on_their_way: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Asks whether a task may send a request for data; if not, the task sleeps until it may.
    pub fn admits(&mut self, task: TaskId) -> bool {
        let is_free = self.waiting.is_empty() && self.on_their_way < self.limit;
        if is_free {
            self.on_their_way += 1;
        } else {
            self.waiting.push_back(task);
        }
        is_free
    }

    /// Notes that a request for data has ended; returns the tasks that may now send one each.
    pub fn ended(&mut self) -> Vec<TaskId> {
        self.on_their_way -= 1;
        if self.on_their_way > self.wakes_at {
            return Vec::new();
        }
        let free = (self.limit - self.on_their_way) as usize;
        let woken: Vec<TaskId> = self.waiting.drain(..free.min(self.waiting.len())).collect();
        self.on_their_way += u32::try_from(woken.len()).unwrap_or(0);
        woken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn throttle(disk: &str) -> Throttle {
        Throttle::new(&disk.parse().expect("a disk"))
    }

    /// Tracepoints of the block layer in the lab show for 1ms:4: three requests at once, and a
    /// wake-up of the waiters when one is left.
    #[test]
    fn three_of_four_tags_are_for_data() {
        let mut throttle = throttle("1ms:4");
        let admitted: Vec<bool> = (0..6).map(|task| throttle.admits(task)).collect();
        assert_eq!(admitted, [true, true, true, false, false, false]);
        assert!(throttle.ended().is_empty());
        assert_eq!(throttle.ended(), [3, 4]);
        assert!(!throttle.admits(6), "behind those that wait");
        assert!(throttle.ended().is_empty());
        assert_eq!(throttle.ended(), [5, 6]);
    }

    #[test]
    fn limits_follow_from_tags_and_caches() {
        let limits = |disk| {
            let throttle = throttle(disk);
            (throttle.limit, throttle.wakes_at)
        };
        assert_eq!(limits("10ms:1"), (2, 1));
        assert_eq!(limits("2ms:2"), (1, 0));
        assert_eq!(limits("100us:64"), (48, 18));
        assert_eq!(limits("hdd-7200"), (24, 0), "its cache can be lost");
    }
}
