//! The metadata that tasks share with a commit: the blocks that it was writing when tasks wanted
//! to change them.
//!
//! Blocks hold more than one thing: a block of an inode table holds 16 inodes of 256 bytes. A task
//! may wait for a block in which the commit has changed only the inodes of other files. The
//! dissertation calls this metadata false sharing and leaves it to future work. It can be detected
//! where the trace has the calls that changed the inodes.

use std::collections::{BTreeMap, BTreeSet};

use luc_base::words::{counted, percent};
use luc_control::Dev;
use luc_trace::{BlockKind, CREATED, MetadataBlock, Span, SpanKind, Trace};
use serde::Serialize;

use crate::stats::share;

/// Blocks of one kind for which tasks waited.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharedBlocks {
    /// [`BlockKind::word`]; `None` for blocks that could not be read.
    pub kind: Option<&'static str>,
    /// For people.
    #[serde(skip)]
    pub plural: &'static str,
    /// Number of different blocks.
    pub blocks: u64,
    pub waits: u64,
    pub wait_ns: u64,
}

/// The blocks for which tasks waited while a commit wrote them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sharing {
    /// By kind, those with the most time first.
    pub kinds: Vec<SharedBlocks>,
    /// Waits for blocks of inode tables for which the trace tells whose inodes the commit held.
    pub told: u64,
    /// Those of them in which the commit held only inodes of other files.
    pub only_others: u64,
}

impl Sharing {
    /// Judges the waits of the file system on `dev`. Each wait is compared with the changes to its
    /// block in one transaction.
    pub fn from_trace(trace: &Trace, dev: Dev) -> Self {
        let waits = || trace.on(dev).filter(|it| it.kind == SpanKind::WaitBuffer);
        let mut kinds: BTreeMap<Option<BlockKind>, (BTreeSet<u64>, u64, u64)> = BTreeMap::new();
        for wait in waits() {
            let block = trace.blocks.get(&(dev, wait.object));
            let (blocks, count, time_ns) = kinds.entry(block.map(|it| it.kind)).or_default();
            blocks.insert(wait.object);
            *count += 1;
            *time_ns = time_ns.saturating_add(wait.duration_ns());
        }
        let row = |(kind, (blocks, waits, wait_ns)): (Option<BlockKind>, (BTreeSet<u64>, _, _))| {
            SharedBlocks {
                kind: kind.map(BlockKind::word),
                plural: kind.map_or("unknown blocks", BlockKind::plural),
                blocks: blocks.len() as u64,
                waits,
                wait_ns,
            }
        };
        let mut kinds: Vec<SharedBlocks> = kinds.into_iter().map(row).collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.wait_ns));
        let mut sharing = Self {
            kinds,
            ..Self::default()
        };
        let tables = Tables::new(trace, dev);
        for wait in waits() {
            if let Some(only_others) = tables.only_others(wait) {
                sharing.told += 1;
                sharing.only_others += u64::from(only_others);
            }
        }
        sharing
    }

    /// Names the kinds of blocks with their shares of the time; `None` if no block is known.
    pub fn parts(&self) -> Option<String> {
        self.kinds.iter().find(|kind| kind.kind.is_some())?;
        let all_ns = self.time_ns(|_| true);
        let part = |kind: &SharedBlocks| {
            let time = percent(share(kind.wait_ns as f64, all_ns));
            let blocks = counted(kind.blocks, "block", "blocks");
            format!("{} {time} of the time ({blocks})", kind.plural)
        };
        let parts: Vec<String> = self.kinds.iter().map(part).collect();
        Some(parts.join(", "))
    }

    /// The share of the time of all waits that tasks waited for blocks of this kind.
    pub fn time_share(&self, kind: BlockKind) -> f64 {
        let ns = self.time_ns(|it| it.kind == Some(kind.word()));
        share(ns, self.time_ns(|_| true))
    }

    /// As a float, because the times of a damaged trace may be anything.
    fn time_ns(&self, of: impl Fn(&SharedBlocks) -> bool) -> f64 {
        let kinds = self.kinds.iter().filter(|kind| of(kind));
        kinds.map(|kind| kind.wait_ns as f64).sum()
    }

    /// The share of waits for inode tables in which the commit held only inodes of other files;
    /// `None` if that is not known for any.
    pub fn only_others_share(&self) -> Option<f64> {
        (self.told > 0).then(|| share(self.only_others as f64, self.told as f64))
    }
}

/// A change of an inode.
struct Change<'a> {
    inode: u64,
    span: &'a Span,
}

/// The blocks of inode tables for which tasks waited, and the changes of their inodes.
struct Tables<'a> {
    /// The locks of commits, ns, and their ends, by their starts.
    commits: Vec<(u64, u64, u64)>,
    /// By block, in the order of their start.
    changes: BTreeMap<u64, Vec<Change<'a>>>,
    /// Calls on files by their thread, in the order of their start.
    calls: BTreeMap<u32, Vec<&'a Span>>,
}

impl<'a> Tables<'a> {
    fn new(trace: &'a Trace, dev: Dev) -> Self {
        let tables: BTreeMap<u64, (u64, MetadataBlock)> = trace
            .blocks
            .iter()
            .filter(|((of, _), block)| *of == dev && block.kind == BlockKind::InodeTable)
            .map(|((_, number), block)| (block.first_inode, (*number, *block)))
            .collect();
        let mut changes: BTreeMap<u64, Vec<Change>> = BTreeMap::new();
        let mut calls: BTreeMap<u32, Vec<&Span>> = BTreeMap::new();
        let mut commits = Vec::new();
        for span in trace.on(dev) {
            if span.kind == SpanKind::Commit {
                commits.push((span.begin_ns, span.locked_ns(), span.end_ns));
            }
            if !span.kind.is_operation() {
                continue;
            }
            calls.entry(span.pid).or_default().push(span);
            let before = tables.range(..=span.object).next_back();
            let table = before.filter(|(_, (_, block))| block.holds(span.object));
            if let Some((_, (number, _))) = table.filter(|_| changes_inode(span)) {
                let change = Change {
                    inode: span.object,
                    span,
                };
                changes.entry(*number).or_default().push(change);
            }
        }
        Self {
            commits,
            changes,
            calls,
        }
    }

    /// Tells whether the commit that `wait` waited for held only inodes of other files in that
    /// block; `None` if no call of the trace changed the block, or the waiter's file is unknown.
    fn only_others(&self, wait: &Span) -> Option<bool> {
        let changes = self.changes.get(&wait.object)?;
        let calls = self.calls.get(&wait.pid)?;
        let past = calls.partition_point(|call| call.begin_ns <= wait.begin_ns);
        let around = |call: &&&Span| call.end_ns >= wait.end_ns;
        let own = *calls[..past].iter().rev().take(CALLS_MAX).find(around)?;
        let past = self.commits.partition_point(|it| it.0 <= wait.begin_ns);
        let at = past.checked_sub(1)?;
        let (_, locked_ns, end_ns) = self.commits[at];
        (wait.begin_ns < end_ns).then_some(())?;
        let from_ns = at.checked_sub(1).map_or(0, |before| self.commits[before].1);
        let begun = changes.partition_point(|it| it.span.begin_ns <= locked_ns);
        let mut others = false;
        for change in changes[..begun].iter().rev() {
            // Spans are in the order of their start, and a long call may lie before short ones.
            if change.span.begin_ns.saturating_add(CALL_NS_MAX) < from_ns {
                break;
            }
            if change.span.end_ns < from_ns || std::ptr::eq(change.span, own) {
                continue;
            }
            if change.inode == own.object {
                return Some(false);
            }
            others = true;
        }
        others.then_some(true)
    }
}

/// The deepest nesting of calls: the write, and its sync.
const CALLS_MAX: usize = 4;
/// Changes of calls that take longer are not looked for.
const CALL_NS_MAX: u64 = 10_000_000_000;

/// Tells whether a call changes its file's inode: a write its size or its times, a creation all of
/// it, a sync where its data gets blocks.
fn changes_inode(span: &Span) -> bool {
    match span.kind {
        SpanKind::Write => span.amount > 0,
        SpanKind::Open => span.flags & CREATED != 0,
        _ => span.flush_ns().is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const TABLE: u64 = 1057;

    fn dev() -> Dev {
        Dev::default()
    }

    fn write(pid: u32, inode: u64, begin_ms: u64, end_ms: u64) -> Span {
        Span {
            pid,
            object: inode,
            amount: 4096,
            ..Span::new(SpanKind::Write, begin_ms * MS, end_ms * MS)
        }
    }

    fn commit(begin_ms: u64, end_ms: u64) -> Span {
        Span::new(SpanKind::Commit, begin_ms * MS, end_ms * MS)
    }

    fn wait(pid: u32, block: u64, begin_ms: u64, end_ms: u64) -> Span {
        Span {
            pid,
            object: block,
            within: SpanKind::Write,
            ..Span::new(SpanKind::WaitBuffer, begin_ms * MS, end_ms * MS)
        }
    }

    fn sharing(spans: impl IntoIterator<Item = Span>) -> Sharing {
        let mut trace = Trace::from_spans(spans);
        let table = MetadataBlock {
            kind: BlockKind::InodeTable,
            first_inode: 129,
            inodes: 16,
        };
        trace.blocks.insert((dev(), TABLE), table);
        let directory = MetadataBlock::plain(BlockKind::Directory);
        trace.blocks.insert((dev(), 9), directory);
        Sharing::from_trace(&trace, dev())
    }

    /// Task 1 writes file 130 while a commit writes what task 2 changed in the same block.
    #[test]
    fn the_inode_of_another_file() {
        let others = write(2, 131, 5, 6);
        let waiting = [write(1, 130, 12, 20), wait(1, TABLE, 13, 20)];
        let commits = [commit(1, 4), commit(10, 20)];
        let found = sharing([others].into_iter().chain(waiting).chain(commits));
        assert_eq!((found.told, found.only_others), (1, 1), "{found:?}");
        assert_eq!((found.kinds.len(), found.kinds[0].waits), (1, 1));
        assert_eq!(found.kinds[0].kind, Some("inode-table"));
        // Its own file was in the commit, too.
        let own = write(1, 130, 7, 8);
        let found = sharing([others, own].into_iter().chain(waiting).chain(commits));
        assert_eq!((found.told, found.only_others), (1, 0));
        // Its own file was in the commit before that.
        let own = write(1, 130, 0, 0);
        let found = sharing([others, own].into_iter().chain(waiting).chain(commits));
        assert_eq!((found.told, found.only_others), (1, 1));
        // Nobody is known to have changed the block: there is no answer.
        let far = write(2, 200, 5, 6);
        let found = sharing([far].into_iter().chain(waiting).chain(commits));
        assert_eq!((found.told, found.only_others), (0, 0));
        // No commit is known.
        let found = sharing([others].into_iter().chain(waiting));
        assert_eq!((found.told, found.only_others_share()), (0, None));
    }

    #[test]
    fn kinds_come_by_their_time() {
        let spans = [
            wait(1, TABLE, 0, 1),
            wait(1, 9, 1, 6),
            wait(2, 77, 0, 2),
            wait(2, 78, 2, 4),
        ];
        let found = sharing(spans);
        let kinds: Vec<_> = found.kinds.iter().map(|it| (it.kind, it.blocks)).collect();
        let wanted = [(Some("directory"), 1), (None, 2), (Some("inode-table"), 1)];
        assert_eq!(kinds, wanted);
        let parts = "directories 50.0% of the time (1 block), unknown blocks 40.0% of the time (2 blocks), \
             inode tables 10.0% of the time (1 block)";
        assert_eq!(found.parts().as_deref(), Some(parts));
        assert_eq!(sharing([wait(2, 77, 0, 2)]).parts(), None, "not known");
        let endless = |block| Span {
            object: block,
            ..Span::new(SpanKind::WaitBuffer, 0, u64::MAX)
        };
        let found = sharing([endless(TABLE), endless(9), endless(9)]);
        assert!((found.time_share(BlockKind::Directory) - 0.5).abs() < 1e-9);
    }
}
