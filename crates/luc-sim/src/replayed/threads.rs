//! The threads of a recording as programs, and their run.
//!
//! Each thread is a closed loop of its operations and the times between them. A thread that
//! finishes sooner than in the recording begins again, because faster syncs mean more of them.
//!
//! Threads that sync in convoys stay in them, and chance decides at the start which convoy a thread
//! is in. So the replay starts as the recording does: threads that missed the first transaction
//! there wait here until it is locked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use luc_trace::{CREATED, Span, SpanKind};

use super::Replayed;
use super::operations::{Operation, Operations, Since};
use super::work::{COMPUTES_NS, Work, pages_of};
use crate::costs::Costs;
use crate::files::{FileId, Prepared};
use crate::measured::Measured;
use crate::node::{Node, Setup};
use crate::program::{Joins, Op, Program, RecordedSync, Went};

/// How often a thread does its operations at most. LUC does not gain more, and threads that waited
/// for something that is not simulated, for example a small log, would take long.
const REPEATS_MAX: u32 = 4;
/// All names lie in one directory, because a recording does not tell in which.
const DIR: u32 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Lets time pass, or takes these instructions if the thread computed meanwhile.
    Rest {
        ns: u64,
        computes: u64,
    },
    Do(Op),
    /// Waits until the first transaction is locked.
    Misses,
}

/// A thread's operations, and when they began and ended in the recording.
#[derive(Clone, Debug)]
struct Chain {
    begin_ns: u64,
    until_ns: u64,
    /// From its end to its next start, ns: at most the longest rest between operations.
    pause_ns: u64,
    steps: Arc<[Step]>,
    /// Whether it missed the first transaction.
    missed: bool,
}

/// The threads of a recording's file system.
#[derive(Clone, Debug)]
pub(super) struct Threads {
    chains: Vec<Chain>,
    files: Vec<Prepared>,
}

/// Facts of the recording from which steps are made, besides a thread's operations.
struct Context<'a> {
    work: &'a Work,
    costs: Costs,
    /// Files by inode numbers; adjacent inodes share blocks of the inode table.
    files: BTreeMap<u64, FileId>,
    /// When transactions were locked.
    locks_ns: BTreeMap<u32, u64>,
    /// The first transaction that a sync waited for.
    first_tid: Option<u32>,
}

impl Threads {
    /// Creates the programs; `bounds_ns` are the recording's start and end.
    pub fn replaying(
        spans: &[Span],
        operations: &Operations,
        work: &Work,
        bounds_ns: (u64, u64),
    ) -> Self {
        let objects: BTreeSet<u64> = every(operations).map(|it| it.span.object).collect();
        let commits = spans.iter().filter(|span| span.kind == SpanKind::Commit);
        let context = Context {
            work,
            costs: work.costs(),
            files: objects.into_iter().zip(0..).collect(),
            locks_ns: commits.map(|span| (span.tid, span.locked_ns())).collect(),
            first_tid: operations.values().filter_map(|it| first_tid(it)).min(),
        };
        Self {
            files: context.old_files(operations),
            chains: operations
                .values()
                .filter_map(|of_thread| context.chain(of_thread, bounds_ns))
                .collect(),
        }
    }

    pub fn count(&self) -> usize {
        self.chains.len()
    }

    /// Returns the mean share of their time that the threads rest, in a recording of this length.
    pub fn rests_share(&self, length_ns: u64) -> f64 {
        let steps = self.chains.iter().flat_map(|chain| chain.steps.iter());
        let rests_ns = steps.map(|step| match step {
            Step::Rest { ns, .. } => *ns as f64,
            _ => 0.0,
        });
        rests_ns.sum::<f64>() / (length_ns as f64 * self.count() as f64)
    }

    /// Returns the same threads, which compute wherever they rested.
    pub fn computing(&self) -> Self {
        let mut threads = self.clone();
        for chain in &mut threads.chains {
            let steps = chain.steps.iter().map(|step| match *step {
                Step::Rest { computes, .. } => Step::Do(Op::Compute(computes)),
                step => step,
            });
            chain.steps = steps.collect();
        }
        threads
    }

    /// Runs the threads on this machine, from their start to this time. The spans are as in a
    /// recording, in the order of their ends.
    pub fn run(&self, setup: &Setup, until_ns: u64) -> Replayed {
        let programs = self
            .chains
            .iter()
            .map(|chain| Box::new(Replay::new(chain)) as _);
        let tasks = self.chains.len();
        let measured = Measured::new(tasks, 0, until_ns);
        let mut node = Node::new(setup, programs.collect(), measured);
        node.prepare_files(&self.files);
        node.watch();
        node.start();
        let start_ns = node.now_ns();
        let before = node.activity();
        for (task, chain) in (0..).zip(&self.chains) {
            node.begin(task, start_ns.saturating_add(chain.begin_ns));
        }
        let until_ns = start_ns.saturating_add(until_ns);
        let first_tid = node.journal().newest() + 1;
        while node.journal().newest() < first_tid && node.step(until_ns) {}
        for (task, _) in (0..).zip(&self.chains).filter(|(_, chain)| chain.missed) {
            node.release(task, node.now_ns());
        }
        node.run(until_ns);
        let activity = node.activity().since(&before);
        let mut spans = node.recording().into_spans();
        spans.retain(|span| span.begin_ns >= start_ns);
        for span in &mut spans {
            let marks_ns = span.marks_ns.iter_mut();
            for at_ns in marks_ns.chain([&mut span.begin_ns, &mut span.end_ns]) {
                *at_ns = at_ns.saturating_sub(start_ns);
            }
        }
        Replayed { spans, activity }
    }
}

/// Returns the transaction of a thread's first sync that waited for one.
fn first_tid(of_thread: &[Operation]) -> Option<u32> {
    let mut syncs = of_thread.iter().filter(|it| it.needs_commit());
    syncs.next().map(|it| it.span.tid)
}

fn every(operations: &Operations) -> impl Iterator<Item = &Operation> {
    operations.values().flatten()
}

impl Context<'_> {
    /// Returns the files that existed before: their first operation is not a create.
    fn old_files(&self, operations: &Operations) -> Vec<Prepared> {
        let mut firsts: BTreeMap<u64, &Operation> = BTreeMap::new();
        for operation in every(operations) {
            let first = firsts.entry(operation.span.object).or_insert(operation);
            if operation.span.begin_ns < first.span.begin_ns {
                *first = operation;
            }
        }
        let old = firsts.into_values().filter(|it| !is_create(&it.span));
        let prepared = old.map(|it| Prepared {
            file: self.file(&it.span),
            dir: DIR,
            bytes: 0,
        });
        prepared.collect()
    }

    fn file(&self, span: &Span) -> FileId {
        self.files.get(&span.object).copied().unwrap_or(0)
    }

    fn chain(&self, of_thread: &[Operation], (first_ns, last_ns): (u64, u64)) -> Option<Chain> {
        let (first, last) = (of_thread.first()?, of_thread.last()?);
        let begin_ns = first.span.begin_ns.saturating_sub(first_ns);
        let tail_ns = last_ns.saturating_sub(last.end_ns);
        let mut steps = Vec::with_capacity(3 * of_thread.len());
        let (mut file, mut longest_ns) = (None, 0);
        let misses_at = self.misses_at(of_thread);
        for (at, operation) in of_thread.iter().enumerate() {
            if misses_at == Some(at) {
                steps.push(Step::Misses);
            }
            let its_file = self.file(&operation.span);
            if file.replace(its_file) != Some(its_file) {
                steps.push(Step::Do(Op::Use(its_file)));
            }
            self.operation(operation, &mut steps);
            let Some(pair) = of_thread.get(at..at + 2) else {
                break;
            };
            if let Some(ns) = self.work.turn_ns(pair) {
                steps.push(Step::Do(Op::Compute(self.work.instructions(ns))));
            } else {
                let ns = self.work.rest_ns(pair);
                longest_ns = ns.max(longest_ns);
                let computes = self.work.computed(pair);
                steps.push(Step::Rest { ns, computes });
            }
        }
        Some(Chain {
            begin_ns,
            until_ns: last.end_ns.saturating_sub(first_ns),
            pause_ns: longest_ns.min(begin_ns.saturating_add(tail_ns)),
            steps: steps.into(),
            missed: misses_at.is_some(),
        })
    }

    /// Returns the operation by which a thread's first sync joined the second transaction, if it
    /// did.
    fn misses_at(&self, of_thread: &[Operation]) -> Option<usize> {
        let sync = of_thread.iter().position(Operation::needs_commit)?;
        let span = &of_thread[sync].span;
        if self.first_tid.map(|tid| tid.wrapping_add(1)) != Some(span.tid) {
            return None;
        }
        let mut before = of_thread[..sync].iter();
        let made = before.rposition(|it| is_create(&it.span) && it.span.object == span.object);
        Some(made.unwrap_or(sync))
    }

    fn operation(&self, operation: &Operation, steps: &mut Vec<Step>) {
        let span = &operation.span;
        let op = match span.kind {
            SpanKind::Open if is_create(span) => Op::Create { dir: DIR },
            SpanKind::Open => Op::Open,
            SpanKind::Write => {
                let pages = self.costs.write_page * pages_of(span);
                steps.push(Step::Do(Op::Compute(pages)));
                // It dirties no page: the data flush of its sync takes as long as recorded.
                Op::Write { bytes: 0 }
            }
            SpanKind::Close => Op::Close,
            _ => Op::SyncAs(self.sync(operation)),
        };
        steps.push(Step::Do(op));
    }

    fn sync(&self, operation: &Operation) -> RecordedSync {
        let (flush_ns, asked_ns) = operation.flush_ns();
        let lock_ns = self.locks_ns.get(&operation.span.tid);
        let was_locked = lock_ns.is_some_and(|lock_ns| *lock_ns <= asked_ns);
        let (joins, took_ns, work) = match operation.since {
            _ if !operation.needs_commit() => {
                (Joins::Never, operation.duration_ns(), self.costs.sync_clean)
            }
            Since::Created => (Joins::Before, 0, 0),
            Since::Written if was_locked => {
                let took_ns = asked_ns - flush_ns;
                (Joins::AtBegin, took_ns, self.costs.allocate_handle)
            }
            _ => (Joins::AtEnd, asked_ns - flush_ns, self.costs.convert_handle),
        };
        let work_ns = (self.costs.sync_before + work) as f64 * 1e3 / self.work.mips();
        RecordedSync {
            flush_ns: took_ns.saturating_sub(whole_ns(work_ns)),
            joins,
        }
    }
}

fn is_create(span: &Span) -> bool {
    span.kind == SpanKind::Open && span.flags & CREATED != 0
}

/// Rounds to whole nanoseconds; a cast from float saturates.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(super) fn whole_ns(ns: f64) -> u64 {
    ns.round() as u64
}

/// A thread's program.
struct Replay {
    chain: Chain,
    at: usize,
    walks: u32,
}

impl Replay {
    fn new(chain: &Chain) -> Self {
        Self {
            chain: chain.clone(),
            at: 0,
            walks: 0,
        }
    }
}

impl Program for Replay {
    fn next(&mut self, went: &Went) -> Op {
        let is_over = went.ended_ns >= self.chain.until_ns;
        let Some(step) = self.chain.steps.get(self.at) else {
            self.walks += 1;
            if is_over || self.walks >= REPEATS_MAX {
                return Op::End;
            }
            self.at = 0;
            return rest(went, self.chain.pause_ns);
        };
        if is_over && self.walks > 0 {
            return Op::End;
        }
        self.at += 1;
        match *step {
            Step::Do(op) => op,
            Step::Rest { ns, .. } => rest(went, ns),
            Step::Misses if self.walks == 0 => Op::Park,
            Step::Misses => Op::Compute(0),
        }
    }
}

/// Waits until about this much later: a timer is late by up to its slack.
fn rest(went: &Went, ns: u64) -> Op {
    match ns.checked_sub(COMPUTES_NS) {
        Some(early_ns) => Op::SleepUntil(went.ended_ns.saturating_add(early_ns)),
        None => Op::Compute(0),
    }
}
