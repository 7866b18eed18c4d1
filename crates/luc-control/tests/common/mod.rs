//! A journal on virtual time, small enough to see through: threads think, sync
//! and wait for the commit that serves them; one commit runs at a time and
//! takes a fixed time. The controllers steer it as they steer a kernel's.
#![allow(dead_code)] // each test file uses its part

pub mod values;

use luc_control::{
    Decision, Dev, Input, Output, Params, Reason, Returns, State, Step, complete_events,
    control_step, replay::Item,
};

/// Fails unless an essay of `control/` holds these lines, which the code computed.
pub fn assert_written(essay: &str, lines: &[String]) {
    for line in lines {
        assert!(essay.contains(line), "not written:\n{}", lines.join("\n"));
    }
}

/// A small generator of random numbers (splitmix64): the same seed gives the
/// same run on every machine.
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 <= result < end
    pub fn below(&mut self, end: i64) -> i64 {
        let end = u64::try_from(end).expect("a positive bound");
        i64::try_from(self.next_u64() % end.max(1)).expect("smaller than end")
    }
}

/// The workload and the disk.
#[derive(Clone, Debug)]
pub struct Workload {
    pub threads: usize,
    /// Thread n first syncs at n times this.
    pub stagger_ns: i64,
    /// Time between a thread's release and its next sync, at least.
    pub think_ns: i64,
    /// Plus up to this much, at random.
    pub jitter_ns: i64,
    /// Duration of a commit.
    pub commit_ns: i64,
    /// Average that the journal knows before its first commit, 0 if none.
    pub commit_avg_ns: i64,
    /// Journal handles per commit, of which up to `delayed` get delayed.
    pub writes: i64,
    pub delayed: i64,
    /// One in this many steps is urgent; 0: none.
    pub urgent_every: i64,
    pub dev: Dev,
    pub seed: u64,
}

impl Workload {
    pub fn new(threads: usize, think_ns: i64, commit_ns: i64) -> Self {
        Self {
            threads,
            stagger_ns: 0,
            think_ns,
            jitter_ns: 0,
            commit_ns,
            commit_avg_ns: commit_ns,
            writes: 0,
            delayed: 0,
            urgent_every: 0,
            dev: Dev::default(),
            seed: 1,
        }
    }
}

/// One finished commit.
#[derive(Clone, Debug)]
pub struct Commit {
    pub events: i64,
    pub held_ns: i64,
    pub reason: Reason,
}

enum Thread {
    Thinking { until_ns: i64 },
    Waiting { tid: u32, since_ns: i64 },
}

enum Journal {
    Idle,
    Held { since_ns: i64, wake_ns: i64 },
    Committing { tid: u32, end_ns: i64 },
}

/// A run under way. `params` may be changed between commits.
pub struct Sim {
    pub params: Params,
    pub state: State,
    pub commits: Vec<Commit>,
    pub items: Vec<Item>,
    /// Time that syncs waited, summed, and their number.
    pub sync_ns: i64,
    pub syncs: i64,
    pub now_ns: i64,
    workload: Workload,
    threads: Vec<Thread>,
    journal: Journal,
    returns: Returns,
    rng: Rng,
    tid: u32,
    events: i64,
    last_event_ns: i64,
    /// When these came, summed up.
    came_ns: i64,
    /// When the open transaction was begun: here by the first that syncs.
    begun_ns: i64,
    /// The task that synced last, and whether it is the one that opened the batch, too.
    last_task: u32,
    same_task: bool,
    commit_avg_ns: i64,
}

impl Sim {
    pub fn new(workload: Workload, params: Params) -> Self {
        let mut threads = Vec::new();
        let mut until_ns = 1_000;
        for _ in 0..workload.threads {
            threads.push(Thread::Thinking { until_ns });
            until_ns += workload.stagger_ns;
        }
        Self {
            params,
            state: State::default(),
            commits: Vec::new(),
            items: Vec::new(),
            sync_ns: 0,
            syncs: 0,
            now_ns: 0,
            threads,
            journal: Journal::Idle,
            returns: Returns::new(),
            rng: Rng(workload.seed),
            // Close to the end: the numbers wrap during every run.
            tid: u32::MAX - 5,
            events: 0,
            last_event_ns: 0,
            came_ns: 0,
            begun_ns: 0,
            last_task: 0,
            same_task: false,
            commit_avg_ns: workload.commit_avg_ns,
            workload,
        }
    }

    /// Runs until so many commits have started in all.
    pub fn run(&mut self, commits: usize) -> &mut Self {
        while self.commits.len() < commits {
            self.advance();
        }
        self
    }

    /// Sync events of the last n commits.
    pub fn last_events(&self, n: usize) -> Vec<i64> {
        let from = self.commits.len().saturating_sub(n);
        self.commits[from..].iter().map(|one| one.events).collect()
    }

    pub fn held_ns(&self) -> i64 {
        self.commits.iter().map(|one| one.held_ns).sum()
    }

    /// Handles the next thing to happen.
    fn advance(&mut self) {
        let thread = self
            .threads
            .iter()
            .enumerate()
            .filter_map(|(at, thread)| match thread {
                Thread::Thinking { until_ns } => Some((*until_ns, at)),
                Thread::Waiting { .. } => None,
            })
            .min();
        let journal_ns = match self.journal {
            Journal::Idle => None,
            Journal::Held { wake_ns, .. } => Some(wake_ns.max(self.now_ns)),
            Journal::Committing { end_ns, .. } => Some(end_ns),
        };
        match (thread, journal_ns) {
            (Some((until_ns, at)), None) => self.arrive(at, until_ns),
            (Some((until_ns, at)), Some(journal_ns)) if until_ns < journal_ns => {
                self.arrive(at, until_ns);
            }
            (_, Some(journal_ns)) => {
                self.now_ns = journal_ns;
                self.journal_wakes();
            }
            (None, None) => panic!("all threads wait and no commit runs"),
        }
    }

    fn arrive(&mut self, at: usize, now_ns: i64) {
        self.now_ns = now_ns;
        let task = u32::try_from(at + 1).expect("few threads");
        self.returns.arrive(task, self.tid);
        if self.events == 0 {
            self.same_task = self.last_task == task;
            self.begun_ns = now_ns;
        }
        self.last_task = task;
        self.events += 1;
        self.last_event_ns = now_ns;
        self.came_ns += now_ns;
        self.threads[at] = Thread::Waiting {
            tid: self.tid,
            since_ns: now_ns,
        };
        match self.journal {
            Journal::Idle => self.look(Step::Open, now_ns),
            Journal::Held { since_ns, .. } => {
                if self.events >= complete_events(&self.params, &self.state) {
                    self.look(Step::Poll, since_ns);
                }
            }
            Journal::Committing { .. } => {}
        }
    }

    fn journal_wakes(&mut self) {
        match self.journal {
            Journal::Idle => {}
            Journal::Held { since_ns, .. } => self.look(Step::Poll, since_ns),
            Journal::Committing { tid, .. } => self.end_commit(tid),
        }
    }

    fn look(&mut self, step: Step, since_ns: i64) {
        let out = self.step(step);
        if out.reason == Reason::Hold.value() {
            self.journal = Journal::Held {
                since_ns,
                wake_ns: out.wake_ns,
            };
            return;
        }
        self.step(Step::Close);
        self.commits.push(Commit {
            events: self.events,
            held_ns: self.now_ns - since_ns,
            reason: Reason::from_value(out.reason).expect("a reason"),
        });
        self.journal = Journal::Committing {
            tid: self.tid,
            end_ns: self.now_ns + self.workload.commit_ns,
        };
        self.tid = self.tid.wrapping_add(1);
        self.events = 0;
        self.last_event_ns = 0;
        self.came_ns = 0;
    }

    fn end_commit(&mut self, ended: u32) {
        let commit_ns = self.workload.commit_ns;
        // As jbd2 averages.
        self.commit_avg_ns = if self.commit_avg_ns == 0 {
            commit_ns
        } else {
            (commit_ns + 3 * self.commit_avg_ns) / 4
        };
        for thread in &mut self.threads {
            if let Thread::Waiting { tid, since_ns } = *thread
                && tid == ended
            {
                self.sync_ns += self.now_ns - since_ns;
                self.syncs += 1;
                let think_ns = self.workload.think_ns + self.rng.below(self.workload.jitter_ns + 1);
                let until_ns = self.now_ns + think_ns;
                *thread = Thread::Thinking { until_ns };
            }
        }
        self.step(Step::Copyout);
        self.journal = Journal::Idle;
        if self.events > 0 {
            self.look(Step::Open, self.now_ns);
        }
    }

    fn step(&mut self, step: Step) -> Output {
        let mut input = Input {
            now_ns: self.now_ns,
            ..Input::default()
        };
        if step == Step::Copyout {
            input.handles = self.workload.writes;
            let delayed = self.rng.below(self.workload.delayed + 1);
            if self.state.copy_phase == 1 {
                input.buffers_spared = delayed;
                input.copy_ns = 5_000;
            } else {
                input.writes_delayed = delayed;
                input.writes_delay_ns = delayed * 100_000;
            }
        } else {
            input.events = self.events;
            input.events_wait_ns = self.events * self.now_ns - self.came_ns;
            input.expected_events = self.returns.expected(self.tid);
            input.last_event_ns = self.last_event_ns;
            input.commit_avg_ns = self.commit_avg_ns;
            input.age_ns = self.now_ns - self.begun_ns;
            input.same_task = i64::from(self.same_task);
            let every = self.workload.urgent_every;
            input.urgent = i64::from(every > 0 && self.rng.below(every) == 0);
        }
        let mut decision = Decision {
            step: step.value(),
            params: self.params,
            input,
            state: self.state,
            out: Output::default(),
        };
        decision.out = control_step(step, &self.params, &mut self.state, &input);
        let out = decision.out;
        self.items.push(Item::Decision {
            dev: self.workload.dev,
            tid: self.tid,
            decision: Box::new(decision),
        });
        out
    }
}
