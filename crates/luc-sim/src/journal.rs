//! jbd2's transactions, its metadata buffers, and who waits for what.
//!
//! One transaction runs, at most one commits. An operation that changes metadata holds a handle on the
//! running one, and needs write access to each buffer that it changes. A buffer whose log write is
//! under way is *shadowed*: whoever needs it sleeps until the write has ended. One that the commit
//! has not written yet is copied first, and nobody sleeps. This module knows no time and no disk; it
//! tells its caller whom to wake, in the order of the kernel's wait queues: who slept last comes
//! first.

use std::collections::BTreeMap;

use crate::processors::TaskId;

/// A transaction's number.
pub type Tid = u32;

/// A metadata buffer's number.
pub type BufferId = u32;

/// The transaction that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Running {
    pub tid: Tid,
    pub begun_ns: u64,
    /// Operations that hold a handle on it now.
    pub updates: u32,
    /// Handles that it has had.
    pub handles: u32,
    pub buffers: Vec<BufferId>,
    /// Its commit waits for the updates to end: nobody may begin another.
    pub is_locked: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    /// The newest transaction that it belongs to; 0: none.
    tid: Tid,
    is_shadowed: bool,
}

/// Whether an operation may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Granted,
    /// The same, after a copy of what the commit has still to write.
    Copied,
    /// The task sleeps until it is woken, and asks again then.
    Waits,
}

#[derive(Debug, Default)]
pub struct Journal {
    pub running: Option<Running>,
    /// The transaction that commits, and its buffers.
    pub committing: Option<(Tid, Vec<BufferId>)>,
    /// The newest transaction that is committed, and the newest whose commit was asked for.
    pub committed: Tid,
    pub requested: Tid,
    buffers: Vec<Buffer>,
    /// Tasks that wait for the running transaction's lock to pass.
    for_lock: Vec<TaskId>,
    for_commit: Vec<TaskId>,
    for_buffer: BTreeMap<BufferId, Vec<TaskId>>,
}

impl Journal {
    /// Begins an operation; gives the number of the transaction that it belongs to, or `None`: the
    /// task waits for the lock to pass.
    pub fn begin(&mut self, task: TaskId, now_ns: u64) -> Option<Tid> {
        if self.running.as_ref().is_some_and(|it| it.is_locked) {
            self.for_lock.push(task);
            return None;
        }
        let newest = self
            .committing
            .as_ref()
            .map_or(self.committed, |(tid, _)| *tid);
        let running = self.running.get_or_insert_with(|| Running {
            tid: newest + 1,
            begun_ns: now_ns,
            ..Running::default()
        });
        running.updates += 1;
        running.handles += 1;
        Some(running.tid)
    }

    /// An operation of the running transaction is about to change a buffer.
    pub fn access(&mut self, task: TaskId, buffer: BufferId) -> Access {
        let at = buffer as usize;
        if at >= self.buffers.len() {
            self.buffers.resize(at + 1, Buffer::default());
        }
        let Some(running) = &mut self.running else {
            return Access::Granted;
        };
        let known = &mut self.buffers[at];
        if known.tid == running.tid {
            return Access::Granted;
        }
        if known.is_shadowed {
            self.for_buffer.entry(buffer).or_default().push(task);
            return Access::Waits;
        }
        let is_committing = self
            .committing
            .as_ref()
            .is_some_and(|(tid, _)| *tid == known.tid);
        known.tid = running.tid;
        running.buffers.push(buffer);
        if is_committing {
            Access::Copied
        } else {
            Access::Granted
        }
    }

    /// Ends an operation; true if the commit waited for it.
    pub fn end(&mut self) -> bool {
        let Some(running) = &mut self.running else {
            return false;
        };
        running.updates -= 1;
        running.is_locked && running.updates == 0
    }

    /// Asks for the commit of a transaction; true if that is news to the journal's thread.
    pub fn request(&mut self, tid: Tid) -> bool {
        let is_running = self.running.as_ref().is_some_and(|it| it.tid == tid);
        let is_news = is_running && self.requested != tid;
        if is_news {
            self.requested = tid;
        }
        is_news
    }

    /// Whether a commit is asked for that has not begun.
    pub fn is_wanted(&self) -> bool {
        self.running
            .as_ref()
            .is_some_and(|it| it.tid == self.requested)
    }

    pub fn is_committing(&self, tid: Tid) -> bool {
        self.committing.as_ref().is_some_and(|(it, _)| *it == tid)
    }

    /// The task sleeps until a commit ends.
    pub fn wait_for_commit(&mut self, task: TaskId) {
        self.for_commit.push(task);
    }

    /// Tasks that wait for the lock to pass.
    pub fn has_lock_waiters(&self) -> bool {
        !self.for_lock.is_empty()
    }

    /// Closes the running transaction for new operations; true if no operation is under way in it.
    pub fn lock(&mut self) -> bool {
        let Some(running) = &mut self.running else {
            return true;
        };
        running.is_locked = true;
        running.updates == 0
    }

    /// The locked transaction commits; gives the tasks that waited for the lock.
    pub fn switch(&mut self) -> Vec<TaskId> {
        if let Some(running) = self.running.take() {
            self.committing = Some((running.tid, running.buffers));
        }
        last_first(std::mem::take(&mut self.for_lock))
    }

    /// The commit writes its buffers: they are shadowed, but for those that have a copy. With
    /// `copies` each gets one. Gives how many buffers there are, and how many are copied for it.
    pub fn write_buffers(&mut self, copies: bool) -> (usize, usize) {
        let Some((tid, own)) = &self.committing else {
            return (0, 0);
        };
        let mut spared = 0;
        for buffer in own {
            let known = &mut self.buffers[*buffer as usize];
            // One that the running transaction has taken was copied then.
            if known.tid == *tid {
                known.is_shadowed = !copies;
                spared += usize::from(copies);
            }
        }
        (own.len(), spared)
    }

    /// The log's write has ended; gives the tasks that slept on its first buffer, and those that slept
    /// on others. The commit waits for the first to be written, and so comes between them.
    pub fn written(&mut self) -> (Vec<TaskId>, Vec<TaskId>) {
        let Some((tid, own)) = &self.committing else {
            return (Vec::new(), Vec::new());
        };
        for buffer in own {
            let known = &mut self.buffers[*buffer as usize];
            known.is_shadowed = false;
            // A written buffer needs no copy.
            if known.tid == *tid {
                known.tid = 0;
            }
        }
        let mut slept = std::mem::take(&mut self.for_buffer);
        let first = own.first().and_then(|first| slept.remove(first));
        let rest = slept.into_values().flat_map(last_first).collect();
        (first.map_or_else(Vec::new, last_first), rest)
    }

    /// The commit has ended; gives the tasks that waited for any commit.
    pub fn committed(&mut self) -> Vec<TaskId> {
        if let Some((tid, _)) = self.committing.take() {
            self.committed = tid;
        }
        last_first(std::mem::take(&mut self.for_commit))
    }
}

fn last_first(mut tasks: Vec<TaskId>) -> Vec<TaskId> {
    tasks.reverse();
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shadowed_buffer_holds_up_the_next_transaction() {
        let mut journal = Journal::default();
        assert_eq!(journal.begin(1, 5), Some(1));
        assert_eq!(journal.access(1, 7), Access::Granted);
        assert_eq!(journal.access(1, 8), Access::Granted);
        assert_eq!(journal.access(1, 9), Access::Granted);
        assert!(!journal.end());
        assert!(journal.request(1) && !journal.request(1) && journal.is_wanted());
        assert!(journal.lock());
        assert_eq!(journal.begin(2, 6), None);
        assert_eq!(journal.switch(), [2]);
        assert!(!journal.is_wanted());
        // Before the write a copy will do, so that the write shadows the others alone.
        assert_eq!(journal.begin(2, 6), Some(2));
        assert_eq!(journal.access(2, 7), Access::Copied);
        assert_eq!(journal.write_buffers(false), (3, 0));
        assert_eq!(journal.access(2, 7), Access::Granted);
        assert_eq!(journal.access(2, 8), Access::Waits);
        journal.wait_for_commit(1);
        assert_eq!(journal.written(), (vec![], vec![2]));
        assert_eq!(journal.access(2, 8), Access::Granted);
        assert_eq!(journal.committed(), [1]);
        assert_eq!(journal.committed, 1);
        assert!(!journal.request(1), "it is committed");
    }

    #[test]
    fn copies_shadow_nothing() {
        let mut journal = Journal::default();
        journal.begin(1, 0);
        journal.access(1, 7);
        journal.access(1, 8);
        assert!(!journal.lock());
        assert!(journal.end(), "the commit waited");
        journal.switch();
        journal.begin(2, 0);
        assert_eq!(journal.access(2, 7), Access::Copied);
        assert_eq!(journal.write_buffers(true), (2, 1));
        assert_eq!(journal.access(2, 8), Access::Copied);
    }
}
