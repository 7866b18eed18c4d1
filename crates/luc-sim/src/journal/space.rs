//! The log's space: the blocks that transactions took, and those that a checkpoint can free.
//!
//! Numbers are those of jbd2 in Linux 6.12. A log block is free again when the tail has moved past
//! it. The tail may move to the oldest transaction that has the only copy of a buffer's newest
//! committed content. A newer commit of the buffer frees its older copy; so does a write to its
//! home.

use std::collections::{BTreeMap, VecDeque};

use super::{BufferId, Tid};

/// Blocks that jbd2 keeps in reserve (`jbd2_log_space_left()`).
const SLACK_BLOCKS: u64 = 32;
/// Tags of 16 bytes (`journal_block_tag3_t`, with `metadata_csum`) in a descriptor block, after its
/// header of 12 bytes and the first tag's UUID of 16, with 36 left over at most.
const TAGS_IN_A_BLOCK: u64 = 253;

/// A committed transaction that is in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Logged {
    tid: Tid,
    /// Its first block, counted from the log's first use.
    start: u64,
    buffers: Vec<BufferId>,
    /// How many of `buffers` have their newest committed content here.
    live: u32,
}

/// The log as a ring of blocks.
#[derive(Debug)]
pub struct Space {
    blocks: u64,
    transaction_max: u64,
    /// Blocks written and blocks freed since the log's first use.
    head: u64,
    tail: u64,
    /// Oldest first; the tids have no gaps.
    logged: VecDeque<Logged>,
    /// For each buffer that is not home, the transaction with its newest committed content.
    newest: BTreeMap<BufferId, Tid>,
}

/// Returns how many descriptor blocks a transaction needs.
fn descriptors(buffers: u64) -> u64 {
    buffers.div_ceil(TAGS_IN_A_BLOCK).max(1)
}

impl Space {
    /// Creates an empty log. A transaction takes at most 1/`share` of it.
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

    /// Returns how many blocks one transaction may take.
    pub fn transaction_max(&self) -> u64 {
        self.transaction_max
    }

    /// Returns how many blocks a transaction needs at most besides its buffers.
    pub fn overhead(&self) -> u64 {
        1 + descriptors(self.transaction_max)
    }

    /// Returns the blocks left for new handles, if commits in flight may take `reserved`.
    pub fn left(&self, reserved: u64) -> u64 {
        let free = self.blocks - (self.head - self.tail);
        free.saturating_sub(SLACK_BLOCKS + reserved)
    }

    /// Takes blocks for buffers and descriptors, and for a commit record if there is one. Returns
    /// the first block, and the number of blocks without the record.
    pub fn take(&mut self, buffers: usize, has_record: bool) -> (u64, u64) {
        let buffers = buffers as u64;
        let blocks = buffers + descriptors(buffers);
        let start = self.head;
        self.head += blocks + u64::from(has_record);
        assert!(self.head - self.tail <= self.blocks, "the log overflows");
        (start, blocks)
    }

    /// Returns the place of a block in the ring.
    pub fn place(&self, block: u64) -> u64 {
        block % self.blocks
    }

    fn at(&mut self, tid: Tid) -> Option<&mut Logged> {
        let first = self.logged.front()?.tid;
        self.logged.get_mut(tid.checked_sub(first)? as usize)
    }

    /// Notes that a transaction's copy of a buffer is no longer needed.
    fn forget(&mut self, tid: Option<Tid>) {
        if let Some(logged) = tid.and_then(|tid| self.at(tid)) {
            logged.live -= 1;
        }
    }

    /// Adds a committed transaction; older transactions' copies of its buffers are no longer
    /// needed.
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

    /// Notes that a buffer's newest committed content was written to its home.
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

    /// Returns how many buffers have their newest committed content only in the log.
    pub fn live(&self) -> u64 {
        self.newest.len() as u64
    }

    /// Tells whether a cleaner can no longer make room for a transaction, for handles that wait,
    /// and for its own transaction.
    pub fn is_full_of_live(&self) -> bool {
        let moved_at_least = self.transaction_max / 2;
        let valid = self.live() + self.live().div_ceil(moved_at_least) + SLACK_BLOCKS;
        valid + 3 * self.transaction_max > self.blocks
    }

    /// Returns for each transaction, oldest first, the buffers whose newest committed content it
    /// has.
    pub fn transactions(&self) -> impl Iterator<Item = impl Iterator<Item = BufferId>> {
        self.logged.iter().map(|logged| {
            let all = logged.buffers.iter().copied();
            all.filter(|buffer| self.newest.get(buffer) == Some(&logged.tid))
        })
    }

    /// Returns how far the tail may move, if the oldest commit in flight begins at `in_flight`.
    pub fn tail_may_be(&self, in_flight: Option<u64>) -> u64 {
        let oldest = self.logged.front().map(|logged| logged.start);
        oldest.or(in_flight).unwrap_or(self.head)
    }

    /// Returns how many blocks are freed if the tail moves to `to`.
    pub fn gain(&self, to: u64) -> u64 {
        to.saturating_sub(self.tail)
    }

    /// Moves the tail: the superblock with the new tail is written.
    pub fn move_tail(&mut self, to: u64) {
        self.tail = self.tail.max(to);
    }
}
