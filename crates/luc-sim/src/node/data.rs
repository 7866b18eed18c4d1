//! Writes to memory, and reads from it.

use super::change::Change;
use super::{Next, Node, Stage};
use crate::files::pages;
use crate::processors::TaskId;
use crate::program::Op;

impl Node {
    /// Returns the time of the coarse clock, in ticks.
    pub(super) fn tick(&self) -> u64 {
        // Files that exist before a run have times of tick 0.
        1 + self.now_ns() / self.mount.kernel.tick_ns
    }

    /// Walks through a write, which holds the file's lock. It changes the inode if the clock has
    /// ticked since the last change, and if the file grows within an allocated block; otherwise the
    /// inode's size changes when blocks are allocated.
    pub(super) fn write(&mut self, number: TaskId) -> Option<Next> {
        let at = number as usize;
        let tick = self.tick();
        let inode = self.files.inode(self.tasks[at].file);
        match self.tasks[at].stage {
            Stage::Begin => self.go(at, Stage::Lock, self.costs.write_before),
            Stage::Lock => {
                self.tasks[at].stage = Stage::Times;
                // The wake-up hands over the lock.
                (!inode.lock(number)).then_some(Next::Wait)
            }
            Stage::Times => {
                if inode.changed_tick == tick {
                    return self.go(at, Stage::Pages, 0);
                }
                inode.changed_tick = tick;
                self.begin_change(at, Change::Inode, Stage::Pages);
                None
            }
            Stage::Pages => {
                let (from, bytes) = match self.tasks[at].op {
                    Op::WriteAt { at, bytes } => (at, u64::from(bytes)),
                    Op::Write { bytes } => (inode.bytes, u64::from(bytes)),
                    _ => (0, 0),
                };
                let end = from.saturating_add(bytes);
                let grows = end > inode.bytes && inode.has_block(end - 1);
                inode.write(from, bytes);
                let then = if grows { Stage::Size } else { Stage::Unlock };
                let touched = pages(from, bytes).len() as u64;
                if self.mount.kernel.write_handles {
                    self.tasks[at].pages_left = touched;
                    self.tasks[at].behind_pages = then;
                    self.tasks[at].stage = Stage::Page;
                    return None;
                }
                let work = self.costs.write_page * touched + self.memory(touched);
                self.go(at, then, work)
            }
            Stage::Page => {
                let task = &mut self.tasks[at];
                if task.pages_left == 0 {
                    task.stage = task.behind_pages;
                    return None;
                }
                task.pages_left -= 1;
                self.begin_change(at, Change::Page, Stage::Page);
                None
            }
            Stage::Size => {
                self.begin_change(at, Change::Inode, Stage::Unlock);
                None
            }
            Stage::Unlock => {
                if let Some(next) = inode.unlock() {
                    self.wake(next, 0);
                }
                self.last(at, self.costs.write_after)
            }
            _ => self.in_handle(number),
        }
    }

    /// Walks through a read of data in memory. With relatime, the first read after a change of the
    /// file also changes the inode.
    pub(super) fn read(&mut self, number: TaskId, bytes: u32) -> Option<Next> {
        let at = number as usize;
        let tick = self.tick();
        match self.tasks[at].stage {
            Stage::Begin => {
                let touched = pages(0, u64::from(bytes)).len() as u64;
                let copying = self.costs.read_page * touched + self.memory(touched);
                let work = self.costs.read + copying;
                self.go(at, Stage::Times, work)
            }
            Stage::Times => {
                let inode = self.files.inode(self.tasks[at].file);
                let is_behind = inode.read_tick <= inode.changed_tick && inode.read_tick < tick;
                if !self.mount.relatime || !is_behind {
                    return self.last(at, 0);
                }
                inode.read_tick = tick;
                self.begin_change(at, Change::Inode, Stage::Done);
                None
            }
            _ => self.in_handle(number),
        }
    }
}
