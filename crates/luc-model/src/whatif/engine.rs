//! The journal as a discrete-event model, with threads that walk their chains.
//!
//! Times are ns since the begin of the trace. Events of one moment: the
//! journal's first, then threads by number; a sync that asks in the very moment
//! of a lock is too late for it, as in Algorithm 4.1.

use super::chain::Step;
use super::processor::{RunQueue, SLICE_NS};
use super::{CommitTime, REPEATS_MAX, Rule};
use crate::stats::whole_ns;
use luc_control::Params;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The journal's thread has at least this share of a processor.
const SPEED_MIN: f64 = 0.05;

/// LUC averages over so many recent syncs which share of them need not wait.
const NEEDLESS_CALLS: f64 = 16.0;
/// No commit is held longer than so many average commits, however many tasks are inside a sync.
const SURE_LIMITS: u64 = 4;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub operations: u64,
    pub writes: u64,
    pub commits: u64,
    pub sync_times_ns: Vec<u64>,
    pub threads_cut: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The journal's timer of this number; older timers are void.
    Journal(u64),
    /// A thread has done its work, or its turn is over.
    Worked(usize),
    /// A thread goes on.
    Thread(usize),
}

/// A thread on its chain.
#[derive(Default)]
struct Thread<'a> {
    steps: &'a [Step],
    at: usize,
    again: Again,
    walks: u32,
    now_ns: u64,
    /// When its sync began, and whether it has not asked yet.
    begun_ns: u64,
    syncing: bool,
    /// Whether it works, or waits for a processor.
    works: bool,
    /// Remaining work of its step, ns.
    work_ns: u64,
    /// Rest of its turn on a processor, ns; None: it has no processor.
    turn_ns: Option<u64>,
    /// Transaction that its next sync wants; None: the one open when it asks.
    joined: Option<u64>,
    /// The commit that released it, while it is expected back.
    released_by: Option<u64>,
}

/// The part of a chain that is walked again: without the idle time at both ends of the trace.
#[derive(Clone, Copy, Default)]
struct Again {
    from: usize,
    to: usize,
    /// When the last step ended in the trace, ns: no walk begins later.
    until_ns: u64,
    /// Between two walks, ns: of the time at both ends no more than the longest pause in between.
    pause_ns: u64,
}

impl Again {
    fn of(steps: &[Step], duration_ns: u64) -> Self {
        let passing = |step: Option<&Step>| match step {
            Some(Step::Pass(ns)) => Some(*ns),
            _ => None,
        };
        let (head, tail) = (passing(steps.first()), passing(steps.last()));
        let from = usize::from(head.is_some());
        let to = (steps.len() - usize::from(tail.is_some())).max(from);
        let pauses = steps[from..to]
            .iter()
            .filter_map(|step| passing(Some(step)));
        let longest_ns = pauses.max().unwrap_or(0);
        let (head_ns, tail_ns) = (head.unwrap_or(0), tail.unwrap_or(0));
        Self {
            from,
            to,
            until_ns: duration_ns.saturating_sub(tail_ns),
            pause_ns: longest_ns.min(head_ns.saturating_add(tail_ns)),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Journal {
    /// No thread waits for the open transaction.
    Idle,
    /// Threads wait, and the rule has held the commit back since then (ns).
    Holding(u64),
    /// On its way to the lock: syncs still join.
    Starting,
    /// Locked and being written.
    Writing,
}

pub(super) struct Engine<'a> {
    rule: Rule,
    commit_time: CommitTime,
    end_ns: u64,
    run_queue: RunQueue,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    threads: Vec<Thread<'a>>,
    journal: Journal,
    timer: u64,
    /// Number of the open transaction; earlier ones are locked or committed.
    open: u64,
    /// Threads that wait for the open transaction, and for the one being written.
    waiting: Vec<usize>,
    served: Vec<usize>,
    last_asked_ns: u64,
    /// Rest of the commit that is being written, ns with a free processor, and since when, ns.
    left_ns: f64,
    paced_ns: u64,
    /// Average duration of a commit as jbd2 keeps it, and when the last one was locked, ns.
    commit_avg_ns: u64,
    locked_ns: u64,
    /// Threads inside a sync that have not asked yet, and the share of threads that need not wait then.
    syncing: u32,
    needless: f64,
    /// Threads expected back, of the last commit and of the one before.
    expected: [usize; 2],
    outcome: Outcome,
}

impl<'a> Engine<'a> {
    pub(super) fn new(
        rule: Rule,
        chains: &'a [Vec<Step>],
        commit_time: CommitTime,
        duration_ns: u64,
        cpus: u32,
    ) -> Self {
        let thread = |steps: &'a Vec<Step>| Thread {
            steps,
            again: Again::of(steps, duration_ns),
            ..Thread::default()
        };
        let begins = (0..chains.len()).map(|thread| Reverse((0, Event::Thread(thread))));
        Self {
            rule,
            commit_time,
            end_ns: duration_ns,
            run_queue: RunQueue::new(cpus),
            events: begins.collect(),
            threads: chains.iter().map(thread).collect(),
            journal: Journal::Idle,
            timer: 0,
            open: 1,
            waiting: Vec::new(),
            served: Vec::new(),
            last_asked_ns: 0,
            left_ns: 0.0,
            paced_ns: 0,
            commit_avg_ns: whole_ns(commit_time.mean_ns),
            locked_ns: 0,
            syncing: 0,
            needless: 0.0,
            expected: [0; 2],
            outcome: Outcome::default(),
        }
    }

    pub(super) fn run(mut self) -> Outcome {
        while let Some(Reverse((now_ns, event))) = self.events.pop() {
            if now_ns > self.end_ns {
                break;
            }
            match event {
                Event::Journal(timer) if timer == self.timer => self.on_journal_timer(now_ns),
                Event::Journal(_) => {}
                Event::Worked(thread) => self.worked(thread, now_ns),
                Event::Thread(thread) => {
                    self.threads[thread].now_ns = now_ns;
                    self.walk(thread, now_ns);
                }
            }
        }
        self.outcome
    }

    /// Walks a thread until it waits, or until a step that concerns others lies ahead of `now_ns`.
    fn walk(&mut self, number: usize, now_ns: u64) {
        loop {
            let thread = &mut self.threads[number];
            let until_ns = thread.again.until_ns;
            let limit_ns = if thread.walks == 0 {
                self.end_ns
            } else {
                until_ns
            };
            if thread.now_ns > limit_ns {
                return;
            }
            let left = &thread.steps[..thread.again.to];
            let Some(&step) = left.get(thread.at) else {
                if thread.now_ns >= until_ns {
                    return;
                }
                thread.at = thread.again.from;
                thread.now_ns = thread.now_ns.saturating_add(thread.again.pause_ns);
                thread.walks += 1;
                if thread.walks >= REPEATS_MAX {
                    self.outcome.threads_cut += 1;
                    return;
                }
                continue;
            };
            let concerns_others = matches!(step, Step::Join | Step::Ask | Step::Work(_));
            if concerns_others && thread.now_ns > now_ns {
                self.events
                    .push(Reverse((thread.now_ns, Event::Thread(number))));
                return;
            }
            thread.at += 1;
            match step {
                Step::Join => thread.joined = Some(self.open),
                Step::Done { write } => {
                    self.outcome.operations += 1;
                    self.outcome.writes += u64::from(write);
                }
                Step::Begin => {
                    thread.begun_ns = thread.now_ns;
                    self.syncing += u32::from(!thread.syncing);
                    thread.syncing = true;
                }
                Step::Synced => {
                    let time_ns = thread.now_ns - thread.begun_ns;
                    self.outcome.sync_times_ns.push(time_ns);
                    self.asked(number, false);
                }
                Step::Stall(_) if self.rule.frees_writers() => {}
                Step::Pass(ns) | Step::Stall(ns) => {
                    thread.now_ns = thread.now_ns.saturating_add(ns);
                }
                Step::Work(ns) => {
                    thread.work_ns = ns;
                    thread.works = true;
                    if thread.turn_ns.is_some() {
                        self.work(number, now_ns);
                    } else if self.enter(number, now_ns) {
                        self.begin_turn(number, now_ns);
                    }
                    return;
                }
                Step::Ask => {
                    if self.ask(number, now_ns) {
                        return;
                    }
                }
            }
        }
    }

    fn begin_turn(&mut self, number: usize, now_ns: u64) {
        self.threads[number].turn_ns = Some(SLICE_NS);
        self.work(number, now_ns);
    }

    /// A thread that has a processor works until its step is done or its turn is over.
    fn work(&mut self, number: usize, now_ns: u64) {
        let thread = &mut self.threads[number];
        let turn_ns = thread.turn_ns.unwrap_or(SLICE_NS);
        let ns = thread.work_ns.min(turn_ns);
        thread.work_ns -= ns;
        thread.turn_ns = Some(turn_ns - ns);
        self.events
            .push(Reverse((now_ns.saturating_add(ns), Event::Worked(number))));
    }

    fn worked(&mut self, number: usize, now_ns: u64) {
        let thread = &mut self.threads[number];
        if thread.work_ns > 0 {
            thread.turn_ns = None;
            if self.run_queue.is_empty() {
                self.begin_turn(number, now_ns);
                return;
            }
            self.hand_on(now_ns);
            // The first in the queue has the processor now.
            if self.enter(number, now_ns) {
                self.begin_turn(number, now_ns);
            }
            return;
        }
        thread.now_ns = now_ns;
        thread.works = false;
        self.walk(number, now_ns);
        // It keeps its processor from one piece of work to the next.
        let thread = &mut self.threads[number];
        if !thread.works && thread.turn_ns.take().is_some() {
            self.hand_on(now_ns);
        }
    }

    /// A processor goes to the next in the queue.
    fn hand_on(&mut self, now_ns: u64) {
        self.pace(now_ns);
        if let Some(next) = self.run_queue.leave() {
            self.begin_turn(next, now_ns);
        } else {
            self.set_commit_timer(now_ns);
        }
    }

    /// Whether a thread has a processor at once.
    fn enter(&mut self, number: usize, now_ns: u64) -> bool {
        self.pace(now_ns);
        let has_one = self.run_queue.enter(number);
        self.set_commit_timer(now_ns);
        has_one
    }

    /// Speed of the commit, as a share of that with a free processor.
    fn speed(&self) -> f64 {
        if self.run_queue.is_full() {
            (1.0 - self.commit_time.per_taken).max(SPEED_MIN)
        } else {
            1.0
        }
    }

    /// Notes the progress of the commit; called before processors are taken or left.
    fn pace(&mut self, now_ns: u64) {
        if self.journal == Journal::Writing {
            self.left_ns -= (now_ns - self.paced_ns) as f64 * self.speed();
            self.paced_ns = now_ns;
        }
    }

    /// Sets the end of the commit at its present speed.
    fn set_commit_timer(&mut self, now_ns: u64) {
        if self.journal == Journal::Writing {
            let ns = whole_ns(self.left_ns.max(0.0) / self.speed());
            self.set_timer(now_ns.saturating_add(ns));
        }
    }

    /// A thread asks for its transaction; false if that is committed.
    fn ask(&mut self, number: usize, now_ns: u64) -> bool {
        self.expect_no_more(number);
        let thread = &mut self.threads[number];
        let wanted = thread.joined.take().unwrap_or(self.open);
        let being_written = self.journal == Journal::Writing && wanted + 1 == self.open;
        self.asked(number, wanted == self.open || being_written);
        if wanted == self.open {
            self.waiting.push(number);
            self.last_asked_ns = now_ns;
            self.consider(now_ns);
            return true;
        }
        if being_written {
            self.served.push(number);
            return true;
        }
        // The commit may have been held for this thread alone.
        self.consider(now_ns);
        false
    }

    /// A thread inside a sync waits for a commit now, or need not.
    fn asked(&mut self, number: usize, waits: bool) {
        if std::mem::take(&mut self.threads[number].syncing) {
            self.syncing -= 1;
            let needless = if waits { 0.0 } else { 1.0 };
            self.needless += (needless - self.needless) / NEEDLESS_CALLS;
        }
    }

    fn expect_no_more(&mut self, number: usize) {
        let commits = self.outcome.commits;
        if let Some(by) = self.threads[number].released_by.take() {
            // Only of the last two commits threads are expected.
            if let Some(count) = usize::try_from(commits - by)
                .ok()
                .and_then(|age| self.expected.get_mut(age))
            {
                *count -= 1;
            }
        }
    }

    /// Starts the commit if a thread waits, none runs, and the rule allows it.
    fn consider(&mut self, now_ns: u64) {
        let since_ns = match self.journal {
            Journal::Idle => now_ns,
            Journal::Holding(since_ns) => since_ns,
            Journal::Starting | Journal::Writing => return,
        };
        if self.waiting.is_empty() {
            return;
        }
        let start_ns = match self.rule {
            Rule::Delay { idle_ns } => self.last_asked_ns.saturating_add(idle_ns),
            Rule::Luc => self.luc_holds_until_ns(since_ns).unwrap_or(now_ns),
            Rule::BestBatching if self.expected != [0, 0] => {
                since_ns.saturating_add(self.commit_avg_ns)
            }
            _ => now_ns,
        };
        if start_ns > now_ns {
            self.journal = Journal::Holding(since_ns);
            self.set_timer(start_ns);
        } else {
            self.journal = Journal::Starting;
            self.set_timer(now_ns.saturating_add(self.commit_time.lag_ns));
        }
    }

    /// Until when LUC's controller (`control/batching_pid.c`) holds a commit: for one average commit,
    /// longer while threads are inside a sync, and otherwise not beyond the idle timeout. None: no
    /// thread is expected.
    fn luc_holds_until_ns(&self, since_ns: u64) -> Option<u64> {
        let knobs = Params::default();
        let ns = |us: i64| u64::try_from(us).unwrap_or(0) * 1_000;
        let sure = whole_ns((1.0 - self.needless) * f64::from(self.syncing));
        if self.expected == [0, 0] && sure == 0 {
            return None;
        }
        let here = self.waiting.len().max(1) as u64;
        let avg_ns = self.commit_avg_ns;
        let more_ns =
            (avg_ns.saturating_mul(sure) / here).min(avg_ns.saturating_mul(SURE_LIMITS - 1));
        let limit_ns = avg_ns.saturating_add(more_ns).min(ns(knobs.delay_limit_us));
        let until_ns = since_ns.saturating_add(limit_ns);
        if sure > 0 {
            return Some(until_ns);
        }
        let idle_from_ns = self.last_asked_ns.max(since_ns);
        Some(until_ns.min(idle_from_ns.saturating_add(ns(knobs.idle_timeout_us))))
    }

    fn set_timer(&mut self, at_ns: u64) {
        self.timer += 1;
        self.events
            .push(Reverse((at_ns, Event::Journal(self.timer))));
    }

    fn on_journal_timer(&mut self, now_ns: u64) {
        match self.journal {
            Journal::Idle => {}
            Journal::Holding(_) => {
                self.journal = Journal::Starting;
                self.set_timer(now_ns.saturating_add(self.commit_time.lag_ns));
            }
            Journal::Starting => {
                self.journal = Journal::Writing;
                self.open += 1;
                self.served = std::mem::take(&mut self.waiting);
                self.left_ns = self.commit_time.at(self.served.len()) as f64;
                self.paced_ns = now_ns;
                self.locked_ns = now_ns;
                self.set_commit_timer(now_ns);
            }
            Journal::Writing => self.end_commit(now_ns),
        }
    }

    fn end_commit(&mut self, now_ns: u64) {
        self.journal = Journal::Idle;
        self.commit_avg_ns -= self.commit_avg_ns / 4;
        self.commit_avg_ns += (now_ns - self.locked_ns) / 4;
        self.outcome.commits += 1;
        let released = std::mem::take(&mut self.served);
        self.expected = [released.len(), self.expected[0]];
        for number in released {
            let thread = &mut self.threads[number];
            thread.released_by = Some(self.outcome.commits);
            self.events.push(Reverse((now_ns, Event::Thread(number))));
        }
        self.consider(now_ns);
    }
}
