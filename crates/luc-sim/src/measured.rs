//! The figures of a run.

use luc_base::{Latency, Recorder};

use crate::processors::TaskId;
use crate::program::{Op, Went};

/// The operations that ended within the measurement.
pub struct Measured {
    pub from_ns: u64,
    pub until_ns: u64,
    pub syncs: Recorder,
    /// Syncs by the commits that they waited for: none, one, two, more.
    pub syncs_by_commits: [u64; 4],
    pub writes: Recorder,
    pub creates: Recorder,
    pub closes: Recorder,
    /// For each task: how many files it closed, and the total time from their create to their
    /// close.
    pub files: Vec<(u64, u64)>,
    /// Writes that took longer than this count as delayed.
    pub delayed_over_ns: u64,
    pub writes_delayed: u64,
    pub commits: u64,
    /// Files that were removed at any time.
    pub removed: u64,
    /// When the create of each task's file began; `None` for a file that existed before.
    begun_ns: Vec<Option<u64>>,
    /// When the last operation ended.
    last_ns: u64,
}

impl Measured {
    /// Creates the figures for operations that end between these times.
    pub fn new(tasks: usize, from_ns: u64, until_ns: u64) -> Self {
        Self {
            from_ns,
            until_ns,
            syncs: Recorder::new(),
            syncs_by_commits: [0; 4],
            writes: Recorder::new(),
            creates: Recorder::new(),
            closes: Recorder::new(),
            files: vec![(0, 0); tasks],
            delayed_over_ns: u64::MAX,
            writes_delayed: 0,
            commits: 0,
            removed: 0,
            begun_ns: vec![None; tasks],
            last_ns: 0,
        }
    }

    /// Notes when the tasks begin; earlier commits do not count.
    pub(crate) fn start(&mut self, start_ns: u64) {
        self.from_ns += start_ns;
        self.until_ns = self.until_ns.saturating_add(start_ns);
        self.commits = 0;
    }

    fn holds(&self, at_ns: u64) -> bool {
        (self.from_ns..self.until_ns).contains(&at_ns)
    }

    /// Tells whether an operation counts. If the measurement has a fixed length, the operation must
    /// end within it. If it has a fixed number of operations, the create of the operation's file
    /// must begin within it; for a file that existed before, the operation itself.
    fn counts(&self, at: usize, went: &Went) -> bool {
        match self.until_ns {
            u64::MAX => self.begun_ns[at].unwrap_or(went.begun_ns) >= self.from_ns,
            _ => self.holds(went.ended_ns),
        }
    }

    /// Notes that an operation has ended.
    pub(crate) fn note(&mut self, task: TaskId, op: &Op, went: &Went) {
        let at = task as usize;
        if matches!(op, Op::Create { .. }) {
            self.begun_ns[at] = Some(went.begun_ns);
        }
        let holds = self.counts(at, went);
        self.last_ns = went.ended_ns;
        if holds && matches!(op, Op::Fsync | Op::SyncRange { .. }) {
            self.syncs_by_commits[went.commits_ahead().min(3) as usize] += 1;
        }
        match op {
            Op::Create { .. } if holds => self.creates.record(went.took_ns()),
            Op::Write { .. } if holds => {
                self.writes.record(went.took_ns());
                self.writes_delayed += u64::from(went.took_ns() > self.delayed_over_ns);
            }
            Op::Fsync if holds => self.syncs.record(went.took_ns()),
            Op::Close if holds => {
                self.closes.record(went.took_ns());
                let (count, sum_ns) = &mut self.files[at];
                *count += 1;
                *sum_ns += went.ended_ns - self.begun_ns[at].unwrap_or(went.begun_ns);
            }
            Op::Unlink => self.removed += 1,
            _ => {}
        }
    }

    /// Notes that a commit begins.
    pub(crate) fn commit(&mut self, at_ns: u64) {
        self.commits += u64::from(self.holds(at_ns));
    }

    /// Returns the length of the measurement, ns: to its end, or to the last operation.
    pub fn elapsed_ns(&self) -> u64 {
        let until_ns = match self.until_ns {
            u64::MAX => self.last_ns,
            until_ns => until_ns,
        };
        until_ns.saturating_sub(self.from_ns)
    }
}

/// Summarizes one kind of call.
pub fn latency(calls: &Recorder) -> Latency {
    Recorder::merged([calls])
}
