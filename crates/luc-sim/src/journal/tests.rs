//! Tests of the transactions, without a disk or a clock.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::kind::KINDS;
use super::*;

const CREDITS: u64 = 46;

fn begin(journal: &mut Journal, task: TaskId) -> Begin {
    journal.begin(task, CREDITS, 5)
}

#[test]
fn a_shadowed_buffer_holds_up_the_next_transaction() {
    let mut journal = Journal::default();
    assert_eq!(begin(&mut journal, 1), Begin::Granted(1));
    assert_eq!(journal.access(1, 7), Access::Granted);
    assert_eq!(journal.access(1, 8), Access::Granted);
    assert_eq!(journal.access(1, 9), Access::Granted);
    assert!(!journal.end(CREDITS));
    assert!(journal.request(1) && !journal.request(1) && journal.is_wanted());
    assert!(journal.lock());
    assert_eq!(begin(&mut journal, 2), Begin::Locked);
    assert_eq!(journal.switch(6), [2]);
    assert!(!journal.is_wanted());
    // A buffer that is not yet being written is copied; the write then shadows only the others.
    assert_eq!(begin(&mut journal, 2), Begin::Granted(2));
    assert_eq!(journal.access(2, 7), Access::Copied);
    assert_eq!(journal.write_buffers(Copies::None), (3, 0));
    assert_eq!(journal.access(2, 7), Access::Granted);
    assert_eq!(journal.access(2, 8), Access::Waits);
    journal.wait_for_commit(1, 1);
    assert_eq!(journal.written(1), (3, vec![], vec![2]));
    assert_eq!(journal.access(2, 8), Access::Granted);
    assert!(journal.durable(1));
    assert_eq!(journal.committed().1, [1]);
    assert_eq!(journal.committed, 1);
    assert!(!journal.request(1), "it is committed");
}

#[test]
fn copies_shadow_nothing() {
    let mut journal = Journal::default();
    begin(&mut journal, 1);
    journal.access(1, 7);
    journal.access(1, 8);
    assert!(!journal.lock());
    assert!(journal.end(CREDITS), "the commit waited");
    journal.switch(6);
    begin(&mut journal, 2);
    assert_eq!(journal.access(2, 7), Access::Copied);
    assert_eq!(journal.write_buffers(Copies::All), (2, 1));
    assert_eq!(journal.access(2, 8), Access::Spared);
}

/// Tasks, a disk and the journal's thread, driven by random choices.
struct Driver {
    journal: Journal,
    now_ns: u64,
    /// Tasks with a handle.
    holds: BTreeSet<TaskId>,
    /// Tasks that sleep for a handle, a buffer or a commit.
    sleeps: BTreeSet<TaskId>,
    /// Commits whose log write is under way.
    logs: Vec<Tid>,
    /// Commits whose record is being written.
    records: Vec<Tid>,
}

const TASKS: u32 = 12;
const BUFFERS: u32 = 500;

impl Driver {
    fn new(kind: &'static Kind) -> Self {
        Self {
            journal: Journal::new(&Choice { kind, mib: 4 }),
            now_ns: 0,
            holds: BTreeSet::new(),
            sleeps: BTreeSet::new(),
            logs: Vec::new(),
            records: Vec::new(),
        }
    }

    fn woken(&mut self, tasks: Vec<TaskId>) {
        for task in tasks {
            assert!(self.sleeps.remove(&task), "task {task} does not sleep");
        }
    }

    /// Lets a task that is awake begin an operation, change a buffer, or end the operation.
    fn task(&mut self, task: TaskId, choice: u32) {
        if self.sleeps.contains(&task) {
            return;
        }
        if !self.holds.contains(&task) {
            match self.journal.begin(task, CREDITS, self.now_ns) {
                Begin::Granted(_) => {
                    self.holds.insert(task);
                }
                Begin::Full(tid) => {
                    self.journal.request(tid);
                    self.sleeps.insert(task);
                }
                Begin::Locked | Begin::NoSpace => {
                    self.sleeps.insert(task);
                }
            }
        } else if !choice.is_multiple_of(4) {
            let access = self.journal.access(task, choice % BUFFERS);
            if matches!(access, Access::Waits | Access::WaitsForHome) {
                self.sleeps.insert(task);
            }
        } else {
            self.holds.remove(&task);
            self.journal.end(CREDITS);
            let tid = self.journal.running.as_ref().map(|it| it.tid).unwrap();
            if choice.is_multiple_of(3) {
                self.journal.request(tid);
                self.journal.wait_for_commit(task, tid);
                self.sleeps.insert(task);
            }
        }
    }

    /// Does the next piece of work of the journal's thread.
    fn commit(&mut self) {
        if self.journal.locked() == Some(true) {
            let woken = self.journal.switch(self.now_ns);
            self.woken(woken);
            let (buffers, _) = self.journal.write_buffers(Copies::None);
            let newest = self.journal.committing.back().unwrap();
            assert_eq!(newest.buffers.len(), buffers);
            self.logs.push(newest.tid);
        } else if self.journal.is_wanted() {
            self.journal.lock();
        }
    }

    /// Ends one of the disk's writes, the one that `choice` picks.
    fn disk(&mut self, choice: usize) {
        let of = choice % (self.logs.len() + self.records.len()).max(1);
        if of < self.logs.len() {
            let tid = self.logs.remove(of);
            let (_, first, rest) = self.journal.written(tid);
            self.woken(first);
            self.woken(rest);
            self.records.push(tid);
        } else if !self.records.is_empty() {
            let tid = self.records.remove(of - self.logs.len());
            self.journal.durable(tid);
        }
        while self
            .journal
            .committing
            .front()
            .is_some_and(|it| it.is_durable)
        {
            let (_, woken) = self.journal.committed();
            self.woken(woken);
        }
    }

    /// Does the next piece of work of the thread that makes space.
    fn home(&mut self) {
        if let Some(to) = self.journal.tail_move_of_checkpoint() {
            self.journal.move_tail(to);
            let woken = self.journal.space_waiters();
            self.woken(woken);
            return;
        }
        if self.journal.kind.home == Home::Log {
            if let Some(tid) = self.journal.clean(self.now_ns) {
                self.journal.request(tid);
            }
            return;
        }
        for buffer in self.journal.checkpoint() {
            assert!(self.journal.write_home(buffer));
            let woken = self.journal.homed(buffer, 1);
            self.woken(woken);
        }
        if let Some(tid) = self.journal.running.as_ref().map(|it| it.tid) {
            self.journal.request(tid);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Every sleeping task is woken, and no assert of the journal fails.
    #[test]
    fn nothing_is_lost(
        kind in 0..KINDS.len(),
        moves in proptest::collection::vec((0_u8..16, any::<u32>()), 8000..24_000),
    ) {
        let kind = &KINDS[kind];
        let mut driver = Driver::new(kind);
        for (actor, choice) in moves {
            driver.now_ns += 1000;
            match actor {
                0..4 => driver.commit(),
                4..8 => driver.disk(choice as usize),
                8 if driver.journal.has_space_waiters() => driver.home(),
                _ => driver.task(choice % TASKS, choice / TASKS),
            }
        }
        // Let all operations, requested commits and writes end.
        for _ in 0..2000 {
            for task in driver.holds.clone() {
                if !driver.sleeps.contains(&task) {
                    driver.holds.remove(&task);
                    driver.journal.end(CREDITS);
                }
            }
            driver.commit();
            driver.disk(0);
            if driver.journal.has_space_waiters() {
                driver.home();
            }
        }
        prop_assert!(driver.sleeps.is_empty(), "{}: {:?}", kind.name, driver.journal);
    }
}
