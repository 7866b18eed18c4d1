//! Requests to the disk: how they are sent, and the owner that gets each when it has ended.

use luc_disk::Request;

use super::{Event, Node, Owner};
use crate::disk::Speed;

impl Node {
    /// Makes the disk slower or faster from now on, as happens to disks when their cache is full,
    /// their array is rebuilt, or their tenants change. Call it between two calls of [`Node::run`].
    pub fn set_disk_speed(&mut self, speed: Speed) {
        self.disk.set_speed(speed, self.calendar.now_ns());
    }

    pub(super) fn submit(&mut self, request: Request, owner: Owner) {
        let now_ns = self.now_ns();
        let calendar = &mut self.calendar;
        self.disk.submit(request, owner, now_ns, |end| {
            calendar.enter(end.at_ns, Event::Served(end.number));
        });
    }

    pub(super) fn served(&mut self, number: u64) {
        let now_ns = self.now_ns();
        let calendar = &mut self.calendar;
        let owner = self.disk.ended(number, now_ns, |end| {
            calendar.enter(end.at_ns, Event::Served(end.number));
        });
        match owner {
            Some(Owner::Data(task)) => {
                self.processors.interrupt(task, self.costs.interrupt);
                self.data_arrived(task);
            }
            Some(Owner::Log(tid)) => self.log_written(tid),
            Some(Owner::Record(tid)) => self.record_written(tid),
            Some(Owner::Flush) => self.flushed(),
            Some(Owner::TailOfCommit(to)) => self.tail_of_commit_written(to),
            Some(Owner::TailOfCheckpoint) => self.tail_of_checkpoint_written(),
            Some(Owner::Home { first, count }) => self.home_written(first, count),
            None => {}
        }
    }
}
