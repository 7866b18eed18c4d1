//! A little jbd2: threads open, write, sync and close in a loop, simulated commit by commit. It
//! shares no code and no structure with the model's engine: it knows when each thread will ask next
//! and works out which threads make the next commit, with no queue of events.

#![allow(dead_code, reason = "each test file uses a part of it")]

use luc_control::Dev;
use luc_trace::{CREATED, Span, SpanKind, Trace};
use proptest::prelude::*;

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const DEV: Dev = Dev {
    major: 254,
    minor: 0,
};
/// The journal's thread.
pub const JOURNAL: u32 = 1;

/// A span of a thread on [`DEV`].
pub fn span(kind: SpanKind, pid: u32, begin_ns: u64, end_ns: u64) -> Span {
    Span {
        pid,
        dev: DEV,
        ..Span::new(kind, begin_ns, end_ns)
    }
}

pub fn commit(tid: u32, begin_ns: u64, end_ns: u64) -> Span {
    Span {
        tid,
        ..span(SpanKind::Commit, JOURNAL, begin_ns, end_ns)
    }
}

prop_compose! {
    /// Few threads, transactions and files, so that they collide; times within 400 steps of `scale`
    /// ns or anywhere, with ends before begins, too.
    pub fn any_span(scale: u64)(
        kind in prop::sample::select(SpanKind::ALL.to_vec()),
        within in prop::sample::select(SpanKind::ALL.to_vec()),
        near in prop::array::uniform5(0_u64..400),
        far in prop::array::uniform5(any::<u64>()),
        is_far in prop::bool::weighted(0.1),
        ids in (0_u32..4, 0_u64..3, any::<i64>(), 0_u32..3),
        tids in (0_u32..5, 0_u32..5, any::<bool>()),
    ) -> Span {
        let times = if is_far { far } else { near.map(|ns| ns * scale) };
        let [begin_ns, end_ns, marks_ns @ ..] = times;
        let (pid, object, amount, place) = ids;
        let (tid, done_tid, wraps) = tids;
        let base = if wraps { u32::MAX - 2 } else { 0 };
        Span {
            kind, within, begin_ns, end_ns, marks_ns, pid, object, amount,
            dev: if place == 0 { Dev::default() } else { DEV },
            tid: tid.wrapping_add(base),
            done_tid: done_tid.wrapping_add(base),
            tgid: pid / 2,
            result: 0,
            flags: place * 3,
        }
    }
}

/// A generator that repeats for a seed; Knuth's constants.
pub struct Rng(pub u64);

impl Rng {
    /// Draws a number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

/// The rule for when a commit starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// As soon as a thread asks.
    AtOnce,
    /// Once the threads of the last two commits have asked, but after this many ns at most.
    WhenBack(u64),
    /// Once no thread has asked for this many ns.
    WhenQuiet(u64),
}

/// The work of the threads, and the disk.
#[derive(Clone)]
pub struct Little {
    pub threads: u32,
    /// From the end of a close to the next open, ns, and how much it varies.
    pub think_ns: u64,
    pub jitter_ns: u64,
    /// The first `slow_threads` threads think for `slow_think_ns` longer.
    pub slow_threads: u32,
    pub slow_think_ns: u64,
    pub open_ns: u64,
    pub close_ns: u64,
    /// Writes between open and sync, and their time, ns.
    pub writes: u32,
    pub write_ns: u64,
    /// How long one write per round waits for a buffer, ns; 0 for no wait.
    pub wait_ns: u64,
    /// The kind of the wait.
    pub wait_kind: SpanKind,
    /// Data flush at the start of a sync, ns; the sync joins its transaction when it begins.
    pub flush_ns: u64,
    /// Duration of a commit: fixed part, part per sync event, variation.
    pub commit_ns: u64,
    pub commit_per_sync_ns: u64,
    pub commit_jitter_ns: u64,
    /// From the moment a commit can start to its lock, ns.
    pub lag_ns: u64,
    /// From the end of a commit to the end of a sync, ns.
    pub wake_ns: u64,
    pub rounds: u32,
    pub start: Start,
    pub first_tid: u32,
    pub seed: u64,
}

impl Default for Little {
    fn default() -> Self {
        Self {
            threads: 8,
            think_ns: 40 * US,
            jitter_ns: 60 * US,
            slow_threads: 0,
            slow_think_ns: 0,
            open_ns: 30 * US,
            close_ns: 5 * US,
            writes: 0,
            write_ns: 4 * US,
            wait_ns: 0,
            wait_kind: SpanKind::WaitBuffer,
            flush_ns: 0,
            commit_ns: 4 * MS,
            commit_per_sync_ns: 0,
            commit_jitter_ns: 100 * US,
            lag_ns: 20 * US,
            wake_ns: 15 * US,
            rounds: 500,
            start: Start::AtOnce,
            first_tid: 1000,
            seed: 1,
        }
    }
}

/// A thread between two commits.
#[derive(Clone, Copy)]
struct Asking {
    thread: u32,
    sync_begin_ns: u64,
    joined_ns: u64,
    asked_ns: u64,
}

impl Little {
    /// Returns the spans that the tracer would have recorded.
    pub fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut rng = Rng(self.seed);
        let mut asking: Vec<Asking> = (0..self.threads)
            .map(|thread| {
                let begin_ns = MS + rng.below(2 * self.commit_ns);
                self.until_asked(thread, begin_ns, &mut rng, &mut spans)
            })
            .collect();
        // Members of the last two commits.
        let mut groups: [Vec<usize>; 2] = [Vec::new(), Vec::new()];
        // Ends of the last commit and of the one before it.
        let mut done_ns = [0, 0];
        let mut tid = self.first_tid;
        for _ in 0..self.rounds {
            let locked_ns = self.locked_ns(&asking, &groups, done_ns[0]);
            let mut members: Vec<usize> = (0..asking.len())
                .filter(|at| asking[*at].joined_ns < locked_ns)
                .collect();
            let time_ns = self.commit_ns
                + self.commit_per_sync_ns * members.len() as u64
                + rng.below(self.commit_jitter_ns);
            let end_ns = locked_ns + time_ns;
            spans.push(Span {
                marks_ns: [locked_ns; 3],
                ..commit(tid, locked_ns - self.lag_ns.min(2 * US), end_ns)
            });
            for &member in &members {
                let Asking {
                    thread,
                    sync_begin_ns,
                    asked_ns,
                    ..
                } = asking[member];
                // Writing data may take longer than the commit that the sync waits for.
                let sync_end_ns = end_ns.max(asked_ns) + self.wake_ns;
                let committed = [end_ns, done_ns[0], done_ns[1]];
                let behind = committed.iter().filter(|end| **end > asked_ns).count();
                spans.push(Span {
                    tid,
                    done_tid: tid.wrapping_sub(u32::try_from(behind).unwrap()),
                    marks_ns: if self.flush_ns > 0 {
                        [sync_begin_ns, asked_ns, 0]
                    } else {
                        [0; 3]
                    },
                    ..of_thread(thread, SpanKind::Fsync, sync_begin_ns, sync_end_ns)
                });
                let free_ns = sync_end_ns + self.close_ns;
                spans.push(of_thread(thread, SpanKind::Close, sync_end_ns, free_ns));
                asking[member] = self.until_asked(thread, free_ns, &mut rng, &mut spans);
            }
            std::mem::swap(&mut members, &mut groups[1]);
            groups.swap(0, 1);
            done_ns = [end_ns, done_ns[0]];
            tid = tid.wrapping_add(1);
        }
        let last_ns = done_ns[0];
        spans.retain(|span| span.end_ns <= last_ns);
        spans
    }

    pub fn trace(&self) -> Trace {
        Trace::from_spans(self.spans())
    }

    /// Returns when the next transaction is locked.
    fn locked_ns(&self, asking: &[Asking], groups: &[Vec<usize>; 2], free_ns: u64) -> u64 {
        let mut asked_ns: Vec<u64> = asking.iter().map(|asking| asking.asked_ns).collect();
        asked_ns.sort_unstable();
        let first_ns = asked_ns[0].max(free_ns);
        let start_ns = match self.start {
            Start::AtOnce => first_ns,
            Start::WhenBack(limit_ns) => {
                let back_ns = groups.iter().flatten().map(|at| asking[*at].asked_ns).max();
                back_ns.unwrap_or(0).clamp(first_ns, first_ns + limit_ns)
            }
            Start::WhenQuiet(quiet_ns) => {
                let mut last_ns = asked_ns[0];
                for &next_ns in &asked_ns {
                    if next_ns <= (last_ns + quiet_ns).max(free_ns) {
                        last_ns = next_ns;
                    }
                }
                (last_ns + quiet_ns).max(free_ns)
            }
        };
        start_ns + self.lag_ns
    }

    /// Lets a thread think, open, write, begin to sync, and flush.
    fn until_asked(
        &self,
        thread: u32,
        free_ns: u64,
        rng: &mut Rng,
        spans: &mut Vec<Span>,
    ) -> Asking {
        let mut now_ns = free_ns + self.think_ns + rng.below(self.jitter_ns);
        if thread < self.slow_threads {
            now_ns += self.slow_think_ns;
        }
        spans.push(Span {
            flags: CREATED,
            ..of_thread(thread, SpanKind::Open, now_ns, now_ns + self.open_ns)
        });
        now_ns += self.open_ns;
        for write in 0..self.writes {
            let wait_ns = if write == 0 { self.wait_ns } else { 0 };
            if wait_ns > 0 {
                spans.push(Span {
                    within: SpanKind::Write,
                    ..of_thread(thread, self.wait_kind, now_ns + 1, now_ns + 1 + wait_ns)
                });
            }
            let end_ns = now_ns + self.write_ns + wait_ns;
            spans.push(Span {
                amount: 4096,
                ..of_thread(thread, SpanKind::Write, now_ns, end_ns)
            });
            now_ns = end_ns;
        }
        Asking {
            thread,
            sync_begin_ns: now_ns,
            joined_ns: now_ns,
            asked_ns: now_ns + self.flush_ns,
        }
    }
}

fn of_thread(thread: u32, kind: SpanKind, begin_ns: u64, end_ns: u64) -> Span {
    Span {
        tgid: 100,
        object: u64::from(12 + thread),
        ..span(kind, 100 + thread, begin_ns, end_ns)
    }
}

/// Counts the operations per second of a trace independently of the model.
pub fn operations_per_s(trace: &Trace) -> f64 {
    let (begin_ns, end_ns) = trace.bounds_ns().unwrap();
    let is_operation = |span: &&Span| !span.kind.is_wait() && span.kind != SpanKind::Commit;
    let operations = trace.spans.iter().filter(is_operation).count();
    operations as f64 * 1e9 / (end_ns - begin_ns) as f64
}
