//! The log's space: what transactions took, and what a checkpoint can give back.
//!
//! Numbers are jbd2's of Linux 6.12. A log block is free again when the tail has moved past it. The
//! tail may move to the oldest transaction of which a buffer has its newest committed content in the
//! log alone. A newer commit of a buffer frees the older one of it; so does a write to its home.

use std::collections::{BTreeMap, VecDeque};

use super::{BufferId, Tid};

/// jbd2 keeps so many blocks back (`jbd2_log_space_left()`).
const SLACK_BLOCKS: u64 = 32;
/// Tags of 16 bytes (`journal_block_tag3_t`, with `metadata_csum`) in a descriptor block, behind its
/// header of 12 bytes and the first tag's UUID of 16, with 36 left over at most.
const TAGS_IN_A_BLOCK: u64 = 253;

/// A committed transaction that is in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Logged {
    tid: Tid,
    /// Its first block, counted from the log's first use.
    start: u64,
    buffers: Vec<BufferId>,
    /// Those of `buffers` whose newest committed content it has.
    live: u32,
}

/// The log as a ring of blocks.
#[derive(Debug)]
pub struct Space {
    blocks: u64,
    transaction_max: u64,
    /// Blocks written and blocks given back since the log's first use.
    head: u64,
    tail: u64,
    /// Oldest first; the tids have no gaps.
    logged: VecDeque<Logged>,
    /// Of each buffer that is not home: the transaction that has its newest committed content.
    newest: BTreeMap<BufferId, Tid>,
}

/// Blocks of a transaction's descriptors.
fn descriptors(buffers: u64) -> u64 {
    buffers.div_ceil(TAGS_IN_A_BLOCK).max(1)
}

impl Space {
    /// An empty log. One transaction has at most a share of it, 1 / `share`.
    pub fn new(blocks: u64, share: u64) -> Self {
        Self {
            blocks,
            transaction_max: blocks / share,
            head: 0,
            tail: 0,
            logged: VecDeque::new(),
            newest: BTreeMap::new(),
        }
    }

    /// Blocks that one transaction may take.
    pub fn transaction_max(&self) -> u64 {
        self.transaction_max
    }

    /// Blocks that a transaction needs besides its buffers, whatever becomes of it.
    pub fn overhead(&self) -> u64 {
        1 + descriptors(self.transaction_max)
    }

    /// Blocks for handles that begin, when commits on their way may take `reserved`.
    pub fn left(&self, reserved: u64) -> u64 {
        let free = self.blocks - (self.head - self.tail);
        free.saturating_sub(SLACK_BLOCKS + reserved)
    }

    /// Takes blocks for buffers and descriptors, and for a commit record. Gives the first block, and
    /// the number without the record.
    pub fn take(&mut self, buffers: usize, has_record: bool) -> (u64, u64) {
        let buffers = buffers as u64;
        let blocks = buffers + descriptors(buffers);
        let start = self.head;
        self.head += blocks + u64::from(has_record);
        (start, blocks)
    }

    /// Where a block lies in the log.
    pub fn place(&self, block: u64) -> u64 {
        block % self.blocks
    }

    fn at(&mut self, tid: Tid) -> Option<&mut Logged> {
        let first = self.logged.front()?.tid;
        self.logged.get_mut(tid.checked_sub(first)? as usize)
    }

    /// A transaction's copy of a buffer is no longer needed.
    fn forget(&mut self, tid: Option<Tid>) {
        if let Some(logged) = tid.and_then(|tid| self.at(tid)) {
            logged.live -= 1;
        }
    }

    /// A transaction is committed: its buffers are no longer needed from older ones.
    pub fn committed(&mut self, tid: Tid, start: u64, buffers: Vec<BufferId>) {
        for buffer in &buffers {
            let older = self.newest.insert(*buffer, tid);
            self.forget(older);
        }
        let live = u32::try_from(buffers.len()).unwrap_or(u32::MAX);
        self.logged.push_back(Logged {
            tid,
            start,
            buffers,
            live,
        });
        self.drop_empty();
    }

    /// A buffer's newest committed content was written to its home.
    pub fn homed(&mut self, buffer: BufferId) {
        let tid = self.newest.remove(&buffer);
        self.forget(tid);
        self.drop_empty();
    }

    fn drop_empty(&mut self) {
        while self.logged.front().is_some_and(|oldest| oldest.live == 0) {
            self.logged.pop_front();
        }
    }

    /// Buffers whose newest committed content is in the log alone.
    pub fn live(&self) -> u64 {
        self.newest.len() as u64
    }

    /// A cleaner cannot make room for a transaction, for handles that wait, and for itself.
    pub fn is_full_of_live(&self) -> bool {
        let moved_at_least = self.transaction_max / 2;
        let valid = self.live() + self.live().div_ceil(moved_at_least) + SLACK_BLOCKS;
        valid + 3 * self.transaction_max > self.blocks
    }

    /// Of each transaction, oldest first, the buffers whose newest committed content it has.
    pub fn transactions(&self) -> impl Iterator<Item = impl Iterator<Item = BufferId>> {
        self.logged.iter().map(|logged| {
            let all = logged.buffers.iter().copied();
            all.filter(|buffer| self.newest.get(buffer) == Some(&logged.tid))
        })
    }

    /// How far the tail may move when the oldest commit on its way begins at `in_flight`.
    pub fn tail_may_be(&self, in_flight: Option<u64>) -> u64 {
        let oldest = self.logged.front().map(|logged| logged.start);
        oldest.or(in_flight).unwrap_or(self.head)
    }

    /// Blocks that a move of the tail to there gives back.
    pub fn gain(&self, to: u64) -> u64 {
        to.saturating_sub(self.tail)
    }

    /// The superblock with a new tail is written.
    pub fn move_tail(&mut self, to: u64) {
        self.tail = self.tail.max(to);
    }
}
