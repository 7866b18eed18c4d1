//! A monotonic clock that jumps all the same: a virtual machine that stood still, a broken time
//! source. Commits are held again at once, none beyond its bound.

use luc_control::{Input, Params, Reason, State, Step, control_step};

const MS: i64 = 1_000_000;
const S: i64 = 1_000 * MS;
const COMMIT_NS: i64 = 4 * MS;
const GAP_NS: i64 = MS / 10;
/// Longest time until a held commit is looked at again: `LOOK_NS` of `kmod/commit.c`.
const LOOK_NS: i64 = MS;
/// The most of 400 commits that are free: those of a pair that LUC drops, and of the next one.
const FREE_MAX: usize = 128;

/// Where in a commit the clock jumps.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Gathering,
    Holding,
    Committing,
}

/// Tasks that sync in a loop.
#[derive(Clone)]
struct Journal {
    /// Tasks that ask for a commit while the last one runs, and all tasks.
    gathered: i64,
    tasks: i64,
    state: State,
    /// The clock that the controller reads, and how far it has jumped.
    now_ns: i64,
    jumped_ns: i64,
    /// The tasks that have not asked yet stay away.
    is_left: bool,
}

impl Journal {
    fn new((gathered, tasks): (i64, i64), trial_pairs: i64) -> Self {
        Self {
            gathered,
            tasks,
            state: State {
                trial_pairs,
                ..State::default()
            },
            now_ns: 10 * S,
            jumped_ns: 0,
            is_left: false,
        }
    }

    fn step(&mut self, step: Step, came_ns: &[i64]) -> (i64, i64) {
        let events = i64::try_from(came_ns.len()).expect("few");
        let input = Input {
            now_ns: self.now_ns,
            events,
            events_wait_ns: came_ns.iter().map(|came_ns| self.now_ns - came_ns).sum(),
            expected_events: self.tasks - events,
            last_event_ns: came_ns.iter().copied().max().unwrap_or(0),
            commit_avg_ns: COMMIT_NS,
            handles: 100 * events,
            ..Input::default()
        };
        let out = control_step(step, &Params::default(), &mut self.state, &input);
        (out.reason, out.wake_ns)
    }

    /// Runs one commit, in which the clock may jump; returns how long it was held.
    fn commit(&mut self, jump: Option<(Place, i64)>) -> i64 {
        let jump_at = |journal: &mut Self, here| {
            if let Some((_, jump_ns)) = jump.filter(|(place, _)| *place == here) {
                journal.now_ns += jump_ns;
                journal.jumped_ns += jump_ns;
            }
        };
        let mut came_ns: Vec<_> = (0..self.gathered)
            .map(|it| self.now_ns - it * GAP_NS)
            .collect();
        jump_at(self, Place::Gathering);
        let real_ns = |journal: &Self| journal.now_ns - journal.jumped_ns;
        let open_ns = real_ns(self);
        let (mut reason, mut wake_ns) = self.step(Step::Open, &came_ns);
        jump_at(self, Place::Holding);
        while reason == Reason::Hold.value() {
            if self.is_left {
                self.now_ns = wake_ns.clamp(self.now_ns, self.now_ns + LOOK_NS);
            } else {
                self.now_ns += GAP_NS;
                came_ns.push(self.now_ns);
            }
            (reason, wake_ns) = self.step(Step::Poll, &came_ns);
        }
        let held_ns = real_ns(self) - open_ns;
        self.step(Step::Close, &came_ns);
        self.now_ns += COMMIT_NS;
        jump_at(self, Place::Committing);
        held_ns
    }
}

#[test]
fn a_clock_that_jumps_harms_a_pair_at_most() {
    for jump_ns in [3600 * S, -S] {
        for place in [Place::Gathering, Place::Holding, Place::Committing] {
            for load in [(3, 8), (1, 4)] {
                for pairs in 0..4 {
                    let what = format!("{jump_ns} ns, {place:?}, {load:?} tasks, pair {pairs}");
                    let mut before = Journal::new(load, pairs);
                    for commit in 0..560 {
                        before.commit(None);
                        if commit >= 500 {
                            recovers(
                                before.clone(),
                                (place, jump_ns),
                                &format!("{what}, {commit}"),
                            );
                        }
                    }
                }
            }
        }
    }
}

fn recovers(mut journal: Journal, jump: (Place, i64), what: &str) {
    let mut left = journal.clone();
    left.is_left = true;
    let held_ns = left.commit(Some(jump)).max(journal.commit(Some(jump)));
    assert!(held_ns <= COMMIT_NS, "{what}: held for {held_ns} ns");
    let free = (0..400).filter(|_| journal.commit(None) == 0).count();
    assert!(free <= FREE_MAX, "{what}: {free} commits not held");
}
