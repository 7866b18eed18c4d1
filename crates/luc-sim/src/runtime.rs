//! LUC as it runs inside the kernel: gathers input, asks `control/`, and holds commits.
//!
//! Does what `kmod/sync.c` and `kmod/commit.c` do, on the simulated journal. The steps themselves
//! are those of the C code that the module runs.

use luc_control::{
    Copies, Input, Mode, Output, Params, Reason, Returns, State, Step, complete_events,
    control_step,
};
use luc_trace::Event;

use crate::journal::{Journal, Tid};
use crate::processors::TaskId;
use crate::recorder::{DEV, Recorder, pid};

/// Longest time until a held commit is looked at again, ns: `LOOK_NS` of `kmod/commit.c`.
const LOOK_NS: u64 = 1_000_000;

/// Shortest time over which the processors' share of busy time is taken, ns: `BUSY_NS` there.
const BUSY_NS: u64 = 50_000_000;

/// The next step of the journal's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Commit,
    /// The thread sleeps until this time, or until a task completes the batch.
    Hold {
        until_ns: u64,
    },
}

pub struct Runtime {
    params: Params,
    state: State,
    returns: Returns,
    batch_tid: Tid,
    batch_events: i64,
    first_event_ns: u64,
    last_event_ns: u64,
    after_first_ns: i64,
    last_task: Option<TaskId>,
    is_same_task: bool,
    hold: Option<Hold>,
    /// The last transaction that a task outside a sync call waits for; 0 if none.
    urgent_tid: Tid,
    busy: BusyShare,
    delayed: Delays,
    /// The part of `delayed` that earlier steps have seen.
    seen: Delays,
    /// Which buffers the commit under way writes as copies.
    pub copies: Copies,
}

/// A commit that is held.
#[derive(Clone, Copy, Debug)]
struct Hold {
    since_ns: u64,
    /// Number of sync events that completes its batch.
    complete_events: i64,
}

/// How busy processors were between the last two looks at them.
#[derive(Clone, Copy, Debug, Default)]
struct BusyShare {
    looked_ns: u64,
    /// How long a processor had been busy by then, on average.
    busy_ns: u64,
    permille: i64,
}

impl BusyShare {
    fn look(&mut self, busy_ns: impl FnOnce() -> u64, now_ns: u64) {
        let took_ns = now_ns - self.looked_ns;
        if took_ns < BUSY_NS {
            return;
        }
        let busy_ns = busy_ns();
        *self = Self {
            looked_ns: now_ns,
            busy_ns,
            permille: ns((busy_ns - self.busy_ns) * 1000 / took_ns),
        };
    }
}

/// Numbers of writers that slept on buffers, and of buffers whose copy spared a writer the sleep.
#[derive(Clone, Copy, Debug, Default)]
struct Delays {
    writes: i64,
    spared: i64,
}

impl Runtime {
    pub fn new(params: Params) -> Self {
        Self {
            params,
            state: State::default(),
            returns: Returns::new(),
            batch_tid: 0,
            batch_events: 0,
            first_event_ns: 0,
            last_event_ns: 0,
            after_first_ns: 0,
            last_task: None,
            is_same_task: false,
            hold: None,
            urgent_tid: 0,
            busy: BusyShare::default(),
            delayed: Delays::default(),
            seen: Delays::default(),
            copies: Copies::None,
        }
    }

    /// Takes over what copy-out learned in an earlier run, and what it has yet to hear of its last
    /// commit.
    pub fn follow(&mut self, earlier: &Self) {
        self.state.copy_left_commits = earlier.state.copy_left_commits;
        self.copies = earlier.copies;
        (self.delayed, self.seen) = (earlier.delayed, earlier.seen);
    }

    /// Sets the knobs, from the next step on.
    pub fn set(&mut self, params: Params) {
        self.params = params;
    }

    /// Returns the state of the controllers.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Notes that a task begins a sync call.
    pub fn entered(&mut self, task: TaskId) {
        self.returns.enter(pid(task), self.batch_tid);
    }

    /// Notes that a task in a sync call asks for a commit. Returns true if that completes a held
    /// batch.
    pub fn arrived(&mut self, task: TaskId, tid: Tid, now_ns: u64) -> bool {
        if !self.returns.arrive(pid(task), tid) {
            return false;
        }
        if tid > self.batch_tid {
            self.batch_tid = tid;
            self.batch_events = 0;
            self.is_same_task = self.last_task == Some(task);
            self.first_event_ns = now_ns;
            self.after_first_ns = 0;
        }
        if tid != self.batch_tid {
            return false;
        }
        self.batch_events += 1;
        self.last_event_ns = now_ns;
        self.last_task = Some(task);
        self.after_first_ns += ns(now_ns - self.first_event_ns);
        self.hold
            .is_some_and(|hold| self.batch_events >= hold.complete_events)
    }

    /// Notes that a task outside a sync call waits for a commit.
    pub fn urged(&mut self, tid: Tid) {
        self.urgent_tid = tid;
    }

    /// Notes that a task slept on a buffer.
    pub fn delayed(&mut self) {
        self.delayed.writes += 1;
    }

    /// Notes that a task needed a buffer that has a copy.
    pub fn spared(&mut self) {
        self.delayed.spared += 1;
    }

    /// Decides whether the journal's thread commits now or holds the commit. The thread asks before
    /// it commits, and again for a held commit. `busy_ns` tells how long a processor was busy so
    /// far, on average.
    pub fn look(
        &mut self,
        journal: &Journal,
        average_ns: u64,
        busy_ns: impl FnOnce() -> u64,
        now_ns: u64,
        recorder: &mut Recorder,
    ) -> Decision {
        let tid = journal.running.as_ref().map_or(0, |it| it.tid);
        if self.hold.is_none() {
            self.busy.look(busy_ns, now_ns);
        }
        let input = self.sense(journal, average_ns, now_ns);
        let step = if self.hold.is_some() {
            Step::Poll
        } else {
            self.copy_out(tid, &input, recorder);
            Step::Open
        };
        let out = self.step(step, tid, &input, recorder);
        let since_ns = self.hold.map_or(now_ns, |hold| hold.since_ns);
        let steers = self.params.mode == Mode::Steer.value();
        if out.reason == Reason::Hold.value() && steers {
            self.hold = Some(Hold {
                since_ns,
                complete_events: complete_events(&self.params, &self.state),
            });
            let wake_ns = u64::try_from(out.wake_ns).unwrap_or(0);
            return Decision::Hold {
                until_ns: wake_ns.clamp(now_ns, now_ns + LOOK_NS),
            };
        }
        self.hold = None;
        self.step(Step::Close, tid, &input, recorder);
        recorder.line(now_ns, || Event::Commit {
            dev: DEV,
            tid,
            events: input.events,
            setpoint_events: self.state.setpoint_now_events,
            held_ns: ns(now_ns - since_ns),
            reason: Reason::from_value(out.reason).unwrap_or(Reason::Now),
            steer: steers,
        });
        Decision::Commit
    }

    /// Runs a step of the controllers; a recording holds everything that the step saw.
    fn step(&mut self, step: Step, tid: Tid, input: &Input, recorder: &mut Recorder) -> Output {
        let before = self.state;
        let out = control_step(step, &self.params, &mut self.state, input);
        let time_ns = u64::try_from(input.now_ns).unwrap_or(0);
        recorder.line(time_ns, || Event::Decision {
            dev: DEV,
            tid,
            decision: Box::new(luc_control::Decision {
                step: step.value(),
                params: self.params,
                input: *input,
                state: before,
                out,
            }),
        });
        out
    }

    /// Tells copy-out how the commit that ended delayed writers, and lets it choose what to copy.
    fn copy_out(&mut self, tid: Tid, of_commit: &Input, recorder: &mut Recorder) {
        let input = Input {
            now_ns: of_commit.now_ns,
            handles: of_commit.handles,
            writes_delayed: self.delayed.writes - self.seen.writes,
            buffers_spared: self.delayed.spared - self.seen.spared,
            ..Input::default()
        };
        self.seen = self.delayed;
        let out = self.step(Step::Copyout, tid, &input, recorder);
        self.copies = Copies::from_value(out.copy)
            .filter(|_| self.params.mode == Mode::Steer.value())
            .unwrap_or(Copies::None);
    }

    fn sense(&mut self, journal: &Journal, average_ns: u64, now_ns: u64) -> Input {
        let running = journal.running.as_ref();
        let tid = running.map_or(0, |it| it.tid);
        let events = if self.batch_tid == tid {
            self.batch_events
        } else {
            0
        };
        let mut input = Input {
            now_ns: ns(now_ns),
            events,
            expected_events: self.returns.expected(tid),
            syncing_events: self.returns.syncing(tid),
            handles: running.map_or(0, |it| i64::from(it.handles)),
            age_ns: ns(now_ns - running.map_or(now_ns, |it| it.begun_ns)),
            commit_avg_ns: ns(average_ns),
            busy_permille: self.busy.permille,
            urgent: i64::from(
                journal.is_short() || journal.has_lock_waiters() || self.urgent_tid == tid,
            ),
            ..Input::default()
        };
        if events > 0 {
            input.events_wait_ns = events * ns(now_ns - self.first_event_ns) - self.after_first_ns;
            input.last_event_ns = ns(self.last_event_ns);
            input.same_task = i64::from(self.is_same_task);
        }
        input
    }
}

/// Simulated times stay far below 2^63 ns, 292 years.
fn ns(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
