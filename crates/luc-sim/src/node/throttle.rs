//! Writeback throttling (`block/blk-wbt.c`), which Debian's kernels have on.
//!
//! Data that syncs write back may take a part of the device's tags; the log's writes are exempt, as
//! jbd2 marks them `REQ_IDLE`. Tasks beyond the limit sleep in the order of their coming. They are woken
//! when half of the limit is free; where the disk has a cache that can be lost, when all of it is.
//!
//! The kernel finds the limit by steps of 100 ms. While nobody reads from the disk it goes up to three
//! quarters of the tags, and is taken to be there from the first request on.

use std::collections::VecDeque;

use crate::disk::DiskKind;
use crate::processors::TaskId;

#[derive(Debug)]
pub(super) struct Throttle {
    limit: u32,
    /// Waiters are woken when so many requests are on their way, or fewer.
    wakes_at: u32,
    on_their_way: u32,
    waiting: VecDeque<TaskId>,
}

impl Throttle {
    pub fn new(disk: &DiskKind) -> Self {
        let tags = disk.tags();
        // `rq_depth_calc_max_depth()`; a disk of one request at a time has another one ready.
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

    /// A task is about to send a request of data; false: it sleeps until it may.
    pub fn admits(&mut self, task: TaskId) -> bool {
        let is_free = self.waiting.is_empty() && self.on_their_way < self.limit;
        if is_free {
            self.on_their_way += 1;
        } else {
            self.waiting.push_back(task);
        }
        is_free
    }

    /// A request of data has ended; gives the tasks that may send one each now.
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

    /// As tracepoints of the block layer have it of 1ms:4 in the lab: three at once, and the waiters are
    /// woken when one is left.
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
